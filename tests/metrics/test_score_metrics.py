"""Metrics of scores: by hand, against plain computations, planted truth, null worlds, bad input."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from equipoise import metrics as m
from equipoise.core import Aggregate, InputError
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores import ScoreMetric
from equipoise.stats import Bootstrap

SCORE_METRICS = metrics_of(ScoreMetric, "predictions")
QUICK, FAST = Bootstrap(200, 999), Bootstrap(20, 199)
# Fawcett 2006, Pattern Recognition Letters 27, 861-874, figure 3: 20 instances by falling score.
CLASSES = [1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.55, 0.54, 0.53, 0.52, 0.51, 0.505,
          0.4, 0.39, 0.38, 0.37, 0.36, 0.35, 0.34, 0.33, 0.30, 0.1]  # fmt: skip


def world(n=600, *, calibrated=True, shift=0.0, seed=0, unequal=False):
    """Outcomes, probabilities and groups; those of "b" may be off, worse, or lower."""
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b"] * (n // 2))
    logit = rng.normal(size=n) * 1.5 - (2.0 * (group == "b") if unequal else 0.0)
    truth = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    if not calibrated:
        logit = np.where(group == "b", logit + 1.5, logit)
    logit = logit + shift * (group == "b") * rng.normal(size=n)
    return truth, 1.0 / (1.0 + np.exp(-logit)), group


def plain_auroc(truth, score):
    positive, negative = score[truth == 1], score[truth == 0]
    wins = (positive[:, None] > negative).sum() + (positive[:, None] == negative).sum() / 2
    return wins / (len(positive) * len(negative))


def plain_precision(truth, score, prevalence):
    """Average precision, negatives weighted to a prevalence."""
    weight = truth.sum() * (1 - prevalence) / ((1 - truth).sum() * prevalence)
    value = 0.0
    for threshold in np.unique(score):
        hits = truth[score >= threshold].sum()
        false = (1 - truth)[score >= threshold].sum() * weight
        value += hits / (hits + false) * truth[score == threshold].sum() / truth.sum()
    return value


def plain_calibration_error(truth, score, bins):
    order = np.argsort(score)
    parts = np.array_split(order, bins)
    return sum(len(p) * abs(truth[p].mean() - score[p].mean()) for p in parts) / len(truth)


def plain_equal_error(truth, score):
    thresholds = np.unique(score)
    false = [*((score[truth == 0] >= t).mean() for t in thresholds), 0.0]
    missed = [*((score[truth == 1] < t).mean() for t in thresholds), 1.0]
    places = np.arange(len(false))
    at = optimize.brentq(
        lambda x: np.interp(x, places, missed) - np.interp(x, places, false), 0, places[-1]
    )
    return np.interp(at, places, false)


def test_fawcetts_curve_has_his_area():
    # His table has 68 of 100 pairs in the right order.
    assert m.auroc(CLASSES, SCORES, resampling=None).value == pytest.approx(0.68)


@pytest.mark.parametrize(
    ("metric", "options", "value"),
    [
        (m.auroc, {}, 0.75),
        # Thresholds 0.8, 0.6, 0.4, 0.2: precision 1, then 2 of 3.
        (m.average_precision, {}, 5 / 6),
        (m.brier_score, {}, (0.04 + 0.36 + 0.36 + 0.04) / 4),
        (m.expected_calibration_error, {"bins": 2}, 0.2),
        (m.expected_calibration_error, {"bins": 1}, 0.0),
        (m.equal_error_rate, {}, 0.5),
    ],
)
def test_values_by_hand(metric, options, value):
    estimate = metric([1, 0, 1, 0], [0.8, 0.6, 0.4, 0.2], resampling=None, **options)
    assert estimate.value == pytest.approx(value)


@pytest.mark.parametrize("digits", [1, 6])
def test_groups_have_the_values_of_plain_computations(digits):
    truth, score, group = world(seed=3)
    score = np.round(score, digits)
    prevalence = truth.mean()
    plain = {
        "auroc": plain_auroc,
        "average_precision": lambda y, s: plain_precision(y, s, prevalence),
        "brier_score": lambda y, s: np.mean((y - s) ** 2),
        "equal_error_rate": plain_equal_error,
    }
    if digits > 1:
        plain["expected_calibration_error"] = lambda y, s: plain_calibration_error(y, s, 15)
    for name, compute in plain.items():
        estimate = SCORE_METRICS[name].difference(truth, score, group, resampling=None)
        values = {part.group: part.value for part in estimate.parts[0].by_group}
        expected = {g: compute(truth[group == g], score[group == g]) for g in "ab"}
        assert values == pytest.approx(expected, rel=1e-6), name
        assert estimate.value == pytest.approx(abs(expected["a"] - expected["b"]))


def test_auroc_is_that_of_rank_sums():
    truth, score, _ = world()
    rank_sum = stats.mannwhitneyu(score[truth == 1], score[truth == 0]).statistic
    pairs = (truth == 1).sum() * (truth == 0).sum()
    assert m.auroc(truth, score, resampling=None).value == pytest.approx(rank_sum / pairs)


def test_the_interval_of_auroc_is_as_wide_as_delongs():
    truth, score, _ = world(n=800)
    positive, negative = score[truth == 1], score[truth == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    variance = wins.mean(axis=1).var(ddof=1) / len(positive)
    variance += wins.mean(axis=0).var(ddof=1) / len(negative)
    interval = m.auroc(truth, score, resampling=Bootstrap(1000, 99)).interval()
    width = 2 * stats.norm.isf(0.025) * math.sqrt(variance)
    assert interval.high - interval.low == pytest.approx(width, rel=0.12)


def test_a_group_with_planted_miscalibration_is_found():
    gap = m.expected_calibration_error.difference(*world(calibrated=False), resampling=QUICK)
    values = {part.group: part.value for part in gap.parts[0].by_group}
    assert gap.p_value <= 0.01
    assert values["b"] > 2 * values["a"]
    assert gap.interval().low > 0.03


@pytest.mark.parametrize("name", ["auroc", "average_precision", "equal_error_rate"])
def test_a_group_with_planted_noise_in_its_scores_is_found(name):
    gap = SCORE_METRICS[name].difference(*world(n=1200, shift=3.0), resampling=QUICK)
    assert gap.p_value <= 0.01
    assert gap.interval().low > 0.0


def test_a_calibrated_model_is_at_its_chance_level_and_another_is_not():
    truth, score, _ = world(n=1000)
    calibrated = m.expected_calibration_error(truth, score, resampling=QUICK)
    assert calibrated.chance.low <= calibrated.value <= calibrated.chance.high
    assert calibrated.p_value > 0.05
    off = m.expected_calibration_error(truth, np.sqrt(score), resampling=QUICK)
    assert off.p_value <= 0.01


NULL_WORLDS = [(name, False) for name in SCORE_METRICS]
# Groups of other base rates are as calibrated, though their scores differ.
NULL_WORLDS += [("expected_calibration_error", True)]


@pytest.mark.parametrize(("name", "unequal"), NULL_WORLDS)
def test_of_null_worlds_few_have_a_small_p(name, unequal):
    # Exchange over all rows would call 16 of 60 small where base rates differ.
    seeds, n = 60, 1500 if unequal else 400
    small = sum(
        SCORE_METRICS[name].difference(
            *world(n=n, seed=seed, unequal=unequal), resampling=FAST, rng=seed
        ).p_value <= 0.05
        for seed in range(seeds)
    )  # fmt: skip
    assert small <= stats.binom.isf(0.01, seeds, 0.05)


def test_units_that_repeat_add_nothing():
    truth, score, group = world(n=240)
    single = m.auroc.difference(truth, score, group, resampling=QUICK)
    repeated = m.auroc.difference(
        *(np.tile(column, 5) for column in (truth, score, group)),
        units=np.tile(np.arange(240).astype(str), 5), resampling=QUICK,
    )  # fmt: skip
    widths = [estimate.interval().high - estimate.interval().low for estimate in (single, repeated)]
    assert repeated.value == pytest.approx(single.value)
    assert widths[1] == pytest.approx(widths[0], rel=0.25)
    assert repeated.unit == "unit"


def test_each_of_three_groups_is_held_against_all_others():
    truth, score, _ = world(n=900)
    group = np.array(["a", "b", "c"] * 300)
    gap = m.brier_score.difference(truth, score, group, resampling=FAST)
    main, *rests = gap.parts
    values = {part.group: part.value for part in main.by_group}
    assert {part.aggregate for part in rests} == {Aggregate.AGAINST_REST}
    others = np.mean([values["b"], values["c"]])
    assert rests[0].value == pytest.approx(values["a"] - others)


def test_a_group_with_few_of_an_outcome_is_not_compared():
    truth, score, group = world(n=400)
    rare = np.where(group == "b", np.arange(400) < 20, truth).astype(int)
    gap = m.auroc.difference(rare, score, group, resampling=FAST)
    assert math.isnan(gap.value)
    assert gap.reason
    assert gap.parts[0].by_group[1].note


def test_very_many_distinct_scores_keep_their_value():
    truth, score, group = world(n=6000)
    estimate = m.auroc(truth, score, group, resampling=FAST)
    assert estimate.value == pytest.approx(plain_auroc(truth, score), abs=1e-12)
    assert estimate.interval().low < estimate.value < estimate.interval().high


def test_rows_without_a_score_are_counted():
    truth, score, group = world(n=400)
    score[:7], holes = np.nan, truth.astype(float)
    holes[7:12] = np.nan
    estimate = m.brier_score(holes, score, group, resampling=FAST)
    assert estimate.excluded["rows without a score"] == 7
    assert estimate.excluded["rows without an outcome"] == 5


@pytest.mark.parametrize(
    ("truth", "score", "options"),
    [
        ([0, 1], [0.5, 1.5], {}),
        ([0, 2], [0.5, 0.5], {}),
        ([0, 1], [0.5, math.inf], {}),
        ([0, 1, 1], [0.5, 0.5], {}),
        ([math.nan], [0.5], {}),
        ([0, 1], [0.5, 0.6], {"bins": 0}),
        ([0, 1], [0.5, 0.6], {"bins": 1.5}),
        ([0, 1], [0.5, 0.6], {"steps": 3}),
        ([0, 1], [0.5, 0.6], {"units": ["a"]}),
    ],
)
def test_bad_input_is_refused(truth, score, options):
    with pytest.raises(InputError):
        m.expected_calibration_error(truth, score, resampling=None, **options)


def test_scores_that_are_no_probabilities_have_ranks():
    assert m.auroc([0, 1, 0, 1], [-5.0, 3.0, 0.0, 9.0], resampling=None).value == 1.0


def test_a_metric_of_scores_is_one_function():
    @m.metric(
        m.MetricSpec(
            name="mean_score_of_positives", kinds=("predictions",),
            definition="Mean score of positives.", direction="Lower: positives score lower.",
            harm="lower",
            reference="a test",
        ),
        form=ScoreMetric.of,
    )  # fmt: skip
    def mean_score(y_true, y_score, weights):
        return (weights * (y_true * y_score)[:, None]).sum(axis=0) / (
            weights * y_true[:, None]
        ).sum(axis=0)

    try:
        truth, score, group = world()
        expected = score[truth == 1].mean()
        assert mean_score(truth, score, resampling=None).value == pytest.approx(expected)
        assert "mean_score_of_positives" in metrics_of(ScoreMetric, "predictions")
        assert mean_score.difference(truth, score, group, resampling=FAST).p_value > 0.0
    finally:
        m.registry.remove("mean_score_of_positives")


@pytest.mark.parametrize("metric", SCORE_METRICS.values(), ids=SCORE_METRICS)
def test_outcomes_may_be_labels_with_a_positive_class(metric):
    truth, score, group = world(200)
    labels = np.where(truth == 1, "hired", "refused").astype(object)
    labels[0], numbers = None, np.where(np.arange(len(truth)) == 0, np.nan, truth)
    for call in (metric, metric.difference):
        named = call(labels, score, group, positive="hired", resampling=None)
        expected = call(numbers, score, group, resampling=None)
        assert (named.value, named.n) == (expected.value, expected.n)
        assert named.excluded == expected.excluded != {}
    codes = metric(truth.astype(str), score, group, positive=1, resampling=None)
    assert codes.value == metric(truth, score, group, resampling=None).value


def test_labels_need_the_positive_class():
    truth, score, group = world(200)
    with pytest.raises(InputError, match=r"^y_true: .*To do: write 0 and 1, or give positive="):
        m.auroc(truth.astype(str), score, group)
    with pytest.raises(InputError, match="To do: write 0 and 1, or give positive="):
        m.auroc(truth + 1, score, group)
    with pytest.raises(InputError, match=r"^positive='2': expected a class, one of 0, 1"):
        m.auroc.difference(truth.astype(str), score, group, positive="2")
