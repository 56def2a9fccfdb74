"""Calibration: what is counted, concluded and written."""

import math
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from equipoise.core.estimate import Chance, Estimate
from equipoise.planted import calibration
from equipoise.planted.calibration import CASES, Case, Draw, Samples, alarms, power, rise
from equipoise.planted.calibration.figures import Figure, Line
from equipoise.planted.calibration.runner import (
    ALPHA,
    LEVELS,
    RESAMPLING,
    STRENGTHS,
    Alarms,
    Power,
    most,
)
from equipoise.planted.calibration.versions import effects
from equipoise.stats.streams import stream

COVERED = {
    "association_score", "weat", "sc_weat", "differential_association", "mcas", "diffusion_bias",
    "predicted_label_weat", "label_concentration", "total_absolute_association", "trend",
    "gender_difference", "alignment", "correlation", "max_skew", "min_skew", "ndkl", "bias_at_k",
    "retrieval_mad", "normalized_similarity_mad", "concept_disparity", "iss_cross",
}  # fmt: skip


def test_every_metric_with_a_test_has_a_case() -> None:
    assert {case.metric for case in CASES} == COVERED
    names = [(case.name, case.world) for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.world}")
def test_every_case_measures_its_metric_and_has_a_test_where_it_says_so(case: Case) -> None:
    found = case.measure(Draw(1.0, case.images, 0, RESAMPLING))
    again = case.measure(Draw(1.0, case.images, 0, RESAMPLING))
    assert found.metric == case.metric
    assert found.estimable
    assert (found.p_value is not None) == case.tested
    assert (found.value, found.p_value) == (again.value, again.p_value)
    if case.parts:
        assert case.parts in {part.metric for part in found.parts}


def drawn(p: float, value: float = 1.0, threshold_met: bool = True) -> Estimate:
    """An estimate whose excess over chance is `value`, far over any threshold or far under."""
    ends = (lambda level: (0.5, 1.5)) if threshold_met else (lambda level: (0.0, 1e-6))
    chance = Chance(0.0, -0.1, 0.1, "")
    return Estimate("mcas", value, {"a": 1}, "", "", chance=chance, p_value=p, ends=ends)


def case_of(*p_values: float, threshold_met: bool = True, metric: str = "mcas") -> Case:
    def measure(draw: Draw) -> Estimate:
        p = p_values[draw.sample % len(p_values)]
        return drawn(p, 1.0 + draw.strength, threshold_met)

    return Case(metric, "made up", measure, sizes=(10, 20, 40), curve=True)


def test_shares_count_p_values_and_verdicts() -> None:
    (found,) = alarms(case_of(0.005, 0.04, 0.08, 0.5), 40)
    assert found.shares == (0.25, 0.5, 0.75)
    assert found.disparities == 0.5
    assert (found.drawn, found.samples, found.judged) == (40, 40, True)
    assert found.interval(0.5) == pytest.approx((0.352, 0.648), abs=0.001)
    assert found.too_many


def test_a_small_p_below_the_threshold_is_no_disparity() -> None:
    (found,) = alarms(case_of(0.005, threshold_met=False), 4)
    assert found.shares == (1.0, 1.0, 1.0)
    assert found.disparities == 0.0


def test_without_a_threshold_there_is_no_verdict() -> None:
    (found,) = alarms(case_of(0.005, metric="alignment"), 4)
    assert (found.disparities, found.judged) == (0.0, False)


def test_what_cannot_be_estimated_is_counted_apart() -> None:
    def measure(draw: Draw) -> Estimate:
        return drawn(0.5, math.nan if draw.sample % 4 == 0 else 1.0)

    case = Case("mcas", "made up", measure, sizes=(10, 20))
    (found,) = alarms(case, 8)
    assert (found.drawn, found.samples) == (8, 6)
    assert power(case, 1.0, 8).found == (0.0, 0.0)


def test_limits_allow_for_luck_once_in_a_thousand() -> None:
    assert most(1000, 0.05) == pytest.approx(0.073)
    uniform = stream(1, "limits").random((400, 1000))
    above = (uniform <= ALPHA).mean(axis=1) > most(1000, ALPHA)
    assert above.mean() <= 0.01
    valid = Alarms(CASES[0], "", 1000, 1000, LEVELS, ALPHA, True)
    assert not valid.too_many
    assert replace(valid, shares=(0.03, 0.05, 0.1)).too_many
    assert replace(valid, disparities=0.08).too_many
    untested = replace(valid, shares=(math.nan,) * 3, disparities=0.0)
    assert not untested.too_many


def rising(values: tuple[float, ...], harm: str = "higher") -> Case:
    def measure(draw: Draw) -> Estimate:
        value = values[STRENGTHS.index(draw.strength)]
        return replace(drawn(0.5), value=value, harm=harm)

    return Case("mcas", "made up", measure)


def test_a_rise_is_counted_towards_harm() -> None:
    up = tuple(float(step) for step in range(11))
    assert rise(rising(up), 2).follows
    assert rise(rising(up[::-1], "lower"), 2).correlation == pytest.approx(1.0)
    assert not rise(rising(up[::-1]), 2).follows
    assert rise(rising(up), 2).means == up


