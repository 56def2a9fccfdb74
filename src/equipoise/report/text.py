"""Numbers, names and untrusted labels as text that is safe and plain to read."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from equipoise.core import Finding, Verdict
from equipoise.core.finding import MEAN_OF
from equipoise.core.wording import number, percent, visible
from equipoise.metrics.spec import SPECS, MetricSpec, spec_of, spec_of_finding

__all__ = ["number", "percent", "visible"]
_SMALL = 0.01
_TOGETHER = re.compile(
    r"(?<=\d) (?=%|points\b|times\b|of \d)|(?<=[\d∞],) (?=[-−∞\d.]+[\])])|(?<=\bof) (?=\d)"
    r"|(?<=\b[npq]) (?=[=<≤])|(?<=\b[npq] [=<≤]) (?=\d)"
    r"|(?<=\bprinted) (?=[−\d])|(?<=; chance) (?=[−\d])"
)


def unbroken(text: str) -> str:
    """Return text that keeps numbers on a line with unit, interval or symbol."""
    return _TOGETHER.sub("\u00a0", text)


def enclose(before: str, text: str, after: str = "") -> str:
    """Return a text between two others; nothing where it is empty."""
    return f"{before}{text}{after}" if text else ""


def count(value: float | None) -> str:
    """Return a whole number with thin spaces between thousands."""
    if value is None or math.isnan(value):
        return "–"
    return f"{int(value):,}".replace(",", "\u202f").replace("-", "−")


def decimals_of(shares: Iterable[float]) -> int:
    """Return the decimals of percentages: two where one would make small shares look alike."""
    return 2 if any(0.0 < share < _SMALL for share in shares) else 1


def counted(finding: Finding, share: float, n: int) -> str:
    """Return how many of n rows a share is; n where rows aren't in it or out of it as a whole."""
    part = round(share * n)
    observed = MEAN_OF not in finding.parameters and not spec_of_finding(finding).basis
    if observed and abs(share * n - part) < 1e-6 * max(n, 1):
        return f"{count(part)} of {count(n)}"
    return f"n = {count(n)}"


def log_note(spec: MetricSpec) -> str:
    """Return what a column of plain numbers adds to the name of a logarithm; "" for others."""
    return ", ln" if spec.unit == "log ratio" else ""


def size_title(finding: Finding) -> str:
    """Return what the sizes of a finding's groups count: n, or of rankings the images ranked."""
    return "n" if finding.top_k is None else "In the pool"


def size_text(finding: Finding, n: int) -> str:
    """Return the size of a group, which of rankings isn't how many images its share is of."""
    return f"n = {count(n)}" if finding.top_k is None else f"{count(n)} in the pool"


def interval(low: float, high: float, digits: int = 3) -> str:
    """Return an interval as "[low, high]", or "–" when an end is unknown."""
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"


def p_value(value: float, *, at_most: bool = False) -> str:
    """Return a p- or q-value with two significant digits, bounded below at 0.0001.

    `at_most` says that no draw was as extreme, so that it is only an upper end.
    """
    if math.isnan(value):
        return "–"
    if value < 0.0001:
        return "<\u00a00.0001"
    digits = f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
    return f"≤\u00a0{digits}" if at_most else digits


def finding_p(finding: Finding) -> str:
    """Return the p-value of a finding."""
    return p_value(finding.p_value, at_most=finding.p_at_most)


def finding_q(finding: Finding) -> str:
    """Return the corrected p-value of a finding."""
    return p_value(finding.q_value, at_most=finding.q_at_most)


def equal_q(finding: Finding) -> str:
    """Return a corrected p-value after its sign: "= 0.02", "≤ 0.0005" or "< 0.0001"."""
    text = finding_q(finding)
    return text if text.startswith(("<", "≤")) else f"= {text}"


def plural(n: int, noun: str, plural_noun: str | None = None) -> str:
    """Return a count with its noun: "1 class", "3 classes"."""
    if n != 1:
        noun = plural_noun or f"{noun}s"
    return f"{count(n)} {noun}"


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Return names as "a, b and c", cut after `limit` of them."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


DIFFERENCE = "difference"


def title(metric: str) -> str:
    """Return a metric's name for display."""
    return spec_of(metric).title


VERDICT_TITLES: Mapping[Verdict, str] = {
    Verdict.DISPARITY: "Disparity",
    Verdict.DETECTED: "Real, size uncertain",
    Verdict.INCONCLUSIVE: "Not enough data",
    Verdict.BELOW_THRESHOLD: "Too small to matter",
    Verdict.NOT_ESTIMABLE: "Can't be estimated",
    Verdict.NONE: "No verdict",
}
"""What people read for a verdict."""


def in_words(text: str) -> str:
    """Return a text of the package with titles in place of names of metrics and keys of verdicts.

    Reasons and parameters name metrics as configs do.
    """
    return _NAME.sub(lambda name_match: _WORDS.get(name_match[0]) or _title_of(name_match[0]), text)


_WORDS = {
    str(Verdict.NOT_ESTIMABLE): "can't be estimated",
    str(Verdict.BELOW_THRESHOLD): "too small to matter",
}
_NAME = re.compile(rf"\b(?:{'|'.join(_WORDS)}|[a-z]+(?:_[a-z]+)+)\b")


def _title_of(name: str) -> str:
    spec = SPECS.get(name)
    return spec.label if spec else name


def verdict_key(verdict: Verdict, *, comparison: bool) -> str:
    """Return a verdict's key in JSON; a disparity between models is a difference."""
    if comparison and verdict == Verdict.DISPARITY:
        return DIFFERENCE
    return verdict.value


def verdict_title(
    verdict: Verdict, *, comparison: bool = False, limit: str = "", ratio: str = ""
) -> str:
    """Return the title of a verdict, with its basis.

    `limit` is the smallest size that matters, `ratio` a ratio of errors that decides.
    """
    if comparison and verdict == Verdict.DISPARITY:
        return DIFFERENCE.capitalize()
    text = VERDICT_TITLES[verdict]
    if verdict is Verdict.BELOW_THRESHOLD:
        text += enclose(" (under ", limit, ")")
    return text + enclose(" (ratio ", ratio, ")")
