"""Every bad array, embedding or matrix has one error that says where, what and what to do."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save

from equipoise.core import DataError
from equipoise.data import ArraySource, ItemSource, load_items, load_matrix, load_vectors

PLACES = json.loads((Path(__file__).parent / "array_places.json").read_text("utf-8"))
IDS = ["a", "b", "c"]
X = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


def npy(values, **options):
    sink = io.BytesIO()
    np.save(sink, values, **options)
    return sink.getvalue()


def npz(**arrays):
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def declared(shape, kind="<f4"):
    """An .npy of 24 bytes of values, whose header declares any shape."""
    sink = io.BytesIO()
    facts = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(sink, facts)
    return sink.getvalue() + bytes(24)


def zipped(member):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("emb.npy", member)
    return sink.getvalue()


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def tensor(kind, shape, values):
    """Write a .safetensors by hand, for types that numpy lacks."""
    header = {"emb": {"dtype": kind, "shape": shape, "data_offsets": [0, len(values)]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + values


def damaged(content):
    """Change bytes in the middle of the compressed values of a zip."""
    place = len(content) // 2
    return (
        content[:place]
        + bytes(byte ^ 0xFF for byte in content[place : place + 8])
        + (content[place + 8 :])
    )


def items():
    return load_items(ItemSource(pl.DataFrame({"id": IDS}), "id"), subject="images")


# Name: file, its content, options of the source.
VECTORS = {
    "pickled npy": ("x.npy", npy(np.array([[1, "a"]] * 3, dtype=object), allow_pickle=True), {}),
    "integers": ("x.npy", npy(X.astype(np.int8)), {}),
    "NaN or zero": ("x.npy", npy(np.array([[0, 0], [np.nan, 1], [np.inf, 1]])), {}),
    "damaged npz": ("x.npz", damaged(npz(emb=np.arange(3e4).reshape(3, -1))), {}),
    "npz that unpacks to 8 GB": ("x.npz", zipped(declared((1 << 22, 512))), {}),
    "several arrays": ("x.npz", npz(image=X, text=X, ids=np.array(IDS)), {}),
    "pickled ids": (
        "x.npz",
        npz(emb=X, ids=np.array(IDS, dtype=object)),
        {"ids": "ids", "array": "emb"},
    ),
    "too few ids": ("x.npz", npz(emb=X, ids=np.array(IDS[:2])), {"ids": "ids"}),
    "bfloat16": ("x.safetensors", tensor("BF16", [3, 2], bytes(12)), {}),
    "truncated safetensors": ("x.safetensors", save({"emb": X})[:-3], {}),
    "mixed dimensions": ("x.parquet", parquet(id=IDS, emb=[None, [1.0, 2.0], [3.0]]), {}),
    "too many empty": ("x.parquet", parquet(id=IDS, emb=[[1.0], [1.0], None]), {}),
}
MATRICES = {
    "no names": ("x.npy", npy(X), {}),
    "unknown name": ("x.npy", npy(X), {"names": ("cat", "dog"), "columns": ("cats",)}),
    "yes and no": ("x.csv", b"id,cat\na,Yes\nb,no\nc,no\n", {}),
}  # fmt: skip


def place(error, folder):
    assert error.fix
    return [str(error.file).replace(f"{folder}/", ""), error.column, error.row]


@pytest.mark.parametrize(
    ("load", "name", "case"),
    [(load_vectors, f"vectors: {n}", c) for n, c in VECTORS.items()]
    + [(load_matrix, f"matrices: {n}", c) for n, c in MATRICES.items()],
)
def test_a_bad_file_has_one_error_with_its_place(load, name, case, tmp_path):
    file, content, options = case
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError) as raised:
        load(ArraySource(tmp_path / file, **options), items())
    assert place(raised.value, tmp_path) == PLACES[name]


FRAMES = {
    "objects": (np.array([["a", 1]] * 3, dtype=object), {}),
    "masked": (np.ma.masked_array(X, X > 5), {}),
    "ids in memory differ": (X, {"ids": ["a", "b"]}),
    "pandas, mixed cells": (pd.DataFrame({"id": IDS, "emb": [[1.0], ["a"], [2.0]]}), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_bad_arrays_and_frames_in_memory(name):
    frame, options = FRAMES[name]
    with pytest.raises(DataError) as raised:
        load_vectors(ArraySource(frame, **options), items())
    assert raised.value.file in ("embeddings (array)", "embeddings (data frame)", "embeddings") or (
        "ids" in str(raised.value.file)
    )


ID_FILES = {
    "a blank line": ("ids.txt", b"a\n\nc\n"),
    "wrong extension": ("ids.json", b"[]"),
    "numbers that are no letters": ("ids.npy", npy(np.full(3, 0x110000, np.uint32).view("<U1"))),
    "bytes that are no text": ("ids.npy", npy(np.array([b"a", b"\xff", b"c"]))),
}


@pytest.mark.parametrize("name", ID_FILES)
def test_bad_files_of_ids(name, tmp_path):
    file, content = ID_FILES[name]
    (tmp_path / file).write_bytes(content)
    (tmp_path / "x.npy").write_bytes(npy(X))
    with pytest.raises(DataError) as error:
        load_vectors(ArraySource(tmp_path / "x.npy", ids=tmp_path / file), items())
    assert place(error.value, tmp_path) == PLACES[f"ids: {name}"]
