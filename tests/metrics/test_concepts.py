"""Disparities by concept: goldens, scikit-learn, draws, who takes part, worlds, bad input."""

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from concept_worlds import world
from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import (
    Metric,
    best_f1_threshold,
    metric_of,
    ranked_cells,
    threshold_cells,
)
from equipoise.metrics.concepts.disparity import (
    concept_disparity,
    concept_hit_rate,
    concept_results,
)
from equipoise.metrics.concepts.inputs import Choices
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from goldens import cases

GOLDEN = cases("concepts.json")
METRICS: tuple[Metric, ...] = get_args(Metric)
QUICK = Bootstrap(permutations=99, resolution=1.0)


def ranked(scores: Any, labels: Any, metric: Metric, ratio: float | None = None) -> float:
    cells = ranked_cells(np.asarray(scores, float), np.asarray(labels, bool))
    table = np.bincount(cells.cell, minlength=cells.size).astype(float)
    return float(metric_of(metric, table[None], ratio)[0])


def parts(found: Any, metric: str) -> list[dict[str, Any]]:
    return [one for one in found.by.to_pylist() if one["metric"] == metric]


@pytest.mark.parametrize("case", GOLDEN)
def test_goldens(case: dict[str, Any]) -> None:
    scores, labels = case["scores"], case["labels"]
    assert ranked(scores, labels, "average_precision") == pytest.approx(
        case["average_precision"], abs=1e-12
    )
    assert ranked(scores, labels, "auroc") == pytest.approx(case["auroc"], abs=1e-12)
    threshold, f1 = best_f1_threshold(scores, labels)
    assert threshold == case["best_f1_threshold"]
    assert f1 == pytest.approx(case["best_f1"], abs=1e-12)


rows = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40).filter(
    lambda found: len({label for _, label in found}) == 2
)


@given(rows, st.integers(1, 4))
def test_agrees_with_scikit_learn_under_ties(found: list[tuple[int, bool]], ratio: int) -> None:
    scores, labels = (np.array(one) for one in zip(*found, strict=True))
    assert ranked(scores, labels, "average_precision") == pytest.approx(
        sk.average_precision_score(labels, scores), abs=1e-12
    )
    assert ranked(scores, labels, "auroc") == pytest.approx(
        sk.roc_auc_score(labels, scores), abs=1e-12
    )
    weights = np.where(labels, 1.0, ratio * labels.sum() / (~labels).sum())
    assert ranked(scores, labels, "average_precision", ratio) == pytest.approx(
        sk.average_precision_score(labels, scores, sample_weight=weights), abs=1e-12
    )
    threshold, f1 = best_f1_threshold(scores, labels)
    every = {t: sk.f1_score(labels, scores >= t) for t in np.unique(scores)}
    assert f1 == pytest.approx(max(every.values()), abs=1e-12)
    assert threshold == max(t for t, one in every.items() if one > f1 - 1e-12)
    at_threshold(scores, labels, threshold, weights, ratio)


def at_threshold(scores: Any, labels: Any, threshold: float, weights: Any, ratio: int) -> None:
    cells = threshold_cells(scores, labels, threshold, np.ones(len(labels), bool))
    table = np.bincount(cells.cell, minlength=4).astype(float)[None]
    predicted = scores >= threshold
    expected = {
        "true_positive_rate": sk.recall_score(labels, predicted),
        "false_positive_rate": 1 - sk.recall_score(labels, predicted, pos_label=False),
        "precision": sk.precision_score(labels, predicted, sample_weight=weights),
        "f1": sk.f1_score(labels, predicted, sample_weight=weights),
    }
    for metric, value in expected.items():
        assert metric_of(metric, table, ratio)[0] == pytest.approx(value, abs=1e-12)  # type: ignore[arg-type]


