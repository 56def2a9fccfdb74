"""Effect sizes per class: golden values, the paper's listing, invariances, chance and intervals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.contingency import cramers_v
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.effect_intervals import MeanEffect, summaries
from equipoise.metrics.effect_sizes import EffectSizes, band_counts, bands, effect_sizes
from equipoise.metrics.measure import measure
from equipoise.stats import Association, association_interval
from equipoise.stats.resampling import Bootstrap, Exact, Permutation

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "skewsize.json").read_text())
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def golden_rows() -> Rows:
    rows = [
        (name, label, group)
        for name, table in GOLDEN["tables"].items()
        for group, counts in zip(GOLDEN["groups"], table, strict=True)
        for label, times in zip(GOLDEN["labels"], counts, strict=True)
        for _ in range(times)
    ]
    truth, predicted, groups = zip(*rows, strict=True)
    return np.array(truth), np.array(predicted), np.array(groups)


def random_rows(seed: int, n: int = 1200, classes: int = 4, groups: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, classes, n), rng.integers(0, groups, n)
    shift = rng.integers(0, classes, n) * (rng.random(n) < 0.2 + 0.15 * group)
    return truth, (truth + shift) % classes, group


def part_values(found: Estimate) -> dict[str, float]:
    assert found.by is not None
    rows = found.by.select(["subject", "value"]).to_pylist()
    return {row["subject"]: row["value"] for row in rows}


def listing(rows: Rows, min_expected: float, yates: bool = False) -> dict[str, float]:
    """The crosstab listing of Albuquerque et al., written again with pandas and scipy."""
    frame = pd.DataFrame(dict(zip(("truth", "predicted", "group"), rows, strict=True)))
    found = {}
    for name, of_class in frame.groupby("truth"):
        table = pd.crosstab(of_class["group"], of_class["predicted"])
        expected = chi2_contingency(table).expected_freq
        table = table.loc[:, (expected.min(axis=0) >= min_expected - 1e-9)]
        table = table.loc[table.sum(axis=1) > 0]
        least = min(table.shape) - 1
        chi2 = chi2_contingency(table, correction=yates).statistic if least > 0 else np.nan
        found[str(name)] = np.sqrt(chi2 / (table.to_numpy().sum() * least)) if least > 0 else np.nan
    return found


def assert_close(found: dict[str, float], expected: dict[str, float], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        number = np.nan if value is None else value
        assert found[name] == pytest.approx(number, abs=tolerance, nan_ok=True), name


def assert_golden(rows: Rows, min_expected: int, expected: dict[str, Any]) -> None:
    found = effect_sizes(*rows, min_expected=min_expected, resampling=None)
    assert_close(part_values(found), expected["effect_size"], 1e-12)
    assert found.params["classes"] == expected["n_classes"]
    assert found.by is not None
    for row in found.by.to_pylist():
        dropped = expected["dropped"][row["subject"]]
        counted = [one["count"] for one in row["excluded"]]
        assert counted == ([dropped["columns"], dropped["rows"]] if dropped["columns"] else [])


@pytest.mark.parametrize("min_expected", [0, 5])
def test_golden_values(min_expected: int) -> None:
    assert_golden(golden_rows(), min_expected, GOLDEN["expected"][f"mev{min_expected}"])


@pytest.mark.parametrize("min_expected", [0, 5])
def test_golden_file(shared_dir: Path, min_expected: int) -> None:
    whole = json.loads((shared_dir / "goldens" / "skewsize.json").read_text())
    rows = tuple(np.array(column) for column in zip(*whole["rows"], strict=True))
    assert_golden(rows, min_expected, whole["expected"][f"mev{min_expected}"])


@pytest.mark.parametrize("min_expected", [0, 1, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_listing(seed: int, min_expected: int) -> None:
    rows = random_rows(seed)
    found = effect_sizes(*rows, min_expected=min_expected, resampling=None)
    assert_close(part_values(found), listing(rows, min_expected), 1e-7)


@pytest.mark.parametrize("yates", [False, True])
def test_the_listing_corrects_two_by_two_tables(yates: bool) -> None:
    rows = random_rows(3, classes=2, groups=2)
    found = effect_sizes(*rows, yates=yates, min_expected=0, resampling=None)
    assert_close(part_values(found), listing(rows, 0, yates), 1e-7)


def test_default_is_equation_3_without_correction() -> None:
    rows = random_rows(3, classes=2, groups=2)
    plain = effect_sizes(*rows, resampling=None).value
    assert plain > effect_sizes(*rows, yates=True, resampling=None).value


@pytest.mark.parametrize("statistic", ["cramers_v", "phi", "tschuprows_t", "cramers_v_corrected"])
def test_every_class_is_a_table_of_its_own(statistic: str) -> None:
    rows = random_rows(1)
    found = effect_sizes(*rows, statistic=statistic, min_expected=0, resampling=None)  # type: ignore[arg-type]
    for name, value in part_values(found).items():
        of_class = rows[0] == int(name)
        table = pd.crosstab(rows[2][of_class], rows[1][of_class]).to_numpy()
        chi2 = chi2_contingency(table, correction=False).statistic
        squared, (r, c) = chi2 / table.sum(), np.array(table.shape) - 1.0
        less = table.sum() - 1.0
        corrected = max(squared - r * c / less, 0) / min(r - r**2 / less, c - c**2 / less)
        expected = {
            "cramers_v": squared / min(r, c),
            "phi": squared,
            "tschuprows_t": squared / np.sqrt(r * c),
            "cramers_v_corrected": corrected,
        }
        assert value == pytest.approx(np.sqrt(expected[statistic]), abs=1e-7)


def test_value_is_the_mean_over_estimable_classes() -> None:
    found = effect_sizes(*golden_rows(), resampling=None)
    assert found.value == pytest.approx(np.nanmean([*part_values(found).values()]))
    assert found.excluded == {
        "labels, smallest expected count below 5": 54,
        "rows with such a label, smallest expected count below 5": 510,
        "classes not estimable": 3,
    }


def test_sufficiency_exchanges_truth_and_prediction() -> None:
    truth, predicted, group = random_rows(2)
    found = effect_sizes(truth, predicted, group, formulation="sufficiency", resampling=None)
    assert_close(part_values(found), part_values(effect_sizes(predicted, truth, group)), 1e-12)
    null = effect_sizes(truth, predicted, group, formulation="sufficiency").null
    assert null.startswith("groups are exchangeable within each predicted label")


def test_independence_is_one_table_of_all_rows() -> None:
    truth, predicted, group = random_rows(2)
    found = effect_sizes(truth, predicted, group, formulation="independence", min_expected=0)
    table = cramers_v(pd.crosstab(group, predicted))
    assert part_values(found) == {"": pytest.approx(table.value, abs=1e-12)}
    low, high = table.interval().low, table.interval().high
    assert found.interval() == pytest.approx((low, high, 0.95, found.method), abs=1e-9) or (
        (found.interval().low, found.interval().high) == pytest.approx((low, high), abs=1e-9)
    )
    assert found.null.startswith("groups are exchangeable over all rows")


rows_of = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=60
)


@given(rows_of, st.randoms(use_true_random=False), st.sampled_from([0, 1, 5]))
def test_order_and_names_do_not_matter(
    rows: list[tuple[int, int, int]], random: Any, mev: int
) -> None:
    truth, predicted, group = (np.array(column) for column in zip(*rows, strict=True))
    value = effect_sizes(truth, predicted, group, min_expected=mev, resampling=None).value
    order = list(range(len(rows)))
    random.shuffle(order)
    renamed = np.array(["z", "b", "q"])[group[order]]
    labels = np.array(["d", "a", "c", "b"])
    again = effect_sizes(
        labels[truth[order]], labels[predicted[order]], renamed, min_expected=mev, resampling=None
    )
    assert again.value == pytest.approx(value, abs=1e-9, nan_ok=True)
    assert np.isnan(value) or 0.0 <= value <= 1.0 + 1e-12


def test_permuted_rows_give_the_same_bytes() -> None:
    rows = random_rows(4)
    order = np.random.default_rng(0).permutation(len(rows[0]))
    first = effect_sizes(*rows, rng=3)
    again = effect_sizes(*(column[order] for column in rows), rng=3)
    assert first.by == again.by
    assert (first.value, first.p_value, first.chance) == (again.value, again.p_value, again.chance)
    assert first.interval() == again.interval()


def test_relabelled_groups_keep_chance_and_p() -> None:
    truth, predicted, group = random_rows(5)
    first = effect_sizes(truth, predicted, group)
    again = effect_sizes(truth, predicted, np.array(["c", "a", "b"])[group])
    assert again.p_value == first.p_value
    assert first.chance is not None
    assert again.chance is not None
    assert again.chance.mean == pytest.approx(first.chance.mean, abs=1e-12)


def test_shards_add_up() -> None:
    truth, predicted, group = random_rows(6, n=600)
    whole = count(truth, predicted, group)
    halves = [slice(0, 250), slice(250, 600)]
    added = np.zeros_like(whole.table)
    for half in halves:
        shard = count(truth[half], predicted[half], group[half])
        keys = whole.truth * 100 + whole.prediction
        added[np.searchsorted(keys, shard.truth * 100 + shard.prediction)] += shard.table
    effects = EffectSizes(min_expected=1)
    both = effects(whole, np.stack([whole.table, added]))
    assert (both[0] == both[1]).all()


def test_the_filter_is_refitted_in_each_replicate() -> None:
    counts = count(*random_rows(7))
    effects = EffectSizes(min_expected=5)
    blocks = np.concatenate([*counts.sampler.bootstrap(20, 1)])
    found = effects(counts, blocks)[:, 1:]
    for drawn, values in zip(blocks, found, strict=True):
        expanded = np.repeat(np.arange(drawn.size), drawn.ravel().astype(int))
        outcome, group = np.divmod(expanded, drawn.shape[1])
        rows = (counts.truth[outcome], counts.prediction[outcome], group)
        assert values == pytest.approx([*listing(rows, 5).values()], abs=1e-7, nan_ok=True)


def test_the_filter_keeps_an_expected_count_at_the_minimum() -> None:
    truth, group = np.zeros(40), np.repeat([0, 1], 20)
    predicted = np.concatenate([np.arange(20) < 3, np.arange(20) < 7])
    assert effect_sizes(truth, predicted, group, min_expected=5, resampling=None).value > 0
    found = effect_sizes(truth, predicted, group, min_expected=5.01, resampling=None)
    assert np.isnan(found.value)


@pytest.mark.parametrize(
    ("predicted", "group", "reason"),
    [
        (["a"] * 40, ["x", "y"] * 20, "every row has the same predicted label"),
        (["a", "b"] * 20, ["x"] * 40, "rows of one group only"),
        (
            ["a"] * 39 + ["b"],
            ["x", "y"] * 20,
            "only one predicted label has expected counts of 5 or more",
        ),
        (
            [f"label {index}" for index in range(40)],
            ["x", "y"] * 20,
            "no predicted label has expected counts of 5 or more",
        ),
    ],
)
def test_not_estimable_says_why(predicted: list[str], group: list[str], reason: str) -> None:
    found = effect_sizes(["a"] * 40, predicted, group)
    assert found.by is not None
    part = found.by.to_pylist()[0]
    assert (part["reason"], found.reason) == (reason, "no class can be estimated; see the parts")
    assert np.isnan([found.value, part["value"], part["low"], part["p_value"]]).all()
    assert (found.chance, found.p_value, found.excluded["classes not estimable"]) == (None, None, 1)


def test_small_groups_are_shown_and_not_compared() -> None:
    truth, predicted, group = random_rows(8)
    few = np.concatenate([group, [9, 9]])
    more = [np.concatenate([column, [0, 0]]) for column in (truth, predicted)]
    with_few = effect_sizes(*more, Groups.of(few, min_size=30), resampling=None)
    assert with_few.value == effect_sizes(truth, predicted, group, resampling=None).value
    assert with_few.excluded["groups under 30 rows"] == 1
    assert with_few.by is not None
    shown = with_few.by.to_pylist()[0]["by_group"][-1]
    assert (shown["group"], shown["n"], shown["note"]) == ("9", 2, "fewer than 30 rows")


def test_parts_show_each_groups_wrong_predictions() -> None:
    truth, predicted, group = random_rows(9)
    found = effect_sizes(truth, predicted, group)
    assert found.by is not None
    for part in found.by.to_pylist():
        here = truth == int(part["subject"])
        assert part["n"] == here.sum()
        for shown in part["by_group"]:
            mine = here & (group == int(shown["group"]))
            assert shown["n"] == mine.sum()
            assert shown["value"] == pytest.approx((predicted != truth)[mine].mean())
            assert shown["low"] <= shown["value"] <= shown["high"]


def test_exact_null_is_the_limit_of_permutations() -> None:
    truth = np.repeat(["a", "b"], 6)
    predicted = np.array([*"aabbab", *"bbabba"])
    group = np.tile(["x", "y"], 6)
    exact = effect_sizes(truth, predicted, group, min_expected=0, resampling=Exact())
    drawn = effect_sizes(
        truth, predicted, group, min_expected=0, resampling=Permutation(replicates=4000)
    )
    assert exact.chance is not None
    assert drawn.chance is not None
    assert exact.null.startswith("groups are exchangeable within each true class; every rearr")
    assert drawn.chance.mean == pytest.approx(exact.chance.mean, abs=0.01)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.03)


def test_p_values_are_valid_without_bias() -> None:
    rng = np.random.default_rng(11)
    found = []
    for seed in range(150):
        truth, predicted = rng.integers(0, 3, (2, 90))
        one = effect_sizes(
            truth,
            predicted,
            rng.integers(0, 3, 90),
            min_expected=0,
            resampling=Permutation(replicates=99, resolution=0.5),
            rng=seed,
        )
        found.append(one.p_value)
    for level in (0.05, 0.1, 0.5):
        share = np.mean(np.array(found) <= level)
        assert share <= level + 3 * np.sqrt(level * (1 - level) / len(found))
    assert min(found) < 0.1


def drawn_means(tables: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Return the intervals of the mean of (samples, classes, rows, columns)."""
    return np.array([MeanEffect(Association.of(classes))(level) for classes in tables])


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.6])
def test_interval_of_the_mean_covers(strength: float) -> None:
    """200 worlds of 12 classes; the mean itself is far above the truth near 0."""
    shares = (1 - strength) * np.full(4, 0.25) + strength * np.eye(4)[:3]
    joint = shares / 3
    expected = np.outer(joint.sum(1), joint.sum(0))
    truth = np.sqrt(((joint - expected) ** 2 / expected).sum() / 2)
    drawn = np.random.default_rng(12).multinomial(150, joint.ravel(), size=(200, 12))
    tables = drawn.reshape(200, 12, 3, 4)
    low, high = drawn_means(tables).T
    summary = Association.of(tables)
    assert ((low <= truth) & (truth <= high)).mean() >= 0.92
    assert (np.sqrt(summary.chi2 / summary.n / 2).mean(axis=1) > truth).mean() >= 0.65


