"""The report of an audit of answers: who is told what, in words and marks."""

from pathlib import Path
from typing import Any

import polars as pl

from audits.answers.worlds import answers, images, run
from equipoise.core import AuditResult, Verdict
from equipoise.report.blocks import Chart, Fold, Grid, Section, Table
from equipoise.report.sections import answers as sections
from equipoise.report.voices import voice
from equipoise.report.words import heading, sentence

JOBS = answers(
    {"nurse": 40, "doctor": 20, "cook": 30, "?": 10}, {"nurse": 20, "doctor": 40, "cook": 40}
)


def charts(section: Section | None) -> list[Chart]:
    assert section is not None
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    return [chart for grid in grids for chart in grid.charts]


def plain_text(text: str) -> str:
    """The text with ordinary spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def plain(**more: Any) -> AuditResult:
    return run(JOBS, model={"unknown": ["?"]}, **more)


def test_the_question_names_models_and_groups() -> None:
    spoken = voice("answers")
    assert spoken is not None
    asked = "Does m answer as often, and with the same words, whatever the group?"
    assert spoken.question(plain()) == asked


def test_a_gap_says_who_is_told_what_how_often() -> None:
    found = next(
        one for one in plain().findings
        if (one.metric, one.subject, one.verdict) == ("answer_gap", "nurse", Verdict.DISPARITY)
    )  # fmt: skip
    assert plain_text(sentence(found)) == (
        "Share of answers of m for “nurse” is 44.4 % (40 of 90) for a, 24.4 points above b "
        "(20.0 %)."
    )
    assert heading(found) == "Answer gap of “nurse”: m, group, normalised"


def test_rows_without_an_answer_are_said_by_group() -> None:
    found = next(one for one in plain().findings if one.metric == "unanswered_rate")
    assert plain_text(sentence(found)) == (
        "Share without an answer of m is 10.0 % (10 of 100) for a, 10.0 points above b (0.0 %)."
    )


def test_bars_of_rows_without_an_answer_stand_on_each_other() -> None:
    table = answers({"x": 70, "?": 10, "no": 20}, {"x": 95, "?": 5})
    made = run(table, model={"unknown": ["?"], "refused": ["no"]})
    (chart,) = charts(sections.unanswered(made))
    bars = {(row["group"], row["state"]): (row["start"], row["end"]) for row in chart.data["rows"]}
    assert bars["a", "do not know"] == (0.0, 0.1)
    assert bars["a", "refused"][0] == 0.1
    assert round(bars["a", "refused"][1], 12) == 0.3
    assert bars["b", "refused"] == (0.05, 0.05)


def test_answers_stand_in_the_order_of_their_gaps() -> None:
    section = sections.answers(plain())
    (chart,) = charts(section)
    names = list(dict.fromkeys(row["answer"] for row in chart.data["rows"]))
    assert names == ["nurse", "doctor", "cook"]
    nurse = [row for row in chart.data["rows"] if row["answer"] == "nurse"]
    assert [(row["lowest"], row["highest"]) for row in nurse] == [(0.2, 40 / 90)] * 2
    assert plain_text(nurse[0]["tip"]) == "“nurse”, a: 44.4 % (40 of 90)"
    assert section is not None
    (fold,) = (block for block in section.blocks if isinstance(block, Fold))
    (table,) = fold.blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == [
        "Answer", "a", "b", "Images", "Gap", "Interval", "q", "Verdict",
    ]  # fmt: skip


def test_more_groups_than_colours_have_a_table_only() -> None:
    many = [f"g{index:02d}" for index in range(10) for _ in range(40)]
    frame = images(200).with_columns(group=pl.Series(many))
    table = answers(dict.fromkeys(("x", "y"), 100), dict.fromkeys(("x", "y"), 100))
    section = sections.answers(run(table, frame=frame))
    assert charts(section) == []


def test_a_right_answer_has_a_column_where_the_truth_is_known() -> None:
    truth = ["nurse"] * 200
    section = sections.answers(
        plain(frame=images(job=truth[:100] + ["cook"] * 100), data={"target": "job"})
    )
    assert section is not None
    (fold,) = (block for block in section.blocks if isinstance(block, Fold))
    (table,) = fold.blocks
    assert isinstance(table, Table)
    place = [column.title for column in table.columns].index("Right")
    rights = {row[0]: row[place] for row in table.rows}
    assert rights == {"nurse": "40", "doctor": "0", "cook": "40"}


def test_what_was_written_is_listed_by_answer() -> None:
    table = answers({"A nurse.": 30, "nurse": 70}, {"cook": 100})
    section = sections.texts(run(table))
    assert section is not None
    (fold,) = (block for block in section.blocks if isinstance(block, Fold))
    (listed,) = fold.blocks
    assert isinstance(listed, Table)
    assert listed.rows[1] == ("nurse", "nurse (70) · A nurse. (30)", "2")


def test_figures_say_the_correlation_and_the_group(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("job,share\nnurse,0.9\ndoctor,0.4\ncook,0.5\n")
    about = {"table": tmp_path / "f.csv", "subject": "job", "value": "share", "first": "a"}
    (chart,) = charts(sections.figures(plain(figures={"women": about})))
    assert chart.title.startswith("women: m, group (normalised); r = ")
    assert {round(row["outside"], 3) for row in chart.data["rows"]} == {0.9, 0.4, 0.5}
    assert "lean to a" in str(chart.spec)


def test_without_its_tables_there_are_no_sections() -> None:
    made = plain()
    empty = AuditResult(made.findings, made.manifest, {})
    spoken = voice("answers")
    assert spoken is not None
    assert [section(empty) for section in spoken.sections()] == [None] * 4