def test_value_and_parts() -> None:
    scores, labels, group = world(1, concepts=3)
    found = concept_disparity(scores, labels, group, resampling=QUICK, concepts=["x", "y", "z"])
    values = np.array(
        [
            [
                ranked(scores[group == g, c], labels[group == g, c], "average_precision", 5)
                for g in ("a", "b")
            ]
            for c in range(3)
        ]
    )
    assert found.value == pytest.approx(abs(values[:, 0].mean() - values[:, 1].mean()), abs=1e-12)
    for index, one in enumerate(parts(found, "average_precision")):
        assert one["subject"] == "xyz"[index]
        assert [g["value"] for g in one["by_group"]] == pytest.approx(values[index], abs=1e-12)
        assert one["value"] == pytest.approx(abs(np.diff(values[index])[0]), abs=1e-12)
        assert one["low"] <= one["value"] <= one["high"]
        assert one["chance"] > 0
    # Prevalence stands beside it.
    prevalence = parts(found, "prevalence")
    assert [g["value"] for g in prevalence[1]["by_group"]] == pytest.approx(
        [labels[group == g, 1].mean() for g in ("a", "b")]
    )
    names = [one["subject"] for one in parts(found, "concept_difference")]
    assert names == ["a − b", "x: a − b", "y: a − b", "z: a − b"]
    assert found.n == {"a": int((group == "a").sum()), "b": int((group == "b").sum())}
    assert found.chance is not None
    assert found.null.startswith("bootstrap replicates centred at no difference (asymptotic)")


def test_all_pairs_and_their_maximum() -> None:
    scores, labels, _ = world(2, n=1500)
    group = np.array(["p", "q", "r"])[np.arange(1500) % 3]
    found = concept_disparity(scores, labels, group, resampling=QUICK, min_positives=20)
    pairs = parts(found, "concept_difference")[:3]
    assert [one["subject"] for one in pairs] == ["p − q", "p − r", "q − r"]
    assert found.value == max(abs(one["value"]) for one in pairs)
    interval = found.interval()
    assert interval.low <= found.value <= interval.high


def test_threshold_is_tuned_on_the_validation_split_alone() -> None:
    scores, labels, group = world(3, concepts=2)
    results = concept_results(scores, labels, group, Choices("f1"), resampling=None)
    again = concept_results(scores, labels, group, Choices("f1"), resampling=None, rng=5)
    assert set(results.thresholds) <= set(scores.ravel())
    assert (results.thresholds != again.thresholds).any()
    assert concept_results(scores, labels, group, resampling=None).thresholds.tolist() != []
    assert np.isnan(concept_results(scores, labels, group, resampling=None).thresholds).all()
    # One sure positive in each stratum's 20 % decides nothing: TPR + FNR use 80 % of positives.
    perfect = concept_disparity(
        labels.astype(float), labels, group, metric="true_positive_rate", resampling=None
    )
    assert perfect.value == 0.0
    assert perfect.params["thresholds"] == {"0": 1.0, "1": 1.0}


def test_groups_with_too_few_positives_leave_the_concept_and_are_counted() -> None:
    scores, labels, group = world(4, concepts=3)
    labels[group == "b", 1] = False
    labels[np.flatnonzero((group == "b") & ~labels[:, 1])[:7], 1] = True
    for prevalence in ("weighted", "hall", "observed"):
        found = concept_disparity(
            scores,
            labels,
            group,
            prevalence=prevalence,
            resampling=QUICK,  # type: ignore[arg-type]
        )
        one = parts(found, "average_precision")[1]
        assert np.isnan(one["value"])
        assert one["reason"] == "fewer than two groups take part"
        assert {"reason": "7 positives, fewer than 50", "count": 1} in one["excluded"]
        assert one["by_group"][1]["note"] == "7 positives, fewer than 50"
        assert found.excluded == {"concepts without two groups": 1}
        assert found.value > 0
        notes = [g["note"] for g in parts(found, "concept_difference")[0]["by_group"]]
        assert notes == ["mean over 2 concepts"] * 2


def test_a_third_group_leaves_alone_or_with_its_concept() -> None:
    scores, labels, _ = world(5, n=1500, concepts=2)
    group = np.array(["p", "q", "r"])[np.arange(1500) % 3]
    labels[group == "r", 0] = False
    alone = concept_results(scores, labels, group, Choices(min_positives=20), resampling=None)
    assert alone.reasons[0] == ("", "", "0 positives, fewer than 20")
    assert not np.isnan(alone.observed[0, :2]).any()
    whole = concept_results(
        scores, labels, group, Choices(min_positives=20, incomplete="concept"), resampling=None
    )
    assert np.isnan(whole.observed[0]).all()
    assert whole.reasons[0][0] == "another group has too few positives or negatives"