def test_a_fair_model_is_shown_to_be_below_the_threshold() -> None:
    for shape in ((2, 2), (14, 9)):
        drawn = np.random.default_rng(2).multinomial(
            3000, np.full(np.prod(shape), 1 / np.prod(shape)), size=(50, 3)
        )
        low, high = drawn_means(drawn.reshape(50, 3, *shape)).T
        assert high.max() < 0.1
        assert np.median(low) == 0.0


def test_one_large_effect_among_many_classes_does_not_widen_the_rest() -> None:
    tables = np.full((20, 2, 2), 1000.0)
    tables[0] = [[1500, 500], [500, 1500]]
    low, high = MeanEffect(Association.of(tables))(0.95)
    assert low < 0.5 / 20 < high
    assert high < 0.06


def test_the_interval_of_even_tables_is_not_of_width_zero() -> None:
    rows = (np.repeat(["a", "b"], 200), np.tile([*"aabb"], 100), np.tile([*"xy"], 200))
    found = effect_sizes(*rows)
    assert found.value == 0.0
    assert (found.interval().low, found.interval().high) == (0.0, pytest.approx(0.13, abs=0.03))
    assert found.by is not None
    for part in found.by.to_pylist():
        assert (part["value"], part["low"]) == (0.0, 0.0)
        assert 0.1 < part["high"] < 0.3


