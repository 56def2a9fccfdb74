"""Multi-label scores: goldens, scikit-learn, draws, who takes part, worlds, design choices."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from concept_worlds import world
from equipoise.core import Groups, InputError
from equipoise.metrics import (
    Choices,
    concept_disparity,
    concept_hit_rate,
    concept_metrics,
    design_choices,
    model_order,
    robust_conclusions,
)
from equipoise.metrics.concepts.cells import (
    RANKED,
    Metric,
    best_f1_threshold,
    fixed_prevalence,
    metric_of,
    metric_of_sums,
    pack,
    ranked_cells,
    weighted_sums,
)
from equipoise.stats import Bootstrap, Permutation
from goldens import cases

GOLDEN = cases("concepts.json")
METRICS = get_args(Metric)
QUICK = Bootstrap(permutations=99, resolution=1.0)


def concept_results(scores, labels, groups, choices=None, **options):
    choices = choices or Choices()
    results = concept_metrics(scores, labels, groups, [choices.metric], choices, **options)
    return results[choices.metric]


def ranked(scores, labels, metric, ratio=None):
    cell, _, size = ranked_cells(np.asarray(scores, float), np.asarray(labels, bool))
    table = np.bincount(cell, minlength=size).astype(float)
    return float(metric_of(metric, table[None], ratio)[0])


def parts(estimate, metric, aggregate=None):
    return [
        row
        for row in estimate.by.to_pylist()
        if row["metric"] == metric and aggregate in (None, row["aggregate"])
    ]


@pytest.mark.parametrize("case", GOLDEN)
def test_goldens(case):
    scores, labels = case["scores"], case["labels"]
    assert ranked(scores, labels, "average_precision") == pytest.approx(
        case["average_precision"], abs=1e-12
    )
    assert ranked(scores, labels, "auroc") == pytest.approx(case["auroc"], abs=1e-12)
    threshold = best_f1_threshold(np.array(scores, float), np.array(labels, bool))
    assert threshold == case["best_f1_threshold"]
    assert sk.f1_score(labels, np.array(scores) >= threshold) == pytest.approx(case["best_f1"])


rows = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40).filter(
    lambda pairs: len({label for _, label in pairs}) == 2
)


def test_value_and_parts():
    scores, labels, group = world(1, concepts=3)
    estimate = concept_disparity(scores, labels, group, resampling=QUICK, concepts=["x", "y", "z"])
    values = np.array(
        [
            [
                ranked(scores[group == g, c], labels[group == g, c], "average_precision", 5)
                for g in ("a", "b")
            ]
            for c in range(3)
        ]
    )
    assert estimate.value == pytest.approx(
        abs(values[:, 0].mean() - values[:, 1].mean()), abs=1e-12
    )
    for index, row in enumerate(parts(estimate, "average_precision")):
        assert row["subject"] == "xyz"[index]
        assert [g["value"] for g in row["by_group"]] == pytest.approx(values[index], abs=1e-12)
        assert row["value"] == pytest.approx(abs(np.diff(values[index])[0]), abs=1e-12)
        assert row["low"] <= row["value"] <= row["high"]
        assert row["chance"] > 0
    assert estimate.n == {"a": int((group == "a").sum()), "b": int((group == "b").sum())}
    assert estimate.null_drawn.startswith(
        "bootstrap replicates centred at no difference (asymptotic)"
    )


def test_groups_with_too_few_positives_leave_the_concept_and_are_counted():
    scores, labels, group = world(4, concepts=3)
    labels[group == "b", 1] = False
    labels[np.flatnonzero((group == "b") & ~labels[:, 1])[:7], 1] = True
    for prevalence in ("weighted", "hall", "observed"):
        estimate = concept_disparity(
            scores,
            labels,
            group,
            prevalence=prevalence,
            resampling=QUICK,
        )
        row = parts(estimate, "average_precision")[1]
        assert np.isnan(row["value"])
        assert row["reason"] == "fewer than two groups take part"
        assert {"reason": "7 positives, fewer than 50", "count": 1} in row["excluded"]
        assert row["by_group"][1]["note"] == "7 positives, fewer than 50"
        assert estimate.excluded == {"concepts without two groups": 1}
        assert estimate.value > 0


def test_each_group_is_held_against_all_others_where_three_take_part():
    scores, labels, group = world(5, concepts=3, prevalence=(0.4, 0.3))
    group = np.where(np.arange(len(group)) % 3, group, "c")
    labels[group == "c", 2] = False
    estimate = concept_disparity(scores, labels, group, metric="auroc", resampling=QUICK)
    leaves = parts(estimate, "auroc", "against_rest")
    assert [row["subject"] for row in leaves] == ["", "", "", *"000111222"]
    by_concept = {}
    for concept in "012":
        groups = next(
            row for row in parts(estimate, "auroc", "difference") if row["subject"] == concept
        )["by_group"]
        for leaf in (row for row in leaves if row["subject"] == concept):
            name, rest_side = (side["group"] for side in leaf["by_group"])
            rest_groups = [side for side in groups if side["group"] != name]
            weights = [labels[group == side["group"], int(concept)].sum() for side in rest_groups]
            value = next(side["value"] for side in groups if side["group"] == name)
            if concept == "2":
                assert np.isnan(leaf["value"])
                continue
            expected = value - np.average([side["value"] for side in rest_groups], weights=weights)
            assert leaf["value"] == pytest.approx(expected)
            assert leaf["low"] < leaf["value"] < leaf["high"]
            assert (leaf["n"], rest_side) == (len(group), "all other groups")
            by_concept.setdefault(name, []).append(leaf["value"])
    for leaf in leaves[:3]:
        assert leaf["value"] == pytest.approx(np.mean(by_concept[leaf["by_group"][0]["group"]]))


def test_groups_against_all_others_have_their_level_and_coverage():
    p, inside = [], []
    for seed in range(60):
        scores, labels, group = world(seed, n=600, concepts=1, prevalence=(0.5, 0.5))
        group = np.where(np.random.default_rng(seed).random(600) < 0.1, "c", group)
        scores += np.random.default_rng(seed).normal(size=600)[:, None]
        estimate = concept_disparity(
            scores, labels, group, metric="auroc", min_positives=10,
            resampling=Bootstrap(permutations=199, resolution=1.0),
        )  # fmt: skip
        leaves = [row for row in parts(estimate, "auroc", "against_rest") if row["subject"]]
        p += [row["p_value"] for row in leaves]
        inside += [row["low"] <= 0.0 <= row["high"] for row in leaves]
    # 180 numbers, three of each world: two standard errors of 60.
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean(inside) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 60)


def test_a_group_leaves_alone_or_with_its_concept():
    scores, labels, _ = world(5, n=1500, concepts=2)
    group = np.array(["p", "q", "r"])[np.arange(1500) % 3]
    labels[group == "r", 0] = False
    for incomplete, n_known in (("group", 2), ("concept", 0)):
        choices = Choices("f1", min_positives=20, incomplete=incomplete)
        results = concept_results(scores, labels, group, choices, resampling=None)
        assert (~np.isnan(results.observed[0])).sum() == n_known
        assert results.reasons[0][2] == "0 positives, fewer than 20"
        assert set(results.thresholds[1:]) <= set(scores.ravel())


def test_doubled_images_widen_the_interval_only_with_units():
    scores, labels, group = world(7, n=500, concepts=3)
    twice = [np.concatenate([array, array]) for array in (scores, labels, group)]
    units = np.tile(np.arange(500), 2)
    choices = {"min_positives": 10, "resampling": Bootstrap(permutations=49, resolution=1.0)}
    once = concept_disparity(scores, labels, group, **choices)
    clustered = concept_disparity(*twice, units=units, **choices)
    ignored = concept_disparity(*twice, **choices)
    assert clustered.value == pytest.approx(once.value, abs=1e-12)

    def width(estimate):
        row = parts(estimate, "concept_difference")[1]
        return float(row["high"] - row["low"])

    assert clustered.unit == "unit"
    assert width(clustered) == pytest.approx(width(once), rel=0.25)
    assert width(ignored) < 0.85 * width(clustered)


@pytest.mark.parametrize("metric", METRICS)
def test_a_planted_disparity_stays_under_every_metric(metric):
    # Positives of group b score lower, or for false positives its negatives score higher.
    shift = {} if metric == "false_positive_rate" else {0: 1.5}
    scores, labels, group = world(8, n=4000, shift=shift, prevalence=(0.25, 0.25))
    if metric == "false_positive_rate":
        scores[:, 0] += 1.0 * ((group == "b") & ~labels[:, 0])
    estimate = concept_disparity(scores, labels, group, metric=metric, resampling=QUICK)
    first, *later_rows = parts(estimate, metric)
    assert first["p_value"] == 0.01
    assert first["value"] > first["chance_high"]
    assert first["value"] > max(row["value"] for row in later_rows)
    assert max(row["p_value"] for row in later_rows) > 0.05


def test_dear_permutations_give_way_to_an_asymptotic_p(monkeypatch):
    monkeypatch.setattr("equipoise.metrics.concepts.disparity.MAX_SHUFFLED_ROWS", 1000)
    scores, labels, group = world(10, shift={0: 1.5})
    results = concept_results(scores, labels, group)
    assert (
        results.null_differences(0)[1]
        == "bootstrap replicates centred at no difference (asymptotic)"
    )
    summary = concept_disparity(scores, labels, group)
    ps = [row["p_value"] for row in parts(summary, "average_precision")]
    assert ps[0] == 1 / 251
    assert min(ps[1:]) > 0.01


def test_unusual_input_is_counted():
    scores, labels, group = world(12)
    partial_groups = group.astype(object)
    partial_groups[:5] = None
    assert concept_disparity(scores, labels, partial_groups, resampling=None).excluded == {
        "missing group": 5
    }
    labels[10:14] = False
    estimate = concept_disparity(
        scores, labels, partial_groups, unlabelled="leave out", resampling=None
    )
    bare = (~labels.any(axis=1))[5:].sum()
    assert estimate.excluded == {"missing group": 5, "no label": bare}
    small = Groups.of(np.where(np.arange(len(group)) < 3, "tiny", group), min_size=30)
    with_tiny = concept_disparity(scores, labels, small, resampling=None)
    assert with_tiny.excluded["groups under 30 rows"] == 1
    assert parts(with_tiny, "average_precision")[0]["by_group"][2]["note"] == "fewer than 30 rows"
    alone = concept_disparity(scores, labels, np.full(len(group), "a"), resampling=QUICK)
    assert (alone.estimable, alone.reason) == (False, "no concept with two groups")


def test_hits_rank_all_classes_of_the_model():
    rng = np.random.default_rng(4)
    scores, labels, groups = rng.random((300, 5)), rng.random((300, 5)) < 0.3, ["a", "b"] * 150
    further_scores = rng.random((300, 40)) + 0.2
    estimate = concept_hit_rate(
        scores, labels, groups, k=3, others=further_scores.T, resampling=None
    )
    # Independent: sort every class of every image.
    all_scores = np.concatenate([scores, further_scores], axis=1)
    true = np.concatenate([labels, np.zeros_like(further_scores, dtype=bool)], axis=1)
    top = np.argsort(-all_scores, axis=1, kind="stable")[:, :3]
    labelled = labels.any(axis=1)
    hits = np.take_along_axis(true, top, axis=1).any(axis=1)[labelled]
    assert estimate.value == pytest.approx(hits.mean())
    alone = concept_hit_rate(scores, labels, groups, k=3, resampling=None)
    assert alone.value > estimate.value + 0.3


@pytest.mark.parametrize("k", [0, 3, 4])
def test_hits_among_as_many_classes_are_refused(k):
    scores, labels = np.eye(3), np.eye(3, dtype=bool)
    with pytest.raises(InputError, match="k="):
        concept_hit_rate(scores, labels, ["a", "a", "b"], k=k)


def test_hit_rate_of_scores():
    scores = np.array([[3.0, 2, 1], [1, 2, 3], [1, 2, 3], [0, 0, 0]])
    labels = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]])
    groups = Groups.of([*"aabb"], min_size=1)
    estimate = concept_hit_rate(scores, labels, groups, k=2, resampling=None)
    assert estimate.value == pytest.approx(2 / 3)
    assert sum(estimate.excluded.values()) == 1


DATA = world(0, n=40, concepts=2)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"scores": np.where(np.arange(40)[:, None] == 3, np.nan, DATA[0])}, "scores: .* row 3;"),
        ({"labels": DATA[1] * 2}, r"labels: 2 for concept '\d' in row \d+"),
        ({"labels": DATA[1][:, :1]}, "labels"),
        ({"groups": ["a"] * 39}, "groups"),
        ({"units": ["a"] * 39}, "units"),
        ({"concepts": ["x", "x"]}, "concepts"),
        ({"metric": "map"}, "metric='map'"),
        ({"unlabelled": "drop"}, "unlabelled='drop'"),
        ({"prevalence_ratio": 0}, "prevalence_ratio=0"),
        ({"prevalence_ratio": 2.5, "prevalence": "hall"}, "prevalence_ratio=2.5"),
        ({"min_positives": 0}, "min_positives=0"),
        ({"validation": 1.0}, "validation=1.0"),
    ],
)
def test_bad_input(change, argument):
    arguments = dict(zip(("scores", "labels", "groups"), DATA, strict=True)) | change
    with pytest.raises(InputError, match=f"^{argument}"):
        concept_disparity(**arguments)


def packed(scores, labels, measured=None):
    bits = np.zeros(len(scores), np.uint8) if measured is None else measured
    rows = np.arange(len(scores), dtype=np.int32)
    return pack(np.asarray(scores, float), np.asarray(labels, bool), bits, rows)


def weighted(scores, labels, times, ratio, measured):
    rows = np.arange(len(scores), dtype=np.int32)
    totals = times.sum(axis=0, dtype=np.int32)
    cells = packed(scores, labels, measured)
    return weighted_sums(cells, rows, measured, (times, totals), ratio)


@given(rows, st.sampled_from([None, 1.0, 2.5]), st.integers(0, 10**6))
def test_agrees_with_scikit_learn_under_ties_and_for_repeated_rows(pairs, ratio, seed):
    scores, labels = (np.array(column) for column in zip(*pairs, strict=True))
    scores = scores.astype(float)
    threshold = best_f1_threshold(scores, labels)
    f1_scores = {t: sk.f1_score(labels, scores >= t) for t in np.unique(scores)}
    assert threshold == max(
        t for t, score in f1_scores.items() if score > max(f1_scores.values()) - 1e-12
    )
    times = np.random.default_rng(seed).poisson(1.0, (len(labels), 4)).astype(np.uint8)
    times[:, 0] = 1
    predicted = scores >= threshold
    sums = weighted(scores, labels, times, ratio, (2 + predicted).astype(np.uint8))
    cell, _, size = ranked_cells(scores, labels)
    for index, count in enumerate(times.T.astype(float)):
        tables = {metric: np.bincount(cell, count, size) for metric in RANKED}
        outcomes = np.bincount(2 * ~labels + ~predicted, count, 4)
        values = {
            metric: [
                metric_of_sums(metric, sums, ratio)[index],
                metric_of(metric, tables.get(metric, outcomes)[None], ratio)[0],
            ]
            for metric in METRICS
        }
        positives, negatives = count[labels].sum(), count[~labels].sum()
        if positives == 0 or negatives == 0:
            assert np.isnan(values["auroc"]).all()
            continue
        weight = (
            count if ratio is None else count * np.where(labels, 1, ratio * positives / negatives)
        )
        expected = {
            "average_precision": sk.average_precision_score(labels, scores, sample_weight=weight),
            "auroc": sk.roc_auc_score(labels, scores, sample_weight=weight),
            "true_positive_rate": sk.recall_score(labels, predicted, sample_weight=weight),
            "false_positive_rate": 1
            - sk.recall_score(labels, predicted, pos_label=0, sample_weight=weight),
            "precision": sk.precision_score(
                labels, predicted, sample_weight=weight, zero_division=np.nan
            ),
            "f1": sk.f1_score(labels, predicted, sample_weight=weight, zero_division=0),
        }
        for metric, value in expected.items():
            assert values[metric] == pytest.approx([value, value], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("decimals", [1, 12])
def test_halls_draws_are_those_of_a_plain_bootstrap(decimals):
    """With ties and without: the distribution of every metric, and the prevalence."""
    rng = np.random.default_rng(3)
    labels = rng.random(700) < 0.2
    scores = np.round(rng.standard_normal(700) + labels, decimals)
    test = rng.random(700) < 0.8
    measured = (2 * test + (test & (scores >= 0.5))).astype(np.uint8)
    positives, negatives = 100, 300
    sizes = (positives, negatives, 80, 240)
    sums = fixed_prevalence(packed(scores, labels, measured), labels, sizes, (0, "c", "g"), 600)
    assert (sums[2] == positives).all()
    assert (sums[3] == negatives).all()
    assert (sums[4] + sums[5] == 80).all()
    assert (sums[6] + sums[7] == 240).all()
    # Predicted rows among those that are measured, right or wrong.
    for count, which, sizes in ((sums[4], labels, 80), (sums[6], ~labels, 240)):
        share = (scores[test & which] >= 0.5).mean()
        assert stats.ks_2samp(count, rng.binomial(sizes, share, 600)).pvalue > 1e-3
    samples = [
        np.concatenate(
            [rng.choice(np.flatnonzero(labels), 100), rng.choice(np.flatnonzero(~labels), 300)]
        )
        for _ in range(600)
    ]
    for metric, plain in (
        ("average_precision", sk.average_precision_score),
        ("auroc", sk.roc_auc_score),
    ):
        ours = metric_of_sums(metric, sums, None)
        theirs = [plain(labels[sample], scores[sample]) for sample in samples]
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
        assert ours.std() == pytest.approx(np.std(theirs), rel=0.15)


@pytest.mark.parametrize("prevalence", ["hall", "weighted", "observed"])
def test_all_metrics_in_one_pass_are_those_of_several(prevalence):
    scores, labels, group = world(20, n=900, concepts=3)
    choices = Choices(prevalence=prevalence, min_positives=20, replicates=60)
    arguments = scores.round(1), labels, group
    for metric, results in concept_metrics(*arguments, METRICS, choices, resampling=QUICK).items():
        alone = concept_results(*arguments, replace(choices, metric=metric), resampling=QUICK)
        assert results.choices == alone.choices
        for field in ("observed", "boot", "thresholds"):
            assert getattr(results, field).tobytes() == getattr(alone, field).tobytes()
        assert repr(results.null) == repr(alone.null)


def test_memory_maps_and_half_precision(tmp_path):
    scores, labels, group = world(22, n=800, concepts=11)
    scores = scores.astype(np.float16)
    partial_groups = group.astype(object)
    partial_groups[7] = None
    names = [f"c{index}" for index in range(11)]
    choices = Choices(min_positives=10, replicates=20)
    all_results = concept_results(
        scores, labels, partial_groups, choices, concepts=names, resampling=QUICK
    )
    np.save(tmp_path / "scores.npy", scores)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    for column in (
        concept_results(mapped, labels, partial_groups, choices, concepts=names, resampling=QUICK),
        concept_results(
            np.asfortranarray(scores),
            labels,
            partial_groups,
            choices,
            concepts=names,
            resampling=QUICK,
        ),
    ):
        assert column.names == all_results.names
        assert column.boot.tobytes() == all_results.boot.tobytes()


def test_bad_metrics():
    scores, labels, group = world(23, n=40, concepts=2)
    for metrics in ((), ("auroc", "map")):
        with pytest.raises(InputError, match="^metric"):
            concept_metrics(scores, labels, group, metrics)


NAMES = ["explained", "planted", "equal"]


def measured(prevalence, *, noise=0.0, seed=1):
    """Prevalence differs in the first concept only; the second has a real disparity."""
    scores, labels, group = world(seed, n=3000, concepts=3, prevalence=(0.25, 0.25), shift={1: 0.9})
    rare = np.random.default_rng(5).random(3000) < 0.65
    keep = ~((group == "b") & labels[:, 0] & rare)
    more = np.random.default_rng(6).standard_normal(scores.shape) * noise
    return concept_results(
        (scores + more)[keep],
        labels[keep],
        group[keep],
        Choices(prevalence=prevalence),
        concepts=NAMES,
        resampling=QUICK,
    )


def by(table, **expected):
    (matching_row,) = [
        candidate
        for candidate in table.to_pylist()
        if all(candidate[key] == value for key, value in expected.items())
    ]
    return matching_row


VERSIONS = {name: measured(name) for name in ("observed", "weighted", "hall")}


def test_prevalence_is_explained_and_a_real_disparity_stays():
    table = design_choices(VERSIONS, "observed")
    assert table.num_rows == 8
    for version in ("weighted", "hall"):
        effects = {name: by(table, version=version, concept=name)["effect"] for name in NAMES}
        assert effects == {"explained": "explains", "planted": "stays", "equal": "absent"}
        row = by(table, version=version, concept="explained")
        assert row["change_high"] < 0 < row["baseline_value"]
    # Read the other way round it surfaces.
    back = design_choices(VERSIONS, "weighted")
    assert by(back, version="observed", concept="explained")["effect"] == "surfaces"


def shifted(seed, shift, group_names=("a", "b"), n=2000):
    scores, labels, group = world(seed, n=n, concepts=1, prevalence=(0.3, 0.3), shift={0: shift})
    names = np.where(group == "a", *group_names)
    return concept_results(scores, labels, names, resampling=QUICK, concepts=["c"])


@pytest.mark.parametrize(
    ("shift", "effect"),
    [(-0.9, "switches"), (1.6, "magnifies"), (0.4, "shrinks"), (0.9, "stays"), (0.0, "explains")],
)
def test_effects(shift, effect):
    versions = {"base": shifted(3, 0.9), "other": shifted(3, shift)}
    assert by(design_choices(versions, "base"), concept="c")["effect"] == effect


def test_groups_are_matched_by_name_and_missing_ones_said():
    versions = {"base": shifted(3, 0.9), "renamed": shifted(3, 0.9, ("b", "a"))}
    row = by(design_choices(versions, "base"), concept="c")
    # What was group a is now b: the difference of a and b has the other sign.
    assert row["effect"] == "switches"
    assert row["value"] == pytest.approx(-row["baseline_value"], abs=1e-12)
    other_models = {"base": shifted(3, 0.9), "other": shifted(3, 0.9, ("x", "y"))}
    assert by(design_choices(other_models, "base"), concept="c")["effect"] == "not estimable"


def planted(min_positives=5, *, rows=slice(None), concept=False):
    """The first two of three concepts have a real disparity; group b shows the second 28 times."""
    scores, labels, group = world(8, n=2000, concepts=3, prevalence=(0.3, 0.3), shift={0: 1, 1: 1})
    positive_rows = np.flatnonzero((group == "b") & labels[:, 1])
    labels[positive_rows[28:], 1] = False
    scores[positive_rows[28:], 1] -= 1.2
    choices = Choices(
        prevalence="observed",
        min_positives=min_positives,
        incomplete="concept" if concept else "group",
    )
    return concept_results(
        scores[rows], labels[rows], Groups.of(group[rows], min_size=30), choices,
        concepts=["c", "rare", "same"], resampling=QUICK,
    )  # fmt: skip


def test_a_version_that_cannot_be_estimated_agrees_with_nothing():
    versions = {"base": planted(), "same": planted(), "strict": planted(30)}
    by_concept = {row["concept"]: row for row in robust_conclusions(versions, "base").to_pylist()}
    counts = ("versions", "not_estimable", "agreeing", "share", "robust")
    assert [by_concept["c"][name] for name in counts] == [3, 0, 3, 1.0, True]
    assert by_concept["rare"]["conclusion"] == "a"
    assert [by_concept["rare"][name] for name in counts] == [2, 1, 2, 1.0, False]
    # The baseline alone is no agreement either.
    alone = robust_conclusions({"base": planted(), "strict": planted(30)}, "base")
    row = by(alone, concept="rare")
    assert [row[name] for name in counts] == [1, 1, 1, 1.0, False]


def test_order_of_models_and_where_it_switches():
    strong, weak = shifted(3, 1.4), shifted(3, 0.3)
    models = {
        "first": {"base": strong, "other": weak},
        "second": {"base": weak, "other": strong},
    }
    table = model_order(models, "base")
    base, other = (by(table, version=name, concept="c") for name in models["first"])
    assert [row["larger"] for row in (base, other)] == ["first", "second"]
    assert [row["switches"] for row in (base, other)] == [False, True]
    assert other["baseline_larger"] == "first"
    assert base["low"] <= base["difference"] <= base["high"]
    assert other["difference"] == -base["difference"]


def test_bad_versions():
    shift = shifted(3, 0.9)
    bare = concept_results(*world(0), resampling=Permutation(9))
    for call, where in (
        (lambda: design_choices({"base": shift}, "x"), "baseline='x'"),
        (lambda: design_choices({"base": bare}, "base"), "versions"),
        (lambda: model_order({"a": {"base": shift}, "b": {"other": shift}}, "base"), "models"),
    ):
        with pytest.raises(InputError, match=f"^{where}"):
            call()
