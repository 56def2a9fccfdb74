"""Findings on a page: what it says first, groups and models side by side, cards, all in a table."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from equipoise.core import (
    Aggregate,
    AuditResult,
    ComparedTo,
    Family,
    Finding,
    NullHypothesis,
    Verdict,
)
from equipoise.core.conclusion import Conclusion
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
    number_columns,
    parameters_text,
    scope,
    scope_of,
)
from equipoise.report.comparison_page import differences_chart
from equipoise.report.page_verdicts import conclusions_about_groups, with_page_verdicts
from equipoise.report.plots import VERDICTS, Axis, intervals, labelled_points
from equipoise.report.ratio_words import deciding_ratio
from equipoise.report.selecting import Selector, measure_of
from equipoise.report.short_lines import wanted_data
from equipoise.report.text import (
    VERDICT_TITLES,
    count,
    enclose,
    finding_p,
    finding_q,
    in_words,
    interval,
    number,
    plural,
    size_text,
    size_title,
    verdict_title,
)
from equipoise.report.words import (
    better_off,
    certainty,
    compares,
    conclusion_certainty,
    conclusion_sentence,
    figures,
    group_value_name,
    harmful_side,
    has_shares,
    heading,
    in_points,
    is_comparison,
    limit_of,
    metric_verdict,
    name_of,
    name_with_unit,
    null_sentence,
    pair_of,
    ranked,
    sentence,
    worst_first,
)

_MOST_GROUPS = 14

Measured = tuple[str, Aggregate, ComparedTo]
Wholes = dict[tuple[str, str], dict[tuple[str, Measured], Finding]]


def models(result: AuditResult) -> Section | None:
    """Return the models side by side; None of a comparison, or of one model."""
    if compares(result):
        return None
    tables, all_names = [], set[str]()
    for key, panel_wholes in _wholes(result).items():
        names = dict.fromkeys(model for model, _ in panel_wholes)
        all_names.update(names)
        cells = []
        for metric in dict.fromkeys(metric for _, metric in panel_wholes):
            wholes = (panel_wholes.get((model, metric)) for model in names)
            cells.append((spec_for(*metric).title, *map(_whole, wholes)))
        caption = f"By {scope(*key)}: value, interval and the verdict's symbol"
        columns = [Column("Metric"), *number_columns(names)]
        tables.append(Table.of(caption, columns, cells, source="findings"))
    if len(all_names) < 2:
        return None
    return Section("models", "The models side by side", tuple(tables))


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    wholes: Wholes = {}
    for f in result.findings:
        if f.model and not f.subject and f.family != Family.LEAF:
            wholes.setdefault((f.groups, f.version), {}).setdefault((f.model, measure_of(f)), f)
    # A number without groups, such as accuracy, stands beside those of every grouping.
    grouped: Wholes = {}
    for (groups, version), panel in wholes.items():
        if groups:
            grouped[groups, version] = wholes.get(("", version), {}) | panel
    return grouped or wholes


def _whole(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    text = f"{number(finding.value)} {interval(finding.ci_low, finding.ci_high)}"
    if finding.verdict == Verdict.NONE:
        return text
    return f"{text} {SYMBOLS[finding.verdict]}"


SHOWN, MOST = 8, 60
_OPEN = (Verdict.DISPARITY, Verdict.DETECTED, Verdict.INCONCLUSIVE)


def cards(
    result: AuditResult,
    leads: Sequence[Selector] = (),
    first_chart: Chart | None = None,
    *,
    judged: bool = True,
) -> Section | None:
    """Return the section of all findings by verdict: conclusions first, then other numbers.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of Selector
        Metrics of the kind of audit, most important first, for a result without conclusions.
    first_chart : Chart, optional
        The chart that the page shows already; no card repeats it.
    judged : bool
        Whether findings have verdicts; the changes of a mitigation have none.
    """
    if not result.findings:
        return None
    conclusions = conclusions_about_groups(result, leads) if judged else []
    leading = {conclusion.finding: conclusion for conclusion in conclusions}
    judged_findings = with_page_verdicts(result, leads).findings
    other_findings = [
        finding for place, finding in enumerate(judged_findings)
        if place not in leading and finding.family is not Family.FOLD
    ]  # fmt: skip
    blocks: list[Block] = []
    names = dict.fromkeys(map(metric_verdict, result.findings))
    for verdict, name in product(VERDICT_TITLES, names):
        stated = [
            conclusion for conclusion in conclusions
            if conclusion.verdict is verdict
            and metric_verdict(result.findings[conclusion.finding]) == name
        ]  # fmt: skip
        numbers = ranked(
            finding for finding in other_findings
            if finding.verdict is verdict and metric_verdict(finding) == name
        )  # fmt: skip
        items = [_stated_item(result.findings[item.finding], item) for item in stated]
        items += [_Item(finding) for finding in sorted(numbers, key=better_off)]
        if items:
            blocks.append(Heading(_cards_heading(verdict, items, len(stated), judged=judged)))
            blocks += _cards(items, first_chart, is_open=verdict in _OPEN)
    return Section("findings", "Findings", tuple(blocks))


def _cards_heading(
    verdict: Verdict, items: Sequence["_Item"], n_conclusions: int, *, judged: bool
) -> str:
    """Count the conclusions with a verdict, and all numbers that have it."""
    numbers = plural(len(items), "number")
    if not judged:
        return f"Changes: {numbers}"
    name = metric_verdict(items[0].finding) or verdict_title(
        verdict, comparison=is_comparison(items[0].finding)
    )
    conclusions = plural(n_conclusions, "conclusion") if n_conclusions else ""
    return f"{name}: {enclose('', conclusions, ', ')}{numbers}"


@dataclass(frozen=True)
class _Item:
    """The finding of a card, with the words of a conclusion in its place."""

    finding: Finding
    badge: Badge | None = None
    text: str = ""
    certainty: str = ""


def _stated_item(finding: Finding, conclusion: Conclusion) -> _Item:
    """Return the finding of a conclusion, with its words at equal classes."""
    wanted = enclose(" ", wanted_data(finding, conclusion))
    if conclusion.at_equal_mix is None:
        return _Item(finding, certainty=_how_sure(finding) + wanted)
    text = conclusion_sentence(finding, conclusion) + enclose(" ", finding.beside)
    badge = replace(badge_of(finding), verdict=conclusion.verdict)
    return _Item(finding, badge, text, conclusion_certainty(finding, conclusion) + wanted)


def _cards(items: Sequence[_Item], first_chart: Chart | None, *, is_open: bool) -> list[Block]:
    """Return one card for all findings with the same sentence; later ones are folded."""
    merged: dict[str, list[_Item]] = {}
    for item in items:
        merged.setdefault(sentence(item.finding), []).append(item)
    cards: list[Card] = []
    charts_seen: set[tuple[Hashable, ...]] = set()
    for text, same in [*merged.items()][:MOST]:
        # A chart of the same groups' same numbers says nothing new.
        key = same[0].finding.model, same[0].finding.by_group
        cards.append(_card(text, same, first_chart, repeats=key in charts_seen))
        charts_seen.add(key)
    n_shown = SHOWN if is_open else 0
    blocks: list[Block] = [*cards[:n_shown]]
    if folded_cards := tuple(cards[n_shown:]):
        blocks.append(Fold(f"Show {plural(len(folded_cards), 'finding')}", folded_cards))
    if n_left := sum(map(len, [*merged.values()][MOST:])):
        text = f"{plural(n_left, 'further finding')} of this kind: see findings.parquet."
        blocks.append(Words((text,), "note"))
    return blocks


def _card(text: str, items: Sequence[_Item], first_chart: Chart | None, *, repeats: bool) -> Card:
    """Return a card: its chart is of the groups, if they have numbers that no card has drawn."""
    same = [item.finding for item in items]
    first, blocks = same[0], list[Block]()
    chart = estimates = _estimates_chart(same)
    varied = len({part.value for part in first.by_group if not math.isnan(part.value)}) > 1
    if varied and not repeats:
        by_group = _groups_chart(first)
        if first_chart is None or by_group.rows != first_chart.rows:
            chart = by_group
            if estimates:
                blocks.append(estimates)
    if first.by_group:
        blocks.append(_groups_table(first))
    blocks += [Facts(_facts(finding)) for finding in same]
    lines = dict.fromkeys(
        item.certainty or _how_sure(item.finding)
        for item in items
        if not math.isnan(item.finding.value)
    )
    badge = None if first.audit == "mitigation" else items[0].badge or badge_of(first)
    return Card(badge, items[0].text or text, tuple(lines), tuple(blocks), chart)


def _estimates_chart(same: Sequence[Finding]) -> Chart | None:
    """Return the chart of values with intervals, or None if there are none."""
    draw = differences_chart if pair_of(same[0]) else _estimates
    estimated = [
        finding
        for finding in same
        if not math.isnan(finding.value) and not math.isnan(finding.ci_low)
    ]
    if not estimated:
        return None
    chart = draw(estimated)
    return chart if chart.rows else None


def _groups_table(finding: Finding) -> Table:
    columns = [
        Column("Group", "group"),
        Column(size_title(finding), "n", NUMBER),
        Column("Value", "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Note", "note"),
    ]
    caption = f"By group: {heading(finding)}"
    return Table.of(caption, columns, finding.by_group, source="findings")


def badge_of(finding: Finding) -> Badge:
    """Return the verdict of a finding, with its basis."""
    limit, ratio = limit_of(finding), deciding_ratio(finding)
    return Badge(finding.verdict, is_comparison(finding), limit, ratio, metric_verdict(finding))


def _how_sure(finding: Finding) -> str:
    if is_comparison(finding) or finding.audit == "mitigation":
        return figures(finding)
    return certainty(finding)


def _facts(finding: Finding) -> Pairs:
    excluded = "; ".join(f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    values, parameters = "", in_words(parameters_text(finding.parameters))
    if pair := pair_of(finding):
        first, second = map(number, pair.values)
        # Parameters of a pair are its models and their values.
        values, parameters = f"{pair.first} {first}, {pair.second} {second}", ""
    return (
        ("Finding", heading(finding)),
        ("Numbers", figures(finding)),
        ("Values", values),
        ("n", count(finding.n)),
        ("Excluded", in_words(excluded)),
        ("p", finding_p(finding)),
        ("Interval", finding.method),
        ("Null hypothesis", null_sentence(finding)),
        ("Resampled", finding.unit),
        ("Direction", finding.direction),
        ("Note", in_words(finding.reason)),
        ("Parameters", parameters),
        ("Reference", finding.citation),
    )


def _mark(finding: Finding, label: str) -> dict[str, str | float]:
    """Return the mark of a finding: its value with its interval, over what chance gives."""
    return {
        "label": label, "value": finding.value, "low": finding.ci_low, "high": finding.ci_high,
        "chance_low": finding.chance_low, "chance_high": finding.chance_high,
    }  # fmt: skip


def _groups_chart(finding: Finding) -> Chart:
    """Draw the values of the groups of a finding, the worst first."""
    parts, share = worst_first(finding), has_shares(finding)
    rows = [
        {
            **{name: getattr(part, name) for name in ("group", "value", "low", "high")},
            **({"n": part.n} if finding.top_k is None else {}),
            "label": f"{part.group} ({size_text(finding, part.n)})", "model": finding.model,
        }
        for part in parts[:_MOST_GROUPS]
    ]  # fmt: skip
    name = group_value_name(finding)
    if finding.subject != finding.group:
        name += enclose(" of “", finding.subject, "”")
    name += f" by {finding.groups}"
    chart_title = name
    if len(parts) > _MOST_GROUPS:
        chart_title += f", {_MOST_GROUPS} of {len(parts)} groups"
    axis = Axis(percent=in_points(finding), domain=(0.0, 1.0) if share else None)
    marks = labelled_points(rows, "label", series="model", percent=share)
    label = f"{name}, worst first."
    return intervals(marks, label, axis, title=chart_title, series=[finding.model])


def _estimates(findings: Sequence[Finding]) -> Chart:
    """Return the values of findings with intervals, over what chance gives."""
    marks, palette = {}, dict[str, tuple[str, str]]()
    for finding in findings:
        label = enclose("", finding.subject, ": ") + name_of(finding)
        # Two findings about one number differ in their null hypothesis.
        if finding.null is NullHypothesis.WITHIN_CLASS:
            label = f"Within class: {label}"
        word = metric_verdict(finding) or verdict_title(finding.verdict)
        palette[word] = VERDICTS[VERDICT_TITLES[finding.verdict]]
        line = finding.chance + harmful_side(finding) * finding.threshold
        tip = f"{label}, {word}: {figures(finding)}"
        marks[label, finding.value, finding.ci_low, line] = {
            **_mark(finding, label), "series": word, "line": line, "tip": tip,
        }  # fmt: skip
    key = "Point: value; line: interval. Grey bar: chance; tick: threshold."
    label = f"{heading(findings[0])}. {key}"
    return intervals([*marks.values()], label, Axis(), series=[*palette], palette=palette)


def all_findings(findings: Sequence[Finding]) -> Section | None:
    """Return every finding as a row of one table."""
    if not findings:
        return None
    columns = [
        Column("Metric", name_with_unit),
        Column("Subject", lambda finding: in_words(finding.subject)),
        Column("Value", "value", NUMBER),
        Column("Interval", ("ci_low", "ci_high"), NUMBER),
        Column("Chance", "chance", NUMBER),
        Column("Verdict", badge_of),
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("Excess", "excess", NUMBER),
        Column("q", finding_q, P_VALUE),
        Column("Chance band", ("chance_low", "chance_high"), NUMBER),
        Column("n", "n", NUMBER),
        Column("Note", lambda finding: in_words(finding.reason), CLIPPED),
        Column("Null hypothesis", null_sentence, CLIPPED),
    ]
    table = Table.of("All findings", columns, ranked(findings), source="findings")
    return Section("evidence", "All findings", (table,))
