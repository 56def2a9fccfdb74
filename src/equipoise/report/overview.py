"""Findings on a page: what it says first, groups and models side by side, cards, all in a table."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from equipoise.core import AuditResult, Family, Finding, GroupValue, Verdict
from equipoise.metrics.spec import AGAINST_REST, spec_of
from equipoise.report.blocks import (
    SYMBOLS,
    Badge,
    Block,
    Card,
    Chart,
    Facts,
    Fold,
    Heading,
    Section,
    Statement,
    Summary,
    Table,
    Words,
    parameters_text,
    scope,
    scope_of,
)
from equipoise.report.comparison_page import differences_chart
from equipoise.report.plots import VERDICTS, Axis, intervals, labelled_points
from equipoise.report.text import (
    VERDICT_TITLES,
    count,
    interval,
    number,
    p_value,
    percent,
    plural,
    title,
    verdict_title,
)
from equipoise.report.words import (
    compares,
    contrast,
    figures,
    harmful_side,
    has_shares,
    heading,
    is_comparison,
    name_of,
    names_groups,
    pair_of,
    ranked,
    sentence,
    worse_side,
)

MOST_MODELS = 8
MOST_GROUPS = 16


def summarize(
    result: AuditResult, leads: Sequence[str], caveat: str = "", apart: str = ""
) -> Summary:
    """Return the first screen of an audit.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of str
        Metrics that lead, most important first; among others the largest excess leads.
    caveat : str
        Shown where a statement is a disparity.
    apart : str
        What findings that don't lead do, such as "repeat differences of the labels".
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
    chart, steps = _chart(drawn, result.findings), _steps(drawn)
    return Summary(shown, chart, steps, caveat if disparity else "")


def _statement(
    model: str, findings: Sequence[Finding], leads: Sequence[str], apart: str
) -> Statement:
    every_test = [one for one in findings if one.tested]
    tested = [one for one in every_test if one.leads]
    name = f"{model}: " if model else ""
    if not tested:
        return Statement(None, f"{name}{plural(len(findings), 'value')}, none with a verdict.")
    lead, many = leading(tested, leads), Counter(one.verdict for one in tested)
    badge = Badge(lead.verdict)
    counts = ", ".join(f"{verdict_title(verdict)} {n}" for verdict, n in many.items())
    certainty = f"{figures(lead)} · of {plural(len(tested), 'finding')}: {counts}"
    if aside := len(every_test) - len(tested):
        certainty += f"; {aside} more {apart or 'stand apart'}"
    if lead.verdict in (Verdict.DISPARITY, Verdict.DETECTED):
        return Statement(badge, sentence(lead), certainty, lead)
    every, open_ones = plural(len(tested), "finding"), many[Verdict.INCONCLUSIVE]
    if 2 * open_ones > len(tested):
        text = f"{name}not enough data to decide: {open_ones} of {every} are open."
    elif open_ones:
        text = f"{name}{len(tested) - open_ones} of {every} are too small to matter; not enough "
        text += f"data to decide about {open_ones}."
    else:
        text = f"{name}no disparity as large as the thresholds in {every}."
    return Statement(badge, text, f"{sentence(lead)} {certainty}", lead)


def leading(tested: Sequence[Finding], leads: Sequence[str]) -> Finding:
    """Return the finding that leads: by verdict, metric, and whether it names who is worse off."""
    verdict = tested[0].verdict
    same = [one for one in tested if one.verdict == verdict]

    def place(finding: Finding) -> tuple[int, bool, bool, bool]:
        metric = finding.metric.removesuffix(AGAINST_REST)
        known = leads.index(metric) if metric in leads else len(leads)
        apart = contrast(finding) if finding.group else None
        worse = apart is None or apart[0].group == finding.group
        part = bool(finding.subject) and finding.family is not Family.COMPOSITE
        whole = part and not finding.group
        named = names_groups(finding) and worse
        return known, finding.version != "default", not named, whole

    return min(same, key=place)


def _chart(drawn: Sequence[Finding], findings: Sequence[Finding]) -> Chart | None:
    """Draw the groups of the first statement, for every model; else each model's finding."""
    if not drawn:
        return None
    first = _of_all_groups(drawn[0], findings)

    def key(one: Finding) -> tuple[str, ...]:
        return one.metric, one.subject, one.groups, one.version, one.null.split(";")[0]

    same = [one for one in findings if key(one) == key(first)][:MOST_MODELS]
    if any(not math.isnan(part.value) for part in first.by_group):
        return groups_chart(first, same)
    rows = [_mark(one, one.model or name_of(one)) | {"tip": figures(one)} for one in drawn]
    label = f"{name_of(first)} of each model, with interval and chance band."
    return intervals(rows, label, Axis(name_of(first)), title=f"{name_of(first)} by model")


