"""Findings on a page: what it says first, groups and models side by side, cards, all in a table."""

import math
from collections.abc import Hashable, Sequence

from equipoise.core import (
    Aggregate,
    AuditResult,
    ComparedTo,
    Family,
    Finding,
    NullHypothesis,
    Verdict,
)
from equipoise.metrics.spec import spec_for
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    P_VALUE,
    SYMBOLS,
    Badge,
    Block,
    Card,
    Chart,
    Column,
    Facts,
    Fold,
    Heading,
    Pairs,
    Section,
    Table,
    Words,
    parameters_text,
    scope,
    scope_of,
)
from equipoise.report.comparison_page import differences_chart
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.selecting import measure_of
from equipoise.report.summary import groups_chart, mark
from equipoise.report.text import (
    VERDICT_TITLES,
    count,
    in_words,
    interval,
    number,
    p_value,
    plural,
    verdict_title,
)
from equipoise.report.words import (
    better_off,
    certainty,
    compares,
    figures,
    harmful_side,
    heading,
    is_comparison,
    limit_of,
    name_of,
    null_sentence,
    pair_of,
    ranked,
    sentence,
)

Measured = tuple[str, Aggregate, ComparedTo]
Wholes = dict[tuple[str, str], dict[tuple[str, Measured], Finding]]


def models(result: AuditResult) -> Section | None:
    """Return the models side by side; None of a comparison, or of one model."""
    wholes = {} if compares(result) else _wholes(result)
    if len({model for panel in wholes.values() for model, _ in panel}) < 2:
        return None
    tables = []
    for key, panel_wholes in wholes.items():
        names = dict.fromkeys(model for model, _ in panel_wholes)
        values = [
            (
                spec_for(*metric).title,
                *(_whole(panel_wholes.get((model, metric))) for model in names),
            )
            for metric in dict.fromkeys(metric for _, metric in panel_wholes)
        ]
        caption = f"By {scope(*key)}: value, interval and the verdict's symbol"
        columns = [Column("Metric"), *(Column(model, format=NUMBER) for model in names)]
        tables.append(Table.of(caption, columns, values, source="findings"))
    return Section("models", "The models side by side", tuple(tables))


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    wholes: Wholes = {}
    for f in result.findings:
        if f.model and not f.subject and f.family != Family.LEAF:
            wholes.setdefault((f.groups, f.version), {}).setdefault((f.model, measure_of(f)), f)
    # A number without groups, such as accuracy, stands beside those of every grouping.
    grouped = {key: panel for key, panel in wholes.items() if key[0]}
    return {key: wholes.get(("", key[1]), {}) | panel for key, panel in (grouped or wholes).items()}


