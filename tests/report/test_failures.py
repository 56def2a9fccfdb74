"""The section on images that a model has nothing for."""

from dataclasses import replace

import pyarrow as pa

from equipoise.core import AuditResult
from equipoise.report.blocks import Table, Words
from equipoise.report.sections.failures import failures
from equipoise.report.sections.provenance import provenance
from report.synthetic import faces

ROWS = [
    {"groups": "", "group": "", "stage": "read", "n": 1, "of": 8},
    {"groups": "", "group": "", "stage": "decode", "n": 2, "of": 8},
    {"groups": "race", "group": "Black", "stage": "read", "n": 1, "of": 4},
    {"groups": "race", "group": "Black", "stage": "decode", "n": 2, "of": 4},
    {"groups": "race", "group": "White", "stage": "read", "n": 0, "of": 4},
    {"groups": "race", "group": "White", "stage": "decode", "n": 0, "of": 4},
]


def with_failures() -> AuditResult:
    found = faces()
    rows = [{"model": "clip", "on": "images"} | row for row in ROWS]
    return replace(found, tables={**found.tables, "failures": pa.Table.from_pylist(rows)})


def test_every_group_has_a_row_with_its_share() -> None:
    section = failures(with_failures())
    assert section is not None
    words, table = section.blocks
    assert isinstance(words, Words)
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == [
        "Group", "By", "Images", "Not read", "Not decoded", "Share",
    ]  # fmt: skip
    assert table.rows == (
        ("All images", "", "8", "1", "2", "37.5\u00a0%"),
        ("Black", "race", "4", "1", "2", "75.0\u00a0%"),
        ("White", "race", "4", "0", "0", "0.0\u00a0%"),
    )


def test_without_failures_there_is_no_section() -> None:
    assert failures(faces()) is None


def test_models_that_were_run_stand_under_provenance() -> None:
    found = faces()
    info = {"name": "hf:clip", "family": "clip", "dtype": "float32", "weights_sha256": "ab" * 32}
    ran = replace(found, manifest=replace(found.manifest, models={"ours": info}))
    table = next(
        block
        for block in provenance(ran).blocks
        if isinstance(block, Table) and block.caption == "Models that were run"
    )
    assert table.rows == (("ours", "hf:clip", "clip", "–", "float32", "–", "–", "ab" * 32),)
    assert all(
        not isinstance(block, Table) or block.caption != "Models that were run"
        for block in provenance(found).blocks
    )
