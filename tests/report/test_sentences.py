"""Sentences that state a finding, from the record of its metric."""

import pytest

from equipoise.core import Verdict
from equipoise.report.words import sentence
from report.synthetic import NAN, finding, group_values

WOMEN = {("Black", "Female"): (28, 216), ("Indian", "Female"): (45, 196)}
MEN = {("Black", "Male"): (212, 217), ("Indian", "Male"): (227, 231)}


@pytest.mark.parametrize(
    ("changes", "cells", "expected"),
    [
        (
            {},
            WOMEN | MEN,
            "Accuracy of deepface is 13.0\u00a0% (28 of 216) for Black, Female, 84.7 points below "
            "Black, Male (97.7\u00a0%). The highest is 98.3\u00a0%, for Indian, Male.",
        ),
        (
            {"model": "facellm"},
            {("Black",): (345, 433), ("Indian",): (400, 427)},
            "Accuracy of facellm is 79.7\u00a0% (345 of 433) for Black, 14.0 points below Indian "
            "(93.7\u00a0%).",
        ),
        (
            {"metric": "true_positive_rate", "subject": "Female"},
            {("Black",): (28, 216), ("White",): (137, 268)},
            "True positive rate of deepface for “Female” is 13.0\u00a0% (28 of 216) for Black, "
            "38.2 points below White (51.1\u00a0%).",
        ),
    ],
    ids=["intersections", "the best group is named once", "a class"],
)
def test_a_sentence_says_who_is_worse_off(changes, cells, expected):
    assert sentence(finding(by_group=group_values(cells), **changes)) == expected


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


def test_not_estimable_gives_its_reason():
    found = finding(value=NAN, verdict=Verdict.NOT_ESTIMABLE, reason="one group only", model="m")
    assert sentence(found) == (
        "Accuracy gap: m, race × gender cannot be estimated: one group only."
    )
