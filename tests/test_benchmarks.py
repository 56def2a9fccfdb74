"""The record of the benchmarks keeps what was not measured anew, and its pages say where and when.

Nothing is timed here.
"""

import json
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are in no archive of sources", allow_module_level=True)

MACHINE = {
    "processor": "AMD EPYC, cpu family 26, model 2", "cores": "2", "memory": "25 GB",
    "system": "Linux", "libraries": "numpy 2.4.6",
}  # fmt: skip


@pytest.fixture(autouse=True)
def record(monkeypatch, tmp_path):
    """A record that is empty, on a machine that is always the same."""
    monkeypatch.syspath_prepend(ROOT)
    found = import_module("benchmarks.record")
    monkeypatch.setattr(found, "RECORD", tmp_path / "record.jsonl")
    monkeypatch.setattr(found, "machine", lambda: MACHINE)
    return found


def row(workload, seconds=1.0, goal=3.0):
    harness = import_module("benchmarks.harness")
    return harness.Row(workload, "what", "10 × 2", "peer", 4.0, seconds, goal, 0.5, "read", 7.0)


def test_a_workload_replaces_its_own_line_and_no_other(record):
    for name in ("w2", "whole_audit", "w1"):
        record.keep(name, [row(name.upper())])
    before = record.RECORD.read_text(encoding="utf-8").splitlines()
    record.keep("w2", [row("W2", 0.5), row("W2", 0.25)])
    after = record.RECORD.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["workload"] for line in after] == ["w1", "w2", "whole_audit"]
    assert [after[0], after[2]] == [before[0], before[2]]
    assert [told["seconds"] for told in json.loads(after[1])["rows"]] == [0.5, 0.25]


def test_the_page_of_growth_that_ships_is_that_of_its_record():
    scale, page = (import_module(f"benchmarks.{name}") for name in ("scale", "scale_page"))
    found = [*scale.recorded()]
    text = (ROOT / "docs" / "scale.md").read_text("utf-8")
    assert "\n".join(page.table(found)) in text
    assert "\n".join(page.fits(found)) in text


def test_the_pages_that_ship_are_those_of_the_record(record, monkeypatch):
    pages = import_module("benchmarks.pages")
    monkeypatch.setattr(record, "RECORD", ROOT / "benchmarks" / "record.jsonl")
    found = record.recorded()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == pages.page(found)
    assert readme == pages.with_block(readme, pages.short(found))
