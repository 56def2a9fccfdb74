"""What is said once is tested once."""

import math

from audits import comparisons
from equipoise import audits
from equipoise.core import Family


def run(kinds):
    groups = {"groups": ["place", ["place", "kind"]]}
    return audits.run(comparisons.run(comparisons.images(kinds=kinds), "poor", data=groups)[0])


def pick(result, metric, subject):
    (found,) = [
        one
        for one in result.findings
        if (one.metric, one.groups, one.subject) == (metric, "place", subject)
    ]
    return found


def test_a_mirrored_gap_is_the_gap_it_names_and_is_not_tested():
    result = run(3)
    mirrors = {
        "true_negative_rate": "false_positive_rate",
        "false_negative_rate": "true_positive_rate",
        "selection_rate": "demographic_parity",
    }
    for mirror, original in mirrors.items():
        shown, tested = pick(result, mirror, "dog"), pick(result, original, "dog")
        assert shown.value == tested.value or abs(shown.value - tested.value) < 1e-12
        assert (shown.family, tested.family) == (Family.FOLD, Family.LEAF)
        assert (shown.q_value, shown.verdict) == (tested.q_value, tested.verdict)
        assert shown.reason.startswith(f"the same fact as {original} of dog, which is tested")


def test_with_two_labels_the_second_class_repeats_the_first():
    result = run(2)
    for metric, other in (
        ("accuracy", "accuracy"), ("demographic_parity", "demographic_parity"),
        ("equalized_odds", "equalized_odds"), ("false_positive_rate", "true_positive_rate"),
        ("negative_predictive_value", "precision"),
    ):  # fmt: skip
        shown, tested = pick(result, metric, "dog"), pick(result, other, "cat")
        assert abs(shown.value - tested.value) < 1e-12
        assert shown.family is Family.FOLD
        assert not math.isnan(tested.p_value)
