"""Rejections by group: whose images a check turns away, all else in a set alike."""

from itertools import permutations

import numpy as np
import pytest

from equipoise.core import Groups, InputError
from equipoise.metrics import kept_share, rejected_share, rejection_gap
from equipoise.stats import Bootstrap, Permutation

QUICK = Bootstrap(replicates=200, permutations=200)


def few(groups):
    return Groups.of([*groups], min_size=1)


def sets(seed, rates, *, n_sets=60):
    """Sets of two images a group, each rejected with its group's probability."""
    rng = np.random.default_rng(seed)
    groups = np.tile(np.repeat([*rates], 2), n_sets)
    rejected = rng.random(len(groups)) < np.array([rates[group] for group in groups])
    return {
        "rejected": rejected,
        "groups": groups,
        "sets": np.repeat([f"set {n}" for n in range(n_sets)], 2 * len(rates)),
    }


def test_the_gap_is_between_the_largest_and_the_smallest_share():
    rejected = [1, 0, 0, 0, 1, 1, 0, 0, 0]
    estimate = rejection_gap(rejected, few("aaabbbccc"), resampling=None)
    assert estimate.value == pytest.approx(2 / 3)
    assert [part.value for part in estimate.parts[0].by_group] == pytest.approx([1 / 3, 2 / 3, 0.0])
    assert estimate.n == {"a": 3, "b": 3, "c": 3}
    repeated = rejection_gap([3, 0, 1, 1], few("aabb"), checks=[4, 4, 2, 2], resampling=None)
    assert [part.value for part in repeated.parts[0].by_group] == pytest.approx([3 / 8, 2 / 4])
    alone = rejection_gap([1, 0, 1], ["a", "a", "a"], resampling=QUICK)
    assert np.isnan(alone.value)
    assert alone.reason


def test_the_share_of_all_images_has_the_groups_shares_of_the_gap():
    data = sets(4, {"a": 0.1, "b": 0.4})
    share = rejected_share(**data, resampling=QUICK)
    assert share.value == pytest.approx(data["rejected"].mean())
    of_groups = [
        part for part in rejection_gap(**data, resampling=QUICK).parts if len(part.by_group) == 1
    ]
    assert [str(part) for part in share.parts] == [str(part) for part in of_groups]
    wide = rejected_share([0] * 50, ["a", "b"] * 25, resampling=QUICK).interval()
    assert (wide.low, wide.high) == pytest.approx((0.0, 0.0714), abs=1e-3)


def test_sets_of_a_caption_widen_the_interval_of_the_share_that_is_kept():
    kept = np.repeat(np.random.default_rng(0).random(40) < 0.5, 10)
    alone, together = kept_share(kept), kept_share(kept, captions=np.repeat(np.arange(40), 10))
    assert alone.value == together.value == kept.mean()
    widths = [estimate.interval().high - estimate.interval().low for estimate in (alone, together)]
    assert widths[1] > 2 * widths[0]
    few_captions = kept_share(kept, captions=np.repeat(np.arange(4), 100))
    assert few_captions.interval() == kept_share(kept, resampling=None).interval()
    with pytest.raises(InputError, match="captions"):
        kept_share(kept, captions=["a"])


def test_p_is_that_of_all_exchanges_within_sets():
    """Two sets of three: by hand over the 36 orders, against as many draws as settle it."""
    rejected, groups = np.array([1, 0, 0, 1, 1, 0]), np.array(list("abb") + list("aab"))

    def gap(labels):
        shares = [rejected[np.array(labels) == label].mean() for label in "ab"]
        return float(abs(shares[0] - shares[1]))

    expected = [
        gap([*first, *second]) for first in permutations("abb") for second in permutations("aab")
    ]
    exact = np.mean(np.array(expected) >= gap(groups) - 1e-12)
    estimate = rejection_gap(
        rejected, few(groups), sets=list("xxxyyy"), resampling=Permutation(20_000), rng=1
    )
    assert estimate.p_value == pytest.approx(exact, abs=0.01)
    assert estimate.chance.mean == pytest.approx(np.mean(expected), abs=0.01)


def test_sets_of_one_group_exchange_with_each_other():
    groups = np.repeat(["f", "m"], 40)
    estimate = rejection_gap(
        groups == "f", groups, sets=np.repeat(np.arange(20), 4), resampling=Permutation(2000)
    )
    assert estimate.value == 1.0
    assert estimate.p_value < 0.001