def test_seeds_permuted_columns_and_shared_draws() -> None:
    scores, labels, group = world(6, concepts=4)
    names = list("wxyz")
    first = concept_results(scores, labels, group, concepts=names, resampling=QUICK, rng=3)
    order = [2, 0, 3, 1]
    again = concept_results(
        scores[:, order],
        labels[:, order],
        group,
        concepts=[names[i] for i in order],
        resampling=QUICK,
        rng=3,
    )
    assert first.boot is not None
    assert again.boot is not None
    assert (first.boot[:, order] == again.boot).all()
    for index, place in enumerate(order):
        assert (again.null[index] == first.null[place]).all()  # type: ignore[union-attr]
    # Monotone scores are the same ranking.
    squashed = concept_results(
        np.exp(scores), labels, group, concepts=names, resampling=QUICK, rng=3
    )
    assert (squashed.boot == first.boot).all()
    other = concept_results(scores, labels, group, concepts=names, resampling=QUICK, rng=4)
    assert (other.boot != first.boot).any()


def test_doubled_images_widen_the_interval_only_with_units() -> None:
    scores, labels, group = world(7, n=500, concepts=3)
    twice = [np.concatenate([one, one]) for one in (scores, labels, group)]
    units = np.tile(np.arange(500), 2)
    choices = {"min_positives": 10, "resampling": Bootstrap(permutations=49, resolution=1.0)}
    once = concept_disparity(scores, labels, group, **choices)  # type: ignore[arg-type]
    clustered = concept_disparity(*twice, units=units, **choices)  # type: ignore[arg-type]
    ignored = concept_disparity(*twice, **choices)  # type: ignore[arg-type]
    assert clustered.value == pytest.approx(once.value, abs=1e-12)

    def width(found: Any) -> float:
        one = parts(found, "concept_difference")[1]
        return float(one["high"] - one["low"])

    assert clustered.unit == "unit"
    assert width(clustered) == pytest.approx(width(once), rel=0.25)
    assert width(ignored) < 0.85 * width(clustered)
    nulls = [parts(one, "average_precision")[0]["chance"] for one in (once, clustered, ignored)]
    assert nulls[1] == pytest.approx(nulls[0], rel=0.35)
    assert nulls[2] < 0.85 * nulls[1]


def test_only_prevalence_differs() -> None:
    """Plain AP finds a disparity in every concept; under fixed prevalence at most α do."""
    shares: dict[str, list[bool]] = {"observed": [], "weighted": [], "hall": []}
    aggregate = []
    for seed in range(25):
        data = world(100 + seed, n=1000, concepts=8, prevalence=(0.35, 0.12))
        for prevalence, found in shares.items():
            one = concept_disparity(
                *data,
                prevalence=prevalence,
                min_positives=30,
                resampling=QUICK,
                rng=seed,  # type: ignore[arg-type]
            )
            if prevalence == "hall":
                pairs = parts(one, "concept_difference")[1:]
                found += [row["low"] > 0 or row["high"] < 0 for row in pairs]
            else:
                found += [row["p_value"] <= 0.05 for row in parts(one, "average_precision")]
            if prevalence == "weighted":
                assert one.p_value is not None
                aggregate.append(one.p_value <= 0.05)
    assert np.mean(shares["observed"]) > 0.9
    # 200 concepts each: 0.05 plus two standard errors.
    assert np.mean(shares["weighted"]) <= 0.08
    assert np.mean(shares["hall"]) <= 0.08
    assert np.mean(aggregate) <= 0.16


@pytest.mark.parametrize("metric", METRICS)
def test_a_planted_disparity_stays_under_every_metric(metric: Metric) -> None:
    # Positives of group b score lower, or for false positives its negatives score higher.
    shift = {} if metric == "false_positive_rate" else {0: 1.5}
    scores, labels, group = world(8, n=4000, shift=shift, prevalence=(0.25, 0.25))
    if metric == "false_positive_rate":
        scores[:, 0] += 1.0 * ((group == "b") & ~labels[:, 0])
    found = concept_disparity(scores, labels, group, metric=metric, resampling=QUICK)
    first, *others = parts(found, metric)
    assert first["p_value"] == 0.01
    assert first["value"] > first["chance_high"]
    assert first["value"] > max(one["value"] for one in others)
    assert max(one["p_value"] for one in others) > 0.05


