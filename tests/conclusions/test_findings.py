"""What holds for the findings of every audit, on random data, and of comparisons."""

import math
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from conclusions import random_worlds
from equipoise import audits
from equipoise.audits import config as audit_config
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core import Family, GroupValue, Verdict
from equipoise.metrics.spec import SPECS, spec_of_finding
from report.synthetic import finding as synthetic

CONFIGS = {name: (build, seed) for name, build, seed in random_worlds.configs()}
TIE = 1e-12
NOTHING = {"ci_low", "ci_high", "excess", "p_value", "q_value"}

every_world = pytest.mark.parametrize("name", CONFIGS)


@cache
def findings_of(name):
    build, seed = CONFIGS[name]
    config = build(np.random.default_rng([seed, len(build.__name__)]), seed)
    return audits.run(audits.parse_config(config)).findings


def neutral_of(finding):
    """Return the value without disparity."""
    neutral = spec_of_finding(finding).neutral
    return finding.chance if neutral is None else neutral


@every_world
def test_what_cannot_be_estimated_has_no_interval_and_no_test(name):
    for finding in findings_of(name):
        if math.isnan(finding.value):
            assert all(math.isnan(getattr(finding, field)) for field in NOTHING), finding
            assert finding.interval == "none"
            assert finding.verdict is Verdict.NOT_ESTIMABLE
        for part in finding.by_group:
            if math.isnan(part.value):
                assert math.isnan(part.low), (finding, part)
                assert math.isnan(part.high), (finding, part)


def is_beyond_chance(finding):
    """Whether a value is beyond the chance level on the side of harm."""
    tie = TIE * max(abs(finding.value), 1.0)
    above = finding.value > finding.chance_high + tie
    below = finding.value < finding.chance_low - tie
    harm = spec_of_finding(finding).value_harm
    return {"higher": above, "lower": below, "either": above or below}[harm]


@every_world
def test_a_value_is_beyond_chance_exactly_if_its_p_is_small(name):
    tested = [f for f in findings_of(name) if not math.isnan(f.p_value + f.chance_low)]
    for finding in tested:
        assert is_beyond_chance(finding) == (finding.p_value <= 0.05), finding


@every_world
def test_no_disparity_holds_its_null(name):
    for finding in findings_of(name):
        least, most = spec_of_finding(finding).range
        neutral = neutral_of(finding)
        # A finding that repeats another has that one's verdict.
        if finding.tested and finding.verdict is Verdict.DISPARITY and least < neutral < most:
            assert not finding.ci_low <= neutral <= finding.ci_high, finding


@pytest.mark.parametrize("change_from", ["", "before"])
@pytest.mark.parametrize("metric", SPECS)
@pytest.mark.parametrize("ends", [(-0.001, 3.0), (0.0, 3.0), (-3.0, 0.0)])
def test_no_metric_has_a_disparity_that_touches_its_null(metric, ends, change_from):
    # Whatever it is tested against, and in comparisons, which are of changes.
    harm = SPECS[metric].value_harm
    spec = spec_of_finding(synthetic(metric=metric, change_from=change_from))
    middle = 0.25 if spec.neutral is None else spec.neutral
    sign = -1 if harm == "lower" else 1
    low, high = (middle + end for end in ends)
    value, _ = spec.possible(middle + sign * 1.5, math.nan)
    draft = synthetic(
        metric=metric, change_from=change_from, value=value, ci_low=low, ci_high=high,
        chance=middle, excess=sign * 1.5, p_value=1e-9, family=Family.LEAF, by_group=(),
    )  # fmt: skip
    [concluded] = conclude([UncorrectedFinding(draft, harm)], audit_config.TestingConfig())
    least, most = spec.range
    bounded = not least < middle < most
    assert bounded or concluded.verdict is not Verdict.DISPARITY, concluded


def test_properties_can_fail():
    [wrong] = [
        f for f in findings_of("predictions 0")
        if f.metric == "accuracy" and f.aggregate == "difference" and f.groups == "gender"
        and f.compared_to == "" and f.family is not Family.DESCRIPTIVE
    ][:1]  # fmt: skip
    beyond = replace(wrong, value=wrong.chance_high + 0.1)
    within = replace(wrong, value=wrong.chance)
    assert is_beyond_chance(beyond) > is_beyond_chance(within)
    assert {field.name for field in fields(GroupValue)} >= {"low", "high"}
    assert {field.name for field in fields(wrong)} >= NOTHING