def test_parts_have_the_interval_of_their_filtered_table() -> None:
    truth, predicted, group = random_rows(21)
    predicted[:2] = 77
    found = effect_sizes(truth, predicted, group)
    assert found.by is not None
    for part in found.by.to_pylist():
        here = (truth == int(part["subject"])) & (predicted != 77)
        low, high = association_interval(pd.crosstab(group[here], predicted[here]))
        assert (part["low"], part["high"]) == (pytest.approx(low), pytest.approx(high))


def test_summaries_of_several_widths_keep_their_order() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.integers(1, 30, (labels, 3)).astype(float) for labels in (5, 2, 9, 2, 0, 4)]
    low, high = summaries(tables, np.array([1.0, 1.0, 2.0, 1.0, 1.0, np.nan])).interval()
    for index, table in enumerate(tables):
        ends = association_interval(table, design_effect=2.0 if index == 2 else 1.0)
        np.testing.assert_allclose((low[index], high[index]), ends, atol=1e-9)


def test_copies_of_rows_in_one_unit_say_nothing_new() -> None:
    truth, predicted, group = random_rows(13, n=300, groups=2)
    once = effect_sizes(truth, predicted, group, min_expected=0)
    twice = [np.repeat(column, 2) for column in (truth, predicted, group)]
    clustered = effect_sizes(*twice, units=np.repeat(np.arange(300), 2), min_expected=0)
    naive = effect_sizes(*twice, min_expected=0)
    assert clustered.value == pytest.approx(once.value, abs=1e-12)
    assert clustered.unit == "unit"
    assert "design effect of units" in clustered.method
    assert clustered.interval().low == pytest.approx(once.interval().low, abs=0.02)
    assert clustered.interval().high == pytest.approx(once.interval().high, abs=0.02)
    assert naive.interval().low > clustered.interval().low + 0.02
    assert clustered.p_value is not None
    assert once.p_value is not None
    assert clustered.p_value == pytest.approx(once.p_value, abs=0.02)


