"""The record of the benchmarks keeps what was not measured anew, and its pages say where and when.

Nothing is timed here.
"""

import json
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in no archive of sources")
from benchmarks import pages, record, scale, scale_page
from benchmarks.harness import Row

ROOT = Path(__file__).resolve().parent.parent
MACHINE = {
    "processor": "AMD EPYC, cpu family 26, model 2", "cores": "2", "memory": "25 GB",
    "system": "Linux", "libraries": "numpy 2.4.6",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _empty(monkeypatch, tmp_path):
    """A record that is empty, on a machine that is always the same."""
    monkeypatch.setattr(record, "RECORD", tmp_path / "record.jsonl")
    monkeypatch.setattr(record, "machine", lambda: MACHINE)


def row(workload, seconds=1.0, goal=3.0):
    return Row(workload, "what", "10 × 2", "peer", 4.0, seconds, goal, 0.5, "read", 7.0)


def test_a_workload_replaces_its_own_line_and_no_other():
    for name in ("w2", "whole_audit", "w1"):
        record.keep(name, [row(name.upper())])
    before = record.RECORD.read_text(encoding="utf-8").splitlines()
    record.keep("w2", [row("W2", 0.5), row("W2", 0.25)])
    after = record.RECORD.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["workload"] for line in after] == ["w1", "w2", "whole_audit"]
    assert [after[0], after[2]] == [before[0], before[2]]
    assert [told["seconds"] for told in json.loads(after[1])["rows"]] == [0.5, 0.25]


def test_the_page_of_growth_that_ships_is_that_of_its_record():
    found = scale.recorded()
    text = (ROOT / "docs" / "scale.md").read_text("utf-8")
    assert "\n".join(scale_page.table(found)) in text
    assert "\n".join(scale_page.fits(found)) in text


def test_the_pages_that_ship_are_those_of_the_record(monkeypatch):
    monkeypatch.setattr(record, "RECORD", ROOT / "benchmarks" / "record.jsonl")
    found = record.recorded()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == pages.page(found)
    assert readme == pages.with_block(readme, pages.short(found))
