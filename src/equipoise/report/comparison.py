"""Findings about two models in words: both values, their difference, and who is worse."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.metrics.spec import spec_of
from equipoise.report.names import title
from equipoise.report.tables import panels, rows
from equipoise.report.text import interval, number, percent, plural

AUDIT = "comparison"
SUMMARIES = 2


@dataclass(frozen=True)
class Pair:
    """The two models of a finding; its value is the second's minus the first's.

    Attributes
    ----------
    first, second : str
    values : tuple of float
        NaN where a model has none.
    worse : str
        Which model is worse; "" where neither is or it is unknown.
    """

    first: str
    second: str
    values: tuple[float, float]
    worse: str

    @property
    def name(self) -> str:
        """The pair as the difference that is measured."""
        return f"{self.second} − {self.first}"


def is_comparison(finding: Finding) -> bool:
    """Whether a finding is about the difference of two models."""
    return finding.audit == AUDIT


def compares(result: AuditResult) -> bool:
    """Whether a result compares models, rather than auditing each."""
    return any(is_comparison(finding) for finding in result.findings)


def pair_of(finding: Finding) -> Pair | None:
    """Return the two models of a finding; None where it is about one."""
    if not is_comparison(finding):
        return None
    known = json.loads(finding.parameters)
    first, second = (
        math.nan if known[key] is None else float(known[key]) for key in ("value_a", "value_b")
    )
    return Pair(known["model_a"], known["model_b"], (first, second), known["worse"])


def models_of(result: AuditResult) -> list[str]:
    """Return the models in order of first appearance in the findings, some of which have none."""
    names: dict[str, None] = {}
    for finding in result.findings:
        pair = pair_of(finding)
        names.update(dict.fromkeys((pair.first, pair.second) if pair else (finding.model,)))
    return [name for name in names if name]


def pair_sentence(finding: Finding, pair: Pair) -> str:
    """Say what both models come to, how far they are apart, and who is worse."""
    subject = f" of “{finding.subject}”" if finding.subject else ""
    over = f" over {finding.groups}" if finding.groups else ""
    # One measure may come in several versions, such as words with words and images with images.
    version = "" if finding.version == "default" else f" ({finding.version})"
    share = spec_of(finding.metric).unit == "share"
    shown = percent if share else number
    values = [(shown(v), m) for v, m in zip(pair.values, (pair.first, pair.second), strict=True)]
    if pair.worse == pair.first:
        values.reverse()
    both = ", ".join(f"{model} {value}" for value, model in values)
    start = f"{title(finding.metric)}{subject}{over}{version}: {both}"
    if math.isnan(finding.value):
        return f"{start}; no difference can be given ({finding.reason})."
    apart, scale = abs(finding.value), 100 if share else 1
    low, high = scale * finding.ci_low, scale * finding.ci_high
    turned = (-high, -low) if finding.value < 0 else (low, high)
    size = f"{number(100 * apart, 1)} points" if share else number(apart)
    ends = "" if math.isnan(low) else f" {interval(*turned, digits=1 if share else 3)}"
    return f"{start}, a difference of {size}{ends}{_end(finding, pair)}."


def _end(finding: Finding, pair: Pair) -> str:
    if finding.verdict == Verdict.NONE:
        return f"; no verdict: {finding.reason}" if finding.reason else "; described, not tested"
    if finding.verdict == Verdict.BELOW_THRESHOLD:
        return "; too close to matter"
    if finding.verdict == Verdict.INCONCLUSIVE:
        unsure = not pair.worse or finding.ci_low <= 0 <= finding.ci_high
        return (
            "; these data cannot tell which is worse"
            if unsure
            else f"; perhaps worse for {pair.worse}"
        )
    return f": worse for {pair.worse}"


def oriented(finding: Finding, pair: Pair) -> tuple[float, float, float]:
    """Return difference and interval, turned so that positive is better for the second model."""
    value, low, high = finding.value, finding.ci_low, finding.ci_high
    if pair.worse and (value > 0) == (pair.worse == pair.second):
        return -value, -high, -low
    return value, low, high


def over_subjects(finding: Finding) -> bool:
    """Whether a finding compares two models over the subjects that both have."""
    return is_comparison(finding) and finding.unit == "subject"


def changed(result: AuditResult) -> list[str]:
    """Say of each pair of models how many disparities went, stayed and came."""
    texts = []
    for (first, second), found in panels(rows(result, "changes"), "model_a", "model_b").items():
        many = Counter(row["change"] for row in found)
        there = plural(many["went"] + many["stayed"], "disparity", "disparities")
        texts.append(
            f"Of {there} of {first} that {second} was measured for, too, {many['went']} went and "
            f"{many['stayed']} stayed; {many['came']} came."
        )
    return texts


def leading(findings: Sequence[Finding]) -> list[Finding]:
    """Return what a reader wants first of each pair: tests over subjects, and two summaries.

    Of several sets of groups, the one where the models are farthest apart.
    """
    pairs = dict.fromkeys(finding.model for finding in findings if is_comparison(finding))
    chosen: list[Finding] = []
    for pair in pairs:
        own = [one for one in findings if one.model == pair]
        over = [one for one in own if over_subjects(one)]
        # Where nothing could be tested, one of the numbers says why.
        chosen += [one for one in over if math.isfinite(one.q_value)] or over[:1]
        known = [one for one in own if not one.subject and not math.isnan(one.value)]
        metrics = dict.fromkeys(one.metric for one in known if not over_subjects(one))
        chosen += [
            max((one for one in known if one.metric == metric), key=lambda one: abs(one.value))
            for metric in [*metrics][:SUMMARIES]
        ]
    return chosen
