"""What holds for the conclusions of every audit, on random data."""

import math
import re
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from conclusions import random_worlds
from equipoise import audits
from equipoise.cli.runs import facts, show
from equipoise.core import Aggregate, Family
from equipoise.discovery import KINDS
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.expecting import EXPECTED, expected_shares

CONFIGS = {name: (build, seed) for name, build, seed in random_worlds.configs()}
CLOSE = 1e-9


@cache
def result_of(name):
    build, seed = CONFIGS[name]
    config = build(np.random.default_rng([seed, len(build.__name__)]), seed)
    return audits.run(audits.parse_config(config))


every_world = pytest.mark.parametrize("name", CONFIGS)


def test_all_kinds_have_worlds():
    assert {build.__name__ for build, _ in CONFIGS.values()} == {*KINDS}


@every_world
def test_numbers_are_those_of_the_groups_that_are_named(name):
    result = result_of(name)
    for conclusion in result.conclusions:
        finding = result.findings[conclusion.finding]
        values = {part.group: part.value for part in finding.by_group}
        sides = {
            conclusion.group: conclusion.group_value, conclusion.other: conclusion.other_value,
        }  # fmt: skip
        if conclusion.other == EXPECTED:
            shares = expected_shares(finding)
            values[EXPECTED] = shares[conclusion.group]
        for group, value in sides.items():
            assert values[group] == value if group else math.isnan(value), conclusion
        # Of an intersection, the other group differs in one attribute alone.
        if finding.family is Family.LEAF and "×" not in finding.groups and conclusion.group:
            gap = abs(conclusion.group_value - conclusion.other_value)
            if conclusion.aggregate in (Aggregate.DIFFERENCE, Aggregate.AGAINST_REST):
                assert abs(conclusion.size) == pytest.approx(gap), conclusion


@every_world
def test_values_lie_in_their_interval_and_intervals_in_the_range_of_the_metric(name):
    result = result_of(name)
    for conclusion in result.conclusions:
        finding = result.findings[conclusion.finding]
        least, most = spec_of_finding(finding).range
        ends = [end for end in (conclusion.low, conclusion.high) if not math.isnan(end)]
        for number in (conclusion.size, *ends):
            assert least - CLOSE <= number <= most + CLOSE, conclusion
        if ends:
            assert conclusion.low - CLOSE <= conclusion.size <= conclusion.high + CLOSE, conclusion


@every_world
def test_no_verdict_contradicts_the_interval(name):
    result = result_of(name)
    for conclusion in result.conclusions:
        finding = result.findings[conclusion.finding]
        null, (least, _) = spec_of_finding(finding).neutral, spec_of_finding(finding).range
        if null is None:
            null = finding.chance
        bounded = null == least
        inside = conclusion.low <= null <= conclusion.high
        if conclusion.verdict == "disparity":
            assert bounded or not inside, conclusion
        if conclusion.verdict == "below threshold" and inside and not bounded:
            reach = max(null - conclusion.low, conclusion.high - null)
            assert reach < finding.threshold or finding.q_value > 0.05, conclusion


@every_world
def test_no_conclusion_names_one_group_twice(name):
    result = result_of(name)
    for shown in facts(result, Path())["conclusions"]:
        assert not shown["group"] or shown["group"] != shown["other"], shown
        twice = re.search(r" for ([^(,]+) \([^)]+\), \w+ for \1 \(", shown["sentence"])
        assert twice is None, shown["sentence"]


def mirrors(finding, other):
    """Whether two findings compare the same rows and groups, with the same or opposite numbers."""
    if (finding.model, finding.groups, finding.n) != (other.model, other.groups, other.n):
        return False
    if math.isnan(finding.value) or abs(abs(finding.value) - abs(other.value)) > CLOSE:
        return False
    parts, others = (
        {part.group: part.value for part in one.by_group if not math.isnan(part.value)}
        for one in (finding, other)
    )
    if not parts or parts.keys() != others.keys():
        return False
    same = all(abs(parts[group] - others[group]) < CLOSE for group in parts)
    return same or all(
        min(abs(parts[group] + others[group]), abs(parts[group] + others[group] - 1)) < CLOSE
        for group in parts
    )


@every_world
def test_no_mirrored_number_is_a_conclusion_of_its_own(name):
    result = result_of(name)
    real = [result.findings[c.finding] for c in result.conclusions if c.real]
    for first, second in combinations(real, 2):
        assert not mirrors(first, second), (first, second)


@every_world
def test_every_finding_is_in_one_conclusion_at_most(name):
    result = result_of(name)
    places = [
        place for conclusion in result.conclusions
        for place in (conclusion.finding, *conclusion.restated_by)
    ]  # fmt: skip
    assert len(places) == len({*places})
    strong = {
        place for place, finding in enumerate(result.findings)
        if finding.verdict == "disparity" and finding.tested and finding.leads
    }  # fmt: skip
    assert strong <= {*places}


@every_world
def test_sentences_show_numbers_that_exist(name):
    for shown in facts(result_of(name), Path())["conclusions"]:
        text = shown["sentence"]
        assert not re.search(r"[-−]0(?:\.0+)?(?![\d.])", text), text
        for number in re.findall(r"(\d+(?:\.\d+)?)[\s\u00a0\u202f]?(?:%|points)", text):
            assert float(number) <= 100, text


@every_world
def test_the_terminal_has_a_line_for_each_conclusion(name, capsys):
    result = result_of(name)
    run = Path("runs/world")
    n_others = len(facts(result, run)["conclusions"]) - 1
    show(result, run)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines), lines
    bodies = "\n".join(lines[next(i for i, line in enumerate(lines) if line[:2] == "  ") :])
    bullets = [line for line in bodies.splitlines() if line.startswith("  · ")]
    assert bodies.count("\n") < 15, bodies
    # All have a line where there is room for that.
    assert len(bullets) == n_others or (bodies.count("\n") == 14 and "more: " in bullets[-1]), (
        bodies
    )
