import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.core.finding import Verdict
from equipoise.stats import judge

NAN = math.nan
BASE = {
    "value": 0.3,
    "low": 0.2,
    "high": 0.4,
    "chance_mean": 0.05,
    "q": 0.001,
    "threshold": 0.1,
    "alpha": 0.05,
    "harm": "higher",
}


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        (
            {},
            Verdict.DISPARITY,
            "q 0.001 < 0.05, and the excess over chance 0.25 > 0.1, the threshold",
        ),
        ({"value": NAN}, Verdict.NOT_ESTIMABLE, "the value cannot be estimated"),
        (
            {"chance_mean": NAN},
            Verdict.NONE,
            "the number has no chance level to be judged against",
        ),
        ({"threshold": NAN}, Verdict.NONE, "no practical threshold is set for this metric"),
        # The interval lies above the threshold, but it never replaces q.
        (
            {"q": 0.2},
            Verdict.INCONCLUSIVE,
            "chance may explain it (q 0.2 > 0.05); "
            "the interval reaches the threshold, so a disparity cannot be ruled out",
        ),
        (
            {"q": NAN},
            Verdict.INCONCLUSIVE,
            "there was no test against chance; "
            "the interval reaches the threshold, so a disparity cannot be ruled out",
        ),
        # Real but small: whatever q.
        (
            {"value": 0.07, "low": 0.05, "high": 0.09},
            Verdict.BELOW_THRESHOLD,
            "the interval ends at 0.09 < 0.1, the threshold",
        ),
        (
            {"value": 0.07, "low": 0.05, "high": 0.09, "q": NAN},
            Verdict.BELOW_THRESHOLD,
            "the interval ends at 0.09 < 0.1, the threshold",
        ),
        (
            {"value": 0.02, "low": 0.0, "high": 0.2},
            Verdict.INCONCLUSIVE,
            "the value is no worse than chance gives; "
            "the interval reaches the threshold, so a disparity cannot be ruled out",
        ),
        (
            {"value": 0.1, "low": 0.06, "high": 0.12},
            Verdict.INCONCLUSIVE,
            "the excess over chance 0.05 < 0.1, the threshold; "
            "the interval reaches the threshold, so a disparity cannot be ruled out",
        ),
        ({"low": NAN, "high": NAN}, Verdict.DISPARITY, "q 0.001 < 0.05, and the excess"),
        (
            {"low": NAN, "high": NAN, "q": 0.0501},
            Verdict.INCONCLUSIVE,
            "chance may explain it (q 0.0501 > 0.05); "
            "without an interval a disparity cannot be ruled out",
        ),
        (
            {"q": 0.05, "threshold": 0.25},
            Verdict.DISPARITY,
            "q 0.05 = 0.05, and the excess over chance 0.25 = 0.25, the threshold",
        ),
        # A threshold of 0 leaves the decision to q.
        ({"threshold": 0.0, "value": 0.06, "low": 0.0}, Verdict.DISPARITY, "q 0.001 < 0.05"),
        ({"threshold": 0.0, "value": 0.0, "low": 0.0, "high": 0.0}, Verdict.INCONCLUSIVE, ""),
        # Worst-group accuracy: lower is worse, the low end counts.
        (
            {"harm": "lower", "value": 0.5, "low": 0.4, "high": 0.6, "chance_mean": 0.7},
            Verdict.DISPARITY,
            "q 0.001 < 0.05, and the excess over chance 0.2 > 0.1, the threshold",
        ),
        (
            {"harm": "lower", "value": 0.68, "low": 0.65, "high": 0.72, "chance_mean": 0.7},
            Verdict.BELOW_THRESHOLD,
            "the interval stays above chance minus 0.05 < 0.1, the threshold",
        ),
        (
            {"harm": "lower", "value": 0.8, "low": 0.55, "high": 0.9, "chance_mean": 0.7},
            Verdict.INCONCLUSIVE,
            "the value is no worse than chance gives; ",
        ),
        # Signed numbers: either end counts.
        (
            {"harm": "either", "value": -0.3, "low": -0.4, "high": -0.2, "chance_mean": 0.0},
            Verdict.DISPARITY,
            "q 0.001 < 0.05, and the excess over chance 0.3 > 0.1, the threshold",
        ),
        (
            {"harm": "either", "value": -0.02, "low": -0.09, "high": 0.05, "chance_mean": 0.0},
            Verdict.BELOW_THRESHOLD,
            "the interval stays within chance plus or minus 0.09 < 0.1, the threshold",
        ),
        (
            {"harm": "either", "value": 0.02, "low": -0.11, "high": 0.15, "chance_mean": 0.0},
            Verdict.INCONCLUSIVE,
            "the excess over chance 0.02 < 0.1, the threshold; ",
        ),
        (
            {"value": math.inf, "low": 1.0, "high": math.inf},
            Verdict.DISPARITY,
            "q 0.001 < 0.05, and the excess over chance inf > 0.1, the threshold",
        ),
    ],
)
def test_verdicts(changes: dict[str, object], verdict: Verdict, reason: str) -> None:
    found, why = judge(**(BASE | changes))
    assert found is verdict
    assert why.startswith(reason)


def test_a_reason_never_says_that_equal_numbers_differ() -> None:
    _, why = judge(**(BASE | {"q": 0.0500001}))
    assert why.startswith("chance may explain it (q 0.0500001 > 0.05)")


numbers = st.floats(-1, 1)


@given(numbers, st.floats(0, 0.5), st.floats(0, 0.5), numbers, st.floats(0, 1), st.floats(0, 0.5))
def test_mirrored_numbers_have_the_mirrored_verdict(
    value: float, below: float, above: float, chance: float, q: float, threshold: float
) -> None:
    shared = {"q": q, "threshold": threshold, "alpha": 0.05}
    one = {"value": value, "low": value - below, "high": value + above, "chance_mean": chance}
    two = {"value": -value, "low": -one["high"], "high": -one["low"], "chance_mean": -chance}
    assert judge(**one, **shared, harm="either") == judge(**two, **shared, harm="either")
    lower, _ = judge(**one, **shared, harm="lower")
    if chance == 0.0:
        assert lower is judge(**two, **shared, harm="higher")[0]
    if lower is Verdict.DISPARITY:
        assert q <= 0.05
        assert chance - value >= threshold


def test_bad_input() -> None:
    message = "threshold=-0.1: expected at least 0, the smallest excess to act on"
    with pytest.raises(InputError, match=f"^{message}$"):
        judge(**(BASE | {"threshold": -0.1}))
    with pytest.raises(InputError, match="^alpha=1.0: expected a rate between 0 and 1$"):
        judge(**(BASE | {"alpha": 1.0}))


def test_a_zero_has_no_sign() -> None:
    _, reason = judge(**(BASE | {"value": 0.0, "low": -0.0, "high": -0.0, "q": 1.0}))
    assert reason == "the interval ends at 0 < 0.1, the threshold"
