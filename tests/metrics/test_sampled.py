"""Shares from human labels on a sample: exact where all is labelled, valid where little is."""

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics.labels.sampled import SampledCells
from equipoise.stats.intervals import wilson
from label_worlds import World, coverage, nobody

# Group-dependent errors: many images of "b" with the attribute are missed.
ERRORS = {"a": (3000, 0.3, 0.05, 0.02), "b": (1500, 0.4, 0.3, 0.1)}


def test_every_image_labelled_gives_the_share_without_a_doubt():
    world = World(ERRORS)
    estimate = m.labelled_share_gap(world.truth, world.machine, world.group)
    shares = {
        group.group: (group.value, group.low, group.high) for group in estimate.parts[0].by_group
    }
    for group, (value, low, high) in shares.items():
        assert value == pytest.approx(world.share(group), abs=1e-12)
        assert (low, high) == pytest.approx((value, value), abs=1e-6)
    assert estimate.value == pytest.approx(abs(world.share("a") - world.share("b")), abs=1e-12)


def test_one_stratum_of_a_large_population_is_wilsons_interval():
    outcome = np.full(1_000_000, np.nan)
    outcome[:100] = 0
    estimate = m.labelled_share(outcome, np.zeros(1_000_000))
    assert (estimate.value, estimate.interval().low) == (0.0, 0.0)
    assert estimate.interval().high == pytest.approx(float(wilson(0, 100**2 / 101)[1]), abs=1e-5)
    outcome[:30] = 1
    interval = m.labelled_share(outcome, np.zeros(1_000_000)).interval()
    assert [interval.low, interval.high] == pytest.approx(np.array(wilson(30, 100)), abs=2e-3)


def test_the_value_weights_strata_by_their_images():
    # 90 images with 1 of 3 labels positive, 10 with 2 of 2.
    outcome = np.full(100, np.nan)
    outcome[:3], outcome[90:92] = [1, 0, 0], [1, 1]
    estimate = m.labelled_share(outcome, np.repeat(["no", "yes"], [90, 10]))
    assert estimate.value == pytest.approx(0.9 / 3 + 0.1)
    # The formula, by hand: half a label added per outcome, and the finite population.
    soft = np.array([1.5 / 4, 2.5 / 3])
    weight, n, size = np.array([0.9, 0.1]), np.array([3, 2]), np.array([90, 10])
    variance = (weight**2 * soft * (1 - soft) * (n + 1) / n**2 * (1 - n / size)).sum()
    likely = (weight * soft).sum()
    effective = likely * (1 - likely) / variance
    expected = np.array(wilson(estimate.value * effective, effective))
    assert [estimate.interval().low, estimate.interval().high] == pytest.approx(expected)


def test_a_stratum_without_labels_may_hold_anything():
    outcome = np.full(1000, np.nan)
    outcome[:400:2] = np.arange(200) % 2
    estimate = m.labelled_share(outcome, np.repeat(["seen", "unseen"], [800, 200]))
    assert estimate.value == pytest.approx(0.8 / 2 + 0.2 / 2)
    assert estimate.excluded == {"in strata without labels": 200}
    width = estimate.interval().high - estimate.interval().low
    assert width > 0.2


def test_a_rate_conditions_on_what_people_say():
    world = World(ERRORS)
    estimate = m.labelled_share_gap(
        world.machine, world.machine, world.group, condition=world.truth
    )
    rates = [world.machine[world.truth & (world.group == group)].mean() for group in "ab"]
    assert [group.value for group in estimate.parts[0].by_group] == pytest.approx(rates)


def test_nothing_labelled_is_not_estimable():
    world = World({"a": (50, 0.5, 0.1, 0.1), "b": (50, 0.5, 0.1, 0.1)})
    estimate = m.labelled_share_gap(nobody(world), world.machine, world.group)
    assert not estimate.estimable
    assert estimate.reason == "no labelled image"
    assert np.isnan(estimate.interval().low)


@pytest.mark.parametrize(
    "data",
    [
        {"outcome": [1, 2], "strata": ["x", "x"]},
        {"outcome": ["yes", "no"], "strata": ["x", "x"]},
        {"outcome": [1], "strata": ["x", "x"]},
        {"outcome": [1, 0], "strata": ["x", "x"], "condition": [1]},
    ],
)
def test_other_values_than_true_false_and_none_are_refused(data):
    with pytest.raises(InputError, match="expected 2 values"):
        m.labelled_share(**data)


