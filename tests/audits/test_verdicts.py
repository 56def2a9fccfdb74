"""From p-values to verdicts: folds of one fact, detected differences, and the images wanted."""

import math

import numpy as np
import pytest
from scipy import stats

from equipoise.audits import config as audit_config
from equipoise.audits.findings import (
    UncorrectedFinding,
    conclude,
    direction,
    gap_of,
    untested,
)
from equipoise.audits.more_images import images_wanted
from equipoise.core import Family, GroupValue, NullHypothesis, Verdict
from equipoise.stats.chance import band
from equipoise.stats.intervals import wilson
from report.synthetic import NAN, finding

TESTING = audit_config.TestingConfig()


def draft(metric="true_positive_rate", p=0.01, fold=None, harm="higher", **changes):
    settled = {
        "metric": metric, "p_value": p, "q_value": NAN, "family": Family.LEAF, "by_group": (),
        "null": NullHypothesis.WITHIN_CLASS, "value": 0.3, "chance": 0.05, "excess": 0.25,
    }  # fmt: skip
    return UncorrectedFinding(finding(**settled | changes), harm, fold)


def group(name, successes, n):
    low, high = wilson(successes, n)
    return GroupValue(name, (name,), n, successes / n, float(low), float(high))


def test_a_fold_has_the_verdict_of_its_fact_and_is_not_counted():
    first = draft(subject="chef")
    same = draft("false_negative_rate", fold=gap_of("true_positive_rate", "chef"), subject="chef")
    other = draft("precision", p=0.04, subject="chef")
    tpr, fnr, precision = conclude([first, same, other], TESTING)
    assert (tpr.family, fnr.family) == (Family.LEAF, Family.FOLD)
    assert (fnr.verdict, fnr.q_value) == (tpr.verdict, tpr.q_value)
    assert not fnr.tested
    assert tpr.tested
    # Two tests, not three.
    assert precision.q_value == pytest.approx(0.04)
    assert tpr.q_value == pytest.approx(0.02)


def test_groups_of_too_few_units_are_not_tested():
    few = untested(draft(subject="chef"), "women has 3")
    tpr, precision = conclude([few, draft("precision", p=0.04, subject="chef")], TESTING)
    assert tpr.verdict is Verdict.INCONCLUSIVE
    assert tpr.reason == "women has 3"
    assert math.isnan(tpr.q_value)
    assert math.isnan(tpr.more)
    # It is no test, and no other is corrected for it.
    assert precision.q_value == pytest.approx(0.04)


def test_folds_follow_each_other_to_the_finding_that_is_tested():
    tpr = draft(subject="a")
    fpr = draft("false_positive_rate", fold=gap_of("true_positive_rate", "a"), subject="b")
    tnr = draft("true_negative_rate", fold=gap_of("false_positive_rate", "b"), subject="b")
    findings = conclude([tnr, fpr, tpr], TESTING)
    assert {finding.q_value for finding in findings} == {0.01}
    assert [finding.family for finding in findings] == [Family.FOLD, Family.FOLD, Family.LEAF]


def test_a_fold_of_an_unmeasured_fact_is_tested():
    fold = gap_of("true_positive_rate", "")
    (alone,) = conclude([draft("false_negative_rate", fold=fold)], TESTING)
    assert alone.family is Family.LEAF
    assert alone.verdict is Verdict.DISPARITY


def test_an_untested_fact_leaves_its_fold_untested():
    base = draft(subject="a", family=Family.DESCRIPTIVE)
    fold = draft("false_negative_rate", fold=gap_of("true_positive_rate", "a"), subject="a")
    assert {finding.verdict for finding in conclude([base, fold], TESTING)} == {Verdict.NONE}


def test_a_corrected_value_is_the_excess_of_an_effect_size():
    numbers = {"value": 0.2, "ci_low": 0.0, "ci_high": 0.3, "chance": 0.16, "excess": 0.04}
    corrected = draft("cramers_v", corrected=0.12, **numbers)
    uncorrected = draft("cramers_v", **numbers)
    (first,), (second,) = conclude([corrected], TESTING), conclude([uncorrected], TESTING)
    assert (first.verdict, second.verdict) == (Verdict.DISPARITY, Verdict.DETECTED)


def test_ends_are_compared_with_the_value_without_disparity():
    numbers = {"value": 0.5, "ci_low": 0.47, "ci_high": 0.505, "chance": 0.5, "excess": 0.0}
    (distance,) = conclude([draft("iss_cross", p=0.9, **numbers)], TESTING)
    assert distance.verdict is Verdict.BELOW_THRESHOLD
    (gap,) = conclude([draft("accuracy", p=0.9, **numbers)], TESTING)
    assert gap.verdict is Verdict.INCONCLUSIVE


def test_the_number_of_images_gives_the_stated_power():
    few, large = group("few", 14, 40), group("many", 800, 2000)
    more, of, words = images_wanted(finding(by_group=(few, large)), 0.1, 0.01)
    assert of == "few"
    assert "few" in words
    n, rate = 40 + more, 0.35
    error = math.sqrt(rate * (1 - rate) / n + 0.4 * 0.6 / 2000)
    power = stats.norm.sf(stats.norm.isf(0.005) - 0.1 / error)
    assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("n_groups", [2, 3, 7])
