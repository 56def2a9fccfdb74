"""What a cause explains of a disparity."""

import math

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.stats import Bootstrap

FEW = Bootstrap(400, 400)


def world(n=2000, *, seed=0, effect=0.3, shares=(0.5, 0.1), bias=0.0):
    """Return right predictions, groups and whether each image is a painting."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["men", "women"], n)
    women = group == "women"
    paint = rng.random(n) < np.where(women, *shares)
    right = rng.random(n) < 0.9 - effect * paint - bias * women
    return right, group, paint


def part(estimate, metric, subject=""):
    return next(part for part in estimate.parts if (part.metric, part.subject) == (metric, subject))


def test_reweighting_is_direct_standardisation():
    right, group, paint = world()
    estimate = m.explained_disparity(right, group, paint, resampling=None)
    men, disparity, without = group == "men", 0.0, 0.0
    disparity = right[men].mean() - right[~men].mean()
    for value in (False, True):
        in_stratum = paint == value
        without += in_stratum.mean() * (
            right[in_stratum & men].mean() - right[in_stratum & ~men].mean()
        )
    assert estimate.value == pytest.approx(disparity - without, abs=1e-12)
    assert part(estimate, "disparity").value == pytest.approx(disparity, abs=1e-12)
    assert part(estimate, "disparity_without_cause").value == pytest.approx(without, abs=1e-12)


def test_removal_leaves_affected_images_out():
    right, group, paint = world()
    estimate = m.explained_disparity(right, group, paint, how="remove", resampling=FEW)
    men = group == "men"
    gaps = [right[mask & men].mean() - right[mask & ~men].mean() for mask in (paint | True, ~paint)]
    assert estimate.value == pytest.approx(gaps[0] - gaps[1], abs=1e-12)
    assert estimate.params["removed of men"] == (paint & men).sum()
    assert estimate.chance.low < 0 < estimate.chance.high < estimate.interval().low


def test_chance_is_the_removal_of_as_many_random_images():
    right, group, paint = world(600)
    estimate = m.explained_disparity(
        right, group, paint, how="remove", resampling=Bootstrap(10, 4000)
    )
    rng, differences = np.random.default_rng(1), []
    men = group == "men"
    for _ in range(2000):
        mixed = paint.copy()
        for of_group in (men, ~men):
            mixed[of_group] = rng.permutation(paint[of_group])
        remaining = right[~mixed & men].mean() - right[~mixed & ~men].mean()
        differences.append(right[men].mean() - right[~men].mean() - remaining)
    assert estimate.chance.mean == pytest.approx(np.mean(differences), abs=0.003)
    band = np.quantile(differences, [0.025, 0.975])
    assert [estimate.chance.low, estimate.chance.high] == pytest.approx(band, abs=0.006)


def test_strata_without_common_support_count_in_the_disparity_alone():
    right, group, paint = world()
    cause = np.where((group == "women") & paint, "sketch", "photo")
    estimate = m.explained_disparity(right, group, cause, resampling=None)
    men, sketch = group == "men", cause == "sketch"
    expected = right[~men & ~sketch].mean() - right[~men].mean()
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    assert estimate.params["strata without common support"] == 1
    assert estimate.excluded["without common support"] == sketch.sum()


def test_numbers_are_outcomes_too_and_weights_repeat_images():
    right, group, paint = world(400)
    twice = np.repeat(np.arange(400), 1 + np.arange(400) % 3)
    once = m.explained_disparity(
        3.0 * right + 1.0, group, paint, weights=1.0 + np.arange(400) % 3, resampling=None
    )
    again = m.explained_disparity(right[twice], group[twice], paint[twice], resampling=None)
    assert once.value == pytest.approx(3.0 * again.value, abs=1e-9)
    assert part(once, "disparity_without_cause").value == pytest.approx(
        3.0 * part(again, "disparity_without_cause").value, abs=1e-9
    )


@pytest.mark.parametrize("tail", [0.0, 1.5])
def test_intervals_of_numbers_are_those_of_their_rows(tail):
    """Outcomes with many values are drawn as levels; rows are drawn here."""
    right, group, paint = world(1500)
    rng = np.random.default_rng(3)
    outcome = right + (np.exp(tail * rng.normal(size=1500)) if tail else rng.normal(size=1500))
    men = group == "men"

    def explained(rows):
        y, a, c = outcome[rows], men[rows], paint[rows]
        gap = y[a].mean() - y[~a].mean()
        for value in (False, True):
            gap -= (c == value).mean() * (y[a & (c == value)].mean() - y[~a & (c == value)].mean())
        return gap

    replicates = [explained(rng.integers(0, 1500, 1500)) for _ in range(3000)]
    estimate = m.explained_disparity(outcome, group, paint, resampling=Bootstrap(3000, 1))
    assert estimate.value == pytest.approx(explained(np.arange(1500)), abs=1e-9)
    low, high = np.quantile(replicates, [0.025, 0.975])
    width = estimate.interval().high - estimate.interval().low
    assert width == pytest.approx(high - low, rel=0.08)


def test_the_share_needs_a_disparity():
    right, group, paint = world()
    estimate = m.explained_disparity(right, group, paint, resampling=FEW)
    assert part(estimate, "explained_share").value == pytest.approx(
        estimate.value / part(estimate, "disparity").value
    )
    none = m.explained_disparity(np.arange(2000) % 7 > 0, group, paint, resampling=FEW)
    assert np.isnan(part(none, "explained_share").value)
    assert part(none, "explained_share").reason


def test_repeated_images_widen_the_interval():
    right, group, paint = world(500)
    alone = m.explained_disparity(right, group, paint, resampling=FEW)
    again = [np.repeat(array, 4) for array in (right, group, paint)]
    estimate = m.explained_disparity(*again, units=np.repeat(np.arange(500), 4), resampling=FEW)
    width, expected = (
        estimate.interval().high - estimate.interval().low for estimate in (estimate, alone)
    )
    assert width == pytest.approx(expected, rel=0.2)


def test_what_is_missing_is_counted():
    right, group, paint = world()
    outcome, cause = right.astype(float), paint.astype(object)
    outcome[:7], cause[5:12], group = np.nan, None, np.where(np.arange(2000) < 2, "", group)
    estimate = m.explained_disparity(outcome, group, cause, resampling=None)
    assert estimate.excluded == {
        "no group, or one that is not compared": 2, "no outcome": 5, "no cause": 5,
    }  # fmt: skip
    assert sum(estimate.n.values()) == 1988


def test_a_constant_cause_explains_nothing_that_can_be_said():
    right, group, _ = world()
    estimate = m.explained_disparity(right, group, np.full(2000, "photo"), resampling=FEW)
    assert np.isnan(estimate.value)
    assert estimate.reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": ["yes"] * 2000},
        {"outcome": np.ones(5)},
        {"cause": np.ones(5)},
        {"first": "children"},
        {"how": "drop"},
        {"how": "remove", "cause": ["a", "b"] * 1000},
        {"bins": 1},
        {"units": ["a"]},
        {"weights": [1.0]},
        {"groups": ["a", "b", "c", "d"] * 500},
    ],
)
def test_wrong_arguments_are_refused(wrong):
    right, group, paint = world()
    with pytest.raises(InputError):
        m.explained_disparity(
            **{"outcome": right, "groups": group, "cause": paint, "resampling": None} | wrong
        )


def test_causes_are_ranked_by_what_they_explain():
    right, group, paint = world(3000)
    noise = np.random.default_rng(5).normal(size=(3, 3000))
    size = noise[0] + 0.4 * (group == "women")
    causes = {"brightness": noise[1], "medium": paint, "size": size, "position": noise[2]}
    table = m.rank_causes(right, group, causes, how={"medium": "remove"}, resampling=FEW)
    rows = table.to_pylist()
    assert (rows[0]["cause"], rows[0]["how"], rows[0]["explains"]) == ("medium", "remove", True)
    assert not any(row["explains"] for row in rows[1:])
    assert rows[0]["low"] <= rows[0]["explained"] <= rows[0]["high"]


def test_no_cause_explains_a_bias_of_the_model():
    right, group, paint = world(3000, effect=0.0, bias=0.2)
    noise = np.random.default_rng(5).normal(size=3000)
    table = m.rank_causes(right, group, {"medium": paint, "size": noise}, resampling=FEW)
    assert not any(table["explains"].to_pylist())


def test_intervals_cover_the_planted_difference():
    """Truth: Δ with the cause, less Δ without it: 0.3 (0.5 − 0.1)."""
    covered = 0
    for seed in range(50):
        right, group, paint = world(1500, seed=seed, bias=0.1)
        estimate = m.explained_disparity(right, group, paint, resampling=Bootstrap(300, 1))
        covered += estimate.interval().low <= 0.3 * 0.4 <= estimate.interval().high
    assert covered >= 45


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_proxy_explains_nothing_beyond_the_cause_it_follows(noise):
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b"], 2000)
    medium = rng.random(2000) < np.where(group == "a", 0.7, 0.2)
    proxy = medium ^ (rng.random(2000) < noise)
    pose = rng.random(2000) < np.where(group == "a", 0.6, 0.2)
    right = rng.random(2000) < 0.9 - 0.4 * medium - 0.3 * pose
    causes = {"proxy": proxy, "pose": pose, "medium": medium}
    if not noise:
        causes = {"medium": medium, "proxy": proxy, "pose": pose}
    rows = {row["cause"]: row for row in m.rank_causes(right, group, causes).to_pylist()}
    assert all(row["explains"] for row in rows.values())
    # A second cause of its own stays one.
    assert {name: row["beyond"] for name, row in rows.items()} == {
        "medium": "", "pose": "", "proxy": "medium",
    }  # fmt: skip
    assert 0.85 < rows["proxy"]["association"] <= 1.0
    assert math.isnan(rows["pose"]["association"])