def _whole(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    mark = "" if finding.verdict == Verdict.NONE else SYMBOLS[finding.verdict]
    return f"{number(finding.value)} {interval(finding.ci_low, finding.ci_high)} {mark}".strip()


SHOWN, MOST = 8, 60
_OPEN = (Verdict.DISPARITY, Verdict.DETECTED, Verdict.INCONCLUSIVE)

_TITLES = {**VERDICT_TITLES, Verdict.DISPARITY: "Disparities"}


def cards(
    findings: Sequence[Finding], first_chart: Chart | None = None, *, judged: bool = True
) -> Section | None:
    """Return the section of all findings: disparities first, largest excess first.

    Parameters
    ----------
    findings : sequence of Finding
    first_chart : Chart, optional
        The chart that the page shows already; no card repeats it.
    judged : bool
        Whether findings have verdicts; the changes of a mitigation have none.
    """
    if not findings:
        return None
    blocks: list[Block] = []
    ordered = ranked(finding for finding in findings if finding.family is not Family.FOLD)
    for verdict, plain in _TITLES.items():
        verdict_findings = [finding for finding in ordered if finding.verdict == verdict]
        if not verdict_findings:
            continue
        verdict_findings.sort(key=better_off)
        differ = verdict == Verdict.DISPARITY and is_comparison(verdict_findings[0])
        name = "Changes" if not judged else "Differences" if differ else plain
        blocks.append(Heading(f"{name} ({count(len(verdict_findings))})"))
        blocks += _cards(verdict_findings, first_chart)
    return Section("findings", "Findings", tuple(blocks))


def _cards(findings: Sequence[Finding], first_chart: Chart | None) -> list[Block]:
    """Return one card for all findings with the same sentence; later ones are folded."""
    merged: dict[str, list[Finding]] = {}
    for finding in findings:
        merged.setdefault(sentence(finding), []).append(finding)
    cards: list[Card] = []
    charts_seen: set[tuple[Hashable, ...]] = set()
    for text, same in [*merged.items()][:MOST]:
        # A chart of the same groups' same numbers says nothing new.
        key = same[0].model, same[0].by_group
        cards.append(_card(text, same, first_chart, repeats=key in charts_seen))
        charts_seen.add(key)
    n_shown = SHOWN if findings[0].verdict in _OPEN else 0
    folded_cards = tuple(cards[n_shown:])
    folded = (
        [Fold(f"Show {plural(len(folded_cards), 'finding')}", folded_cards)] if folded_cards else []
    )
    n_left = sum(len(same) for same in [*merged.values()][MOST:])
    text = f"{plural(n_left, 'further finding')} of this kind: see findings.parquet."
    return [*cards[:n_shown], *folded, *([Words((text,), "note")] if n_left else [])]


def _card(text: str, same: Sequence[Finding], first_chart: Chart | None, *, repeats: bool) -> Card:
    """Return a card: its chart is of the groups, if they have numbers that no card has drawn."""
    first = same[0]
    estimated = [
        finding
        for finding in same
        if not math.isnan(finding.value) and not math.isnan(finding.ci_low)
    ]
    estimates = None
    if estimated:
        drawn_alone = differences_chart(estimated) if pair_of(first) else _estimates(estimated)
        estimates = drawn_alone if drawn_alone.rows else None
    chart: Chart | None = estimates
    blocks: list[Block] = [Facts(_facts(finding)) for finding in same]
    if first.by_group:
        caption = f"By group: {heading(first)}"
        columns = [
            Column("Group", "group"),
            Column("n", "n", NUMBER),
            Column("Value", "value", NUMBER),
            Column("Interval", ("low", "high"), NUMBER),
            Column("Note", "note"),
        ]
        table = Table.of(caption, columns, first.by_group, source="findings")
        varied = len({part.value for part in first.by_group if not math.isnan(part.value)}) > 1
        finding_chart = groups_chart(first, [first]) if varied and not repeats else None
        if finding_chart and not (first_chart and finding_chart.rows == first_chart.rows):
            chart = finding_chart
        blocks = [*([estimates] if estimates and chart is not estimates else []), table, *blocks]
    lines = tuple(
        dict.fromkeys(_how_sure(finding) for finding in same if not math.isnan(finding.value))
    )
    badge = None if first.audit == "mitigation" else _badge(first)
    return Card(badge, text, lines, tuple(blocks), chart)


def _badge(finding: Finding) -> Badge:
    return Badge(finding.verdict, is_comparison(finding), limit_of(finding))


def _how_sure(finding: Finding) -> str:
    compares = is_comparison(finding) or finding.audit == "mitigation"
    return figures(finding) if compares else certainty(finding)


def _facts(finding: Finding) -> Pairs:
    items = (f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    pair = pair_of(finding)
    values = zip((pair.first, pair.second), pair.values, strict=True) if pair else ()
    return (
        ("Finding", heading(finding)),
        ("Numbers", figures(finding)),
        ("Values", ", ".join(f"{model} {number(value)}" for model, value in values)),
        ("n", count(finding.n)),
        ("Excluded", in_words("; ".join(items))),
        ("p", p_value(finding.p_value)),
        ("Interval", finding.method),
        ("Null hypothesis", null_sentence(finding)),
        ("Resampled", finding.unit),
        ("Direction", finding.direction),
        ("Note", in_words(finding.reason)),
        ("Parameters", "" if pair else in_words(parameters_text(finding.parameters))),
        ("Reference", finding.citation),
    )


def _estimates(findings: Sequence[Finding]) -> Chart:
    """Return the values of findings with intervals, over what chance gives."""
    marks = []
    for finding in findings:
        label = f"{finding.subject}: {name_of(finding)}" if finding.subject else name_of(finding)
        # Two findings about one number differ in what they hold it against.
        label = f"Within class: {label}" if finding.null is NullHypothesis.WITHIN_CLASS else label
        word = verdict_title(finding.verdict)
        marks.append(
            mark(finding, label)
            | {"series": word, "line": finding.chance + harmful_side(finding) * finding.threshold}
            | {"tip": f"{label}, {word}: {figures(finding)}"}
        )
    verdicts = [*dict.fromkeys(verdict_title(finding.verdict) for finding in findings)]
    key = "Point: value; line: interval. Grey bar: chance; tick: threshold."
    label = f"{heading(findings[0])}. {key}"
    distinct = {(mark["label"], mark["value"], mark["low"], mark["line"]): mark for mark in marks}
    return intervals([*distinct.values()], label, Axis(), series=verdicts, palette=VERDICTS)


def all_findings(findings: Sequence[Finding]) -> Section | None:
    """Return every finding as a row of one table."""
    columns = [
        Column("Metric", name_of),
        Column("Subject", lambda finding: in_words(finding.subject)),
        Column("Value", "value", NUMBER),
        Column("Interval", ("ci_low", "ci_high"), NUMBER),
        Column("Chance", "chance", NUMBER),
        Column("Verdict", _badge),
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("Excess", "excess", NUMBER),
        Column("q", "q_value", P_VALUE),
        Column("Chance band", ("chance_low", "chance_high"), NUMBER),
        Column("n", "n", NUMBER),
        Column("Note", lambda finding: in_words(finding.reason), CLIPPED),
        Column("Null hypothesis", null_sentence, CLIPPED),
    ]
    table = Table.of("All findings", columns, ranked(findings), source="findings")
    return Section("evidence", "All findings", (table,)) if findings else None
