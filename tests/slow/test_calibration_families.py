"""The promises of docs/calibration about families of metrics, measured again."""

import pytest

from tools.calibration.cases import CASES
from tools.calibration.runner import ALPHA, VERSIONS, alarms, effects, most, rise

pytestmark = pytest.mark.slow

# A permutation test of concepts takes longer than others.
SAMPLES, OF_CONCEPTS, FRESH = 150, 40, 4


def name(case):
    return f"{case.name}, {case.world}"


def confirmed(case, samples):
    """Return tests with too many findings in two samples: one of 80 may have them once by luck."""
    high = {alarm.name for alarm in alarms(case, samples) if alarm.too_many}
    if not high:
        return []
    fresh = alarms(case, FRESH * samples, first=samples)
    return [alarm for alarm in fresh if alarm.name in high and alarm.too_many]


@pytest.mark.parametrize("case", [case for case in CASES if case.tested or case.parts], ids=name)
def test_without_bias_tests_find_no_more_than_their_level_allows(case):
    assert confirmed(case, OF_CONCEPTS if case.family == "concepts" else SAMPLES) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.rises], ids=name)
def test_the_mean_estimate_follows_the_strength(case):
    measured = rise(case, 40)
    assert measured.follows, measured


def test_prevalence_alone_is_loud_as_observed_and_quiet_when_held_fixed():
    measured = effects("prevalence", 8)
    assert measured.significant["observed"] >= 0.9
    for version in VERSIONS[1:]:
        assert measured.significant[version] <= most(measured.concepts, ALPHA), version
        assert measured.effects[version]["explains"] >= 0.9, version


def test_planted_effects_stay_or_switch():
    recognition, switching = effects("recognition", 4), effects("switching", 4)
    for version in VERSIONS[1:]:
        assert recognition.significant[version] >= 0.9, version
        assert recognition.effects[version].get("explains", 0.0) == 0.0, version
        assert switching.effects[version]["switches"] >= 0.7, version
