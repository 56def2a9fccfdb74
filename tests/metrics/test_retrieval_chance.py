"""Chance levels of retrieval: exact sums, both nulls, validity, intervals, curves."""

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core.errors import InputError
from equipoise.metrics.retrieval import null
from equipoise.metrics.retrieval.chance import expected_max_skew, max_skew_distribution
from equipoise.metrics.retrieval.curves import query_distribution, retrieval_curves
from equipoise.metrics.retrieval.measures import max_skew, min_skew, ndkl, retrieval_mad, skew_at_k
from equipoise.metrics.retrieval.null import LabelExchange
from equipoise.metrics.spec import SPECS
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from equipoise.stats.streams import stream
from goldens import Golden, cases

PRINTED = Golden("social_counterfactuals.json")
FEW = Bootstrap(replicates=100, permutations=100, resolution=0.05)


def counterfactual(
    seed: int, subjects: int, sets: int, within: float, groups: int = 12
) -> dict[str, Any]:
    """Subjects with counterfactual sets: one member per group, correlated within the set."""
    rng = np.random.default_rng(seed)
    many = subjects * sets
    shared = np.repeat(rng.standard_normal(many), groups)
    own = rng.standard_normal(many * groups)
    return {
        "scores": np.sqrt(within) * shared + np.sqrt(1 - within) * own,
        "groups": np.tile(np.arange(groups), many),
        "queries": np.repeat([f"s{i}" for i in range(subjects)], sets * groups),
        "sets": np.repeat(np.arange(many), groups),
    }


@pytest.mark.parametrize("golden", cases("chance.json"))
def test_exact_chance_levels(golden: dict[str, Any]) -> None:
    found = expected_max_skew([golden["per_group"]] * golden["groups"], golden["k"])
    assert found == pytest.approx(golden["expected_max_skew"], abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.integers(1, 5), st.booleans())
def test_exact_chance_is_the_mean_over_all_selections(
    sizes: list[int], k: int, uniform: bool
) -> None:
    codes = [g for g, size in enumerate(sizes) for _ in range(size)]
    if not k < len(codes):
        return
    target = "uniform" if uniform else "pool"
    wanted = plain.desired_of(codes, len(sizes), target)
    every = [
        max(math.log(chosen.count(g) / k / wanted[g]) for g in range(len(sizes)) if chosen.count(g))
        for chosen in combinations(codes, k)
    ]
    found = expected_max_skew(sizes, k, desired=target)  # type: ignore[arg-type]
    assert found == pytest.approx(np.mean(every), abs=1e-12)
    values, mass = max_skew_distribution(tuple(sizes), k, tuple(wanted)) or ((), ())
    for value, probability in zip(values, mass, strict=True):
        share = np.mean([abs(one - value) < 1e-9 for one in every])
        assert probability == pytest.approx(share, abs=1e-12)


def test_exact_chance_of_large_pools_is_refused_not_approximated() -> None:
    with pytest.raises(InputError, match=r"^sizes: too many different results to go through"):
        expected_max_skew(list(range(400, 440)), 300)
    with pytest.raises(InputError, match=r"^k=10: expected at least 1 and fewer than the 10 items"):
        expected_max_skew([5, 5], 10)


def test_one_query_gets_the_exact_band_and_p() -> None:
    scores, groups = plain.world(0, 12, 3, ties=False)
    found = max_skew(scores, groups, k=4)
    wanted = plain.desired_of(groups, 3, "pool")
    every = [
        max(
            math.log(list(groups[list(rows)]).count(g) / 4 / wanted[g])
            for g in set(groups[list(rows)])
        )
        for rows in combinations(range(12), 4)
    ]
    assert found.chance is not None
    assert found.chance.mean == pytest.approx(np.mean(every), abs=1e-12)
    assert found.p_value == pytest.approx(
        np.mean([one >= found.value - 1e-12 for one in every]), abs=1e-12
    )
    assert found.null == "the order within each pool is random; all selections; exact"
    assert found.p_value == max_skew(scores, groups, k=4, resampling=Exact()).p_value
    assert found.method == "none: the queries are one unit; chance band and p-value only"
    assert math.isnan(found.interval().low)
    with pytest.raises(InputError, match=r"^resampling=Exact: only for max_skew of one query"):
        ndkl(scores, groups, k=4, resampling=Exact())


