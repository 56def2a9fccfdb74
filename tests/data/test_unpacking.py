"""What is compressed unpacks to no more memory than is stated; large honest data are read."""

import tracemalloc
import zipfile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError
from equipoise.data import (
    ArraySource,
    ItemSource,
    files,
    find_format,
    load_items,
    load_vectors,
    read_table,
)
from image_files import dsprites

ROWS, WIDTH = 2000, 64


@pytest.fixture(autouse=True)
def _bounds(monkeypatch):
    """State bounds that small files exceed."""
    monkeypatch.setattr(files, "MOST_UNPACKED", 100_000)


def load(path, **options):
    items = load_items(ItemSource(pl.DataFrame({"id": [*map(str, range(ROWS))]}), "id"))
    return load_vectors(ArraySource(path, **options), items, zeros=True)


def refused(read, file):
    tracemalloc.start()
    with pytest.raises(DataError) as raised:
        read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    error = raised.value
    assert error.file.startswith(str(file))
    assert error.expected
    assert error.fix
    return peak


def test_a_compressed_array_is_refused_before_its_memory_is_spent(tmp_path):
    path, zeros = tmp_path / "x.npz", np.zeros((ROWS, 64 * WIDTH))
    np.savez_compressed(path, emb=zeros)
    assert refused(lambda: load(path), path) < zeros.nbytes / 2


def test_arrays_of_their_own_size_are_read(tmp_path):
    values = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    for name, save in (("stored", np.savez), ("random", np.savez_compressed)):
        save(tmp_path / f"{name}.npz", emb=values, ids=np.arange(ROWS))
        vectors = load(tmp_path / f"{name}.npz", ids="ids", array="emb")
        np.testing.assert_array_equal(vectors.take(range(ROWS)), values)
    np.savez_compressed(tmp_path / "turned.npz", emb=np.asfortranarray(values))
    np.testing.assert_array_equal(load(tmp_path / "turned.npz").take(range(ROWS)), values)


def test_only_the_array_that_is_wanted_is_unpacked(tmp_path):
    values = np.random.default_rng(0).normal(size=(ROWS, 4))
    np.savez_compressed(tmp_path / "x.npz", emb=values, other=np.zeros(10**6))
    np.testing.assert_array_equal(load(tmp_path / "x.npz").take(range(ROWS)), values)


def write_false_header(path, shape, size=None):
    """Write an array whose header, or whose place in the zip, says another size than it has."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("emb.npy", "w") as member:
            facts = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(member, facts)
            member.write(bytes(8 * ROWS))
        if size:
            archive.getinfo("emb.npy").file_size = size
    return path


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 40), (ROWS, 2), (ROWS - 1, 1), (-1, 1)])
@pytest.mark.parametrize("size", [None, 128 + 16 * ROWS])
def test_declared_sizes_are_not_trusted(shape, size, tmp_path):
    path = write_false_header(tmp_path / "x.npz", shape, size)
    refused(lambda: load(path), path)


def test_pictures_of_dsprites_unpack_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 1_000_000)
    path = dsprites(tmp_path / "d.npz", 12_000)
    options = {"images": 50, "seed": 1}
    images = find_format("dsprites").load(path, **options)
    pictures = find_format("dsprites").rows(path, **options)
    tracemalloc.start()
    pngs = [pictures.read(name) for name in images.ids]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000 * 64 * 64 / 2
    all_pictures = find_format("dsprites").rows(path, seed=1)
    assert pngs == [all_pictures.read(name) for name in images.ids]


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.float32())])
def test_rows_of_parquet_that_repeat_are_counted_as_they_unpack(kind, tmp_path):
    path, text = tmp_path / "x.parquet", pa.types.is_string(kind)
    cells = pa.array(["a" * 100 if text else [1.0] * 100] * 20_000, kind)
    pq.write_table(pa.table({"id": cells if text else ["a"] * 20_000, "emb": cells}), path,
                   compression="zstd")  # fmt: skip
    refused((lambda: read_table(path, texts=["id"])) if text else (lambda: load(path)), path)