def _mark(finding: Finding, label: str) -> dict[str, Any]:
    """Return the mark of a finding: its value with its interval, over what chance gives."""
    return {
        "label": label, "value": finding.value, "low": finding.ci_low, "high": finding.ci_high,
        "chance_low": finding.chance_low, "chance_high": finding.chance_high,
    }  # fmt: skip


def _of_all_groups(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding over all groups behind that of one group against all others."""
    place = finding.model, finding.subject, finding.groups, finding.version
    for one in findings if finding.group else ():
        rest = spec_of(one.metric).rest
        same = (one.model, one.subject, one.groups, one.version) == place
        if same and rest and finding.metric == rest + AGAINST_REST:
            return one
    return finding


def groups_chart(first: Finding, same: Sequence[Finding]) -> Chart:
    """Draw the values of the groups of a finding, the worst first, for every model."""
    side = 1 if worse_side(first) == "lower" else -1
    known = [part for part in first.by_group if not math.isnan(part.value)]
    known.sort(key=lambda part: side * part.value)
    share = all(map(has_shares, same))
    rows = [
        {**asdict(own), "label": f"{part.group} (n = {count(part.n)})", "model": one.model}
        for part in known[:MOST_GROUPS]
        for one in same
        for own in one.by_group
        if own.group == part.group
    ]
    about = f" of “{first.subject}”" if first.subject else ""
    name = f"{group_value_name(first)}{about} by {first.groups}"
    models = [*dict.fromkeys(one.model for one in same)]
    axis = Axis(percent=share, domain=(0.0, 1.0) if share else None)
    marks = labelled_points(rows, "label", series="model", percent=share)
    return intervals(marks, f"{name}, worst first.", axis, title=name, series=models)


def group_value_name(finding: Finding) -> str:
    """Return the name of the number that each group of a finding has."""
    spec = spec_of(finding.metric)
    label = title(spec.group_metric) if spec.group_metric else spec.group_label
    return label[:1].upper() + label[1:] if label else title(finding.metric)


def _steps(drawn: Sequence[Finding]) -> tuple[str, ...]:
    """Return what to do next, by the verdicts of the findings that lead."""
    verdicts = {one.verdict for one in drawn}
    steps = [step for verdict, own in _NEXT.items() if verdict in verdicts for step in own]
    if verdicts == {Verdict.BELOW_THRESHOLD}:
        steps.append("Keep it so: add a gate to the config and run “equipoise check” in CI.")
    return tuple(steps)


_NEXT = {
    Verdict.DISPARITY: (
        "Look at the images behind the first finding, and check the labels of the group that is "
        "worst off.",
        "Reduce the disparity (equipoise mitigate), or choose another model (equipoise compare).",
    ),
    Verdict.DETECTED: ("Add images: the difference is real, and its size is uncertain.",),
    Verdict.INCONCLUSIVE: (
        "Add images of the smallest groups where data don't decide. “equipoise plan” says how many "
        "rows a group needs.",
    ),
}

MOST_COLUMNS = 6

Key = tuple[str, str, str]


def group_table(result: AuditResult, metrics: Sequence[str]) -> Section | None:
    """Return the table by group of an audit; None where no finding has values by group.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.
    """
    places: dict[Key, dict[str, Finding]] = {}
    for metric in metrics:
        for one in result.findings:
            if one.metric == metric and any(not math.isnan(part.value) for part in one.by_group):
                columns = places.setdefault((one.model, one.groups, one.version), {})
                about = f" ({one.subject})" if one.subject else ""
                columns.setdefault(f"{group_value_name(one)}{about}", one)
    if not places:
        return None
    # Versions without a verdict, such as raw answers, give way to one of the model that has some.
    tested = {
        key
        for key, columns in places.items()
        if any(one.verdict != Verdict.NONE for one in columns.values())
    }
    judged = {key[:2] for key in tested}
    places = {k: own for k, own in places.items() if k in tested or k[:2] not in judged}
    every = {name: one for columns in places.values() for name, one in columns.items()}
    # Of several subjects, such as classes, the first few would say little.
    many = Counter(one.metric for one in every.values())
    single = [name for name, one in every.items() if many[one.metric] == 1 or not one.subject]
    titles = (single or [*every])[:MOST_COLUMNS]
    cells = [
        (part.group, model, scope(groups, version), part.n,
         *(_group_cell(part.group, columns.get(name)) for name in titles))
        for (model, groups, version), columns in places.items()
        if not {*titles}.isdisjoint(columns)
        for part in _groups(columns)
    ]  # fmt: skip
    header = ["Group", "Model", "Attributes", "#n", *(f"#{name}" for name in titles)]
    caption = (
        f"Value with its interval for each group. {SYMBOLS[Verdict.DISPARITY]} marks the group "
        "that is worst off where the difference is a disparity."
    )
    table = Table.of(caption, header, cells, source="findings")
    return Section("groups", "Results by group", (table,))


def _groups(columns: Mapping[str, Finding]) -> Iterable[GroupValue]:
    """Return each group once, as the first finding that has it counts it."""
    every = [part for one in columns.values() for part in one.by_group]
    first: dict[str, GroupValue] = {}
    for part in every:
        first.setdefault(part.group, part)
    return first.values()


def _group_cell(group: str, finding: Finding | None) -> str:
    own = next((one for one in finding.by_group if one.group == group), None) if finding else None
    if finding is None or own is None:
        return "–"
    if math.isnan(own.value):
        return own.note or "–"
    spec, share = spec_of(finding.metric), has_shares(finding)
    value = percent(own.value) if share else number(own.value)
    ends = interval(100 * own.low, 100 * own.high, 1) if share else interval(own.low, own.high)
    ends = "" if math.isnan(own.low) else f" {ends}"
    apart = contrast(finding)
    harmed = finding.verdict == Verdict.DISPARITY and spec.harm != "either"
    worst = harmed and apart is not None and apart[0] is own
    return f"{value}{ends}{f' {SYMBOLS[finding.verdict]}' if worst else ''}"


Wholes = dict[tuple[str, str], dict[tuple[str, str], Finding]]


def models(result: AuditResult) -> Section | None:
    """Return the models side by side; None of a comparison, or of one model."""
    wholes = {} if compares(result) else _wholes(result)
    if len({model for found in wholes.values() for model, _ in found}) < 2:
        return None
    tables = []
    for key, found in wholes.items():
        names = dict.fromkeys(model for model, _ in found)
        values = [
            (title(metric), *(_whole(found.get((model, metric))) for model in names))
            for metric in dict.fromkeys(metric for _, metric in found)
        ]
        caption = f"By {scope(*key)}: value, interval and the verdict's symbol"
        columns = ["Metric", *(f"#{model}" for model in names)]
        tables.append(Table.of(caption, columns, values, source="findings"))
    return Section("models", "The models side by side", tuple(tables))


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    every: Wholes = {}
    for f in result.findings:
        if f.model and not f.subject and f.family != Family.LEAF:
            every.setdefault((f.groups, f.version), {}).setdefault((f.model, f.metric), f)
    # A number without groups, such as accuracy, stands beside those of every grouping.
    grouped = {key: found for key, found in every.items() if key[0]}
    return {key: every.get(("", key[1]), {}) | found for key, found in (grouped or every).items()}


def _whole(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    mark = "" if finding.verdict == Verdict.NONE else SYMBOLS[finding.verdict]
    return f"{number(finding.value)} {interval(finding.ci_low, finding.ci_high)} {mark}".strip()


SHOWN, MOST = 8, 60
_OPEN = (Verdict.DISPARITY, Verdict.DETECTED, Verdict.INCONCLUSIVE)

_TITLES = {**VERDICT_TITLES, Verdict.DISPARITY: "Disparities"}


def cards(findings: Sequence[Finding], *, judged: bool = True) -> Section | None:
    """Return the section of all findings: disparities first, largest excess first.

    Parameters
    ----------
    findings : sequence of Finding
    judged : bool
        Whether findings have verdicts; the changes of a mitigation have none.
    """
    if not findings:
        return None
    blocks: list[Block] = []
    ordered = ranked(one for one in findings if one.family is not Family.FOLD)
    for verdict, plain in _TITLES.items():
        own = [one for one in ordered if one.verdict == verdict]
        if not own:
            continue
        differ = verdict == Verdict.DISPARITY and is_comparison(own[0])
        name = "Changes" if not judged else "Differences" if differ else plain
        blocks.append(Heading(f"{name} ({count(len(own))})"))
        blocks += _cards(own)
    return Section("findings", "Findings", tuple(blocks))


def _cards(findings: Sequence[Finding]) -> list[Block]:
    """Return one card for all findings with the same sentence; later ones are folded."""
    merged: dict[str, list[Finding]] = {}
    for one in findings:
        merged.setdefault(sentence(one), []).append(one)
    every = [_card(text, same) for text, same in [*merged.items()][:MOST]]
    shown = SHOWN if findings[0].verdict in _OPEN else 0
    rest = tuple(every[shown:])
    folded = [Fold(f"Show {plural(len(rest), 'finding')}", rest)] if rest else []
    left = sum(len(same) for same in [*merged.values()][MOST:])
    text = f"{plural(left, 'further finding')} of this kind: see findings.parquet."
    return [*every[:shown], *folded, *([Words((text,), "note")] if left else [])]


def _card(text: str, same: Sequence[Finding]) -> Card:
    blocks: list[Block] = []
    drawn = [one for one in same if not math.isnan(one.value) and not math.isnan(one.ci_low)]
    if drawn:
        blocks.append(differences_chart(drawn) if pair_of(drawn[0]) else _estimates(drawn))
    first = same[0]
    if first.by_group:
        caption, columns = f"By group: {heading(first)}", {
            "Group": "group", "#n": "n", "#Value": "value", "#Interval": "low high", "Note": "note",
        }  # fmt: skip
        table = Table.of(caption, columns, first.by_group, source="findings")
        valued = any(not math.isnan(part.value) for part in first.by_group)
        blocks.append(replace(groups_chart(first, [first]), table=table) if valued else table)
    blocks += [Facts(_facts(one)) for one in same]
    lines = tuple(dict.fromkeys(figures(one) for one in same if not math.isnan(one.value)))
    badge = None if first.audit == "mitigation" else Badge(first.verdict, is_comparison(first))
    return Card(badge, text, lines, tuple(blocks))


def _facts(finding: Finding) -> tuple[tuple[str, str], ...]:
    excluded = "; ".join(f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    pair = pair_of(finding)
    values = zip((pair.first, pair.second), pair.values, strict=True) if pair else ()
    return (
        ("Finding", heading(finding)),
        ("Values", ", ".join(f"{model} {number(value)}" for model, value in values)),
        ("n", count(finding.n)),
        ("Excluded", excluded),
        ("p, q", f"{p_value(finding.p_value)}, {p_value(finding.q_value)}"),
        ("Interval", finding.method),
        ("Null hypothesis", finding.null),
        ("Resampled", finding.unit),
        ("Direction", finding.direction),
        ("Note", finding.reason),
        ("Parameters", "" if pair else parameters_text(finding.parameters)),
        ("Reference", finding.citation),
    )


def _estimates(findings: Sequence[Finding]) -> Chart:
    """Return the values of findings with intervals, over what chance gives."""
    marks = []
    for one in findings:
        label = f"{one.subject}: {name_of(one)}" if one.subject else name_of(one)
        # Two findings about one number differ in what they hold it against.
        label = f"Within class: {label}" if "within" in one.null else label
        word = VERDICT_TITLES[one.verdict]
        marks.append(
            _mark(one, label)
            | {"series": word, "line": one.chance + harmful_side(one) * one.threshold}
            | {"tip": f"{label}, {word}: {figures(one)}"}
        )
    verdicts = [*dict.fromkeys(VERDICT_TITLES[one.verdict] for one in findings)]
    key = "Point: value; line: interval. Grey bar: chance; tick: threshold."
    label = f"{heading(findings[0])}. {key}"
    return intervals(marks, label, Axis(), series=verdicts, palette=VERDICTS)


def all_findings(findings: Sequence[Finding]) -> Section | None:
    """Return every finding as a row of one table."""
    columns = {
        "Metric": name_of, "Subject": "subject", "#Value": "value", "#Interval": "ci_low ci_high",
        "#Chance": "chance", "Verdict": lambda one: Badge(one.verdict, is_comparison(one)),
        "Model": "model", "Attributes": scope_of, "#Excess": "excess", "#q": "q_value",
        "#Chance band": "chance_low chance_high", "#n": "n", "~Note": "reason",
        "~Null hypothesis": "null",
    }  # fmt: skip
    table = Table.of("All findings", columns, ranked(findings), source="findings")
    return Section("evidence", "All findings", (table,)) if findings else None
