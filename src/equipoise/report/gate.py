"""The gate: checks of a run against rules, and their JUnit form."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from xml.etree import ElementTree as ET

from equipoise.core import Aggregate, AuditResult, ConfigError, Family, Finding, Variant, Verdict
from equipoise.core.estimate import name_with
from equipoise.core.finding import TESTED
from equipoise.report.gate_alarms import alarm_rate
from equipoise.report.gate_coverage import checks_of_gaps, with_small_groups
from equipoise.report.gate_rules import (
    ROUNDING,
    VERDICTS,
    GateCheck,
    GateResult,
    GateRule,
    Outcome,
)
from equipoise.report.selecting import between_groups, place_of
from equipoise.report.text import enclose, in_words, interval, number, percent, visible
from equipoise.report.words import conclusion_sentence, pair_of, version_of

Baselines = Mapping[str, AuditResult]
"""Comparisons of a run with other runs, the run's models second, by the name that rules give."""


def gate(
    result: AuditResult,
    rules: Iterable[GateRule],
    *,
    baselines: Baselines = MappingProxyType({}),
) -> GateResult:
    """Hold rules against every finding they match.

    A rule that matches no finding, or meets NaN, never passes: such a check is "no match" or
    "not estimable", apart from "breached". A model without the number that another has is
    "not measured". A number that means nothing, as another one of the model says, is "not judged",
    and so is a number that would be beyond a bound if a group that is too small counted.

    Parameters
    ----------
    result : AuditResult
    rules : iterable of GateRule
    baselines : mapping of str to AuditResult, optional
        By each `worse_than` of the rules, that run compared with this one: differences whose second
        model is this run's.

    Returns
    -------
    GateResult

    Raises
    ------
    ConfigError
        When a rule names a run that `baselines` lacks.

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
    results = (result, *baselines.values())
    sentences = {key: text for item in results for key, text in _sentences(item).items()}
    checks = chain.from_iterable(_checks_of(result, rule, baselines) for rule in rules)
    with_conclusions = (
        replace(check, conclusion=sentences.get(id(check.finding), "")) for check in checks
    )
    return GateResult(tuple(with_small_groups(result, check) for check in with_conclusions))


def checks_of_extremes(findings: Sequence[Finding], rules: Iterable[GateRule]) -> list[GateCheck]:
    """Return the checks that chance may breach where all groups are alike, see `alarm_rate`."""
    on_values = [rule for rule in rules if rule.bounds]
    checks = chain.from_iterable(_checks(findings, rule) for rule in on_values)
    return [check for check in checks if not math.isnan(check.alarms)]


def _checks_of(result: AuditResult, rule: GateRule, baselines: Baselines) -> list[GateCheck]:
    if rule.worse_than is not None:
        return _checks_of_changes(result, rule, baselines)
    if rule.verdict is not None:
        return _checks_of_verdicts(result, rule)
    return _checks(result.findings, rule)


def _checks_of_verdicts(result: AuditResult, rule: GateRule) -> list[GateCheck]:
    """Check what has a verdict: with a metric its findings, otherwise conclusions."""
    tests = [f for f in result.findings if f.family in TESTED and _matches(f, rule)]
    withheld = _withheld_by_place(result.findings, rule)
    if rule.metric:
        judged = [(finding, finding.verdict) for finding in tests]
    else:
        tests = [finding for finding in tests if finding.verdict is not Verdict.NONE]
        judged = [
            (finding, conclusion.verdict)
            for conclusion in result.conclusions
            if conclusion.about_groups
            and _matches(finding := result.findings[conclusion.finding], rule)
        ]
    absent = [finding for finding in result.findings if _is_absent(finding, rule)]
    judged += [(finding, finding.verdict) for finding in absent]
    if not judged and not withheld:
        subject = "tested finding" if rule.metric else "conclusion"
        return [_unmatched(result.findings, rule, subject)]
    checks = _checks_of_judged(rule, judged)
    places = {_place(finding): finding for finding in sorted(tests, key=lambda test: test.tested)}
    without = [_unjudged(rule, finding) for finding in places.values() if not finding.tested]
    if places and len(without) == len(places):
        checks = []
    without += [_not_judged(rule, finding) for finding in withheld.values()]
    return [*checks, *without, *checks_of_gaps(result.findings, rule, {**places, **withheld})]


def _is_absent(finding: Finding, rule: GateRule) -> bool:
    """Whether a rule is about an untested gap between shares of 0."""
    if not rule.metric or finding.family is not Family.DESCRIPTIVE or not _matches(finding, rule):
        return False
    is_zero = finding.aggregate is Aggregate.DIFFERENCE and finding.value == 0.0
    return is_zero and not any(part.value > 0.0 for part in finding.by_group)


def _checks_of_judged(rule: GateRule, judged: Sequence[tuple[Finding, Verdict]]) -> list[GateCheck]:
    """Return breaches, and a passed check for each model and groups without any."""
    forbidden = _forbidden(rule)
    # One number tested against two null hypotheses is two findings: its gravest verdict counts.
    breaches: dict[tuple[object, ...], tuple[Finding, Verdict]] = {}
    numbers: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for finding, verdict in judged:
        name = _number(finding)
        if verdict is not Verdict.NOT_ESTIMABLE:
            numbers.setdefault(_place(finding), set()).add(name)
        if verdict in forbidden:
            graver = [(finding, verdict), *filter(None, [breaches.get(name)])]
            breaches[name] = min(reversed(graver), key=lambda item: forbidden.index(item[1]))
    breached = {_place(finding) for finding, _ in breaches.values()}
    passed = [
        _passed(rule, place, len(names))
        for place, names in numbers.items()
        if place not in breached
    ]
    return [*(_judged(rule, *item) for item in breaches.values()), *passed]


def _passed(rule: GateRule, place: tuple[str, str], n: int) -> GateCheck:
    """Check a model and groups without a forbidden verdict."""
    about = f"{rule}{enclose(': ', ', '.join(map(visible, filter(None, place))))}"
    text = f"passed, none of {n} has this verdict."
    return GateCheck(rule, None, "passed", about, text, groups=place[1])


def _unmatched(findings: Sequence[Finding], rule: GateRule, subject: str) -> GateCheck:
    """Check a rule that matches nothing, with the metrics or comparisons that a run has."""
    of_metric = [finding for finding in findings if finding.metric == rule.metric]
    if of_metric:
        names = {name_with(finding.metric, finding.aggregate) for finding in of_metric}
        for key in ("model", "groups", "subject", "version"):
            values = {getattr(finding, key) for finding in of_metric}
            if getattr(rule, key) not in (None, *values):
                names = {f"{key} {visible(value) or 'none'}" for value in values}
    elif rule.metric:
        names = {finding.metric for finding in findings}
    else:
        names = set()
    fix = enclose(" To do: choose one of this run's names: ", ", ".join(sorted(names)), ".")
    text = f"no {subject} matches this rule.{fix}"
    return GateCheck(rule, None, "no match", str(rule), text)


def _place(finding: Finding) -> tuple[str, str]:
    return finding.model, finding.groups


def _unjudged(rule: GateRule, finding: Finding) -> GateCheck:
    """Check a finding without a verdict."""
    reason = visible(finding.reason) or in_words(finding.verdict)
    text = f"{in_words(Verdict.NOT_ESTIMABLE)}: {reason}."
    return GateCheck(rule, finding, "not estimable", _about(rule, finding), text)


def _is_withheld(finding: Finding) -> bool:
    return finding.family is Family.WITHHELD


def _withheld_by_place(
    findings: Sequence[Finding], rule: GateRule
) -> dict[tuple[str, str], Finding]:
    """Return a finding that means nothing of each model and groups that a rule is about."""
    # Levels, which have no groups, have no verdict in any run.
    withheld = [f for f in findings if _is_withheld(f) and f.groups and _matches(f, rule)]
    return {_place(finding): finding for finding in reversed(withheld)}


def _not_judged(rule: GateRule, finding: Finding) -> GateCheck:
    """Check a finding without a meaningful number."""
    text = f"not judged: {visible(finding.reason)}."
    return GateCheck(rule, finding, "not judged", _about(rule, finding), text)


def _forbidden(rule: GateRule) -> tuple[str, ...]:
    """Return the verdict of a rule, and graver ones."""
    return VERDICTS[: VERDICTS.index(rule.verdict or "detected") + 1]


def _judged(rule: GateRule, finding: Finding, verdict: Verdict) -> GateCheck:
    ends = ""
    if not math.isnan(finding.ci_low):
        ends = f" {interval(finding.ci_low, finding.ci_high, 4)}"
    text = f"breached with the verdict {verdict}, {number(finding.value, 4)}{ends}."
    return GateCheck(rule, finding, "breached", _about(rule, finding), text)


def _checks_of_changes(
    result: AuditResult, rule: GateRule, baselines: Baselines
) -> list[GateCheck]:
    """Check differences to another run, which are paired and tested."""
    compared = baselines.get(rule.worse_than or "")
    if compared is None:
        raise ConfigError(
            f"gate rule on {rule.about}: no comparison with that run. To do: pass it as a baseline",
            key="worse_than", expected="a run among the baselines",
        )  # fmt: skip
    changes = [
        (finding, pair)
        for finding in compared.findings
        if (pair := pair_of(finding)) and finding.tested and _matches_change(finding, rule)
    ]
    if not changes:
        return [_unmatched(compared.findings, rule, "tested change")]
    checks = [
        _judged(rule, finding, finding.verdict)
        for finding, pair in changes
        if finding.verdict in _forbidden(rule)
        and (pair.worse == pair.second or finding.verdict is Verdict.INCONCLUSIVE)
    ]
    if not checks:
        passed = f"passed, none of {len(changes)} changes is worse."
        checks = [GateCheck(rule, None, "passed", str(rule), passed)]
    models = {finding.model for finding in result.findings}
    places = [
        (model, finding.groups)
        for finding, pair in changes for model in models if _is_named(pair.second, model)
    ]  # fmt: skip
    return [*checks, *checks_of_gaps(result.findings, rule, places)]


def _matches_change(finding: Finding, rule: GateRule) -> bool:
    pair = pair_of(finding)
    named = pair is not None and (rule.model is None or _is_named(pair.second, rule.model))
    aggregate = None if rule.of is None else rule.aggregate
    wanted = (
        (rule.metric or None, finding.metric), (aggregate, finding.aggregate),
        (rule.groups, finding.groups), (rule.subject, finding.subject),
        (rule.version, finding.version),
    )  # fmt: skip
    return named and all(name in (None, value) for name, value in wanted)


def _is_named(compared: str, model: str) -> bool:
    """Whether a model of a comparison is that of a run."""
    # A name that both runs have stands after the run's.
    return compared == model or compared.endswith(f": {model}")


def _sentences(result: AuditResult) -> dict[int, str]:
    """Return what a run concludes from its findings, by their identity."""
    sentences: dict[int, str] = {}
    for conclusion in result.conclusions:
        text = conclusion_sentence(result.findings[conclusion.finding], conclusion)
        for place in (conclusion.finding, *conclusion.restated_by):
            if conclusion.about_groups:
                sentences.setdefault(id(result.findings[place]), visible(text))
    return sentences


def _checks(findings: Sequence[Finding], rule: GateRule) -> list[GateCheck]:
    matching = [finding for finding in findings if _matches(finding, rule)]
    if rule.subject is None:
        wholes = {_place(finding) for finding in matching if not finding.subject}
        matching = [
            finding for finding in matching if not finding.subject or _place(finding) not in wholes
        ]
    matching = between_groups(matching)
    if not matching:
        return [_unmatched(findings, rule, "finding")]
    # One number tested against two null hypotheses is two findings: the rule is about the number.
    once = {_number(finding): finding for finding in reversed(matching)}
    checks = [_check(rule, finding) for finding in reversed(once.values())]
    return [*checks, *checks_of_gaps(findings, rule, [*map(_place, matching)])]


def _number(finding: Finding) -> tuple[object, ...]:
    # Of several groups each has a number of its own.
    place = (*place_of(finding), finding.group)
    return (*place, repr((finding.value, finding.ci_low, finding.ci_high)))


def _matches(finding: Finding, rule: GateRule) -> bool:
    if rule.version is None and finding.variant is Variant.POOL_ORDER:
        return False
    change = finding.change_from == (rule.change_from or "")
    places = ("model", "groups", "subject", "version")
    measure = not rule.metric or finding.metric == rule.metric
    if rule.of is not None or rule.bounds:
        measure &= finding.aggregate is rule.aggregate
    named = all(getattr(rule, name) in (None, getattr(finding, name)) for name in places)
    return change and measure and named


def _check(rule: GateRule, finding: Finding) -> GateCheck:
    if _is_withheld(finding):
        return _not_judged(rule, finding)
    numbers = _limited_numbers(rule, finding)
    about = _about(rule, finding)
    if any(map(math.isnan, numbers)):
        reason = visible(finding.reason) or "it lacks this number"
        verdict_text = in_words(Verdict.NOT_ESTIMABLE)
        return GateCheck(rule, finding, "not estimable", about, f"{verdict_text}: {reason}.")
    outcome: Outcome = "passed"
    for_min, for_max = numbers
    if (rule.min is not None and for_min < rule.min - ROUNDING) or (
        rule.max is not None and for_max > rule.max + ROUNDING
    ):
        outcome = "breached"
    limits = sorted(
        {for_min} if rule.max is None else {for_max} if rule.min is None else {*numbers}
    )
    text = f"{outcome} with {' to '.join(number(value, 4) for value in limits)}"
    text += f"{_end_name(rule, finding, limits)}."
    alarms = alarm_rate(rule, finding)
    text += _alarm_text(finding, alarms)
    return GateCheck(rule, finding, outcome, about, text, alarms=alarms)


def _end_name(rule: GateRule, finding: Finding, limits: Sequence[float]) -> str:
    """Name the end of the interval that a rule limits; "" of a rule on the value."""
    if rule.on == "value":
        return ""
    if len(limits) > 1:
        return ", the ends of the interval"
    end = "upper" if limits[0] == finding.ci_high else "lower"
    return f", the {end} end of the interval"


def _limited_numbers(rule: GateRule, finding: Finding) -> tuple[float, float]:
    """Return the numbers of a finding that its smallest and largest limit apply to."""
    low, high = finding.ci_low, finding.ci_high
    return {
        "value": (finding.value, finding.value), "lower": (low, low), "upper": (high, high),
        "whole": (high, low), "any": (low, high),
    }[rule.on]  # fmt: skip


def _alarm_text(finding: Finding, alarms: float) -> str:
    """Say how often a rule on an extreme would be breached by chance alone."""
    if math.isnan(alarms):
        return ""
    n_groups = sum(not part.note for part in finding.by_group)
    return (
        f" If all {n_groups} groups were alike, chance would breach it in "
        f"{percent(alarms)} of runs of this size."
    )


def _about(rule: GateRule, finding: Finding | None) -> str:
    if finding is None:
        return str(rule)
    parts = (
        finding.model, finding.subject, finding.groups, finding.group, version_of(finding),
    )  # fmt: skip
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
        case = ET.SubElement(suite, "testcase", classname=visible(check.rule.about), name=about)
        if check.outcome != "passed":
            kind = "failure" if check.outcome == "breached" else "error"
            element = ET.SubElement(case, kind, message=check.sentence, type=check.outcome)
            element.text = check.sentence
        texts = [check.conclusion, check.sentence if check.not_checked else ""]
        if any(texts):
            ET.SubElement(case, "system-out").text = "\n".join(filter(None, texts))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
