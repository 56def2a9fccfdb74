"""Kernels of concepts: scikit-learn under ties, plain bootstraps, threads, one pass or several."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from concept_worlds import world
from equipoise.core.errors import InputError
from equipoise.metrics.concepts.cells import (
    Metric,
    fixed_prevalence,
    metric_of_sums,
    packed_rows,
    weighted_sums,
)
from equipoise.metrics.concepts.disparity import concept_metrics, concept_results
from equipoise.metrics.concepts.inputs import Choices, Prevalence
from equipoise.stats.poisson import _POISSON, unit_times
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import unit_uniforms

METRICS: tuple[Metric, ...] = get_args(Metric)
QUICK = Bootstrap(permutations=99, resolution=1.0)

rows = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40).filter(
    lambda found: len({label for _, label in found}) == 2
)


def packed(scores: Any, labels: Any, measured: Any = None) -> Any:
    bits = np.zeros(len(scores), np.uint8) if measured is None else measured
    every = np.arange(len(scores), dtype=np.int32)
    return packed_rows(np.asarray(scores, float), np.asarray(labels, bool), bits, every)


def weighted(scores: Any, labels: Any, times: Any, ratio: float | None, measured: Any) -> Any:
    every = np.arange(len(scores), dtype=np.int32)
    totals = times.sum(axis=0, dtype=np.int32)
    found = packed(scores, labels, measured)
    return weighted_sums(found, every, measured, (times, totals), ratio)


@given(rows, st.sampled_from([None, 1.0, 2.5]), st.integers(0, 10**6))
def test_weighted_replicates_are_what_scikit_learn_gives_for_repeated_rows(
    found: list[tuple[int, bool]], ratio: float | None, seed: int
) -> None:
    scores, labels = (np.array(one) for one in zip(*found, strict=True))
    times = np.random.default_rng(seed).poisson(1.0, (len(labels), 4)).astype(np.uint8)
    times[:, 0] = 1
    measured = (2 + (scores >= 0)).astype(np.uint8)
    sums = weighted(scores, labels, times, ratio, measured)
    values = {metric: metric_of_sums(metric, sums, ratio) for metric in METRICS}
    for index, count in enumerate(times.T.astype(float)):
        positives, negatives = count[labels].sum(), count[~labels].sum()
        if positives == 0 or negatives == 0:
            assert np.isnan(values["auroc"][index])
            continue
        weight = (
            count if ratio is None else count * np.where(labels, 1, ratio * positives / negatives)
        )
        expected = {
            "average_precision": sk.average_precision_score(labels, scores, sample_weight=weight),
            "auroc": sk.roc_auc_score(labels, scores, sample_weight=weight),
            "true_positive_rate": sk.recall_score(labels, scores >= 0, sample_weight=weight),
            "false_positive_rate": 1
            - sk.recall_score(labels, scores >= 0, pos_label=0, sample_weight=weight),
            "f1": sk.f1_score(labels, scores >= 0, sample_weight=weight, zero_division=0),
        }
        if weight[scores >= 0].sum():
            expected["precision"] = sk.precision_score(labels, scores >= 0, sample_weight=weight)
        else:
            assert np.isnan(values["precision"][index])
        for metric, value in expected.items():
            assert values[metric][index] == pytest.approx(value, abs=1e-12)  # type: ignore[index]


def test_images_count_as_often_as_their_uniform_numbers_say() -> None:
    keys = np.array([3, 1 << 63, 3, 77, 2**64 - 1], dtype=np.uint64)
    times = unit_times(keys, 200, 9)
    uniforms = unit_uniforms(9, "bootstrap", keys, range(200))
    assert (times[:, 0] == 1).all()
    assert (np.searchsorted(_POISSON, uniforms, side="right") == times[:, 1:].T).all()
    many = unit_times(np.arange(5000, dtype=np.uint64), 20, 1)[:, 1:]
    assert (many[4096:] == unit_times(np.arange(4096, 5000, dtype=np.uint64), 20, 1)[:, 1:]).all()
    assert many.mean() == pytest.approx(1.0, abs=4 / np.sqrt(100_000))


@pytest.mark.parametrize("decimals", [1, 12])
def test_halls_draws_are_those_of_a_plain_bootstrap(decimals: int) -> None:
    """With ties and without: the distribution of every metric, and the prevalence."""
    rng = np.random.default_rng(3)
    labels = rng.random(700) < 0.2
    scores = np.round(rng.standard_normal(700) + labels, decimals)
    test = rng.random(700) < 0.8
    measured = (2 * test + (test & (scores >= 0.5))).astype(np.uint8)
    positives, negatives = 100, 300
    many = (positives, negatives, 80, 240)
    sums = fixed_prevalence(packed(scores, labels, measured), labels, many, (0, "c", "g"), 600)
    assert (sums[2] == positives).all()
    assert (sums[3] == negatives).all()
    assert (sums[4] + sums[5] == 80).all()
    assert (sums[6] + sums[7] == 240).all()
    plain: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for _ in range(600):
        drawn = np.concatenate(
            [rng.choice(np.flatnonzero(labels), 100), rng.choice(np.flatnonzero(~labels), 300)]
        )
        plain["average_precision"].append(sk.average_precision_score(labels[drawn], scores[drawn]))
        plain["auroc"].append(sk.roc_auc_score(labels[drawn], scores[drawn]))
        hit, mistake = (
            rng.choice(scores[test & which], size) >= 0.5
            for which, size in ((labels, 80), (~labels, 240))
        )
        plain["true_positive_rate"].append(hit.mean())
        plain["false_positive_rate"].append(mistake.mean())
        plain["precision"].append(hit.sum() / (hit.sum() + mistake.sum()))
        plain["f1"].append(2 * hit.sum() / (80 + hit.sum() + mistake.sum()))
    for metric in METRICS:
        ours = metric_of_sums(metric, sums, None)
        assert stats.ks_2samp(ours, plain[metric]).pvalue > 1e-3
        assert ours.std() == pytest.approx(np.std(plain[metric]), rel=0.15)


def test_halls_samples_follow_the_weighted_metric_of_all_rows() -> None:
    scores, labels, _ = world(0)
    score, truth = np.ascontiguousarray(scores[:, 0]), np.ascontiguousarray(labels[:, 0])
    some = packed(score, truth)
    values = metric_of_sums(
        "average_precision", fixed_prevalence(some, truth, (40, 200, 0, 0), (0, "c", "g"), 20), None
    )
    weight = np.where(truth, 1.0, 5 * truth.sum() / (~truth).sum())
    expected = sk.average_precision_score(truth, score, sample_weight=weight)
    assert values.mean() == pytest.approx(expected, abs=4 * values.std())


def test_a_sample_is_measured_as_scikit_learn_does() -> None:
    # One row of each kind in the pools: every sample is known.
    scores, labels = np.array([1.0, 0.5, 0.5, 2.0]), np.array([True, True, False, False])
    for kept in ([0, 2], [1, 2], [0, 3]):
        some = packed(scores[kept], labels[kept])
        sums = fixed_prevalence(some, labels[kept], (7, 14, 0, 0), (0, "c", "g"), 3)
        truth = np.repeat(labels[kept], (7, 14))
        for metric, score in (
            ("average_precision", sk.average_precision_score),
            ("auroc", sk.roc_auc_score),
        ):
            expected = score(truth, np.repeat(scores[kept], (7, 14)))
            assert metric_of_sums(metric, sums, None) == pytest.approx([expected] * 3, abs=1e-12)  # type: ignore[arg-type]


def test_rows_are_drawn_uniformly() -> None:
    scores = np.arange(40.0)
    labels = np.arange(40) < 7
    measured = np.full(40, 2, np.uint8)
    hits = np.zeros(40)
    for row in range(40):
        bits = measured.copy()
        bits[row] = 3
        sums = fixed_prevalence(
            packed(scores, labels, bits), labels, (70, 330, 70, 330), (0, "c", "g"), 50
        )
        hits[row] = (sums[4] + sums[6]).sum()
    # The same draws each time: the counts of all rows make up all draws.
    assert hits[:7].sum() == 70 * 50
    assert hits[7:].sum() == 330 * 50
    assert stats.chisquare(hits[:7]).pvalue > 1e-3
    assert stats.chisquare(hits[7:]).pvalue > 1e-3


@pytest.mark.parametrize("spread", ["normal", "probabilities", "one value", "huge"])
def test_cells_of_any_scores(spread: str) -> None:
    rng = np.random.default_rng(1)
    labels = rng.random(500) < 0.3
    scores = {
        "normal": rng.standard_normal(500),
        "probabilities": np.exp(-40 * rng.random(500)),
        "one value": np.full(500, 0.25),
        "huge": rng.choice([-1.5e308, -1.0, 1e-300, 1.0, 1.5e308], 500),
    }[spread]
    found, many = packed(scores, labels)
    rising = np.unique(scores[labels])
    assert many == len(rising)
    below = np.searchsorted(rising, scores)
    equal = np.isin(scores, rising)
    expected = np.where(
        labels, 3 * (many - 1 - below) + 1, 3 * (many - below) - np.where(equal, 1, 0)
    )
    assert (found >> 2 == expected).all()


@pytest.mark.parametrize("prevalence", ["hall", "weighted", "observed"])
def test_all_metrics_in_one_pass_are_those_of_several(prevalence: Prevalence) -> None:
    scores, labels, group = world(20, n=900, concepts=3)
    scores = scores.round(1)
    choices = Choices(prevalence=prevalence, min_positives=20, replicates=60)
    together = concept_metrics(scores, labels, group, METRICS, choices, resampling=QUICK)
    assert [*together] == [*METRICS]
    for metric in METRICS:
        alone = concept_results(
            scores,
            labels,
            group,
            Choices(metric, prevalence, min_positives=20, replicates=60),
            resampling=QUICK,
        )
        found = together[metric]
        assert found.choices == alone.choices
        assert found.observed.tobytes() == alone.observed.tobytes()
        assert found.boot is not None
        assert alone.boot is not None
        assert found.boot.tobytes() == alone.boot.tobytes()
        assert found.thresholds.tobytes() == alone.thresholds.tobytes()
        assert found.null_text == alone.null_text
        for one, other in zip(found.null, alone.null, strict=True):
            assert (one is None) == (other is None) == (prevalence == "hall")
            assert one is None or other is None or one.tobytes() == other.tobytes()


@pytest.mark.parametrize("prevalence", ["hall", "weighted"])
def test_threads_do_not_change_a_byte(
    prevalence: Prevalence, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = world(21, n=1500, concepts=20)
    found = []
    for count in ("1", "2"):
        monkeypatch.setenv("EQUIPOISE_THREADS", count)
        results = concept_metrics(
            *data, METRICS, Choices(prevalence=prevalence, replicates=40), resampling=QUICK
        )
        found.append([(one.observed.tobytes(), one.boot.tobytes()) for one in results.values()])  # type: ignore[union-attr]
    assert found[0] == found[1]


class Columns:
    """Columns that are read one at a time, and remember how often."""

    def __init__(self, names: list[str], values: np.ndarray) -> None:
        self.names, self.values, self.read = names, values, 0

    def column(self, name: str) -> np.ndarray:
        self.read += 1
        return self.values[:, self.names.index(name)]


def test_columns_one_at_a_time_memory_maps_and_half_precision(tmp_path: Any) -> None:
    scores, labels, group = world(22, n=800, concepts=11)
    scores = scores.astype(np.float16)
    some = group.astype(object)
    some[7] = None
    names = [f"c{index}" for index in range(11)]
    choices = Choices(min_positives=10, replicates=20)
    whole = concept_results(scores, labels, some, choices, concepts=names, resampling=QUICK)
    np.save(tmp_path / "scores.npy", scores)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    by_column = Columns(names, scores), Columns(names, labels.astype(np.uint8))
    for one in (
        concept_results(mapped, labels, some, choices, concepts=names, resampling=QUICK),
        concept_results(
            np.asfortranarray(scores), labels, some, choices, concepts=names, resampling=QUICK
        ),
        concept_results(*by_column, some, choices, resampling=QUICK),
    ):
        assert one.names == whole.names
        assert one.boot is not None
        assert whole.boot is not None
        assert one.boot.tobytes() == whole.boot.tobytes()
    # Once for the number of rows, once to measure.
    assert by_column[0].read == 12


def test_bad_columns() -> None:
    scores, labels, group = world(23, n=40, concepts=2)
    with pytest.raises(
        InputError, match=r"^labels: column 'c'; expected 'b', the concepts as in scores$"
    ):
        concept_results(Columns(["a", "b"], scores), Columns(["a", "c"], labels), group)
    ragged = Columns(["a", "b"], scores)
    ragged.column = lambda name: scores[: 40 if name == "a" else 39, 0]  # type: ignore[method-assign]
    with pytest.raises(
        InputError, match=r"^scores, column 'b': shape \(39,\); expected \(40,\), as column 'a'$"
    ):
        concept_results(ragged, labels, group)
    with pytest.raises(InputError, match=r"^metrics: none; expected at least one$"):
        concept_metrics(scores, labels, group, ())
    with pytest.raises(InputError, match=r"^metric='map': expected one of "):
        concept_metrics(scores, labels, group, ("auroc", "map"))  # type: ignore[arg-type]
