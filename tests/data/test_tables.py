"""One content, many formats: they all read as the same text."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from equipoise.core import DataError
from equipoise.data import read_table
from equipoise.data.tables import open_table


def csv(folder, content, **options):
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, texts=("a", "b"), **options)


def cells(table, column="a"):
    return table.texts[column].to_list()


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n01,x\n1.0,NA\n",
        "\ufeffa,b\n01,x\n1.0,NA\n",
        "a,b\r\n01,x\r\n1.0,NA\r\n",
        "a,b\r01,x\r1.0,NA",
        '"a","b"\n"01","x"\n\n1.0,NA\n\n',
        "b,c,a\nx,?,01\nNA,?,1.0\n",
    ],
    ids=["plain", "mark", "CRLF", "CR", "quoted, blank lines", "other order"],
)
def test_csv_cells_stay_the_text_they_are(tmp_path, content):
    table = csv(tmp_path, content)
    assert cells(table) == ["01", "1.0"]
    assert cells(table, "b") == ["x", "NA"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_other_encodings(tmp_path, encoding):
    table = csv(tmp_path, "a,b\né,1\n".encode(encoding), encoding=encoding)
    assert cells(table) == ["é"]


def test_delimiters(tmp_path):
    for mark in ";\t|":
        assert cells(csv(tmp_path, f"a{mark}b\n1,5{mark}2\n")) == ["1,5"]
        assert cells(csv(tmp_path, f"a{mark}b,c{mark}b\n1,5{mark}2{mark}3\n", delimiter=mark)) == [
            "1,5"
        ]
    (tmp_path / "t.tsv").write_text("a\tb\n1,5\t2\n")
    assert cells(read_table(tmp_path / "t.tsv", texts=("a",))) == ["1,5"]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("t.csv", "a,b\n1,2\n", ";"),
        ("t.csv", "a;b\n1;2\n", "|"),
        ("t.tsv", "a\tb\n1\t2\n", ";"),
        ("t.csv", "sep=;\na;b\n1;2\n", "|"),
    ],
)
def test_a_named_delimiter_that_the_header_lacks_is_refused(tmp_path, name, text, named):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as error:
        read_table(tmp_path / name, texts=("a",), delimiter=named)
    assert error.value.file == str(tmp_path / name)
    assert repr(named) in error.value.expected
    assert "`delimiter:`" in error.value.fix
    (tmp_path / name).write_text("a\n1\n")
    assert cells(read_table(tmp_path / name, texts=("a",), delimiter=named)) == ["1"]


@pytest.mark.parametrize(
    "content",
    [
        "img_001.jpg,woman\nimg_002.jpg,man\nimg_003.JPG,woman\n",
        "a cook at work,faces/1.png\na nurse,faces/2.png\n",
        "woman,yes\nman,yes\nwoman,no\n",
        "1,woman,0.5\n2,man,1e-3\n3,woman,\n",
    ],
)
def test_a_first_line_of_data_is_refused(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        open_table(path)
    assert (error.value.file, error.value.column, error.value.row) == (str(path), None, None)
    assert "header" in error.value.fix


@pytest.mark.parametrize(
    "content",
    [
        "image,gender\nimg_002.jpg,man\n",
        "image,male,smiling\n1.jpg,male,smiling\n2.jpg,female,not smiling\n",
        "0,1,2\n0,1,2\n3,4,5\n",
        ",0,1\n0,0.5,1\n",
        "person,a.jpg,b.jpg\nu1,1,0\nu2,0,1\n",
        "man,woman\n",
        "file.name,group\nx.jpg,group\n",
    ],
)
def test_names_of_columns_may_look_like_some_cells(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content)
    assert [*open_table(path).names] == content.splitlines()[0].split(",")


def test_rows_without_ids_are_counted():
    frame = pl.DataFrame({"a": ["x", "y"]})
    assert read_table(frame, texts=("row number",)).texts["row number"].to_list() == ["1", "2"]
    numbered = frame.with_columns(pl.Series("row number", [7, 8]))
    assert read_table(numbered, texts=("row number",)).texts["row number"].to_list() == ["7", "8"]


def test_json_lines(tmp_path):
    path = tmp_path / "t.JSONL"
    path.write_text(
        '{"a": "01", "b": null}\n\n{"a": 1}\r\n{"b": "x", "a": 1.0}\n'
        '{"a": 2.5}\n{"a": true}\n{"a": "é\\n"}\n{"a": "2020-01-01"}\n'
    )
    table = read_table(path, texts=("a", "b"))
    assert cells(table) == ["01", "1", "1", "2.5", "true", "é\n", "2020-01-01"]
    assert cells(table, "b") == [None, None, "x", None, None, None, None]


FRAMES = {
    "pandas": pd.DataFrame({"a": [1.0, np.nan, 2.5], "b": ["x", None, "NaN"]}),
    "pandas, objects": pd.DataFrame(
        {
            "a": np.array([1, pd.NaT, Decimal("2.5")], dtype=object),
            "b": np.array(["x", np.nan, "NaN"], dtype=object),
        }
    ),
    "polars": pl.DataFrame({"a": [1.0, float("nan"), 2.5], "b": ["x", None, "NaN"]}),
    "pyarrow": pa.table({"a": pa.array([1.0, None, 2.5], pa.float16()), "b": ["x", None, "NaN"]}),
    "pyarrow, dictionary": pa.table(
        {"a": [1.0, None, 2.5], "b": pa.array(["x", None, "NaN"]).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_data_frames_of_any_library(name):
    table = read_table(FRAMES[name], texts=("a", "b"), role="labels")
    assert cells(table) == ["1", None, "2.5"]
    assert cells(table, "b") == ["x", None, "NaN"]
    assert table.name == "labels (data frame)"


TYPED = {
    "large": (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
    "floats": (
        pa.array([1e300, 0.1, -3.0, float("nan"), float("inf")]),
        ["1e+300", "0.1", "-3", None, "inf"],
    ),
    "booleans": (pa.array([True, None, False]), ["true", None, "false"]),
    "decimals": (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), ["1.50"]),
    "dates": (pa.array([dt.date(2020, 1, 2)]), ["2020-01-02"]),
    "fractions of seconds": (pa.array([5, 6], pa.time32("ms")), ["00:00:00.005", "00:00:00.006"]),
    "years that no calendar has": (
        pa.array([2**31 - 1, -(2**31)], pa.date32()),
        ["<value out of range: 2147483647>", "<value out of range: -2147483648>"],
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_typed_columns_as_text(name):
    column, expected = TYPED[name]
    assert cells(read_table(pa.table({"a": column}), texts=("a",))) == expected


def test_numbers(tmp_path):
    (tmp_path / "t.csv").write_text('a\n0.5\n""\n 1e-3 \nnan\n')
    from_text = read_table(tmp_path / "t.csv", texts=(), numbers=("a",)).numbers["a"]
    assert from_text.to_list()[:3] == [0.5, None, 0.001]
    assert from_text.is_nan()[3]
    frame = pd.DataFrame({"a": [0.5, np.nan]})
    assert read_table(frame, texts=(), numbers=("a",)).numbers["a"].is_nan().to_list() == [
        False,
        True,
    ]
