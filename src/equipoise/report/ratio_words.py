"""Ratios of rare errors in words."""

import math

from equipoise.core import Finding, GroupValue
from equipoise.core.sentences import Phrase, Sentence, named
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.text import counted, decimals_of, number, percent
from equipoise.stats.verdict import LEAST_RATIO


def compare_errors(finding: Finding, worst: GroupValue, other: GroupValue) -> Sentence:
    """Say how many times as often the worst group has an error as another, with both counts.

    The text continues a clause that names the error.
    """
    assert finding.ratio is not None  # noqa: S101 - verdicts that rest on a ratio have it
    ratio, link = finding.ratio, "as"
    often = f"{_rounded(ratio.value)} times as often"
    if math.isinf(ratio.value):
        often, link = "more often", "than"
        if ratio.low >= LEAST_RATIO:
            often, link = f"at least {_rounded(ratio.low)} times as often", "as"
    worst_errors, other_errors = _errors(finding, worst), _errors(finding, other)
    return Sentence(f"{often} for ", worst_errors, f" {link} for ", other_errors)


def ratio_text(finding: Finding) -> str:
    """Return the ratio of errors with its interval; "" without one."""
    if finding.ratio is None:
        return ""
    ends = f"{_rounded(finding.ratio.low)} to {_rounded(finding.ratio.high)}"
    level = f"{100 * finding.level:g} % interval"
    return f"ratio of errors {_rounded(finding.ratio.value)} ({level} {ends})"


def deciding_ratio(finding: Finding) -> str:
    """Return the ratio of errors that a verdict rests on; "" where it rests on points."""
    return _rounded(finding.ratio.value) if finding.ratio and finding.ratio.decides else ""


def _errors(finding: Finding, group: GroupValue) -> Sentence:
    """Return a group with its share of errors and their count."""
    share = group.value
    if spec_of_finding(finding).errors == "rest":
        share = 1.0 - share
    percentage = Phrase(percent(share, decimals_of([share])), value=share)
    return Sentence(named(group.group), " (", percentage, f", {counted(finding, share, group.n)})")


def _rounded(ratio: float) -> str:
    """Return a ratio with one decimal below 10, and as a whole number from there on."""
    return number(ratio, 1 if ratio < _WHOLE else 0)


_WHOLE = 9.95
