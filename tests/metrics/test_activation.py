"""Shares of maps inside boxes: by hand, against chance, and what is left out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.core import InputError
from equipoise.metrics import (
    activation_share,
    activation_share_gap,
    paired_share_difference,
    region_area,
)
from equipoise.metrics.numbers.activation import Regions
from equipoise.stats import Bootstrap, Permutation

QUICK = Bootstrap(200, 200)


def world(n=60, *, follows=True, seed=0):
    """Maps on 8 x 8 cells with a box of 3 x 3 each, and groups."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 6, (n, 2))
    maps = rng.random((n, 8, 8))
    if follows:
        for activation, (x, y) in zip(maps, corner, strict=True):
            activation[y : y + 3, x : x + 3] += 2.0
    return maps, np.hstack([corner, corner + 3]) / 8.0, np.where(np.arange(n) % 2, "a", "b")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(0, 2**20),
)
def test_a_share_adds_up_what_each_cell_has_in_the_box(edges, rows, columns, seed):
    left_edge, right, top, bottom = *sorted(edges[:2]), *sorted(edges[2:])
    if right - left_edge < 1e-6 or bottom - top < 1e-6:
        return
    cells = np.random.default_rng(seed).random((rows, columns)) + 0.01
    x = np.clip(np.minimum(right, np.arange(1, columns + 1) / columns)
                - np.maximum(left_edge, np.arange(columns) / columns), 0, None)  # fmt: skip
    x *= columns
    y = np.clip(np.minimum(bottom, np.arange(1, rows + 1) / rows)
                - np.maximum(top, np.arange(rows) / rows), 0, None) * rows  # fmt: skip
    regions = Regions.of(cells[None], [[left_edge, top, right, bottom]])
    assert regions.shares[0] == pytest.approx(float(y @ cells @ x / cells.sum()), abs=1e-12)


def test_maps_that_follow_their_boxes_exceed_the_maps_of_other_images():
    maps, boxes, groups = world()
    estimate = activation_share(maps, boxes, groups, resampling=QUICK)
    assert estimate.value > 0.4
    assert estimate.chance.high < estimate.interval().low
    assert estimate.p_value <= 2 / 201
    assert estimate.params["area"] == pytest.approx(9 / 64)
    assert estimate.n == {"a": 30, "b": 30}
    assert np.mean([part.value for part in estimate.parts]) == pytest.approx(estimate.value)
    areas = {part.subject: part.value for part in region_area(maps, boxes, groups).parts}
    assert areas == {"a": pytest.approx(9 / 64), "b": pytest.approx(9 / 64)}


def test_the_null_is_valid_where_maps_have_nothing_to_do_with_boxes():
    ps = []
    for seed in range(60):
        maps, boxes, _ = world(24, follows=False, seed=seed)
        maps[:, 3:5, 3:5] += 3.0  # all look at the middle, whatever the image
        estimate = activation_share(maps, boxes, resampling=Permutation(99, resolution=1.0))
        ps.append(estimate.p_value)
    assert np.mean(np.array(ps) <= 0.05) <= 0.13
    assert np.mean(np.array(ps) <= 0.5) > 0.3


def test_images_of_a_unit_are_resampled_together():
    maps, boxes, _ = world(20)
    twice = (np.repeat(maps, 4, axis=0), np.repeat(boxes, 4, axis=0))
    units = np.repeat([f"p{index}" for index in range(20)], 4)
    alone = activation_share(*twice, resampling=QUICK).interval()
    together = activation_share(*twice, units=units, resampling=QUICK)
    assert together.unit == "unit"
    assert together.interval().high - together.interval().low > 1.5 * (alone.high - alone.low)


def test_what_has_no_share_is_counted():
    maps, boxes, groups = world(40)
    maps[0], boxes[1], boxes[2] = 0.0, np.nan, [1.2, 0.0, 1.5, 0.5]
    estimate = activation_share(maps, boxes, groups, resampling=None)
    assert estimate.excluded == {
        "no region": 1, "region outside the map": 1, "no activation": 1,
    }  # fmt: skip
    assert sum(estimate.n.values()) == 37
    gap = activation_share_gap(maps, boxes, groups, resampling=None)
    assert gap.excluded["no activation"] == 1
    nothing = activation_share(np.zeros((3, 2, 2)), [[0, 0, 1, 1]] * 3, ["a", "b", "a"])
    assert np.isnan(nothing.value)
    assert nothing.reason


