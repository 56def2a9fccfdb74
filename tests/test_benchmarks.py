"""The record of the benchmarks keeps what was not measured anew, and its pages say where and when.

Nothing is timed here.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are in no archive of sources", allow_module_level=True)

EPYC = "AMD EPYC, cpu family 26, model 2"
XEON = "Intel(R) Xeon(R) Processor, cpu family 6, model 207"


@pytest.fixture(autouse=True)
def record(monkeypatch, tmp_path):
    """A record that is empty, on a machine that is always the same."""
    monkeypatch.syspath_prepend(ROOT)
    found = import_module("benchmarks.record")
    monkeypatch.setattr(found, "RECORD", tmp_path / "record.jsonl")
    monkeypatch.setattr(found, "machine", lambda: facts(EPYC))
    return found


@pytest.fixture
def pages(record, monkeypatch, tmp_path):
    """Pages that are written beside the record."""
    found = import_module("benchmarks.pages")
    monkeypatch.setattr(found, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(found, "README", tmp_path / "README.md")
    text = f"before\n{found.START}\nold\n{found.END}\nafter\n"
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    return found


@pytest.fixture
def command(pages, monkeypatch):
    """The command, whose workloads take no time."""
    found = import_module("benchmarks.__main__")
    told = {name: [row(name.upper(), 2.0)] for name in found.modules()}
    monkeypatch.setattr(found, "run", lambda name, *, quick: told[name])
    return found


def called(command, monkeypatch, *flags):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *flags])
    command.main()


def facts(processor, **rest):
    other = {"cores": "2", "memory": "25 GB", "system": "Linux", "libraries": "numpy 2.4.6"}
    return {"processor": processor} | other | rest


def row(workload, seconds=1.0, goal=3.0):
    harness = import_module("benchmarks.harness")
    return harness.Row(workload, "what", "10 × 2", "peer", 4.0, seconds, goal, 0.5, "read", 7.0)


def measured(
    record,
    name,
    processor=EPYC,
    day="2026-11-20",
    rows=(),
    **rest,
):
    return record.Measured(name, day, facts(processor, **rest), rows or [row(name.upper())])


def test_a_workload_replaces_its_own_line_and_no_other(record):
    for name in ("w2", "whole_audit", "w1"):
        record.keep(name, [row(name.upper())])
    before = record.RECORD.read_text(encoding="utf-8").splitlines()
    record.keep("w2", [row("W2", 0.5), row("W2", 0.25)])
    after = record.RECORD.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["workload"] for line in after] == ["w1", "w2", "whole_audit"]
    assert [after[0], after[2]] == [before[0], before[2]]
    assert [told["seconds"] for told in json.loads(after[1])["rows"]] == [0.5, 0.25]


def test_pages_of_a_record_are_the_same_each_time(record, pages):
    for name in ("w2", "w1"):
        record.keep(name, [row(name.upper())])
    written = []
    for _ in range(2):
        pages.write_pages(record.recorded())
        written.append((pages.PAGE.read_bytes(), pages.README.read_bytes()))
    assert written[0] == written[1]
    readme = written[0][1].decode()
    assert readme.startswith(
        f"before\n{pages.START}\nMeasured: W1, W2 on AMD EPYC, cpu family 26, model 2.\n\n| |"
    )
    assert readme.endswith(f"|\n{pages.END}\nafter\n")


def test_a_machine_has_one_letter_and_all_its_days(record, pages):
    found = [
        measured(record, "w1", XEON, "2026-11-22"),
        measured(record, "w2", EPYC, "2026-11-20"),
        measured(record, "w3", EPYC, "2026-11-21"),
        measured(record, "w4", EPYC, "2026-11-20"),
        measured(record, "w5", EPYC, "2026-11-23", libraries="numpy 2.5.0"),
    ]
    lines = pages.page(found).splitlines()
    assert [line for line in lines if line.startswith(("| A |", "| B |", "| C |", "| D |"))] == [
        f"| A | {EPYC} | 2 | 25 GB | Linux | numpy 2.4.6 | 2026-11-20, 2026-11-21 |",
        f"| B | {XEON} | 2 | 25 GB | Linux | numpy 2.4.6 | 2026-11-22 |",
        f"| C | {EPYC} | 2 | 25 GB | Linux | numpy 2.5.0 | 2026-11-23 |",
    ]
    assert [line for line in lines if line.startswith(("## ", "Measured"))] == [
        "## W1",
        "Measured on 2026-11-22 on machine B.",
        "## W2",
        "Measured on 2026-11-20 on machine A.",
        "## W3",
        "Measured on 2026-11-21 on machine A.",
        "## W4",
        "Measured on 2026-11-20 on machine A.",
        "## W5",
        "Measured on 2026-11-23 on machine C.",
    ]


def test_the_readme_says_what_ran_where(record, pages):
    found = [measured(record, f"w{i}", name) for i, name in enumerate((EPYC, XEON, EPYC), 1)]
    # Without a goal, a workload is not in the README: where it ran is not said there either.
    found.append(measured(record, "w9", "Other", rows=[row("W9", goal=None)]))
    start = pages.short(found).partition("\n\n")[0].replace("\n", " ")
    assert start == f"Measured: W1, W3 on {EPYC}; W2 on {XEON}."


def test_nothing_is_written_unless_it_is_to_be_kept(record, pages, command, monkeypatch):
    before = pages.README.read_bytes()
    called(command, monkeypatch, "--only", "w1")
    called(command, monkeypatch, "--quick")
    assert (record.RECORD.exists(), pages.PAGE.exists()) == (False, False)
    assert pages.README.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--quick", "--keep"), "--keep records whole runs: leave out --quick"),
        (("--page", "--keep"), "--page measures nothing: leave out the others"),
        (("--page", "--only", "w1"), "--page measures nothing: leave out the others"),
    ],
)
def test_choices_that_do_not_go_together(
    arguments,
    told,
    command,
    monkeypatch,
    capsys,
):
    with pytest.raises(SystemExit):
        called(command, monkeypatch, *arguments)
    assert told in capsys.readouterr().err


def test_the_page_of_growth_that_ships_is_that_of_its_record():
    scale, page = (import_module(f"benchmarks.{name}") for name in ("scale", "scale_page"))
    found = [*scale.recorded()]
    text = (ROOT / "docs" / "scale.md").read_text("utf-8")
    assert "\n".join(page.table(found)) in text
    assert "\n".join(page.fits(found)) in text


def test_growth_is_fitted_for_each_machine():
    page, growth = (import_module(f"benchmarks.{name}") for name in ("scale_page", "scale_growth"))
    found = [
        growth.Measured("retrieval", rows, 32, 1.0, rows / 1e4, 100.0, {"load": 0.1}, processor)
        for processor in (EPYC, XEON)
        for rows in (10_000, 20_000, 30_000)
    ]
    assert page.lettered(found) == {EPYC: "A", XEON: "B"}
    assert [len(ones) for ones in page.series(found).values()] == [3, 3]


def test_workloads_that_are_kept_are_on_the_pages(record, pages, command, monkeypatch):
    record.keep("w7", [row("W7")])
    called(command, monkeypatch, "--only", "w1", "--only", "w3", "--keep")
    assert [one.workload for one in record.recorded()] == ["w1", "w3", "w7"]
    assert record.recorded()[2].rows == [row("W7")]
    assert all(f"## {name}\n" in pages.PAGE.read_text("utf-8") for name in ("W1", "W3", "W7"))


def test_pages_are_made_without_measuring(record, pages, command, monkeypatch):
    record.keep("w1", [row("W1")])
    before = record.RECORD.read_bytes()
    monkeypatch.setattr(command, "run", None)
    called(command, monkeypatch, "--page")
    assert record.RECORD.read_bytes() == before
    assert "Measured on" in pages.PAGE.read_text("utf-8")


def test_the_pages_that_ship_are_those_of_the_record(record, pages, monkeypatch):
    monkeypatch.setattr(record, "RECORD", ROOT / "benchmarks" / "record.jsonl")
    found = record.recorded()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == pages.page(found)
    assert readme == pages.with_block(readme, pages.short(found))


def test_no_library_is_told_of_another_processor(command):
    given = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1", "HOME": "/"}
    assert command.unnamed(given) == {"OPENBLAS_NUM_THREADS": "1", "HOME": "/"}
