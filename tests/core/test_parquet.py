"""Parquet files with checksums: damage is noticed, files without checksums are still read."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core.parquet import read_table, table_bytes, write_table


def table(rows: int = 6) -> pa.Table:
    values = np.random.default_rng(0).normal(size=4 * rows).astype(np.float32)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(values), 4)
    names = pa.array([f"{row:05d}.png" for row in range(rows)])
    facts = {b"equipoise.failures": json.dumps([{"image_id": "x", "stage": "read"}]).encode()}
    return pa.table({"image_id": names, "embedding": cells}).replace_schema_metadata(facts)


@pytest.mark.parametrize("how", [{"use_dictionary": False, "compression": "none"}, {}])
def test_no_flipped_bit_changes_what_is_read(how: dict[str, object], tmp_path: Path) -> None:
    whole, path = table_bytes(table(), **how), tmp_path / "a.parquet"
    path.write_bytes(whole)
    expected, noticed = read_table(path), 0
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = read_table(path)
        except (OSError, pa.ArrowException):
            noticed += 1
        else:
            assert found.equals(expected, check_metadata=True), place
    assert noticed > len(whole) // 4


def test_any_reader_of_parquet_reads_it(tmp_path: Path) -> None:
    write_table(table(), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(table())


def test_a_file_without_checksums_is_read(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").equals(table())
    assert read_table(tmp_path / "a.parquet", ["image_id"]).column_names == ["image_id"]


def test_equal_tables_are_equal_bytes(tmp_path: Path) -> None:
    write_table(table(300), tmp_path / "a.parquet", row_group_size=7)
    written = (tmp_path / "a.parquet").read_bytes()
    assert written == table_bytes(table(300), row_group_size=7)
    parts = pa.concat_tables([table(300).slice(0, 11), table(300).slice(11)])
    assert written == table_bytes(parts, row_group_size=7)


@pytest.mark.parametrize("size", [0, 3, 9, 100])
def test_a_file_that_is_cut_off_is_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(table_bytes(table())[:size])
    with pytest.raises((OSError, pa.ArrowException)):
        read_table(path)