def test_images_needed_lie_between_sizes() -> None:
    one = Power(CASES[0], 0.5, 10, (10, 20, 40), (0.0,) * 3, (0.0,) * 3)
    assert one.needed((0.9, 1.0, 1.0)) == 0.0
    assert one.needed((0.2, 0.5, 0.7)) == math.inf
    assert one.needed((0.2, 0.6, 1.0)) == pytest.approx(math.sqrt(20 * 40))
    assert one.needed((0.2, 0.8, 1.0)) == pytest.approx(20)


def test_power_grows_with_images() -> None:
    case = next(case for case in CASES if case.name == "weat, two-sided")
    found = power(replace(case, sizes=(24, 96, 384)), 1.0, 10)
    assert found.images == (24, 96, 384)
    assert found.found[0] < found.found[-1] == 1.0
    assert found.judged[-1] == 1.0


FEW = Samples(alarms=6, concepts=2, rise=2, power=2, versions=0)


def test_prevalence_alone_is_explained_and_stands_on_the_page() -> None:
    found = effects("prevalence", 1, images=3000, concepts=2)
    assert found.concepts == 2
    assert found.significant == {"observed": 1.0, "weighted": 0.0, "hall": 0.0}
    assert found.effects == {"weighted": {"explains": 1.0}, "hall": {"explains": 1.0}}
    some = calibration.calibrate((case_of(0.5),), samples=FEW)
    text = calibration.page(replace(some, effects=(found,)))
    assert "| prevalence | 2 | 100% | 0% | 0% | explains 100% | explains 100% |" in text
    assert "## Prevalence held fixed" not in calibration.page(some)


@pytest.fixture(scope="module")
def measured() -> calibration.Calibration:
    steps = []
    chosen = [case for case in CASES if case.name in ("weat, one-sided", "min_skew", "iss_cross")]
    # A case that finds too much is measured again.
    loud = case_of(0.001)
    found = calibration.calibrate(
        (*chosen, loud), samples=FEW, progress=lambda *step: steps.append(step)
    )
    assert steps[0] == ("Cases", 0, len(chosen) + 1)
    assert steps[-1] == ("Cases", len(chosen) + 1, len(chosen) + 1)
    return found


def test_the_suite_measures_again_what_finds_too_much(measured: calibration.Calibration) -> None:
    assert [one.name for one in measured.alarms if one.too_many] == ["mcas"]
    (again,) = measured.again
    assert (again.name, again.drawn, again.too_many) == ("mcas", 24, True)


def test_the_page_says_what_was_measured(measured: calibration.Calibration) -> None:
    text = calibration.page(measured)
    tests = len(measured.alarms)
    assert f"- False alarms: {tests - 1} of {tests} tests find no more" in text
    assert (
        "Tests above a limit that luck alone passes once in 1000 times: 1. Measured again" in text
    )
    assert "| mcas | made up | 6 | 100.0% | 100.0% | 100.0% | 61.0% to 100.0% | 100.0% |" in text
    for case in CASES:
        if case.name in ("weat, one-sided", "min_skew"):
            assert text.count(f"| {case.name} | {case.world} |") >= 2
    assert "| iss_cross | independent |" in text
    assert "nan" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for before, row in pairwise(rows):
        if row.startswith("|---"):
            assert before.count("|") == row.count("|")
    for figure in calibration.figures(measured):
        assert (f"(figures/{figure.name}.svg)" in text) == bool(figure.lines)


def test_the_same_samples_give_the_same_page(measured: calibration.Calibration) -> None:
    cases = tuple(dict.fromkeys(one.case for one in measured.alarms))
    again = calibration.calibrate(cases, samples=FEW)
    assert calibration.page(again) == calibration.page(measured)
    assert [one.svg() for one in calibration.figures(again)] == [
        one.svg() for one in calibration.figures(measured)
    ]


LINES = (Line("a & b", (10, 20, 40), (0.1, 0.5, 1.0)), Line("c", (10, 40), (0.0, 0.8)))


def test_a_figure_is_valid_svg_that_names_its_lines_and_marks_80_percent() -> None:
    root = ET.fromstring(Figure("x", 'Power "now"', "images", LINES).svg())
    space = "{http://www.w3.org/2000/svg}"
    texts = [one.text for one in root.iter(f"{space}text")]
    expected = ['Power "now"', "images", "a & b", "c", "80 %", "10", "20", "40"]
    assert set(expected) <= set(texts)
    assert root.get("aria-label") == 'Power "now"'
    assert len([*root.iter(f"{space}polyline")]) == 2
    colours = {one.get("stroke") for one in root.iter(f"{space}polyline")}
    assert len(colours) == 2


def test_a_figure_puts_points_where_they_belong() -> None:
    root = ET.fromstring(Figure("x", "t", "images", LINES).svg())
    first, second = (
        np.array([point.split(",") for point in line.get("points").split()], dtype=float)
        for line in root.iter("{http://www.w3.org/2000/svg}polyline")
    )
    # Sizes double from point to point: equal steps to the right.
    assert np.diff(first[:, 0])[0] == pytest.approx(np.diff(first[:, 0])[1], abs=0.11)
    assert first[0, 0] == second[0, 0]
    assert first[2, 0] == second[1, 0]
    height = second[0, 1] - first[2, 1]
    assert (second[0, 1] - second[1, 1]) / height == pytest.approx(0.8, abs=0.001)