def test_allocation_is_neymans():
    # Strata of equal size: labels go with the standard deviation, sqrt(p (1 - p)).
    outcome, strata = np.full(20_000, np.nan), np.repeat(["even", "rare"], 10_000)
    outcome[:400] = np.arange(400) % 2
    outcome[10_000:10_400] = np.arange(400) < 8
    cells = SampledCells.of(outcome, strata)
    even, rare = cells.labelled + cells.allocate(4000)
    assert even / rare == pytest.approx(0.5 / np.sqrt(8.5 * 392.5) * 401, rel=0.01)
    assert cells.allocate(50_000).tolist() == [9600, 9600]


def test_allocation_for_a_group_goes_to_it():
    world = World({"a": (9500, 0.5, 0.1, 0.1), "b": (500, 0.5, 0.1, 0.1)})
    cells = SampledCells.of(nobody(world), world.machine, world.group)
    allocation = cells.allocate(200, "b")
    of_group = allocation[cells.group == cells.groups.names.index("b")].sum()
    assert of_group == pytest.approx(100, abs=4)
    with pytest.raises(InputError, match="'c'"):
        cells.allocate(10, "c")


WORLDS = {
    "group-dependent errors": ERRORS,
    "few errors": {"a": (3000, 0.3, 0.01, 0.0), "b": (1500, 0.3, 0.02, 0.02)},
}


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_from_200_labels_hold_the_truth(name):
    covered_share, _ = coverage(WORLDS[name], 200, 250)
    # 94 % less what 250 runs may miss by chance.
    assert covered_share.min() >= 0.91


def test_machine_labels_that_explain_60_percent_narrow_intervals_by_30_percent():
    groups = dict.fromkeys("ab", (3000, 0.5, 0.1127, 0.1127))
    world = World(groups)
    explained = np.corrcoef(world.machine, world.truth)[0, 1] ** 2
    assert explained == pytest.approx(0.6, abs=0.03)
    widths, alone = (
        coverage(groups, 200, 60, labels_alone=choice)[1][:2].mean() for choice in (False, True)
    )
    assert widths <= 0.7 * alone


def test_the_proposed_sample_halves_the_interval_of_a_small_group_with_few_labels():
    world = World({"a": (9500, 0.4, 0.1, 0.1), "b": (500, 0.4, 0.3, 0.1)})
    rng, first = np.random.default_rng(2), nobody(world)
    chosen = rng.permutation(len(world.group))
    first[chosen[:200]] = world.truth[chosen[:200]]

    def width(answers):
        parts = m.labelled_share_gap(answers, world.machine, world.group).parts
        part = next(row for row in parts if row.subject == "b")
        return part.high - part.low

    def proposed(more):
        cells, answers = SampledCells.of(first, world.machine, world.group), first.copy()
        for cell, n in enumerate(cells.allocate(more, "b")):
            unlabelled = np.flatnonzero((cells.code == cell) & np.isnan(first))
            chosen = rng.choice(unlabelled, n, replace=False)
            answers[chosen] = world.truth[chosen]
        return width(answers)

    def at_random(more):
        answers = first.copy()
        answers[chosen[: 200 + more]] = world.truth[chosen[: 200 + more]]
        return width(answers)

    half = width(first) / 2
    few = next(n for n in range(10, 500, 10) if proposed(n) <= half)
    n_labels = next(n for n in range(10, 3000, 10) if at_random(n) <= half)
    assert few <= 0.6 * n_labels


def test_groups_that_a_machine_named_are_corrected_by_labels_of_the_group():
    covered = []
    for run in range(150):
        world, rng = World(ERRORS, seed=run), np.random.default_rng(run)
        # The machine takes 20 % of "a" for "b", so its "b" is mixed.
        named = np.where(rng.random(len(world.group)) < 0.2, "b", world.group)
        cells = SampledCells.of(nobody(world), world.machine, named)
        answers = world.answers(cells, cells.allocate(300), rng)
        inside = np.where(np.isnan(answers), np.nan, world.group == "b")
        strata = np.char.add(named, world.machine.astype(str))
        interval = m.labelled_share(answers, strata, condition=inside).interval()
        covered.append(interval.low <= world.share("b") <= interval.high)
    assert np.mean(covered) >= 0.9


def test_a_condition_that_no_label_meets_is_named():
    outcome, strata = np.full(100, np.nan), np.zeros(100)
    outcome[:40] = 1
    estimate = m.labelled_share(outcome, strata, condition=np.where(np.isnan(outcome), np.nan, 0))
    assert estimate.reason == "no label inside the condition"