@pytest.mark.parametrize("metric", [max_skew, min_skew, ndkl, retrieval_mad])
def test_permutations_agree_with_all_orders(metric: Any) -> None:
    scores, groups = np.array([6.0, 5, 4, 3, 2, 1]), np.array([0, 0, 0, 1, 1, 2])
    drawn = metric(scores, groups, k=3, resampling=Permutation(replicates=20_000))
    every = [
        metric(scores, groups[list(order)], k=3, resampling=None).value
        for order in permutations(range(6))
    ]
    assert drawn.p_value == pytest.approx(
        np.mean([one <= drawn.value + 1e-12 for one in every])
        if metric is min_skew
        else np.mean([one >= drawn.value - 1e-12 for one in every]),
        abs=0.012,
    )
    if np.isfinite(every).all():
        assert drawn.chance.mean == pytest.approx(np.mean(every), abs=0.01)


@pytest.mark.parametrize("metric", [max_skew, ndkl, retrieval_mad])
def test_ties_stay_ties_under_the_null(metric: Any) -> None:
    scores, groups = np.array([2.0, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 1, 2, 2])
    drawn = metric(scores, groups, k=3, resampling=Permutation(replicates=20_000))
    every = [
        metric(scores, groups[list(order)], k=3, resampling=None).value
        for order in permutations(range(6))
    ]
    assert drawn.chance.mean == pytest.approx(np.mean(every), abs=0.01)
    assert drawn.p_value == pytest.approx(
        np.mean([one >= drawn.value - 1e-12 for one in every]), abs=0.012
    )


@given(st.integers(0, 10**6), st.booleans())
def test_labels_are_exchanged_within_strata_only(seed: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 4, 60).astype(np.int32)
    stratum = rng.integers(0, 5, 60)
    seen = np.flatnonzero(codes >= 0)
    items = seen if whole else rng.permutation(seen)[:20]
    drawn = LabelExchange.of(codes, stratum, items).draw(rng, 40)
    for name in np.unique(stratum[items]):
        held = stratum[items] == name
        there = np.bincount(codes[(stratum == name) & (codes >= 0)], minlength=4)
        for labels in drawn:
            counts = np.bincount(labels[held], minlength=4)
            assert (counts == there).all() if whole else (counts <= there).all()


def test_draws_do_not_depend_on_how_many_share_a_copy_of_the_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    codes, stratum = rng.integers(0, 4, 5000).astype(np.int32), rng.integers(0, 3, 5000)
    exchange = LabelExchange.of(codes, stratum, rng.permutation(5000)[:20].reshape(4, 5))
    monkeypatch.setattr(null, "_BLOCK_LABELS", 4 * 5000)
    found = []
    for blocks in (1, 2, 16):
        monkeypatch.setattr(null, "_BLOCKS", blocks)
        found.append(np.concatenate(exchange.evaluate(np.copy, 30, 1, "name")))
    alone = exchange.draw(stream(1, "name", 3), 3)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    assert (found[0][3:6] == alone).all()


def test_every_label_is_equally_likely_at_every_place() -> None:
    codes = np.array([0, 0, 1, 2, 2, 2], dtype=np.int32)
    for items in (np.array([4, 1]), np.arange(6)):
        drawn = LabelExchange.of(codes, np.zeros(6, dtype=np.int64), items).draw(
            np.random.default_rng(0), 60_000
        )
        for column in drawn.T:
            shares = np.bincount(column, minlength=3) / 60_000
            assert shares == pytest.approx([2 / 6, 1 / 6, 3 / 6], abs=0.01)
        both = np.mean((drawn[:, 0] == 0) & (drawn[:, 1] == 0))
        assert both == pytest.approx(2 / 6 * 1 / 5, abs=0.01)


def test_sets_lower_the_chance_level_that_pool_order_overstates() -> None:
    data = counterfactual(0, subjects=100, sets=40, within=0.9)
    found = max_skew(**data, k=12, resampling=Permutation(replicates=200))
    pool_order = expected_max_skew([40] * 12, 12)
    assert found.chance is not None
    assert found.p_value is not None
    # 6000 simulated subjects: 0.738 (standard error 0.003) for 40 sets, 0.756 for 50.
    assert found.chance.mean == pytest.approx(0.74, abs=0.03)
    assert 0.01 < found.p_value < 0.99
    assert found.params["null"] == "order within sets"
    assert found.null.startswith("the order within each counterfactual set is random; 200 perm")
    assert found.by is not None
    secondary = found.by.to_pylist()[-1]
    assert secondary["metric"] == "max_skew_pool_order"
    assert secondary["shows"] == "secondary null: the order within each pool is random"
    assert secondary["value"] == found.value
    assert secondary["chance"] == pytest.approx(pool_order, abs=0.02)
    assert secondary["p_value"] == 1.0
    alone = max_skew(**{**data, "sets": None}, k=12, resampling=Permutation(replicates=50))
    assert alone.chance is not None
    assert alone.chance.mean == pytest.approx(pool_order, abs=1e-12)


