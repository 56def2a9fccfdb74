"""Calibration: what is counted, concluded and written."""

import pytest

from equipoise.core import Chance, Estimate
from tools.calibration.cases import CASES, Case, Draw
from tools.calibration.runner import (
    RESAMPLING,
    STRENGTHS,
    Samples,
    alarms,
    calibrate,
    rise,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.world}")
def test_every_case_measures_its_metric_and_has_a_test_where_it_says_so(case):
    found = case.measure(Draw(1.0, case.images, 0, RESAMPLING))
    assert found.metric == case.metric
    assert found.estimable
    assert (found.p_value is not None) == case.tested
    if case.parts:
        assert case.parts in {part.metric for part in found.parts}


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
    (found,) = alarms(case_of(0.005, 0.04, 0.08, 0.5), 40)
    assert found.shares == (0.25, 0.5, 0.75)
    assert found.disparities == 0.5
    assert (found.drawn, found.samples) == (40, 40)
    assert found.interval(0.5) == pytest.approx((0.352, 0.648), abs=0.001)
    assert found.too_many


def rising(values, harm="higher"):
    def measure(draw):
        return drawn(0.5, values[STRENGTHS.index(draw.strength)], harm=harm)

    return Case("mcas", "made up", measure)


def test_a_rise_is_counted_towards_harm():
    up = tuple(float(step) for step in range(11))
    assert rise(rising(up), 2).follows
    assert rise(rising(up[::-1], "lower"), 2).correlation == pytest.approx(1.0)
    assert not rise(rising(up[::-1]), 2).follows
    assert rise(rising(up), 2).means == up


FEW = Samples(alarms=6, concepts=2, rise=2, power=2, versions=0)


@pytest.fixture(scope="module")
def measured():
    chosen = [case for case in CASES if case.name in ("weat, one-sided", "min_skew", "iss_cross")]
    # A case that finds too much is measured again.
    loud = case_of(0.001)
    return calibrate((*chosen, loud), FEW)


def test_the_suite_measures_again_what_finds_too_much(measured):
    assert [one.name for one in measured.alarms if one.too_many] == ["mcas"]
    (again,) = measured.again
    assert (again.name, again.drawn, again.too_many) == ("mcas", 24, True)
