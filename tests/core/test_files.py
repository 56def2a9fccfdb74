"""Files: mapped into memory, Parquet with checksums, regular files only."""

import json
import os
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import files
from equipoise.core.files import (
    IrregularFileError,
    read_regular,
    read_table,
    table_bytes,
    write_table,
)
from equipoise.metrics.vector_rows import ChosenRows

ROWS, NUMBERS = 20_000, 256


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(ROWS * NUMBERS, dtype=np.float32).reshape(ROWS, NUMBERS))
    return path


def resident(path):
    """Return the bytes of a file that are memory of this process, as Linux tells."""
    smaps = Path("/proc/self/smaps")
    lines = smaps.read_text().splitlines() if smaps.exists() else []
    total, inside = 0, False
    for line in lines:
        first = line.split(maxsplit=1)[0]
        inside = line.endswith(str(path)) if "-" in first else inside
        total += int(line.split()[1]) * 1024 if inside and first == "Rss:" else 0
    return total


@pytest.mark.parametrize("scattered", [False, True])
def test_chosen_rows_of_a_mapped_file_stay_small(file, scattered, monkeypatch):
    monkeypatch.setattr(files, "_MOST_READ", 1 << 21)
    array = np.load(file, mmap_mode="r")
    rows = np.random.default_rng(0).permutation(ROWS) if scattered else np.arange(ROWS)
    chosen, peak = ChosenRows(array, rows), 0
    for start in range(0, ROWS, 500):
        part = np.array(chosen[start : start + 500])
        assert (part[:, 0] == rows[start : start + 500] * NUMBERS).all()
        peak = max(peak, resident(file))
    # The file has 20 MB.
    assert peak < 8e6


def table(rows=6):
    values = np.random.default_rng(0).normal(size=4 * rows).astype(np.float32)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(values), 4)
    names = pa.array([f"{row:05d}.png" for row in range(rows)])
    facts = {b"equipoise.failures": json.dumps([{"image_id": "x", "stage": "read"}]).encode()}
    return pa.table({"image_id": names, "embedding": cells}).replace_schema_metadata(facts)


@pytest.mark.parametrize("options", [{"use_dictionary": False, "compression": "none"}, {}])
def test_no_flipped_bit_changes_the_table(options, tmp_path):
    content, path = table_bytes(table(), **options), tmp_path / "a.parquet"
    path.write_bytes(content)
    expected, noticed = read_table(path), 0
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            reread = read_table(path)
        except (OSError, pa.ArrowException):
            noticed += 1
        else:
            assert reread.equals(expected, check_metadata=True), place
    assert noticed > len(content) // 4


@pytest.mark.parametrize("size", [0, 100])
def test_a_file_that_is_cut_off_is_refused(size, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(table_bytes(table())[:size])
    with pytest.raises((OSError, pa.ArrowException)):
        read_table(path)


def test_irregular_files_are_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        for name in ("pipe", "link", "socket", os.devnull, "/dev/zero"):
            with pytest.raises(IrregularFileError) as raised:
                read_regular(name)
            assert raised.value.filename == name


def test_a_file_that_is_replaced_while_it_is_read_is_one_of_both(tmp_path, monkeypatch):
    path, read = tmp_path / "t.parquet", pq.read_table
    first = pa.table({"a": [1, 2, 3]})
    write_table(first, path)

    def replaced(*arguments, **options):
        write_table(pa.table({"a": [*range(1000)]}), path)
        return read(*arguments, **options)

    monkeypatch.setattr(pq, "read_table", replaced)
    assert read_table(path).equals(first)
