"""Calibration: what is counted, concluded and written."""

import pytest

from equipoise.core import Chance, Estimate
from tools.calibration.cases import CASES, Case, Draw
from tools.calibration.runner import (
    RESAMPLING,
    alarms,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.world}")
def test_every_case_measures_its_metric_and_tests_if_declared(case):
    estimate = case.measure(Draw(1.0, case.images, 0, RESAMPLING))
    assert estimate.metric == case.metric
    assert estimate.estimable
    assert (estimate.p_value is not None) == case.tested
    if case.parts:
        assert case.parts in {part.metric for part in estimate.parts}


def drawn(p, value, **more):
    """An estimate whose excess over chance is `value`, far over any threshold."""
    chance = Chance(0.0, -0.1, 0.1, "")
    return Estimate(
        "mcas", value, {"a": 1}, "", "", chance=chance, p_value=p, ends=lambda _: (0.5, 1.5), **more
    )


def case_of(*p_values):
    def measure(draw):
        return drawn(p_values[draw.sample % len(p_values)], 1.0 + draw.strength)

    return Case("mcas", "made up", measure, sizes=(10, 20, 40), curve=True)


def test_shares_count_p_values_and_verdicts():
    (alarm,) = alarms(case_of(0.005, 0.04, 0.08, 0.5), 40)
    assert alarm.shares == (0.25, 0.5, 0.75)
    assert alarm.disparities == 0.5
    assert (alarm.drawn, alarm.samples) == (40, 40)
    assert alarm.interval(0.5) == pytest.approx((0.352, 0.648), abs=0.001)
    assert alarm.too_many