def test_ndkl_at_random_is_as_large_as_the_paper_prints() -> None:
    data = counterfactual(1, subjects=20, sets=50, within=0.0)
    found = ndkl(**data, k=144, resampling=Permutation(replicates=50))
    assert found.chance is not None
    assert found.chance.mean == pytest.approx(0.35, abs=0.01)
    assert abs(PRINTED["ndkl_mean_by_model_race_gender"]["CLIP"] - found.chance.mean) < 0.02


def test_the_card_tells_what_chance_alone_gives() -> None:
    printed = PRINTED["mean_max_skew_pretrained"]["race-gender"]["CLIP"]
    chance = SPECS["max_skew"].chance
    assert f"{expected_max_skew([50] * 12, 12):.3f}" in chance
    assert str(printed) in chance
    assert "0.74" in chance
    assert "pool sizes" in chance


def p_values(metric: Any, worlds: int, k: int, **change: Any) -> np.ndarray:
    found = []
    for seed in range(worlds):
        data = {**counterfactual(seed, 4, 8, 0.8, groups=4), **change}
        estimate = metric(
            **data, k=k, resampling=Permutation(replicates=99, resolution=0.1), rng=seed
        )
        found.append(estimate.p_value)
    return np.array(found)


@pytest.mark.parametrize("metric", [max_skew, ndkl, retrieval_mad])
def test_p_values_are_valid_within_sets(metric: Any) -> None:
    found = p_values(metric, 200, 8)
    for level in (0.05, 0.2, 0.5):
        # Three standard errors of a share of 200.
        assert np.mean(found <= level) <= level + 3 * math.sqrt(level * (1 - level) / 200)
    assert np.mean(found <= 0.6) > 0.3


def test_a_shift_of_one_group_is_found_and_grows() -> None:
    data = counterfactual(2, 6, 20, 0.9, groups=4)
    values, ps = [], []
    for strength in (0.0, 0.3, 0.8, 2.0):
        shifted = data["scores"] + strength * (data["groups"] == 2)
        found = ndkl(**{**data, "scores": shifted}, k=16, resampling=FEW)
        values.append(found.value)
        ps.append(found.p_value)
    assert values == sorted(values)
    assert ps[0] > 0.05
    assert ps[-1] < 0.02


def test_shared_images_are_exchanged_together() -> None:
    """Queries that rank alike are one piece of evidence: copies do not lower p."""
    scores, groups = plain.world(7, 60, 3, ties=False)
    one = max_skew(scores, groups, k=6, resampling=Permutation(replicates=2000))
    copies = max_skew(np.tile(scores, (10, 1)), groups, k=6, resampling=Permutation(2000))
    assert copies.p_value == pytest.approx(one.p_value, abs=0.05)
    assert copies.chance is not None
    assert one.chance is not None
    assert copies.chance.high == pytest.approx(one.chance.high, abs=1e-9)


def test_the_interval_resamples_queries_and_their_units() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((40, 100))
    groups = rng.integers(0, 3, 100)
    found = max_skew(values, groups, k=10, resampling=Bootstrap(2000, 50))
    each = query_distribution(found)
    half = 1.96 * each.sd / math.sqrt(40)
    low, high = found.interval().low, found.interval().high
    assert (high - low) / 2 == pytest.approx(half, rel=0.15)
    assert found.method == "percentile bootstrap over queries, 2000 replicates"
    twice = max_skew(
        np.repeat(values, 2, axis=0), groups, k=10, units=np.repeat(np.arange(40), 2),
        resampling=Bootstrap(2000, 50),
    )  # fmt: skip
    wide = twice.interval()
    assert (wide.high - wide.low) / 2 == pytest.approx(half, rel=0.15)


