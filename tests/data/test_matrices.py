"""Scores and labels by concept: one column at a time, whatever the file."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data import ArraySource, ItemSource, load_items, load_matrix, matrices

N = 30
IDS = [f"im{place:02d}" for place in range(N)]
NAMES = ("cat", "dog", "hot.dog")
X = np.random.default_rng(3).normal(size=(N, 3)).astype(np.float32)
ORDER = np.random.default_rng(4).permutation(N)
SHUFFLED = [IDS[place] for place in ORDER]


def items(ids=None):
    return load_items(ItemSource(pl.DataFrame({"id": IDS if ids is None else ids}), "id"))


def frame():
    columns = {name: X[ORDER][:, place] for place, name in enumerate(NAMES)}
    return pl.DataFrame({"id": SHUFFLED, "split": ["val"] * N, **columns})


def as_npy(path):
    np.save(path / "x.npy", X[ORDER])
    return ArraySource(path / "x.npy", ids=SHUFFLED, names=NAMES)


def as_parquet(path):
    frame().write_parquet(path / "x.parquet", row_group_size=8)
    return ArraySource(path / "x.parquet")


@pytest.mark.parametrize("write", [as_npy, as_parquet])
def test_every_format_gives_the_same_numbers(write, tmp_path):
    matrix = load_matrix(write(tmp_path), items())
    assert matrix.names == NAMES
    for place, name in enumerate(NAMES):
        column = matrix.column(name)
        assert column.dtype == np.float64
        np.testing.assert_array_equal(column, X[:, place].astype(np.float64))
    columns = matrix.take(["hot.dog", "cat"])
    assert matrix.dtype == columns.dtype == np.float32
    assert columns.flags.f_contiguous
    np.testing.assert_array_equal(columns, X[:, [2, 0]])
    assert matrix.counts["columns"] == 3
    assert json.dumps({**matrix.counts, **matrix.inputs})


def test_a_csv_gives_the_numbers_that_it_spells(tmp_path):
    content = "id,split,cat,dog\nb,val, 0.1 ,1e-3\na,test,NA,-Inf\nc,val,,2\n"
    (tmp_path / "x.csv").write_text(content)
    source = ArraySource(tmp_path / "x.csv", missing=("NA",))
    matrix = load_matrix(source, items(["a", "b", "c"]))
    assert matrix.names == ("cat", "dog")
    np.testing.assert_array_equal(matrix.column("cat"), [np.nan, 0.1, np.nan])
    np.testing.assert_array_equal(matrix.column("dog"), [-np.inf, 1e-3, 2])
    assert matrix.counts["missing"] == {"cat": 2}
    assert matrix.counts["infinite"] == {"dog": 1}
    assert matrix.counts["columns_left_out"] == ["split"]


LABELS = {
    "booleans": pa.array([True, False, None]),
    "floats": pa.array([1, 0, np.nan], pa.float16()),
    "text of booleans": pa.array(["True", "false", ""]),
    "a dictionary": pa.array(["1", "0", None]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_plain_type_are_one_and_zero(kind, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "cat": LABELS[kind]})
    pq.write_table(table, tmp_path / "x.parquet")
    for file in (table, tmp_path / "x.parquet"):
        matrix = load_matrix(ArraySource(file, columns=("cat",)), items(["c", "b", "a"]))
        np.testing.assert_array_equal(matrix.labels("cat"), [np.nan, 0, 1])


def test_a_mapping_gives_columns_names():
    table = pa.table({"id": ["a", "b"], "c1": [0.5, 0.25], "c2": [1.0, 2.0]})
    matrix = load_matrix(ArraySource(table, columns={"cat": "c1"}), items(["b", "a"]))
    assert matrix.names == ("cat",)
    np.testing.assert_array_equal(matrix.column("cat"), [0.25, 0.5])


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 12))
def test_any_order_of_rows_gives_the_same(random, rows, n_items):
    values = np.array([[random.choice([0.0, 1.0, np.nan]) for _ in "xy"] for _ in range(rows)])
    order = random.sample(range(rows), rows)
    table = pl.DataFrame({"id": [*range(rows)], "x": values[:, 0], "y": values[:, 1]})
    sources = [
        ArraySource(table),
        ArraySource(table[order]),
        ArraySource(values[order], ids=order, names=("x", "y")),
        ArraySource(np.asfortranarray(values), ids=[*range(rows)], names=("x", "y")),
    ]
    loaded = [load_matrix(source, items([*range(n_items)]), max_unmatched=1) for source in sources]
    for matrix in loaded:
        np.testing.assert_array_equal(matrix.take(["x", "y"]), loaded[0].take(["x", "y"]))
        assert {**matrix.counts, "columns_left_out": []} == loaded[0].counts


@pytest.mark.parametrize("width", [1, 2, 5, 100])
def test_blocks_of_any_width_read_the_same(width, monkeypatch):
    values = np.arange(70, dtype=np.float32).reshape(10, 7)
    monkeypatch.setattr(matrices, "BLOCK_BYTES", width * 40)
    read = matrices.columns_of(values, {f"{place}": place for place in range(7)})
    for place in (6, 0, 3, 2, 6, 5):
        np.testing.assert_array_equal(read(f"{place}"), values[:, place])