def test_top_k_counts_each_prediction_in_part() -> None:
    truth, predicted, group = random_rows(14)
    second = (predicted + 1) % 4
    found = effect_sizes(truth, np.stack([predicted, second], 1).astype(str), group, min_expected=0)
    exploded = [np.concatenate([truth, truth]), np.concatenate([predicted, second])]
    whole = effect_sizes(*exploded, np.concatenate([group, group]), min_expected=0, resampling=None)
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.by is not None
    assert 0 <= found.interval().low <= found.interval().high <= 1


def test_probabilities_that_are_certain_are_labels() -> None:
    truth, predicted, group = random_rows(15)
    soft = effect_sizes(truth, np.eye(4)[predicted], group, min_expected=0)
    hard = effect_sizes(truth, predicted, group, min_expected=0)
    assert soft.value == pytest.approx(hard.value, abs=1e-12)
    assert soft.interval().low == pytest.approx(hard.interval().low, abs=0.02)
    assert soft.interval().high == pytest.approx(hard.interval().high, abs=0.02)


def test_without_resampling_dependent_rows_have_no_interval() -> None:
    truth, predicted, group = random_rows(16)
    found = effect_sizes(truth, np.eye(4)[predicted], group, resampling=None)
    assert np.isnan(found.interval().low)
    assert found.method == "none: resampling=None gives the value alone"