def test_a_gap_between_groups_is_found_and_larger_regions_are_no_gap():
    maps, boxes, groups = world(80)
    group_a = groups == "a"
    maps[group_a] = 1.0  # of group a, maps follow nothing
    gap = activation_share_gap(maps, boxes, groups, resampling=QUICK)
    assert (gap.metric, gap.aggregate) == ("activation_share", "difference")
    assert gap.interval().low > 0.2
    assert gap.p_value < 0.05
    means = {part.group: part.value for part in gap.parts[0].by_group}
    assert means["a"] == pytest.approx(9 / 64)
    assert means["b"] - means["a"] == pytest.approx(gap.value)
    flat = np.ones_like(maps)
    wide = np.where(group_a[:, None], [0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 0.25, 0.25])
    assert activation_share_gap(flat, wide, groups, resampling=None).value == pytest.approx(0.4375)
    beyond = activation_share_gap(flat, wide, groups, beyond_area=True, resampling=None)
    assert beyond.value == pytest.approx(0.0, abs=1e-9)
    assert beyond.params == {"beyond_area": True}


WORLD = world(10)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"maps": np.ones((10, 3))}, "maps: shape"),
        ({"maps": -WORLD[0]}, "maps: map 0"),
        ({"boxes": WORLD[1][:1]}, "boxes: shape"),
        ({"boxes": [[0.5, 0, 0.5, 1]] * 10}, "boxes: box 0"),
        ({"groups": WORLD[2][:3]}, "groups: 3 rows; expected 10"),
    ],
)
def test_bad_input(changes, where):
    arguments = dict(zip(("maps", "boxes", "groups"), WORLD, strict=True)) | changes
    for metric in (activation_share, activation_share_gap):
        with pytest.raises(InputError, match=f"^{where}"):
            metric(**arguments)
    with pytest.raises(InputError, match="^maps and boxes: fewer than two"):
        activation_share_gap(*(array[:1] for array in WORLD))


def test_each_of_three_groups_is_held_against_all_others():
    maps, boxes, _ = world(90)
    groups = np.array(["a", "b", "c"] * 30)
    maps[groups != "a"] = world(90, follows=False)[0][groups != "a"]
    estimate = activation_share_gap(maps, boxes, groups, resampling=QUICK)
    shares = Regions.of(maps, boxes).shares
    leaves = [part for part in estimate.parts if part.aggregate == "against_rest"]
    for leaf, name in zip(leaves, "abc", strict=True):
        group_mean, rest_mean = shares[groups == name].mean(), shares[groups != name].mean()
        assert leaf.value == pytest.approx(group_mean - rest_mean)
        assert [group.value for group in leaf.by_group] == pytest.approx([group_mean, rest_mean])
        assert (leaf.low + leaf.high) / 2 == pytest.approx(leaf.value)
    assert leaves[0].p_value < 0.02
    assert leaves[0].low > 0 > leaves[1].value
    two = activation_share_gap(maps, boxes, groups == "a", resampling=QUICK)
    assert len(two.parts) == 1
    assert two.p_value == pytest.approx(leaves[0].p_value, abs=0.02)


def test_a_paired_difference_is_a_mean_with_students_interval_and_flipped_signs():
    rng = np.random.default_rng(3)
    differences = rng.random(12) + 0.2 - rng.random(12)
    estimate = paired_share_difference(differences, ["a", "b"] * 6, resampling=QUICK)
    assert estimate.value == pytest.approx(differences.mean())
    half = stats.t.ppf(0.975, 11) * differences.std(ddof=1) / np.sqrt(12)
    interval = estimate.interval()
    assert (interval.high - interval.low) / 2 == pytest.approx(half)
    signs = np.array([*product((1.0, -1.0), repeat=12)])
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).mean()
    assert estimate.p_value == pytest.approx(exact)
    halves = {part.subject: part for part in estimate.parts}
    for name, group_differences in (("a", differences[::2]), ("b", differences[1::2])):
        assert halves[name].value == pytest.approx(group_differences.mean())
        assert halves[name].by_group[0].n == 6
        assert 0.0 < halves[name].p_value <= 1.0


def test_units_count_once_in_a_paired_difference():
    estimate = paired_share_difference([0.2, 0.4, np.nan, 0.1], units=[*"xxyz"])
    # Unit x has 0.3, unit z 0.1.
    assert estimate.value == pytest.approx(0.2)
    assert estimate.excluded == {"no share": 1}
    assert estimate.unit == "unit"
    empty = paired_share_difference([np.nan])
    assert np.isnan(empty.value)
    assert empty.reason
    with pytest.raises(InputError, match="^groups: 1 rows"):
        paired_share_difference([0.1, 0.2], ["a"])


def test_p_values_of_pairs_without_a_difference_are_uniform():
    p_values = [
        paired_share_difference(
            sample[:24] - sample[24:], resampling=Bootstrap(40, 400), rng=3
        ).p_value
        for sample in np.random.default_rng(9).random((300, 48))
    ]
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.085