def test_items_of_no_set_exchange_among_themselves() -> None:
    data = counterfactual(3, 2, 10, 0.5, groups=3)
    sets = [None if i % 5 == 0 else s for i, s in enumerate(data["sets"])]
    found = max_skew(**{**data, "sets": sets}, k=6, resampling=FEW)
    assert found.params["items_without_set"] == 12
    assert found.chance is not None
    uniform = max_skew(
        [3, 2, 1, 0], ["a", "a", "b", "b"], k=2, sets=[0, 0, 1, 1], resampling=FEW
    )  # fmt: skip
    assert uniform.chance is None
    assert uniform.no_chance.startswith("no counterfactual set holds several groups")


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sets", [False, True])
def test_curves_are_the_metric_at_every_k(ties: bool, sets: bool) -> None:
    scores = np.stack([plain.world(seed, 30, 3, ties=ties)[0] for seed in range(3)])
    groups = plain.world(0, 30, 3, ties=False)[1]
    members = np.repeat(np.arange(10), 3) if sets else None
    table = retrieval_curves(scores, groups, k=12, sets=members, resampling=FEW).to_pylist()
    for metric in (max_skew, min_skew, ndkl):
        rows = [row for row in table if row["metric"] == metric.__name__ and not row["query"]]
        assert [row["k"] for row in rows] == list(range(1, 13))
        for row in rows:
            found = metric(scores, groups, k=row["k"], resampling=None)
            assert row["value"] == pytest.approx(found.value, abs=1e-12)
            assert row["chance_low"] <= row["chance_high"]
            assert row["low"] <= row["value"] <= row["high"]
        first = [row for row in table if row["metric"] == metric.__name__ and row["query"] == "1"]
        alone = metric(scores[1], groups, k=9, resampling=None).value
        assert first[8]["value"] == pytest.approx(alone, abs=1e-12)
    bare = retrieval_curves(scores, groups, k=12, resampling=None).to_pylist()
    assert [row["value"] for row in bare] == [row["value"] for row in table]
    assert all(math.isnan(row["chance"]) for row in bare)


def test_chance_of_a_curve_is_that_of_its_points() -> None:
    data = counterfactual(4, 5, 10, 0.0, groups=4)
    data["sets"] = None
    table = retrieval_curves(**data, k=8, resampling=Permutation(replicates=2000)).to_pylist()
    for row in table[:8]:
        assert row["metric"] == "max_skew"
        expected = expected_max_skew([10] * 4, row["k"])
        assert row["chance"] == pytest.approx(expected, abs=0.02)


def test_bad_curves() -> None:
    with pytest.raises(InputError, match=r"^k=3: no pool of several groups has more than 3 items"):
        retrieval_curves([1, 2, 3], ["a", "b", "a"], k=3)
    with pytest.raises(InputError, match=r"^resampling=Exact: not available for curves"):
        retrieval_curves([1, 2, 3], ["a", "b", "a"], k=1, resampling=Exact())


def test_distribution_over_queries() -> None:
    scores = np.stack([np.arange(12.0), -np.arange(12.0), np.tile([1.0, 0.0, 3.0], 4)])
    groups = ["a"] * 4 + ["b"] * 8
    found = max_skew(scores, groups, k=4, queries=["up", "down", "mixed"], resampling=None)
    held = query_distribution(found)
    codes = [int(g == "b") for g in groups]
    expected = sorted(max(plain.skews(list(s), codes, 4, 2, "pool").values()) for s in scores)
    assert (held.queries, held.not_estimable) == (3, 0)
    assert (held.lowest_queries, held.highest_queries) == (("mixed",), ("down",))
    assert [held.lowest, held.median, held.highest] == pytest.approx(expected, abs=1e-12)
    assert held.first_quartile == pytest.approx(np.quantile(expected, 0.25), abs=1e-12)
    assert held.sd == pytest.approx(np.std(expected, ddof=1), abs=1e-12)
    lows = query_distribution(min_skew(scores, groups, k=4, resampling=None))
    assert (lows.lowest, lows.first_quartile) == (-math.inf, -math.inf)
    assert math.isnan(lows.sd)
    with pytest.raises(InputError, match=r"^max_skew: no query has a value$"):
        query_distribution(max_skew([1, 2], ["a", "b"], k=2, resampling=None))


def test_seeds_decide_and_group_skews_have_their_chance() -> None:
    data = counterfactual(5, 3, 10, 0.5, groups=3)
    one, same, other = (skew_at_k(**data, k=9, resampling=FEW, rng=rng) for rng in (1, 1, 2))
    assert str(one.by) == str(same.by)
    assert str(one.by) != str(other.by)
    assert one.by is not None
    rows = [row for row in one.by.to_pylist() if row["metric"] == "group_skew"]
    assert [row["subject"] for row in rows] == ["0", "1", "2"]
    assert all(0 < row["p_value"] <= 1 for row in rows)


def test_of_many_labels_those_looked_at_are_drawn_and_all_where_most_are() -> None:
    codes = (np.arange(1 << 16) % 3).astype(np.int32)
    stratum = np.zeros(len(codes), dtype=np.int64)
    few = LabelExchange.of(codes, stratum, np.arange(50))
    assert not few._costs_less_whole(1)
    assert LabelExchange.of(codes, stratum, np.arange(40_000))._costs_less_whole(1)
    drawn = np.concatenate(few.evaluate(lambda labels: labels, 2_000, 0, "test"))
    shares = np.bincount(drawn.ravel(), minlength=3) / drawn.size
    np.testing.assert_allclose(shares, 1 / 3, atol=5 * np.sqrt(2 / 9 / drawn.size))
