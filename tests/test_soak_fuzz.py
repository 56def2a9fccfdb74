"""Damaged files of every format are read or refused, and a reader that breaks is noticed."""

import sys

import pytest

from tools.soak import fuzz as soak
from tools.soak.fuzz_formats import formats


def test_damaged_files_of_every_format_are_read_or_refused():
    rows = soak.fuzz(count=100, seed=0)
    assert {row.format for row in rows} == {*formats()}
    assert [bug for row in rows for bug in row.bugs] == []
    assert sum(row.read + row.refused for row in rows) == sum(row.files for row in rows) == 100
    assert min(sum(row.read for row in rows), sum(row.refused for row in rows)) > 10


@pytest.mark.parametrize("then", ["import os; os.abort()", "import time; time.sleep(60)"])
def test_a_crash_and_a_hang_are_bugs_and_the_next_file_is_read(then, tmp_path, monkeypatch):
    answer = 'print(\'["read", ""]\', flush=True)'
    script = f"print('ready', flush=True)\nif 'bad' in input():\n {then}\n{answer}"
    with soak.Reader(tmp_path, (sys.executable, "-c", script)) as reader:
        monkeypatch.setattr(soak, "SECONDS", 2)
        assert reader.read("x", tmp_path / "bad")[0] == "bug"
        monkeypatch.setattr(soak, "SECONDS", 60)
        assert reader.read("x", tmp_path / "good") == ("read", "")