@pytest.mark.parametrize("metric", ["auroc", "true_positive_rate"])
def test_scores_that_are_all_equal_give_no_negative_zero(metric: Metric) -> None:
    _, labels, group = world(3, n=200)
    found = concept_disparity(
        np.full(labels.shape, 0.5), labels, {"g": group}, metric=metric, min_positives=5,
        replicates=20, resampling=QUICK,
    )  # fmt: skip
    numbers = [one for row in found.by.to_pylist() for one in row.values() if one == 0.0]
    ends = found.interval()
    numbers += [found.value, ends.low, ends.high]
    assert [found.value, ends.low, ends.high] == [0.0, 0.0, 0.0]
    assert not np.signbit(numbers).any()


def test_halls_protocol_says_its_rule_and_has_no_p() -> None:
    found = concept_disparity(*world(9), prevalence="hall", replicates=50)
    assert (found.p_value, found.chance) == (None, None)
    assert found.no_chance == (
        "[Hall]'s protocol has its own rule: the interval against 0; see `low` and `high`"
    )
    assert found.method.startswith("percentile bootstrap over samples of fixed prevalence")
    assert found.params["prevalence_ratio"] == 5


def test_replicates_without_a_value_do_not_spoil_halls_mean() -> None:
    # Only two rows are predicted positive: many samples have none, and no precision.
    cells = np.array([[0, 1.0, 0, 5], [2, 0, 1, 5]])
    assert np.isnan(metric_of("precision", cells, None)).tolist() == [True, False]
    scores, labels, group = world(13, n=400, concepts=1, prevalence=(0.6, 0.2))
    scores[:, 0] = 0.0
    scores[np.flatnonzero(labels[:, 0] & (group == "a")), 0] = 1.0
    scores[np.flatnonzero(labels[:, 0] & (group == "b"))[:2], 0] = 1.0
    results = concept_results(
        scores, labels, group, Choices("precision", "hall", 1, min_positives=30, replicates=200)
    )
    assert results.boot is not None
    assert results.thresholds.tolist() == [1.0]
    assert 0 < np.isnan(results.boot[:, 0, 1]).sum() < 200
    assert not np.isnan(results.observed).any()


def test_dear_permutations_give_way_to_an_asymptotic_p(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.metrics.concepts.measure.MAX_SHUFFLED_ROWS", 1000)
    scores, labels, group = world(10, shift={0: 1.5})
    found = concept_results(scores, labels, group)
    assert (
        found.null_differences(0)[1] == "bootstrap replicates centred at no difference (asymptotic)"
    )
    summary = concept_disparity(scores, labels, group)
    ps = [one["p_value"] for one in parts(summary, "average_precision")]
    assert ps[0] == 1 / 251
    assert min(ps[1:]) > 0.01


def test_without_resampling_and_with_permutation_alone() -> None:
    data = world(11)
    bare = concept_disparity(*data, resampling=None)
    assert bare.p_value is None
    assert np.isnan(bare.interval().low)
    assert bare.method == "none: resampling=None gives the value alone"
    drawn = concept_disparity(*data, resampling=Permutation(99))
    assert drawn.value == bare.value
    assert drawn.method == "none: use Bootstrap()"
    assert parts(drawn, "average_precision")[0]["p_value"] >= 0.01


def test_unusual_input_is_counted() -> None:
    scores, labels, group = world(12)
    some = group.astype(object)
    some[:5] = None
    assert concept_disparity(scores, labels, some, resampling=None).excluded == {"missing group": 5}
    labels[10:14] = False
    found = concept_disparity(scores, labels, some, unlabelled="leave out", resampling=None)
    bare = (~labels.any(axis=1))[5:].sum()
    assert found.excluded == {"missing group": 5, "no label": bare}
    small = Groups.of(np.where(np.arange(len(group)) < 3, "tiny", group), min_size=30)
    with_tiny = concept_disparity(scores, labels, small, resampling=None)
    assert with_tiny.excluded["groups under 30 rows"] == 1
    assert parts(with_tiny, "average_precision")[0]["by_group"][2]["note"] == "fewer than 30 rows"
    equal = concept_disparity(np.zeros_like(scores), labels, group, resampling=QUICK)
    # All scores equal: precision is the fixed prevalence in every group.
    assert equal.value == pytest.approx(0.0, abs=1e-15)
    assert equal.p_value == 1.0
    alone = concept_disparity(scores, labels, np.full(len(group), "a"), resampling=QUICK)
    assert (alone.estimable, alone.reason) == (False, "no concept with two groups")
    half = concept_disparity(scores.astype(np.float16), labels.astype(int), group, resampling=None)
    assert half.value == pytest.approx(
        concept_disparity(scores, labels, group, resampling=None).value, abs=0.01
    )


def test_hit_rate_of_scores() -> None:
    scores = np.array([[3.0, 2, 1], [1, 2, 3], [1, 2, 3], [0, 0, 0]])
    labels = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]])
    found = concept_hit_rate(scores, labels, ["a", "a", "b", "b"], k=2, resampling=None)
    assert found.value == pytest.approx(2 / 3)
    assert sum(found.excluded.values()) == 1


