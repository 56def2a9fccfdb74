"""The first screen: a sentence for each model, one chart, and what to do next."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from equipoise.core import Aggregate, AuditResult, Family, Finding, Verdict
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import Badge, Chart, Page, Statement, Summary, Tally, has
from equipoise.report.plots import Axis, intervals, labelled_points
from equipoise.report.selecting import Selector, measure_of, place_in
from equipoise.report.text import count, listed, plural, title
from equipoise.report.words import (
    certainty,
    contrast,
    figures,
    has_shares,
    headline,
    name_of,
    names_groups,
    quoted,
    ranked,
    worse_side,
)

MOST_MODELS = 8
MOST_MARKS = 28
"""Marks of the first chart, of all models together: more would push the next steps out of sight."""
LEAST_GROUPS, MOST_GROUPS = 3, 14


def summarize(
    result: AuditResult,
    leads: Sequence[Selector],
    caveat: str = "",
    apart: str = "",
    steps: Sequence[str] = Page.steps,
) -> Summary:
    """Return the first screen of an audit.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of Selector
        Metrics that lead, most important first; among others the largest excess leads.
    caveat : str
        Shown where a statement is a disparity.
    apart : str
        What findings that don't lead do, such as "repeat differences of the labels".
    steps : sequence of str
        What to do next about a disparity.
    """
    by_model: dict[str, list[Finding]] = {one.model: [] for one in result.findings}
    for one in ranked(result.findings):
        by_model[one.model].append(one)
    # Findings of no model, such as human judgements, lead only where there is something to say.
    if len(by_model) > 1 and by_model.get("", result.findings)[0].verdict != Verdict.DISPARITY:
        by_model.pop("", None)
    statements = [_statement(model, own, leads, apart) for model, own in by_model.items()]
    statements.sort(key=lambda one: one.finding is None or one.finding.verdict != Verdict.DISPARITY)
    shown = tuple(statements[:MOST_MODELS])
    drawn = [one.finding for one in shown if one.finding is not None]
    disparity = any(one.verdict == Verdict.DISPARITY for one in drawn)
    chart, next_steps = _chart(drawn, result.findings), _steps(drawn, steps)
    return Summary(shown, chart, next_steps, caveat if disparity else "")


def merged(warnings: Sequence[str], models: Sequence[str]) -> tuple[str, ...]:
    """Return warnings of a run, those that models share once: "a, b: …"."""
    of: dict[str, list[str]] = {}
    for warning in warnings:
        model, colon, text = warning.partition(": ")
        known = colon and model in models
        of.setdefault(text if known else warning, []).extend([model] if known else [])
    return tuple(f"{listed(names)}: {text}" if names else text for text, names in of.items())


def _statement(
    model: str, findings: Sequence[Finding], leads: Sequence[Selector], apart: str
) -> Statement:
    every_test = [one for one in findings if one.tested]
    tested = [one for one in every_test if one.leads]
    name = f"{model}: " if model else ""
    if not tested:
        return Statement(None, f"{name}{plural(len(findings), 'value')}, none with a verdict.")
    lead, many = leading(tested, leads), Counter(one.verdict for one in tested)
    badge = Badge(lead.verdict)
    rest = [one.verdict for one in every_test if not one.leads]
    also = f"{count(len(rest))} more {apart or 'stand apart'}" if rest else ""
    if shown := rest.count(Verdict.DISPARITY):
        also += f": {plural(shown, 'disparity', 'disparities')}"
    tally = Tally(tuple((Badge(verdict), n) for verdict, n in many.items()), also)
    if lead.verdict in (Verdict.DISPARITY, Verdict.DETECTED):
        return Statement(badge, headline(lead), certainty(lead), tally, lead)
    every, open_ones = plural(len(tested), "finding"), many[Verdict.INCONCLUSIVE]
    if open_ones:
        text = f"{name}these data can't decide {open_ones} of {every}"
        text += "." if open_ones == len(tested) else "; the others are too small to matter."
    else:
        text = f"{name}no difference as large as the thresholds in {every}."
    return Statement(badge, text, f"{headline(lead)} {certainty(lead)}", tally, lead)


def leading(tested: Sequence[Finding], leads: Sequence[Selector]) -> Finding:
    """Return the finding that leads: by verdict, metric, and whether it names who is worse off."""
    verdict = tested[0].verdict
    same = [one for one in tested if one.verdict == verdict]

    def place(finding: Finding) -> tuple[int, bool, bool, bool]:
        known = place_in(leads, finding)
        apart = contrast(finding) if finding.group else None
        worse = apart is None or apart[0].group == finding.group
        part = bool(finding.subject) and finding.family is not Family.COMPOSITE
        whole = part and not finding.group
        named = names_groups(finding) and worse
        return known, finding.version != "default", not named, whole

    return min(same, key=place)


def _chart(drawn: Sequence[Finding], findings: Sequence[Finding]) -> Chart | None:
    """Draw the groups of the first statement, else its subjects, else each model's finding."""
    if not drawn:
        return None
    first = _of_all_groups(drawn[0], findings)
    alike = [finding for finding in findings if _series(finding) == _series(first)]
    same = [one for one in alike if one.subject == first.subject][:MOST_MODELS]
    if any(not math.isnan(part.value) for part in first.by_group):
        return groups_chart(first, same)
    if len({one.subject for one in alike if has(one.value)}) > 2:
        return _subjects_chart(first, alike)
    rows = [mark(one, one.model or name_of(one)) | {"tip": figures(one)} for one in drawn]
    label = f"{name_of(first)} of each model, with interval and chance band."
    return intervals(rows, label, Axis(name_of(first)), title=f"{name_of(first)} by model")


