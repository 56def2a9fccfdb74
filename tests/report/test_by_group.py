"""The table by group: marks of cells, columns, and the files of a run that have all of it."""

import math
from dataclasses import replace

import polars as pl
import pytest

from equipoise.audits.labels.predictions.page import PAGE
from equipoise.core import Aggregate, AuditResult, Verdict
from equipoise.core.files import read_table
from equipoise.report import read, write
from equipoise.report.blocks import Number, Table
from equipoise.report.by_group import MOST_COLUMNS, group_file, group_table
from report.synthetic import faces, finding, group_values, manifest, many_classes
from report.test_summary import against_rest

CELLS = {("a",): (10, 100), ("b",): (40, 100), ("c",): (41, 100)}


def audited(*leaves):
    gap = finding(model="m", groups="g", by_group=group_values(CELLS))
    return AuditResult((gap, *leaves), manifest())


def numbers(result):
    """Return the numbers of the table by their group."""
    section = group_table(result, (("accuracy", Aggregate.DIFFERENCE),))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    return {row[0]: next(cell for cell in row if isinstance(cell, Number)) for row in table.rows}


def leaf(group, value, rest_value, **changes):
    return against_rest(group, value, rest_value, model="m", groups="g", **changes)


def test_groups_that_differ_from_the_rest_are_marked_by_side():
    cells = numbers(audited(leaf("a", 0.1, 0.405), leaf("c", 0.41, 0.25)))
    symbols = {group: [mark.symbol for mark in cell.marks] for group, cell in cells.items()}
    assert symbols == {"a": ["↓", "▲"], "b": [], "c": ["↑"]}
    assert all(mark.text for cell in cells.values() for mark in cell.marks)


@pytest.mark.parametrize("verdict", [Verdict.DETECTED, Verdict.INCONCLUSIVE])
def test_only_disparities_have_a_mark(verdict):
    cells = numbers(audited(leaf("c", 0.41, 0.25, verdict=verdict)))
    assert cells["c"].marks == ()


def test_the_caption_promises_intervals_only_of_columns_that_have_any():
    def caption(*items, metrics):
        section = group_table(AuditResult(items, manifest()), metrics)
        return next(block.caption for block in section.blocks if isinstance(block, Table))

    counted = group_values(CELLS)
    bare = tuple(replace(part, low=math.nan, high=math.nan) for part in counted)
    rate = finding(model="m", groups="g", by_group=counted)
    top = finding(model="m", groups="g", metric="max_skew", by_group=bare)
    accuracy, skew = ("accuracy", Aggregate.DIFFERENCE), "max_skew"
    assert caption(rate, metrics=[accuracy]) == "Value of each group by g with its 95 % interval"
    assert caption(top, metrics=[skew]) == "Value of each group by g"
    assert caption(rate, top, metrics=[accuracy, skew]) == (
        "Value of each group by g with its 95 % interval where it has one"
    )


def test_constant_columns_are_left_out():
    section = group_table(audited(), (("accuracy", Aggregate.DIFFERENCE),))
    assert [column.title for column in section.blocks[-1].columns] == ["Group", "n", "Accuracy"]
    two = group_table(faces(), PAGE.by_group)
    titles = [column.title for column in two.blocks[-1].columns]
    assert titles[:4] == ["Group", "Model", "Attributes", "n"]


@pytest.mark.parametrize(("unanswered", "listed"), [(0, False), (3, True)])
def test_shares_of_rows_that_do_not_count_are_listed_where_there_are_such_rows(unanswered, listed):
    cells = {group: (unanswered, n) for group, (_, n) in CELLS.items()}
    gap = finding(model="m", groups="g", metric="unanswered_rate", by_group=group_values(cells))
    result = audited(gap)
    section = group_table(result, [("accuracy", Aggregate.DIFFERENCE), "unanswered_rate"])
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert any("without an answer" in str(column) for column in table.columns) is listed


def test_the_page_has_room_for_a_few_columns_and_files_have_every_metric():
    result = many_classes(20)
    page_table = group_table(result, PAGE.by_group).blocks[-1]
    assert len(page_table.columns) - 3 <= MOST_COLUMNS
    file_table = group_file(result, PAGE.by_group)
    assert file_table.num_rows == page_table.total
    assert len(file_table.schema) > 100


def test_the_page_leaves_out_groups_without_a_disparity_first():
    names = [f"group {place}" for place in range(30)]
    cells = {(name,): (90 if place < 29 else 10, 100) for place, name in enumerate(names)}
    gap = finding(model="m", groups="g", by_group=group_values(cells))
    both = finding(
        model="m", groups="g × h",
        by_group=group_values({(name, "x"): (90, 100) for name in names}),
        verdict=Verdict.BELOW_THRESHOLD,
    )  # fmt: skip
    metrics = (("accuracy", Aggregate.DIFFERENCE),)
    table = group_table(AuditResult((both, gap), manifest()), metrics, 40).blocks[-1]
    assert table.total == 60
    shown = [row[0] for row in table.rows]
    assert len(shown) == 40 // len(table.columns)
    assert shown[-1] == names[-1]
    assert all("," not in group for group in shown)


def test_files_of_a_run_have_the_numbers_of_the_findings(tmp_path):
    result = faces()
    write(result, tmp_path, PAGE)
    table = pl.DataFrame(read_table(tmp_path / "groups.parquet"))
    text = pl.read_csv(tmp_path / "groups.csv", infer_schema_length=None)
    assert text.columns == table.columns
    assert text["n"].to_list() == table["n"].to_list()
    assert text["Accuracy"].to_list() == pytest.approx(table["Accuracy"].to_list(), nan_ok=True)
    for gap in result.findings:
        if gap.compared_to != "overall":
            continue
        rows = table.filter(model=gap.model, attributes=gap.groups, version=gap.version)
        for part in gap.by_group:
            row = rows.row(by_predicate=pl.col("group") == part.group, named=True)
            ends = (row["Accuracy"], row["Accuracy low"], row["Accuracy high"])
            expected = tuple(
                None if math.isnan(v) else v for v in (part.value, part.low, part.high)
            )
            assert ends == expected
    # What is derived from the findings is no table of the run.
    assert "groups" not in read(tmp_path).tables