DATA = world(0, n=40, concepts=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"scores": np.where(np.arange(40)[:, None] == 3, np.nan, DATA[0])},
            r"^scores: NaN or infinite for concept '0' in row 3; expected finite numbers$",
        ),
        ({"labels": DATA[1] * 2}, r"^labels: 2 for concept '\d' in row \d+; expected 0 or 1$"),
        (
            {"labels": DATA[1][:, :1]},
            r"^labels: shape \(40, 1\); expected \(40, 2\), one column per concept as in scores$",
        ),
        (
            {"scores": [[1.0], [1.0, 2.0]]},
            r"^scores: rows of different lengths; expected \(n, concepts\)$",
        ),
        (
            {"scores": np.empty((0, 2))},
            r"^scores: shape \(0, 2\); expected \(n, concepts\), neither of them 0$",
        ),
        ({"scores": DATA[0].astype(str)}, r"^scores: type <U\d+; expected numbers$"),
        ({"groups": ["a"] * 39}, r"^groups: 39 rows; expected 40, as in scores$"),
        (
            {"groups": [None] * 40},
            r"^groups: no row is left; expected rows with a group and a label$",
        ),
        ({"units": ["a"] * 39}, r"^units: 39 rows; expected 40, as in scores$"),
        ({"concepts": ["x"]}, r"^concepts: 1 names; expected 2, the columns of scores$"),
        (
            {"concepts": ["x", "x"]},
            r"^concepts: \['x'\] named more than once; expected distinct names$",
        ),
        (
            {"metric": "map"},
            r"^metric='map': expected one of 'average_precision', 'auroc', "
            r"'true_positive_rate', 'false_positive_rate', 'precision', 'f1'$",
        ),
        (
            {"prevalence": "fixed"},
            r"^prevalence='fixed': expected one of 'weighted', 'hall', 'observed'$",
        ),
        ({"incomplete": "row"}, r"^incomplete='row': expected one of 'group', 'concept'$"),
        ({"unlabelled": "drop"}, r"^unlabelled='drop': expected one of 'keep', 'leave out'$"),
        ({"prevalence_ratio": 0}, r"^prevalence_ratio=0: expected a finite number above 0$"),
        ({"prevalence_ratio": None}, r"^prevalence_ratio=None: expected a finite number above 0$"),
        ({"prevalence_ratio": "5"}, r"^prevalence_ratio='5': expected a finite number above 0$"),
        (
            {"prevalence_ratio": math.inf, "prevalence": "hall"},
            r"^prevalence_ratio=inf: expected a finite number above 0$",
        ),
        (
            {"prevalence_ratio": math.nan},
            r"^prevalence_ratio=nan: expected a finite number above 0$",
        ),
        (
            {"prevalence_ratio": 2.5, "prevalence": "hall"},
            r"^prevalence_ratio=2.5: expected a whole number of negatives "
            r"to draw for each positive; prevalence=\"weighted\" takes any$",
        ),
        ({"min_positives": 0}, r"^min_positives=0: expected at least 1$"),
        ({"replicates": 0}, r"^replicates=0: expected at least 1$"),
        ({"replicates": None}, r"^replicates=None: expected at least 1$"),
        ({"validation": "0.2"}, r"^validation='0.2': expected a share between 0 and 1$"),
        ({"validation": 1.0}, r"^validation=1.0: expected a share between 0 and 1$"),
        (
            {"resampling": Exact()},
            r"^resampling=Exact: not available for concepts; use Bootstrap\(\)$",
        ),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    given = dict(zip(("scores", "labels", "groups"), DATA, strict=True)) | change
    with pytest.raises(InputError, match=message):
        concept_disparity(**given)
