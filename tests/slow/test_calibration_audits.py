"""The promises of docs/calibration/audits.csv, measured again."""

import pytest
from scipy import stats

from audits.test_metamorphic import twice
from tools.calibration.audits import ALPHA, WORLDS, conclude, false_alarms, power

pytestmark = pytest.mark.slow

AUDITS = 40


@pytest.mark.parametrize("world", WORLDS)
def test_a_report_without_bias_starts_with_a_disparity_no_more_often_than_alpha(world):
    leading, _ = false_alarms(world, AUDITS)
    assert leading <= stats.binom.isf(0.001, AUDITS, ALPHA)


@pytest.mark.parametrize("world", WORLDS)
def test_no_fact_is_tested_twice(world):
    ((_, findings),) = conclude(WORLDS[world], world, 1)
    assert not twice(findings)


def test_the_group_that_is_worse_off_leads():
    leading, detected = power(3, 400, 0.2, 20)
    assert leading >= 0.9
    assert detected == 1.0
