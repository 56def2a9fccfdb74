"""Shares of one whole: which group's departure from its expected share explains the others'."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from equipoise.core import Finding
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.expecting import departure

_SHARE_LEFT = 0.7
_DIGITS, _ROUNDING = 9, 1e-9


def explained_by_share(findings: Sequence[Finding], places: Iterable[int]) -> dict[int, int]:
    """Return which departures from expected shares another group's departure explains.

    The shares of all groups sum to 1, so a group with too many images leaves too few to the
    others. The likeliest group is set to its expected share, and the others keep their shares of
    the rest. Those that then depart no more are explained. Two groups always explain each other.

    Parameters
    ----------
    findings : sequence of Finding
    places : iterable of int
        Of real differences.

    Returns
    -------
    dict of int to int
        Place of the explained finding to that of the one that explains it.
    """
    by_whole: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        finding = findings[place]
        if _is_share_of_whole(finding):
            composition = finding.groups, finding.version, finding.change_from, finding.within
            by_whole[composition].append(place)
    return {
        place: lead
        for members in by_whole.values()
        for lead, explained in _facts(findings, members)
        for place in explained
    }


def _is_share_of_whole(finding: Finding) -> bool:
    spec = spec_of_finding(finding)
    of_group = bool(finding.group) and finding.group == finding.subject
    return (
        of_group and spec.of_whole and spec.unit == "log ratio" and departure(finding) is not None
    )


def _facts(findings: Sequence[Finding], places: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the place of each group that departs by itself, with those that it explains."""
    departures, leading_share, leading_expected = [*places], 0.0, 0.0
    while departures:
        lead = max(departures, key=lambda place: _likelihood(findings[place]))
        departures.remove(lead)
        share, expected = _shares(findings[lead])
        leading_share, leading_expected = leading_share + share, leading_expected + expected
        factor = 1.0
        if max(leading_share, leading_expected) < 1.0 - _ROUNDING:
            factor = (1.0 - leading_expected) / (1.0 - leading_share)
        explained = [place for place in departures if _is_explained(findings[place], factor)]
        yield lead, explained
        departures = [place for place in departures if place not in explained]


def _shares(finding: Finding) -> tuple[float, float]:
    departing = departure(finding)
    return (math.nan, math.nan) if departing is None else (departing.part.value, departing.expected)


def _likelihood(finding: Finding) -> tuple[float, bool]:
    """Return how far a share departs in standard errors; of equal ones too small a share leads."""
    share, expected = _shares(finding)
    variance = max(expected * (1.0 - expected), _ROUNDING)
    return round((share - expected) ** 2 / variance, _DIGITS), share < expected


def _is_explained(finding: Finding, factor: float) -> bool:
    """Whether a share times a factor departs clearly less, and by little or by chance."""
    share, _ = _shares(finding)
    if share <= 0.0:
        return False
    sign = math.copysign(1.0, finding.value)
    before, after = abs(finding.value), sign * (finding.value + math.log(factor))
    band = finding.chance_high if sign > 0 else -finding.chance_low
    small = after < finding.threshold or after < band
    return after < _SHARE_LEFT * before and small
