"""Amplification: published ratios, independent implementations, planted amplification."""

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.core.finding import NullHypothesis
from equipoise.stats import Bootstrap, Permutation

FEW = Bootstrap(200)
# uclanlp/reducingbias, results/COCO_gender_ratio_dev_res.csv: share of men with each object among
# training images, and among predictions on the development set before and after calibration.
ZHAO = pl.read_csv(Path(__file__).parent / "goldens" / "zhao_coco_ratios.csv")


def published(column):
    return m.Cooccurrence.published(ZHAO[column], names=ZHAO["object"], groups=["man", "woman"])


@pytest.mark.parametrize(
    ("column", "mean", "violations"), [("before", 0.032, 40), ("after", 0.022, 24)]
)
def test_zhaos_figures_from_published_ratios(column, mean, violations):
    # Table 2 of the paper: multi-label classification, development set.
    estimate = m.cooccurrence_amplification(published("training"), published(column))
    assert round(estimate.value, 3) == mean
    assert estimate.parts[-1].metric == "violations"
    assert (estimate.parts[-1].value, estimate.parts[-1].n) == (violations, 66)
    assert estimate.interval().low < estimate.value < estimate.interval().high


def test_calibration_lowers_amplification_pair_by_pair():
    before, after = (
        m.cooccurrence_amplification(published("training"), published(column))
        for column in ("before", "after")
    )
    estimate = m.amplification_change(before, after)
    assert estimate.value == pytest.approx(after.value - before.value, abs=1e-12)
    assert estimate.interval().high < 0
    part = next(part for part in estimate.parts if part.subject == "giraffe")
    # Women lead in training: 1 - 0.491803 to 1 - 0.694444 before, to 1 - 0.558824 after.
    assert part.value == pytest.approx(0.694444444444 - 0.558823529412)


def images(n, lean, seed):
    """Two labels that go with group "x" to a degree."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["x", "y"], n)
    share = np.where(group == "x", 0.5 + lean / 2, 0.5 - lean / 2)[:, None]
    return rng.random((n, 2)) < share, group


def test_images_give_the_shares_that_were_counted():
    marks, group = images(400, 0.4, 0)
    cooccurrence = m.Cooccurrence.of(marks, group, names=["p", "q"])
    for place in range(2):
        member_groups = group[marks[:, place]]
        assert cooccurrence.shares[place].tolist() == pytest.approx(
            [np.mean(member_groups == g) for g in "xy"]
        )


def test_planted_amplification_is_estimated_and_covered():
    # The share of x among images with a label is (1 + lean) / 2.
    training = m.Cooccurrence.published([0.6, 0.6], groups=["x", "y"])
    covered = []
    for seed in range(100):
        predicted = m.Cooccurrence.of(*images(600, 0.4, seed))
        interval = m.cooccurrence_amplification(training, predicted, resampling=FEW).interval()
        covered.append(interval.low <= 0.1 <= interval.high)
    assert np.mean(covered) >= 0.89


def plain(attributes, tasks, predicted, direction, training=None):
    """Wang and Russakovsky's definition, pair by pair."""
    of_a, of_t = training or (attributes, tasks)
    total = []
    for a, t in itertools.product(range(attributes.shape[1]), range(tasks.shape[1])):
        together = np.mean(of_a[:, a] & of_t[:, t])
        y = together > np.mean(of_a[:, a]) * np.mean(of_t[:, t])
        if direction == "attribute_to_task":
            rows = attributes[:, a]
            delta = predicted[rows, t].mean() - tasks[rows, t].mean()
        else:
            rows = tasks[:, t]
            delta = predicted[rows, a].mean() - attributes[rows, a].mean()
        total.append(y * delta - (1 - y) * delta)
    return total