def test_under_the_null_p_is_valid_where_sets_differ_and_repeat():
    p = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        of_set = np.repeat(rng.random(40), 6)
        estimate = rejection_gap(
            rng.random(240) < of_set, np.tile(["a", "b", "c"], 80),
            sets=np.repeat(np.arange(40), 6), clusters=np.repeat(np.arange(8), 30),
            resampling=Permutation(99), rng=seed,
        )  # fmt: skip
        p.append(estimate.p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.09
    assert 0.4 <= np.mean(np.array(p) <= 0.5) <= 0.6


def test_a_planted_difference_is_found_and_covered():
    hits, covered = 0, 0
    for seed in range(30):
        estimate = rejection_gap(**sets(seed, {"f": 0.3, "m": 0.1}, n_sets=100), resampling=QUICK)
        hits += estimate.p_value is not None and estimate.p_value < 0.05
        interval = estimate.interval()
        covered += interval.low <= 0.2 <= interval.high
    assert hits == 30
    assert covered >= 27


def test_the_interval_of_a_clear_gap_lies_around_it():
    estimate = rejection_gap(**sets(3, {"f": 0.9, "m": 0.8}, n_sets=400), resampling=QUICK)
    low, high = estimate.interval().low, estimate.interval().high
    assert 0.0 < low < estimate.value < high < 0.3


def test_strata_are_parts_and_add_up_to_the_whole():
    arguments = sets(0, {"f": 0.3, "m": 0.1})
    strata = np.where(np.arange(240) < 120, "race-gender", "physical-gender")
    estimate = rejection_gap(**arguments, strata=strata, resampling=QUICK)
    gap_parts = [part for part in estimate.parts if part.aggregate == "difference"]
    assert [part.subject for part in gap_parts] == ["", "physical-gender", "race-gender"]
    assert gap_parts[1].n + gap_parts[2].n == gap_parts[0].n == 240
    alone = rejection_gap(
        arguments["rejected"][:120],
        arguments["groups"][:120],
        sets=arguments["sets"][:120],
        resampling=QUICK,
    )
    assert gap_parts[2].value == pytest.approx(alone.value)
    shares = [part for part in estimate.parts if part.aggregate == "value"]
    assert len(shares) == 6
    assert all(part.chance_low <= part.chance <= part.chance_high for part in shares)


def test_unchecked_images_and_images_without_a_group_are_counted():
    estimate = rejection_gap(
        [1.0, np.nan, 0.0, 1.0, 0.0], few(["a", "a", "b", None, "b"]), resampling=QUICK
    )
    assert dict(estimate.excluded) == {"not checked": 1, "missing group": 1}
    assert estimate.n == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rejected": [2, 0]}, r"rejected, row 1: 2 of 1; expected a whole number"),
        ({"rejected": [[1], [0]]}, r"rejected: shape \(2, 1\)"),
        ({"groups": ["a"]}, r"groups: 1 rows; expected 2, as in rejected"),
        ({"checks": [1]}, r"checks: shape \(1,\); expected \(2,\), as rejected"),
        ({"strata": ["a", None]}, r"strata, row 2: missing"),
        ({"groups": [None, None]}, r"no image was checked and has a group"),
    ],
)
def test_what_cannot_be_measured_is_told(arguments, message):
    with pytest.raises(InputError, match=message):
        rejection_gap(**{"rejected": [1, 0], "groups": ["a", "b"], **arguments})


def test_each_of_three_groups_is_held_against_all_others():
    arguments = sets(3, {"a": 0.1, "b": 0.4, "c": 0.4})
    estimate = rejection_gap(**arguments, resampling=QUICK)
    leaves = [part for part in estimate.parts if part.aggregate == "against_rest"]
    rejected, groups = arguments["rejected"], arguments["groups"]
    for leaf, name in zip(leaves, "abc", strict=True):
        difference = rejected[groups == name].mean() - rejected[groups != name].mean()
        assert leaf.value == pytest.approx(difference)
        assert leaf.low < leaf.value < leaf.high
        assert [group.group for group in leaf.by_group] == [name, "all other groups"]
        assert (leaf.n, leaf.by_group[1].n) == (len(groups), 2 * (groups == name).sum())
    assert leaves[0].p_value < 0.02 < leaves[0].high - leaves[0].low
    two = rejection_gap(**sets(3, {"a": 0.1, "b": 0.4}), resampling=QUICK)
    assert {part.aggregate for part in two.parts} == {"difference", "value"}


def test_rejections_against_all_others_have_their_level_and_coverage():
    p, inside = [], []
    for seed in range(80):
        estimate = rejection_gap(
            **sets(seed, dict.fromkeys("abc", 0.2), n_sets=30), resampling=QUICK
        )
        leaf = next(part for part in estimate.parts if part.aggregate == "against_rest")
        p.append(leaf.p_value)
        inside.append(leaf.low <= 0.0 <= leaf.high)
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 80)
    assert np.mean(inside) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 80)
