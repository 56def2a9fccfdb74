"""Answers: who gets none, which answers each group gets, their texts, and outside figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding
from equipoise.report import charts_answers as charts
from equipoise.report.blocks import Badge, Block, Cell, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.charts import MOST_GROUPS
from equipoise.report.tables import Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number, p_value, percent, plural

MOST_ANSWERS, MOST_PANELS = 20, 12
_STATES = {"unknown": "do not know", "refused": "refused", "missing": "empty"}


def unanswered(result: AuditResult) -> Section | None:
    """How many of each group got no answer, and what was said in its place."""
    found = [row for row in rows(result, "answer_states") if row["state"] != "answered"]
    if not found:
        return None
    plots = [_unanswered(key, panel) for key, panel in panels(found, *_WHERE).items()]
    note = "Rows without an answer are in no other number: who they are is compared here."
    blocks = (Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    return Section("no-answer", "Who gets no answer", blocks)


_WHERE = ("model", "groups", "question")


def _unanswered(key: tuple[str, ...], panel: Sequence[Row]) -> Chart:
    model, groups, question = key
    present = tuple(_STATES[state] for state in _STATES if state in distinct(panel, "state"))
    data: list[dict[str, Any]] = []
    for (group,), some in panels(panel, "group").items():
        start = 0.0
        for row in some:
            share = row["share"] if has(row["share"]) else 0.0
            state = _STATES[row["state"]]
            tip = f"{group}, {state}: {percent(share)} ({row['count']} of {row['n']})"
            data.append(
                {"group": group, "state": state, "start": start, "end": start + share, "tip": tip}
            )
            start += share
    cells = [
        (row["group"], _STATES[row["state"]], percent(row["share"]), count(row["count"]),
         count(row["n"]))
        for row in panel
    ]  # fmt: skip
    name = ", ".join(part for part in (model, question, groups) if part)
    columns = ["Group", "In place of an answer", "#Share", "#Images", "#Of"]
    table = Table.of(name, columns, cells, source="answer_states")
    spec = charts.unanswered("rows", present, len(distinct(panel, "group")))
    return Chart(f"Share without an answer by group: {name}", spec, {"rows": data}, table, name)


def answers(result: AuditResult) -> Section | None:
    """Which answers each group gets, those first in which groups lie furthest apart."""
    found = rows(result, "answers")
    if not found:
        return None
    tested = _told(result, "answer_gap")
    blocks: list[Block] = [Words((_READ,), "note")]
    plots: list[Chart] = []
    tables: list[Block] = []
    for key, panel in panels(found, "model", "groups", "version").items():
        by_answer = {answer: some for (answer,), some in panels(panel, "answer").items()}
        about = {answer: tested.get((*key, answer)) for answer in by_answer}
        ordered = sorted(by_answer, key=lambda answer: -_gap(about[answer]))
        model, groups, version = key
        name = f"{model}, {scope(groups, version)}"
        if len(distinct(panel, "group")) <= MOST_GROUPS:
            plots.append(_shares(name, [by_answer[one] for one in ordered[:MOST_ANSWERS]]))
        tables.append(_table(name, {one: by_answer[one] for one in ordered}, about))
    blocks.append(Grid(tuple(plots[:MOST_PANELS])))
    summary = f"Show every answer with its gap, {plural(len(tables), 'table')}"
    return Section("answers", "Which answers each group gets", (*blocks, Fold(summary, (*tables,))))


def _told(result: AuditResult, metric: str) -> dict[tuple[str, ...], Finding]:
    """Return the findings of a metric by model, groups, version and subject."""
    return {
        (one.model, one.groups, one.version, one.subject): one
        for one in result.findings
        if one.metric == metric and one.subject
    }


_READ = (
    "A row an answer, a mark a group: the share of the group's answers that are this one. Marks "
    "that lie apart are groups that are told different things; answers stand first where groups "
    "lie furthest apart. What is given too seldom to be compared is pooled as “(rarer answers)”."
)


def _gap(finding: Finding | None) -> float:
    return finding.value if finding is not None and has(finding.value) else -1.0


def _shares(name: str, by_answer: Sequence[Sequence[Row]]) -> Chart:
    data = []
    for some in by_answer:
        known = [row["share"] for row in some if has(row["share"])]
        data += [
            {
                "answer": row["answer"], "group": row["group"], "share": row["share"],
                "lowest": min(known), "highest": max(known),
                "tip": f"“{row['answer']}”, {row['group']}: {percent(row['share'])} "
                f"({row['count']} of {row['n']})",
            }
            for row in some
            if has(row["share"])
        ]  # fmt: skip
    groups = tuple(dict.fromkeys(row["group"] for some in by_answer for row in some))
    spec = charts.shares("rows", groups, len(by_answer))
    return Chart(f"Share of each group's answers: {name}", spec, {"rows": data}, None, name)


def _table(
    name: str, by_answer: Mapping[str, Sequence[Row]], about: Mapping[str, Finding | None]
) -> Table:
    groups = tuple(dict.fromkeys(row["group"] for some in by_answer.values() for row in some))
    known = any(row["right"] is not None for some in by_answer.values() for row in some)
    cells = []
    for answer, some in by_answer.items():
        shares = {row["group"]: row["share"] for row in some}
        finding = about[answer]
        cells.append(
            (
                answer,
                *(percent(shares[one]) if has(shares.get(one)) else "–" for one in groups),
                count(sum(row["count"] for row in some)),
                *((count(sum(row["right"] or 0 for row in some)),) if known else ()),
                *_tested(finding),
            )
        )
    columns = [
        "Answer", *(f"#{one}" for one in groups), "#Images", *(("#Right",) if known else ()),
        "#Gap", "#Interval", "#q", "Verdict",
    ]  # fmt: skip
    return Table.of(name, columns, cells, source="answers")


def _tested(finding: Finding | None) -> tuple[Cell, ...]:
    if finding is None:
        return ("–", "–", "–", "–")
    spread = interval(finding.ci_low, finding.ci_high)
    return number(finding.value), spread, p_value(finding.q_value), Badge(finding.verdict)


def texts(result: AuditResult) -> Section | None:
    """The raw texts that each answer was made of."""
    found = rows(result, "texts")
    if not found:
        return None
    blocks: list[Block] = []
    for (model, question), panel in panels(found, "model", "question").items():
        cells = [
            (answer, " · ".join(f"{row['text']} ({row['count']})" for row in some),
             count(some[0]["texts"]))
            for (answer,), some in panels(panel, "answer").items()
        ]  # fmt: skip
        name = ", ".join(part for part in (model, question) if part)
        table = Table.of(name, ["Answer", "Texts (rows)", "#Texts"], cells, source="texts")
        blocks.append(Fold(f"Show what was written: {name}", (table,)))
    note = (
        "Answers are compared after normalisation; the most frequent texts behind each stand here, "
        "so that what was put together, and what was not, can be judged."
    )
    return Section("texts", "What was written", (Words((note,), "note"), *blocks))


def figures(result: AuditResult) -> Section | None:
    """The lean of answers against figures from outside."""
    found = rows(result, "figures")
    if not found:
        return None
    said = _told(result, "correlation")
    plots = []
    for key, panel in panels(found, "model", "groups", "version", "figure").items():
        plots.append(_scatter(key, panel, said.get(key)))
    note = (
        "A point an answer. Its lean to a group is the share of the group's answers that are this "
        "one, over that share and the other groups' together: 0.5 where both get it equally often, "
        "whatever the groups' sizes. A lean that rises with the figure follows what the world "
        "looks like, or overdoes it; it does not make the answers right."
    )
    blocks = (Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    return Section("figures", "Answers against figures from outside", blocks)


def _scatter(key: tuple[str, ...], panel: Sequence[Row], finding: Finding | None) -> Chart:
    model, groups, version, figure = key
    name = f"{figure}: {model}, {scope(groups, version)}"
    if finding is not None and has(finding.value):
        spread = interval(finding.ci_low, finding.ci_high)
        q = p_value(finding.q_value)
        name += f"; r = {number(finding.value)} {spread}, n = {len(panel)}, q {q}"
    data = [
        {
            "outside": row["outside"], "lean": row["lean"],
            "tip": f"{row['answer']}: {figure} {number(row['outside'])}, lean "
            f"{number(row['lean'])}, n = {row['n']}",
        }
        for row in panel
    ]  # fmt: skip
    cells = [
        (row["answer"], number(row["outside"]), number(row["lean"]), count(row["n"]))
        for row in sorted(panel, key=lambda row: -row["lean"])
    ]
    table = Table.of(
        name,
        ["Answer", f"#{figure}", f"#Lean to {panel[0]['first']}", "#Images"],
        cells,
        source="figures",
    )
    return Chart(name, charts.leans("rows", figure, panel[0]["first"]), {"rows": data}, table, name)
