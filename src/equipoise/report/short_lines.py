"""Conclusions in one line, and the data that would show a difference that matters."""

import math

from equipoise.core import Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.sentences import named
from equipoise.core.wording import number, shortened
from equipoise.report.blocks import has
from equipoise.report.expecting import EXPECTED, for_group
from equipoise.report.ratio_words import ratio_text
from equipoise.report.text import count, enclose, equal_q, percent
from equipoise.report.words import (
    conclusion_certainty,
    difference_name,
    group_value_name,
    has_shares,
    is_summary,
    largest_size,
    limit_from_chance,
    limit_of,
    name_of,
    place_text,
    scale_of,
    sized,
    sized_interval,
    spec_of_shown,
    value_text,
)
from equipoise.stats.verdict import LEAST_RATIO

_LETTERS = 76
"""Letters of a line on a terminal."""


def short_line(finding: Finding, conclusion: Conclusion) -> str:
    """Return a conclusion in a line: what was measured, and both groups' or models' values."""
    if not conclusion.real:
        text = _line_of_bound(finding, conclusion)
    elif conclusion.standings:
        text = _line_of_models(finding, conclusion)
    else:
        text = _line_of_groups(finding, conclusion)
    return shortened(text, _LETTERS)


def _line_of_bound(finding: Finding, conclusion: Conclusion) -> str:
    """Say how large a difference may still be that was not found."""
    name, bound = difference_name(finding), largest_size(finding)
    by = enclose(" by ", finding.groups)
    if math.isnan(bound):
        return f"No {name}{by} found."
    if conclusion.verdict is Verdict.BELOW_THRESHOLD:
        return f"No {name}{by} above {sized(finding, bound)}."
    return f"No {name}{by} found; up to {sized(finding, bound)} may be left."


def _line_of_models(finding: Finding, conclusion: Conclusion) -> str:
    """State the values of models that are compared."""
    spec = spec_of_shown(finding)
    values = ", ".join(
        f"{shortened(standing.model)} {value_text(spec, standing.value)}"
        for standing in conclusion.standings
    )
    return f"{_quoted(finding, spec.title)}{place_text(finding)}: {values}"


def _line_of_groups(finding: Finding, conclusion: Conclusion) -> str:
    """State the values of the groups that are compared; without them, the value itself."""
    values = conclusion.group_value, conclusion.other_value
    if finding.direction and group_value_name(finding) == name_of(finding):
        # The groups have values of a rate that the direction names.
        line = f"{_quoted(finding, name_of(finding))}: {sized(finding, finding.value)}"
        return _first_that_fits(_direction_of_group(finding), line)
    if is_summary(finding) or not conclusion.other or any(map(math.isnan, values)):
        name, value = _quoted(finding, name_of(finding)), sized(finding, finding.value)
        by = enclose(" by ", finding.groups)
        return _first_that_fits(f"{name}{by}: {value}", f"{name}: {value}")
    shares = has_shares(finding) or conclusion.other == EXPECTED
    format_value = percent if shares else number
    sides = zip((conclusion.group, conclusion.other), values, strict=True)
    groups = ", ".join(f"{named(shortened(group))} {format_value(value)}" for group, value in sides)
    name = group_value_name(finding)
    if finding.subject in ("", conclusion.group):
        return f"{name}: {groups}"
    subject = f"“{shortened(finding.subject)}”"
    return _first_that_fits(f"{name} of {subject}: {groups}", f"{subject}: {groups}")


def _direction_of_group(finding: Finding) -> str:
    """Return a finding's direction, after the name of its group unless the direction has it."""
    if finding.group in ("", *(part.group for part in finding.direction.parts)):
        return finding.direction
    return f"{named(shortened(finding.group))}: {finding.direction}"


def _first_that_fits(text: str, shorter: str) -> str:
    return text if len(text) <= _LETTERS else shorter


def _quoted(finding: Finding, name: str) -> str:
    return name + enclose(" of “", shortened(finding.subject), "”")


def short_certainty(finding: Finding, conclusion: Conclusion) -> str:
    """Return in a line how sure a conclusion is: value, interval, chance, limit and corrected p.

    Of models, or where the difference at equal classes leads, it is `conclusion_certainty`.
    """
    if conclusion.standings or conclusion.at_equal_mix is not None:
        return conclusion_certainty(finding, conclusion)
    parts = [f"{name_of(finding)} {sized_interval(finding)}{for_group(finding)}"]
    scaled, _ = scale_of(finding)
    if has(finding.chance):
        parts.append(f"chance {scaled(finding.chance)}")
    if finding.by_ratio:
        parts += [ratio_text(finding), f"limit {LEAST_RATIO:g}"]
    elif has(finding.threshold):
        parts.append(f"limit {limit_from_chance(finding)}")
    if has(finding.q_value):
        parts.append(f"p {equal_q(finding)}")
    return " · ".join(parts)


def wanted_data(finding: Finding, conclusion: Conclusion) -> str:
    """Say how many images or rows would show a difference that matters; "" where unknown."""
    if conclusion.verdict is not Verdict.INCONCLUSIVE or not has(finding.more):
        return ""
    of, limit = enclose(" of ", finding.more_of), enclose(" of ", limit_of(finding))
    items = f"{count(finding.more)} more {wanted_items(finding)}{of}"
    return f"About {items} would show a difference{limit}."


def wanted_items(finding: Finding) -> str:
    """Name what to collect: images, or rows where these repeat within units."""
    return "rows" if finding.unit == "unit" else "images"