@pytest.mark.parametrize("direction", ["attribute_to_task", "task_to_attribute"])
@pytest.mark.parametrize("trained", [False, True])
def test_directional_equals_an_independent_implementation(direction, trained):
    rng = np.random.default_rng(5)
    attributes, tasks = rng.random((300, 3)) < 0.4, rng.random((300, 4)) < 0.5
    shape = tasks if direction == "attribute_to_task" else attributes
    predicted = shape ^ (rng.random(shape.shape) < 0.2)
    training = (rng.random((500, 3)) < 0.4, rng.random((500, 4)) < 0.5) if trained else None
    estimate = m.directional_amplification(
        attributes, tasks, predicted, direction=direction, training=training, resampling=FEW
    )
    expected = plain(attributes, tasks, predicted, direction, training)
    assert [part.value for part in estimate.parts] == pytest.approx(expected, abs=1e-12)
    assert estimate.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert estimate.interval().low < estimate.value < estimate.interval().high


def test_a_model_that_copies_the_labels_amplifies_nothing_and_one_that_adds_is_seen():
    marks, group = images(2000, 0.3, 2)
    attributes = group[:, None] == np.array(["x", "y"])
    right = m.directional_amplification(attributes, marks, marks, resampling=FEW)
    assert (right.value, right.interval().low, right.interval().high) == (0, 0, 0)
    # Every image of x is predicted to have the labels, and none of y.
    follows = np.repeat(attributes[:, :1], 2, axis=1)
    estimate = m.directional_amplification(attributes, marks, follows, resampling=FEW)
    assert estimate.interval().low > 0.2
    change = m.amplification_change(right, estimate)
    assert change.value == pytest.approx(estimate.value)


def test_what_is_not_paired_is_refused():
    marks, group = images(200, 0.3, 2)
    training = m.Cooccurrence.of(marks, group)
    same = m.cooccurrence_amplification(training, training, resampling=FEW)
    other = m.cooccurrence_amplification(training, training, resampling=FEW, rng=1)
    with pytest.raises(InputError, match="paired"):
        m.amplification_change(same, other)
    with pytest.raises(InputError, match="same"):
        m.cooccurrence_amplification(training, published("before"))
    with pytest.raises(InputError, match="sum to 1"):
        m.Cooccurrence.published([[0.5, 0.6]])


def test_labels_that_no_image_has_are_counted():
    marks, group = images(200, 0.3, 2)
    estimate = m.cooccurrence_amplification(
        m.Cooccurrence.of(marks, group),
        m.Cooccurrence.of(marks & [True, False], group),
        resampling=FEW,
    )
    assert estimate.excluded == {"labels without images": 1}
    assert estimate.parts[1].reason == "no image with the label"


def test_permutations_alone_give_no_interval():
    marks, group = images(200, 0.3, 2)
    training = m.Cooccurrence.of(marks, group)
    estimate = m.cooccurrence_amplification(training, training, resampling=Permutation(10))
    assert np.isnan(estimate.interval().low)
    assert estimate.method == "none: add bootstrap replicates"


def draws(leans, seed, n=600):
    """Return two samples of images: of training images and of predictions."""
    return [
        m.Cooccurrence.of(*images(n, lean, 10 * seed + place)) for place, lean in enumerate(leans)
    ]


def test_chance_lowers_the_value_and_not_the_corrected_one():
    estimates = [
        m.cooccurrence_amplification(*draws((0.0, 0.0), seed, n=300), resampling=Permutation(50))
        for seed in range(40)
    ]
    values, corrected, chance = np.transpose(
        [(e.value, e.corrected, e.chance.mean) for e in estimates]
    )
    error = corrected.std() / np.sqrt(40)
    assert values.mean() < -4 * error
    assert chance.mean() == pytest.approx(values.mean(), abs=4 * error)
    assert abs(corrected.mean()) < 3 * error


@pytest.mark.parametrize(("leans", "sign"), [((0.3, 0.6), 1), ((0.6, 0.3), -1)])
def test_planted_amplification_has_its_sign_beyond_chance(leans, sign):
    estimate = m.cooccurrence_amplification(*draws(leans, 1), resampling=FEW)
    assert estimate.p_value <= 0.05
    assert np.sign(estimate.corrected) == sign
    assert np.sign([estimate.interval().low, estimate.interval().high]).tolist() == [sign] * 2
    assert estimate.null is NullHypothesis.SAMPLES


