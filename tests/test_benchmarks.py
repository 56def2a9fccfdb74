"""The record of the benchmarks keeps what was not measured anew, and its pages say where and when.

No time is judged here.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

pytest.importorskip("benchmarks", reason="the benchmarks are in no archive of sources")
from benchmarks import pages, record, scale, scale_page, w8, w9
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
    assert [entry["seconds"] for entry in json.loads(after[1])["rows"]] == [0.5, 0.25]


def test_the_shipped_tables_of_growth_follow_their_record(monkeypatch, tmp_path):
    shipped = scale_page.ROWS, scale_page.FITS
    monkeypatch.setattr(scale_page, "ROWS", tmp_path / "scale.csv")
    monkeypatch.setattr(scale_page, "FITS", tmp_path / "scale-growth.csv")
    page = copy_of(pages.PAGE, tmp_path)
    monkeypatch.setattr(scale_page, "PAGE", page)
    scale_page.write_page(scale.recorded())
    for path in (*shipped, pages.PAGE):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path


def test_the_shipped_tables_and_chart_follow_the_record(monkeypatch, tmp_path):
    shipped = pages.ROWS, pages.GROWTH, pages.CHART, pages.PAGE
    for name, path in zip(("ROWS", "GROWTH", "CHART"), shipped, strict=False):
        monkeypatch.setattr(pages, name, tmp_path / path.name)
    page = copy_of(pages.PAGE, tmp_path)
    monkeypatch.setattr(pages, "PAGE", page)
    monkeypatch.setattr(record, "RECORD", ROOT / "benchmarks" / "record.jsonl")
    pages.write_pages(record.recorded())
    for path in shipped:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path


def copy_of(path, folder):
    """Return a copy of a file in a folder."""
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    return copy


def test_a_whole_audit_is_a_multiple_of_something_smaller():
    audit_row = replace(row("W9", seconds=6.0, goal=1.6), over="one pass")
    assert (audit_row.ratio, audit_row.reached, audit_row.has_goal) == (1.5, True, True)
    assert not replace(audit_row, goal=1.4).reached
    peer = row("W1", seconds=2.0, goal=2.0)
    assert (peer.ratio, peer.reached) == (2.0, True)
    assert not replace(peer, goal=3.0).reached
    assert not replace(peer, goal=None).has_goal


def test_the_small_table_has_the_config_of_the_example(tmp_path):
    w8.write_evidence(tmp_path, 100)
    written, example = (
        yaml.safe_load(path.read_text("utf-8")) for path in (tmp_path / "audit.yaml", w8.EXAMPLE)
    )
    for config in (written, example):
        for section in (config["data"], *config["models"].values()):
            section.pop("table")
    assert written == example
    assert len(pl.read_csv(tmp_path / "labels.csv")) == 100


@pytest.mark.parametrize("world", w9.AUDITS)
def test_one_pass_reads_every_row(tmp_path, world):
    w9.write_evidence(world, tmp_path, 500)
    results = [*w9.AUDITS[world][1](tmp_path)]
    totals = {
        "predictions": lambda: 500,
        "concepts": lambda: (array("labels") * array("scores")).sum(axis=0),
        "diversity": lambda: vectors().sum(axis=0),
        "associations": lambda: (vectors() @ array("words").T).sum(axis=0),
        "similarity": lambda: (array("images") @ array("queries").T).sum(axis=0),
    }

    def array(name):
        return np.load(tmp_path / f"{name}.npy").astype(np.float64)

    def vectors():
        column = pl.read_parquet(tmp_path / "vectors.parquet")["embedding"]
        return np.array(column.to_list(), np.float64)

    expected = totals["similarity" if world == "retrieval" else world]()
    for groups in results:
        np.testing.assert_allclose(groups.sum(axis=0), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["w8", "w9"])
def test_whole_audits_run_at_small_size(workload):
    command = [sys.executable, "-m", f"benchmarks.{workload}", "--quick", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    rows = [Row(**json.loads(line)) for line in done.stdout.splitlines()]
    assert len(rows) == (1 if workload == "w8" else len(w9.AUDITS))
    assert all(entry.over and entry.ratio > 0 and entry.has_goal for entry in rows)


# Every workload holds its peer's numbers against ours before it times them.
@pytest.mark.slow
@pytest.mark.parametrize("workload", ["w1", "w4", "w2", "w3", "w5", "w6", "whole_audit"])
def test_peers_give_the_same_numbers(workload):
    command = [sys.executable, "-m", f"benchmarks.{workload}", "--quick", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert [Row(**json.loads(line)) for line in done.stdout.splitlines()]