@pytest.mark.parametrize("cutoff", [0.05, 0.001])
def test_the_number_of_images_of_shares_gives_the_stated_power(n_groups, cutoff):
    # Shares are expected to be equal, whatever they are in a few images.
    rng, n, threshold = np.random.default_rng(5), 50, 0.1

    def draw_mad(n_images, shares):
        drawn = rng.multinomial(n_images, shares, 8000) / n_images
        return np.abs(drawn - 1 / n_groups).sum(axis=1)

    equal = np.full(n_groups, 1 / n_groups)
    null = draw_mad(n, equal)
    few = group("a", 45, n), *(group(str(k), 5 // (n_groups - 1), n) for k in range(1, n_groups))
    chance = band(null, "higher")
    unsure = finding(
        metric="share_mad", value=1.0, n=n, by_group=few, unit="unit", chance=chance.mean,
        chance_low=chance.low, chance_high=chance.high,
    )  # fmt: skip
    more, of, _ = images_wanted(unsure, threshold, cutoff)
    assert of == ""
    null = draw_mad(int(n + more), equal)
    # The least uneven shares that exceed chance by the threshold.
    for step in np.linspace(0, 1 / n_groups, 80):
        mads = draw_mad(int(n + more), equal + step * np.r_[1, -1, np.zeros(n_groups - 2)])
        if mads.mean() - null.mean() >= threshold:
            break
    assert 0.7 < np.mean(mads > np.quantile(null, 1 - cutoff)) < 0.9


def test_the_number_of_images_of_a_log_ratio_is_in_its_own_unit():
    parts = group("a", 40, 100), group("b", 60, 100)
    log_ratio = finding(
        metric="representation", value=math.log(0.8), n=100, by_group=parts, group="a",
        chance=0.0, chance_low=-0.196, chance_high=0.196,
    )  # fmt: skip
    more, *_ = images_wanted(log_ratio, 0.223, 0.05)
    times = ((1.96 + 0.8416) * 0.1 / 0.223) ** 2
    assert more == pytest.approx(100 * (times - 1), abs=2)


def test_equal_groups_are_never_named_twice():
    equal = group("a", 20, 40), group("b", 20, 40)
    *_, words = images_wanted(finding(by_group=equal), 0.05, 0.01)
    assert "a and b" in words
    text = direction("accuracy", "", equal)
    assert not {"lowest", "highest"} & {*text.split()}
    assert "50.0" in text


def test_zeros_have_no_sign():
    zeros = dict.fromkeys(("value", "ci_low", "ci_high", "excess"), -0.0)
    (concluded,) = conclude([draft(**zeros)], TESTING)
    assert {math.copysign(1, getattr(concluded, name)) for name in zeros} == {1.0}


def test_both_groups_grow_where_one_cannot_decide_alone():
    small = group("a", 14, 40), group("b", 20, 41)
    more, of, _ = images_wanted(finding(by_group=small), 0.05, 0.01)
    assert of == "a and b"
    assert 100 * 81 > more > 81


def test_enough_images_on_paper_decide_nothing_more():
    """Today's images have the stated power, and the verdict is open all the same."""
    rng, n_unknown = np.random.default_rng(3), 0
    for _ in range(200):
        sizes = rng.integers(20, 4000, 2)
        groups = [
            group(name, int(n * share), int(n))
            for name, n, share in zip("ab", sizes, rng.uniform(0.3, 0.7, 2), strict=True)
        ]
        more, of, words = images_wanted(finding(by_group=groups), 0.1, 0.01)
        error = math.sqrt(sum(g.value * (1 - g.value) / g.n for g in groups))
        power = stats.norm.sf(stats.norm.isf(0.005) - 0.1 / error)
        if power > 0.81:
            n_unknown += 1
            assert (math.isnan(more), of, words) == (True, "", "")
        elif power < 0.79:
            assert more > 1
    assert 20 < n_unknown < 180
    whole = finding(
        metric="share_mad", value=0.1, n=10_000, unit="unit", chance=0.005, chance_low=0.0,
        chance_high=0.01, by_group=(group("a", 5100, 10_000), group("b", 4900, 10_000)),
    )  # fmt: skip
    assert math.isnan(images_wanted(whole, 0.1, 0.05).more)


@pytest.mark.parametrize(
    ("groups", "threshold", "has_text"),
    [
        ((group("a", 3, 10), group("b", 5, 10)), 0.001, True),
        ((group("a", 3, 10),), 0.05, False),
        ((), 0.05, False),
        ((group("a", 3, 10), group("b", 5, 10)), 0.0, False),
    ],
)
def test_no_number_of_images_is_given_when_none_helps(groups, threshold, has_text):
    more, of, words = images_wanted(finding(by_group=groups), threshold, 0.05)
    assert np.isnan(more)
    assert of == ""
    assert bool(words) is has_text


def test_a_finding_has_the_number_of_further_images():
    numbers = {"value": 0.05, "ci_low": -0.1, "ci_high": 0.2, "chance": 0.03, "excess": 0.02}
    groups = (group("few", 14, 40), group("many", 8000, 20000))
    unsure = draft(p=0.5, by_group=groups, reason="", **numbers)
    (alone,) = conclude([unsure], TESTING)
    assert alone.verdict is Verdict.INCONCLUSIVE
    with_others = conclude([unsure, *(draft(p=0.9, subject=str(k)) for k in range(20))], TESTING)[0]
    # More tests, or tests of the other family, a smaller cut-off, more images.
    assert with_others.more > alone.more > 0
    other = draft(p=0.9, family=Family.COMPOSITE)
    assert conclude([unsure, other], TESTING)[0].more > alone.more
    assert alone.more_of == with_others.more_of == "few"