def test_several_measures_share_their_draws() -> None:
    counts: Counts = count(*random_rows(17))
    alone = measure(counts, [EffectSizes()], Bootstrap(), 2)[0]
    _, again = measure(counts, [EffectSizes(min_expected=0), EffectSizes()], Bootstrap(), 2)
    assert (again.p_value, again.chance) == (alone.p_value, alone.chance)
    assert again.by == alone.by


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"min_expected": -1}, "min_expected=-1: expected a number of at least 0; 0 keeps all"),
        ({"min_expected": np.nan}, "min_expected=nan: expected a number of at least 0; 0 keeps"),
        ({"statistic": "gamma"}, "statistic='gamma': expected one of cramers_v, phi, tschuprows_t"),
        (
            {"formulation": "parity"},
            "formulation='parity': expected one of separation, sufficiency, independence",
        ),
    ],
)
def test_bad_parameters(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        effect_sizes(*random_rows(0), **keywords)


def test_bands_begin_where_they_say() -> None:
    values = [0.0, 0.0999, 0.1, 0.3, 0.49, 0.5, 1.2, np.nan]
    assert bands(values) == (
        *("negligible", "negligible", "small", "medium", "medium", "large", "large"),
        None,
    )
    assert band_counts(values) == {"negligible": 2, "small": 1, "medium": 2, "large": 2}
    assert band_counts([]) == {"negligible": 0, "small": 0, "medium": 0, "large": 0}


@settings(max_examples=30)
@given(
    st.integers(0, 1000),
    st.floats(0.5, 0.999),
    st.sampled_from(["cramers_v", "phi", "tschuprows_t"]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_wider_levels_give_wider_intervals(
    seed: int, level: float, statistic: str, strength: float
) -> None:
    joint = (1 - strength) / 12 + strength * np.eye(3, 4) / 3
    tables = np.random.default_rng(seed).multinomial(60, joint.ravel(), size=5)
    ends = MeanEffect(Association.of(tables.reshape(5, 3, 4)), statistic)  # type: ignore[arg-type]
    low, high = ends(level)
    wider = ends(0.9995)
    assert wider[0] <= low + 1e-9
    assert high <= wider[1] + 1e-9
    assert 0 <= low <= high <= np.sqrt(2 if statistic == "phi" else 1) + 1e-12
