"""Damaged files of every format are read or refused, and a reader that breaks is noticed."""

import sys

import pytest

from equipoise.core.errors import DataError
from tools.soak import fuzz as soak
from tools.soak.fuzz_formats import Format, formats


def test_damaged_files_of_every_format_are_read_or_refused():
    rows = soak.fuzz(count=100, seed=0)
    assert {row.format for row in rows} == {*formats()}
    assert [bug for row in rows for bug in row.bugs] == []
    assert sum(row.read + row.refused for row in rows) == sum(row.files for row in rows) == 100
    assert min(sum(row.read for row in rows), sum(row.refused for row in rows)) > 10


def raised(error):
    def read(folder):
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DataError("it is wrong", file="{folder}/a.csv"), "refused"),
        (DataError("it is wrong"), "bug"),
        (ValueError("it is wrong"), "bug"),
        (MemoryError(), "bug"),
        (RecursionError(), "bug"),
    ],
)
def test_what_a_reader_raises_decides(error, expected, tmp_path):
    if isinstance(error, DataError) and error.file:
        error = DataError(error.problem, file=error.file.format(folder=tmp_path))
    form = Format("x", lambda folder: None, raised(error))
    assert soak.outcome(form, tmp_path)[0] == expected


@pytest.mark.parametrize("then", ["import os; os.abort()", "import time; time.sleep(60)"])
def test_a_crash_and_a_hang_are_bugs_and_the_next_file_is_read(then, tmp_path, monkeypatch):
    answer = 'print(\'["read", ""]\', flush=True)'
    script = f"print('ready', flush=True)\nif 'bad' in input():\n {then}\n{answer}"
    with soak.Reader(tmp_path, (sys.executable, "-c", script)) as reader:
        monkeypatch.setattr(soak, "SECONDS", 2)
        assert reader.read("x", tmp_path / "bad")[0] == "bug"
        monkeypatch.setattr(soak, "SECONDS", 60)
        assert reader.read("x", tmp_path / "good") == ("read", "")
