"""The gate: rules on findings that a build passes or fails, and their JUnit form."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Literal
from xml.etree import ElementTree as ET

from equipoise.core import Aggregate, AuditResult, ConfigError, Finding, Variant, Verdict
from equipoise.core.estimate import name_with
from equipoise.metrics.spec import SPECS, own_aggregate
from equipoise.report.text import enclose, in_words, number, visible
from equipoise.report.words import conclusion_sentence, version_of

On = Literal["value", "lower", "upper"]
Of = Literal["value", "difference", "ratio", "worst_group", "against_rest"]
Outcome = Literal["passed", "breached", "not estimable", "no match"]
_COLUMN = {"value": "value", "lower": "ci_low", "upper": "ci_high"}
_NAMES = {"value": "", "lower": "lower end of ", "upper": "upper end of "}


@dataclass(frozen=True)
class GateRule:
    """A bound on a metric.

    Attributes
    ----------
    metric : str
        Registered name of the metric.
    of : str or None
        What is held against the bounds: the "value", the "difference" or "ratio" of groups, the
        "worst_group", or each group "against_rest". None: the value; of a metric that is a
        difference by definition, the difference.
    min, max : float or None
        Smallest and largest number that passes; at least one is given.
    on : "value", "lower" or "upper"
        Whether the value or an end of its interval is held against the bounds.
    model, groups, subject, version : str or None
        Which findings the rule is about; None: all models, groups and versions, save variants
        that stand beside under another null hypothesis. Without a
        subject the rule is about the findings for the whole and, where the metric has none of
        these, about every subject.

    change_from : str or None
        The model or run that a change is from; None: levels, no changes.

    Raises
    ------
    ConfigError
        When no bound is given, the bounds cross, `on` or `of` is unknown, or the metric has an
        ending that `of` or `change_from` replaces.
    """

    metric: str
    min: float | None = None
    max: float | None = None
    on: On = "value"
    model: str | None = None
    groups: str | None = None
    subject: str | None = None
    version: str | None = None
    of: Of | None = None
    change_from: str | None = None

    @property
    def aggregate(self) -> Aggregate:
        """The comparison of groups that the bounds limit."""
        if self.of is None:
            return own_aggregate(self.metric)
        return Aggregate(self.of)

    def __post_init__(self) -> None:
        if (new := new_spelling(self.metric)) is not None:
            raise ConfigError(
                f"gate rule on {self.metric!r}: findings have no such metric. To do: write {new}",
                key="metric", expected=new,
            )  # fmt: skip
        if self.of not in (None, *Aggregate):
            raise ConfigError(
                f"gate rule on {self.metric}: of {self.of!r}. Expected {', '.join(Aggregate)}",
                key="of", expected=", ".join(Aggregate),
            )  # fmt: skip
        bounds = [bound for bound in (self.min, self.max) if bound is not None]
        if not bounds or bounds[0] > bounds[-1] or self.on not in _COLUMN:
            raise ConfigError(
                f"gate rule on {self.metric}: min {self.min}, max {self.max}, on {self.on!r}. "
                "Expected min or max, min not above max, and on: value, lower or upper",
                key="on" if self.on not in _COLUMN else "min",
                expected="min or max, min not above max, and on: value, lower or upper",
            )

    def __str__(self) -> str:
        bounds = []
        if self.min is not None:
            bounds.append(f"≥ {self.min:g}")
        if self.max is not None:
            bounds.append(f"≤ {self.max:g}")
        places = filter(None, (self.model, self.subject, self.groups, self.version))
        scope = enclose(" (", ", ".join(map(visible, places)), ")")
        metric = name_with(visible(self.metric), self.aggregate)
        change = enclose(", change from ", visible(self.change_from or ""), ",")
        return f"{_NAMES[self.on]}{metric}{change} {' and '.join(bounds)}{scope}"


# Spellings that `of` replaces.
_SPELLINGS: Mapping[str, str] = MappingProxyType({
    "accuracy_gap": "metric: accuracy, of: difference",
    "worst_group_accuracy": "metric: accuracy, of: worst_group",
    "activation_share_gap": "metric: activation_share, of: difference",
    "hit_rate_gap": "metric: hit_rate, of: difference",
    "labelled_share_gap": "metric: labelled_share, of: difference",
    "rejection_gap": "metric: rejected_share, of: difference",
})  # fmt: skip
_ENDINGS: Mapping[str, str] = MappingProxyType({
    "_against_rest": "metric: {metric}, of: against_rest",
    "_change": "metric: {metric}, change_from: before",
})  # fmt: skip


def new_spelling(metric: str) -> str | None:
    """Return how to write an outdated name of a metric; None for a name of today."""
    if metric in SPECS:
        return None
    for ending, text in _ENDINGS.items():
        base = metric.removesuffix(ending)
        if base != metric and (base in SPECS or base in _SPELLINGS):
            of = _SPELLINGS.get(base, f"metric: {base}").removeprefix("metric: ")
            return f"{{{text.format(metric=of)}}}"
    spelling = _SPELLINGS.get(metric)
    return spelling and f"{{{spelling}}}"


@dataclass(frozen=True)
class GateCheck:
    """The check of one rule for one finding, or for none if nothing matched.

    Attributes
    ----------
    rule : GateRule
    finding : Finding or None
    outcome : "passed", "breached", "not estimable" or "no match"
    sentence : str
        The outcome in words.
    conclusion : str
        What the run concludes from the finding; "" where it says nothing about it.
    """

    rule: GateRule
    finding: Finding | None
    outcome: Outcome
    sentence: str
    conclusion: str = ""


@dataclass(frozen=True)
class GateResult:
    """Every check of every rule, in the order of the rules and findings."""

    checks: tuple[GateCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule was checked and held; a gate without rules passes."""
        return not self.breaches and not self.unchecked

    @property
    def breaches(self) -> tuple[GateCheck, ...]:
        """Checks with a number out of bounds."""
        return self._with_outcome("breached")

    @property
    def unchecked(self) -> tuple[GateCheck, ...]:
        """Rules that matched nothing or met a number that cannot be estimated."""
        return self._with_outcome("not estimable", "no match")

    def _with_outcome(self, *outcomes: Outcome) -> tuple[GateCheck, ...]:
        return tuple(check for check in self.checks if check.outcome in outcomes)

    @property
    def exit_code(self) -> int:
        """1 on a breach, else 2 where something could not be checked, else 0."""
        if self.breaches:
            return 1
        return 2 if self.unchecked else 0


