"""Damaged files of every format are read or refused, and a reader that breaks is noticed."""

import os
import time
from collections import Counter
from contextlib import closing
from functools import partial

import pytest

from tools.soak import fuzz as soak
from tools.soak.fuzz_formats import formats


def test_damaged_files_of_every_format_are_read_or_refused():
    results = [*soak.fuzz(count=100, seed=0)]
    assert {name for name, *_ in results} == {*formats()}
    assert [problem for _, outcome, problem in results if outcome == "bug"] == []
    counts = Counter(outcome for _, outcome, _ in results)
    assert counts.total() == 100
    assert min(counts["read"] + counts["other"], counts["refused"]) > 10


def broken_by_bad(pipe, errors, breaking):
    errors.write_text("odd")
    pipe.send("ready")
    while True:
        _, folder = pipe.recv()
        if folder.name == "bad":
            breaking()
        pipe.send(("read", ""))


@pytest.mark.parametrize("breaking", [os.abort, partial(time.sleep, 60)])
def test_a_crash_and_a_hang_are_bugs_and_the_next_file_is_read(breaking, tmp_path, monkeypatch):
    with closing(soak.Reader(tmp_path, partial(broken_by_bad, breaking=breaking))) as reader:
        monkeypatch.setattr(soak, "SECONDS", 2)
        assert reader.read("x", tmp_path / "bad")[0] == "bug"
        monkeypatch.setattr(soak, "SECONDS", 60)
        assert reader.read("x", tmp_path / "good") == ("read", "")