def _series(finding: Finding) -> tuple[object, ...]:
    """Return what findings share that stand in one chart."""
    return (*measure_of(finding), finding.groups, finding.version, finding.null)


def mark(finding: Finding, label: str) -> dict[str, str | float]:
    """Return the mark of a finding: its value with its interval, over what chance gives."""
    return {
        "label": label, "value": finding.value, "low": finding.ci_low, "high": finding.ci_high,
        "chance_low": finding.chance_low, "chance_high": finding.chance_high,
    }  # fmt: skip


def _of_all_groups(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding over all groups behind that of one group against all others."""
    place = finding.model, finding.subject, finding.groups, finding.version
    for one in findings if finding.group else ():
        same = (one.model, one.subject, one.groups, one.version) == place
        gap = one.aggregate is Aggregate.DIFFERENCE and spec_of_finding(one).rest == finding.metric
        if same and gap and finding.aggregate is Aggregate.AGAINST_REST:
            return one
    return finding


def _room(models: int) -> int:
    """Return how many rows a chart has when each has a mark for every model."""
    return min(MOST_GROUPS, max(LEAST_GROUPS, MOST_MARKS // max(models, 1)))


def groups_chart(first: Finding, same: Sequence[Finding]) -> Chart:
    """Draw the values of the groups of a finding, the worst first, for every model."""
    side = 1 if worse_side(first) == "lower" else -1
    valued = [part for part in first.by_group if not math.isnan(part.value)]
    known = [part for part in valued if not part.note] or valued
    known.sort(key=lambda part: side * part.value)
    models = [*dict.fromkeys(one.model for one in same)]
    share, room = all(map(has_shares, same)), _room(len(models))
    rows = [
        {**asdict(own), "label": f"{part.group} (n = {count(part.n)})", "model": one.model}
        for part in known[:room]
        for one in same
        for own in one.by_group
        if own.group == part.group
    ]
    about = f" of “{first.subject}”" if first.subject and first.subject != first.group else ""
    name = f"{group_value_name(first)}{about} by {first.groups}"
    some = "" if len(known) <= room else f", {room} of {len(known)} groups"
    axis = Axis(percent=in_points(first), domain=(0.0, 1.0) if share else None)
    marks = labelled_points(rows, "label", series="model", percent=share)
    return intervals(marks, f"{name}, worst first.", axis, title=f"{name}{some}", series=models)


def _subjects_chart(first: Finding, alike: Sequence[Finding]) -> Chart:
    """Draw the largest values of the first statement's metric, for every model."""
    models = [*dict.fromkeys(one.model for one in alike)]
    own = [one for one in alike if one.model == first.model and has(one.value)]
    largest = sorted(own, key=lambda one: -abs(one.value))[: _room(len(models))]
    names = [one.subject for one in sorted(largest, key=lambda one: one.value)]
    shown = [one for name in names for one in alike if one.subject == name and has(one.value)]
    marks = [mark(one, one.subject) | {"series": one.model, "tip": figures(one)} for one in shown]
    name = f"{name_of(first)}: {first.groups}"
    some = f", the {len(names)} largest" if len(own) > len(names) else ""
    above, against, below = first.groups.partition(" against ")
    sides = f"← {below} · {above} →" if against else ""
    axis = Axis(sides, percent=in_points(first), zero=True)
    return intervals(marks, f"{name}{some}.", axis, title=f"{name}{some}", series=models)


def in_points(finding: Finding) -> bool:
    """Whether the numbers of a finding and of its groups are shares, or differences of shares."""
    return has_shares(finding) or spec_of_finding(finding).unit in ("share", "points")


def group_value_name(finding: Finding) -> str:
    """Return the name of the number that each group of a finding has."""
    spec = spec_of_finding(finding)
    label = title(spec.group_metric) if spec.group_metric else spec.group_label
    return label[:1].upper() + label[1:] if label else title(finding.metric)


def _steps(drawn: Sequence[Finding], about: Sequence[str]) -> tuple[str, ...]:
    """Return what to do next, by the verdicts of the findings that lead."""
    first = {one.verdict: one for one in reversed(drawn)}
    steps = []
    if found := first.get(Verdict.DISPARITY):
        worst, subject = contrast(found), found.subject or "each subject"
        group = quoted(worst[0].group) if worst else "the group that is worst off"
        steps += [step.format(group=group, subject=subject) for step in about]
    if Verdict.DETECTED in first:
        steps.append("Add images: the difference is real, and its size is uncertain.")
    if found := first.get(Verdict.INCONCLUSIVE):
        more = "images of the smallest groups (“equipoise plan” says how many)"
        if has(found.more):
            more = f"about {count(found.more)} images of {found.more_of} to decide"
        elif found.unit not in ("row", "image", "unit"):
            many = f"{found.unit[:-1]}ies" if found.unit.endswith("y") else f"{found.unit}s"
            more = f"{many}: more images of each can't decide"
        steps.append(f"Add {more}.")
    if {*first} == {Verdict.BELOW_THRESHOLD}:
        steps.append("Keep it so: add a gate to the config and run “equipoise check” in CI.")
    return tuple(steps)
