"""The page of studies lists every study; its details come from the studies and their sources."""

import json
import re
from pathlib import Path

import pytest

from equipoise.studies import STUDIES
from equipoise.studies.study import read_study
from equipoise.studies.works import WORKS, read_work
from tools.studies import details, missing, printed_cells, shown_cells

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "studies.md").read_text(encoding="utf-8")
DETAILS = details()


def test_the_page_lists_every_study():
    assert re.findall(r"^- `([a-z-]+)`:", PAGE, re.MULTILINE) == sorted(STUDIES)


def test_the_details_say_which_data_each_study_needs():
    cells = {
        name: [cell.strip() for cell in row.split("|")]
        for row in DETAILS.split("### Numbers of fair models")[0].splitlines()
        if row.startswith("| ") and (name := row.split(" | ")[0].removeprefix("| ")) in STUDIES
    }
    assert [*cells] == [*STUDIES]
    assert [name for name in cells if cells[name][4] == "no"] == ["skewsize-example"]
    assert cells["pairs"][5].startswith("no: ")


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_its_commands_and_tables(name):
    study = read_study(name)
    assert f"equipoise new study.yaml --study {name}" in DETAILS
    for number in study.reproduces:
        assert f"| {number}: {study.work.tables[number].title} | this run " in DETAILS


@pytest.mark.parametrize("name", WORKS)
def test_every_table_and_claim_of_a_source_has_details(name):
    work = read_work(name)
    _, _, section = DETAILS.partition(f"### {work.title}\n")
    for number, table in work.tables.items():
        assert f"| {number}: {table.title} |" in section
    for claim in work.claims.values():
        assert claim.claim in section


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)\s:]+)\)", DETAILS))))
def test_links_of_the_details_resolve(target):
    name, _, anchor = target.partition("#")
    assert (DOCS / name).exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]


def test_cells_without_a_number_of_the_run_are_not_counted():
    study = read_study("predicted-labels")
    table = study.work.tables["Table 5.1"]
    cells = shown_cells(table, "Table 5.1", study)
    assert printed_cells(table) == 20
    assert ("knowledgeable", "Woman") in cells
    assert ("meek", "Woman") not in cells


def test_what_is_missing_is_listed(tmp_path):
    folder = tmp_path / "mandal_2024"
    folder.mkdir()
    for stem in ("table_3_2", "table_99", "tables_3_1_and_4_1", "tables_3_1_and_99_1"):
        (folder / f"{stem}.json").write_text("{}")
    (folder / "claims.json").write_text(
        json.dumps({"claims": [{"id": "M1", "where": "Table 3.2"}]})
    )
    lines = [*missing(tmp_path)]
    assert "  table_99: not packaged" in lines
    assert "  tables_3_1_and_99_1: not packaged" in lines
    assert not any(line.startswith(("  table_3_2:", "  tables_3_1_and_4_1:")) for line in lines)
    assert not any(line.startswith("  Table 3.2: ") for line in lines)
    assert any(line.startswith("  M1 (Table 3.2)") for line in lines)


def test_files_of_several_tables_are_packaged_if_all_are(tmp_path):
    folder = tmp_path / "mandal_2024"
    folder.mkdir()
    names = ("tables_6_3_and_6_4", "tables_6_3_and_6_99", "table_08_1")
    contents = {name: {"table": name} for name in names}
    contents |= {name: {"table": f"6.5, {name}"} for name in ("components", "others")}
    for stem, content in contents.items():
        (folder / f"{stem}.json").write_text(json.dumps(content))
    lines = {line.strip() for line in missing(tmp_path)}
    absent = {line.partition(":")[0] for line in lines if line.endswith(": not packaged")}
    assert absent == {"tables_6_3_and_6_99", "others"}


def test_tables_that_no_study_shows_are_listed(tmp_path, monkeypatch):
    (tmp_path / "mandal_2024").mkdir()
    monkeypatch.setattr("tools.studies.studies_of", lambda _: {})
    assert any(line.startswith("  Table 3.2: ") for line in missing(tmp_path))