def test_predictions_that_equal_the_labels_change_nothing():
    sample = m.Cooccurrence.of(*images(300, 0.3, 2))
    estimate = m.cooccurrence_amplification(sample, sample, paired=True, resampling=FEW)
    assert (estimate.value, estimate.corrected, estimate.p_value) == (0, 0, 1)
    ends = estimate.interval()
    assert (ends.low, ends.high) == pytest.approx((0, 0), abs=1e-12)


def test_violations_are_shown_beside_their_number_by_chance():
    estimate = m.cooccurrence_amplification(
        *draws((0.0, 0.0), 3, n=100), margin=0.01, resampling=FEW
    )
    violations = estimate.parts[-1]
    assert violations.chance_low <= violations.value <= violations.chance_high
    assert violations.chance > 0.5


def split_halves(marks, groups, predicted, splits, seed):
    """Return the mean over random halves of images of a directional change chosen on the other."""
    rng, attributes, results = np.random.default_rng(seed), groups[:, None] == ["x", "y"], []
    for _ in range(splits):
        order = rng.permutation(len(marks))
        for first, second in (np.array_split(order, 2), np.array_split(order, 2)[::-1]):
            results.append(
                np.mean(
                    plain(
                        attributes[second], marks[second], predicted[second],
                        "attribute_to_task", (attributes[first], marks[first]),
                    )
                )
            )  # fmt: skip
    return np.mean(results)


@pytest.mark.parametrize("lean", [0.0, 0.1, 0.5])
def test_the_correction_is_the_mean_over_splits_in_halves(lean):
    marks, groups = images(400, lean, 4)
    predicted = np.where(np.random.default_rng(1).random(marks.shape) < 0.5, marks, ~marks[::-1])
    estimate = m.directional_amplification(
        groups[:, None] == ["x", "y"], marks, predicted, resampling=None
    )
    expected = split_halves(marks, groups, predicted, 400, 5)
    assert estimate.corrected == pytest.approx(expected, abs=0.01)


def test_units_are_exchanged_as_a_whole():
    # Each person has ten equal images: as 30 images say, with which nothing is certain.
    (marks, groups), person = images(30, 0.3, 6), np.repeat(np.arange(30), 10)
    truth = m.Cooccurrence.of(marks[person], groups[person])
    predicted = m.Cooccurrence.of(images(30, 0.6, 7)[0][person], groups[person])
    units, rows = (
        m.cooccurrence_amplification(truth, predicted, paired=True, units=unit, resampling=FEW)
        for unit in (person, None)
    )
    assert units.value == rows.value
    assert units.p_value > 2 * rows.p_value
    width = [e.interval().high - e.interval().low for e in (units, rows)]
    assert width[0] > 2 * width[1]


def test_pairs_of_other_images_are_refused():
    first, second = draws((0.3, 0.3), 0)
    smaller = m.Cooccurrence.of(*images(50, 0.3, 0))
    with pytest.raises(InputError, match="paired"):
        m.cooccurrence_amplification(first, smaller, paired=True)
    with pytest.raises(InputError, match="paired"):
        m.cooccurrence_amplification(first, second, paired=True, training_units=np.arange(600))
    with pytest.raises(InputError, match="published"):
        m.cooccurrence_amplification(published("training"), published("before"), paired=True)


def test_signs_of_training_images_need_no_correction():
    marks, groups = images(400, 0.3, 8)
    attributes, predicted = groups[:, None] == np.array(["x", "y"]), images(400, 0.3, 9)[0]
    training = (attributes, images(400, 0.3, 10)[0])
    estimate = m.directional_amplification(
        attributes, marks, predicted, training=training, resampling=FEW
    )
    assert np.isnan(estimate.corrected)
    assert estimate.interval().low <= estimate.value <= estimate.interval().high
    assert estimate.p_value is not None
