"""Sentences that state a finding, from the record of its metric."""

import pytest

from equipoise.core import Verdict
from equipoise.report.words import figures, ranked, sentence
from report.synthetic import NAN, faces, finding

FACES = {(f.model, f.groups, f.metric, f.subject): f for f in faces().findings}


def test_accuracy_gap_of_intersections_says_who_is_worse_off():
    found = FACES["deepface", "race × gender", "accuracy_gap", ""]
    assert sentence(found) == (
        "Accuracy of deepface is 13.0\u00a0% (28 of 216) for Black, Female, 84.7 points below "
        "Black, Male (97.7\u00a0%). The highest is 98.3\u00a0%, for Indian, Male."
    )


def test_counterpart_that_is_the_best_group_is_named_once():
    found = FACES["facellm", "race", "accuracy_gap", ""]
    assert sentence(found) == (
        "Accuracy of facellm is 79.7\u00a0% (345 of 433) for Black, 14.0 points below "
        "Latino_Hispanic (93.7\u00a0%)."
    )


def test_rate_of_a_class_names_the_class():
    found = FACES["deepface", "race", "true_positive_rate", "Female"]
    assert sentence(found) == (
        "True positive rate of deepface for “Female” is 13.0\u00a0% (28 of 216) for Black, 38.2 "
        "points below White (51.1\u00a0%)."
    )


@pytest.mark.parametrize(
    "verdict", [Verdict.DISPARITY, Verdict.INCONCLUSIVE, Verdict.BELOW_THRESHOLD]
)
def test_effect_size_claims_no_more_than_its_verdict(verdict):
    found = finding(
        metric="cramers_v", subject="cat", value=0.42, model="m", groups="race", verdict=verdict
    )
    assert sentence(found) == "Cramér's V of m for “cat” is 0.420, medium (race)."


@pytest.mark.parametrize(
    ("metric", "subject", "expected"),
    [
        ("demographic_parity", "", "Demographic parity difference of m is 25.0 points (race)."),
        (
            "equalized_odds",
            "cat",
            "Equalized odds difference of m for “cat” is 25.0 points (race).",
        ),
        ("effect_size_mean", "", "Mean effect size of m is 0.250, small (race)."),
        (
            "max_skew",
            "",
            "In the top K of m, the most over-represented group appears 1.28 times as often as "
            "desired (race).",
        ),
        ("kept_share", "", "Share of sets kept of m is 25.0\u00a0% (race)."),
        ("xmcas", "cat", "xMCAS of m for “cat” is 14.3° (race)."),
        ("ndkl_change", "", "Change of NDKL of m is 0.250 (race)."),
    ],
)
def test_metric_as_a_whole(metric, subject, expected):
    found = finding(metric=metric, subject=subject, value=0.25, model="m", groups="race")
    assert sentence(found) == expected


def test_lower_is_worse_for_the_worst_group():
    bad = finding(metric="worst_group_accuracy", excess=-0.5, threshold=0.05)
    mild = finding(metric="accuracy_gap", excess=0.1, threshold=0.05)
    assert [f.metric for f in ranked([mild, bad])] == ["worst_group_accuracy", "accuracy_gap"]
    assert "threshold 0.050 below chance" in figures(bad)


def test_not_estimable_gives_its_reason():
    found = finding(value=NAN, verdict=Verdict.NOT_ESTIMABLE, reason="one group only", model="m")
    assert sentence(found) == (
        "Accuracy gap: m, race × gender cannot be estimated: one group only."
    )
