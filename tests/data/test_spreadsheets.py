"""Tables of Excel, wherever a table is named."""

import datetime as dt

import openpyxl
import pytest

from equipoise.core import DataError
from equipoise.data import read_table


def sheet(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes").append(["another sheet"])
    book.save(path)
    return path


ROWS = [("id", "age", "score", "adult", "mixed", "born", "empty")] + [
    (f"{n:03}", 20.0 + n, n / 4, n > 1, n if n < 150 else "old", dt.date(2001, 1, 1), None)
    for n in range(200)
]


def test_the_cells_of_a_sheet_are_those_of_a_csv(tmp_path):
    path = sheet(tmp_path / "t.xlsx", ROWS)
    names = ("id", "age", "adult", "mixed", "born")
    table = read_table(path, texts=names, numbers=("score",))
    assert [table.texts[name][2] for name in names] == ["002", "22", "true", "2", "2001-01-01"]
    # The type of a column holds for all of its rows.
    assert table.texts["mixed"][199] == "old"
    assert table.numbers["score"][3] == 0.75
    assert (table.rows, table.digest["bytes"]) == (200, path.stat().st_size)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("a", "a"), (1, 2)], "several columns are called 'a'"),
        ([("a", "b")], "there are no rows of data"),
        ([], "the first sheet is empty"),
    ],
)
def test_a_sheet_that_is_no_table_is_one_error(tmp_path, rows, problem):
    path = sheet(tmp_path / "t.xlsx", rows)
    with pytest.raises(DataError, match=problem):
        read_table(path, texts=("a",))


def test_a_damaged_workbook_is_one_error(tmp_path):
    whole = sheet(tmp_path / "t.xlsx", ROWS).read_bytes()
    for content in (b"a,b\n1,2\n", whole[: len(whole) // 2], whole[:900] + whole[1800:]):
        (tmp_path / "t.xlsx").write_bytes(content)
        with pytest.raises(DataError, match="t.xlsx"):
            read_table(tmp_path / "t.xlsx", texts=("a",))
