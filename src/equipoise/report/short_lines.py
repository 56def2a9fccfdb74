"""Conclusions in one line, and the data that would decide them."""

import math

from equipoise.core import Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.wording import shortened
from equipoise.report.blocks import has
from equipoise.report.text import count, enclose, percent
from equipoise.report.words import group_value_name, has_shares, is_comparison

_LETTERS = 76
"""Letters of a line on a terminal."""


def short_line(finding: Finding, conclusion: Conclusion) -> str:
    """Return a conclusion in a line: the metric and both groups with their shares.

    "" where a conclusion compares no two groups that have shares.
    """
    values = conclusion.group_value, conclusion.other_value
    if is_comparison(finding) or not conclusion.real or not has_shares(finding):
        return ""
    if not conclusion.other or any(map(math.isnan, values)):
        return ""
    sides = zip((conclusion.group, conclusion.other), values, strict=True)
    groups = ", ".join(f"{shortened(group)} {percent(value)}" for group, value in sides)
    subject = enclose("“", shortened(finding.subject), "”")
    text = f"{group_value_name(finding)}{enclose(' of ', subject)}: {groups}"
    return text if len(text) <= _LETTERS or not subject else f"{subject}: {groups}"


def wanted_data(finding: Finding, conclusion: Conclusion) -> str:
    """Say how many images would decide a conclusion; "" where unknown."""
    if conclusion.verdict is not Verdict.INCONCLUSIVE or not has(finding.more):
        return ""
    of = enclose(" of ", finding.more_of)
    return f"About {count(finding.more)} more images{of} would decide."