def gate(result: AuditResult, rules: Iterable[GateRule]) -> GateResult:
    """Hold rules against every finding they match.

    A rule that matches no finding, or meets NaN, never passes: such a check is "no match" or
    "not estimable", apart from "breached".

    Parameters
    ----------
    result : AuditResult
    rules : iterable of GateRule

    Returns
    -------
    GateResult

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> outcome = report.gate(result, [report.GateRule("accuracy", of="worst_group", min=0.9)])
    >>> outcome.passed, outcome.exit_code
    (False, 1)
    """
    checks = chain.from_iterable(_checks(result.findings, rule) for rule in rules)
    conclusions = _sentences(result)
    return GateResult(
        tuple(replace(check, conclusion=conclusions.get(id(check.finding), "")) for check in checks)
    )


def _sentences(result: AuditResult) -> dict[int, str]:
    """Return what a run concludes from its findings, by their identity."""
    sentences: dict[int, str] = {}
    for conclusion in result.conclusions:
        text = conclusion_sentence(result.findings[conclusion.finding], conclusion)
        for place in (conclusion.finding, *conclusion.restated_by):
            if conclusion.model or not conclusion.standings:
                sentences.setdefault(id(result.findings[place]), visible(text))
    return sentences


def _checks(findings: tuple[Finding, ...], rule: GateRule) -> list[GateCheck]:
    matching = [finding for finding in findings if _matches(finding, rule)]
    if rule.subject is None:
        matching = [finding for finding in matching if not finding.subject] or matching
    matching = _between_groups(matching)
    if not matching:
        return [GateCheck(rule, None, "no match", f"{rule}: no finding matches this rule.")]
    # One number tested against two null hypotheses is two findings: the rule is about the number.
    once = {_number(finding): finding for finding in reversed(matching)}
    return [_check(rule, finding) for finding in reversed(once.values())]


def _place(finding: Finding) -> tuple[str, ...]:
    return finding.model, finding.metric, finding.subject, finding.groups, finding.version


def _number(finding: Finding) -> tuple[object, ...]:
    # Of several groups each has a number of its own.
    place = (*_place(finding), finding.group)
    return (*place, repr((finding.value, finding.ci_low, finding.ci_high)))


def _matches(finding: Finding, rule: GateRule) -> bool:
    if rule.version is None and finding.variant is Variant.POOL_ORDER:
        return False
    change = finding.change_from == (rule.change_from or "")
    places = ("metric", "aggregate", "model", "groups", "subject", "version")
    return change and all(getattr(rule, name) in (None, getattr(finding, name)) for name in places)


def _between_groups(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out differences to all rows where groups differ from each other at the same place."""
    between = {_place(finding) for finding in findings if not finding.compared_to}
    return [f for f in findings if not f.compared_to or _place(f) not in between]


def _check(rule: GateRule, finding: Finding) -> GateCheck:
    got: float = getattr(finding, _COLUMN[rule.on])
    name = _about(rule, finding)
    if math.isnan(got):
        reason = visible(finding.reason) or "it has no such number"
        verdict_text = in_words(Verdict.NOT_ESTIMABLE)
        return GateCheck(rule, finding, "not estimable", f"{name}: {verdict_text}: {reason}.")
    outcome: Outcome = "passed"
    if (rule.min is not None and got < rule.min) or (rule.max is not None and got > rule.max):
        outcome = "breached"
    return GateCheck(rule, finding, outcome, f"{name}: {outcome} with {number(got, 4)}.")


def _about(rule: GateRule, finding: Finding | None) -> str:
    if finding is None:
        return str(rule)
    parts = (finding.model, finding.subject, finding.groups, version_of(finding))
    return f"{rule}: {', '.join(map(visible, filter(None, parts)))}"


def junit(result: GateResult) -> str:
    """Return a gate's outcome as JUnit XML.

    A breach is a `failure`; a rule that could not be checked is an `error`. The `system-out` of a
    case is what the run concludes from its finding.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> outcome = report.gate(result, [report.GateRule("accuracy", of="worst_group", min=0.9)])
    >>> report.junit(outcome).count("<testcase")
    1
    """
    suite = ET.Element(
        "testsuite",
        name="equipoise gate",
        tests=str(len(result.checks)),
        failures=str(len(result.breaches)),
        errors=str(len(result.unchecked)),
    )
    for check in result.checks:
        about = _about(check.rule, check.finding)
        case = ET.SubElement(suite, "testcase", classname=visible(check.rule.metric), name=about)
        if check.outcome != "passed":
            kind = "failure" if check.outcome == "breached" else "error"
            element = ET.SubElement(case, kind, message=check.sentence, type=check.outcome)
            element.text = check.sentence
        if check.conclusion:
            ET.SubElement(case, "system-out").text = check.conclusion
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
