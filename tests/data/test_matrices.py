"""Scores and labels by concept: one column at a time, whatever the file."""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from equipoise.core import DataError
from equipoise.data import ArraySource, Items, ItemSource, load_items, load_matrix, matrices

N = 30
IDS = [f"im{place:02d}" for place in range(N)]
NAMES = ("cat", "dog", "hot.dog")
X = np.random.default_rng(3).normal(size=(N, 3)).astype(np.float32)
ORDER = np.random.default_rng(4).permutation(N)
SHUFFLED = [IDS[place] for place in ORDER]


def items(ids: list[Any] | None = None) -> Items:
    return load_items(ItemSource(pl.DataFrame({"id": IDS if ids is None else ids}), "id"))


def frame() -> pl.DataFrame:
    columns = {name: X[ORDER][:, place] for place, name in enumerate(NAMES)}
    return pl.DataFrame({"id": SHUFFLED, "split": ["val"] * N, **columns})


def as_npy(path: Path) -> ArraySource:
    np.save(path / "x.npy", X[ORDER])
    return ArraySource(path / "x.npy", ids=SHUFFLED, names=NAMES)


def as_fortran_npz(path: Path) -> ArraySource:
    np.savez(path / "x.npz", scores=np.asfortranarray(X[ORDER]), ids=np.array(SHUFFLED))
    return ArraySource(path / "x.npz", ids="ids", names=NAMES)


def as_safetensors(path: Path) -> ArraySource:
    save_file({"scores": X[ORDER]}, path / "x.safetensors")
    places = {name: f"{place}" for place, name in enumerate(NAMES)}
    return ArraySource(path / "x.safetensors", ids=SHUFFLED, columns=places)


def as_parquet(path: Path) -> ArraySource:
    frame().write_parquet(path / "x.parquet", row_group_size=8)
    return ArraySource(path / "x.parquet")


def as_lists(path: Path) -> ArraySource:
    pq.write_table(pa.table({"id": SHUFFLED, "s": pa.array([*X[ORDER]])}), path / "x.parquet")
    return ArraySource(path / "x.parquet", column="s", names=NAMES)


def as_frame(path: Path) -> ArraySource:
    return ArraySource(frame().to_pandas(), columns=NAMES)


@pytest.mark.parametrize(
    "write", [as_npy, as_fortran_npz, as_safetensors, as_parquet, as_lists, as_frame]
)
def test_every_format_gives_the_same_numbers(
    write: Callable[[Path], ArraySource], tmp_path: Path
) -> None:
    matrix = load_matrix(write(tmp_path), items())
    assert matrix.names == NAMES
    for place, name in enumerate(NAMES):
        column = matrix.column(name)
        assert column.dtype == np.float64
        np.testing.assert_array_equal(column, X[:, place].astype(np.float64))
    taken = matrix.take(["hot.dog", "cat"])
    assert matrix.dtype == taken.dtype == np.float32
    assert taken.flags.f_contiguous
    np.testing.assert_array_equal(taken, X[:, [2, 0]])
    assert matrix.counts["columns"] == 3
    assert json.dumps({**matrix.counts, **matrix.inputs})


def test_a_csv_gives_the_numbers_that_it_spells(tmp_path: Path) -> None:
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


LABELS: dict[str, Any] = {
    "integers": pa.array([1, 0, None], pa.int8()),
    "booleans": pa.array([True, False, None]),
    "floats": pa.array([1, 0, np.nan], pa.float16()),
    "text of booleans": pa.array(["True", "false", ""]),
    "text of numbers": pa.array(["1", "0.0", None]),
    "a dictionary": pa.array(["1", "0", None]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_plain_type_are_one_and_zero(kind: str, tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b", "c"], "cat": LABELS[kind]})
    pq.write_table(table, tmp_path / "x.parquet")
    for file in (table, tmp_path / "x.parquet"):
        matrix = load_matrix(ArraySource(file, columns=("cat",)), items(["c", "b", "a"]))
        np.testing.assert_array_equal(matrix.labels("cat"), [np.nan, 0, 1])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int64, np.float16])
def test_arrays_of_labels(dtype: Any) -> None:
    source = ArraySource(np.array([[1, 0], [0, 0]], dtype=dtype), ids=["a", "z"], names=("x", "y"))
    matrix = load_matrix(source, items(["b", "a"]), max_unmatched=0.5)
    np.testing.assert_array_equal(matrix.labels("x"), [np.nan, 1])
    np.testing.assert_array_equal(matrix.take(["y", "x"]), [[np.nan, np.nan], [0, 1]])


NO_LABELS: list[tuple[list[float], str]] = [
    ([0.0, 1.0, -1.0], "-1 is no label. Expected: {}. To do: write 0 for -1."),
    (
        [0.0, 1.0, 0.25],
        "0.25 is no label. Expected: {}. To do: threshold scores first, or name a column of "
        "labels.",
    ),
]


@pytest.mark.parametrize(("values", "message"), NO_LABELS)
def test_a_number_that_is_no_label_is_named_by_its_row(values: list[float], message: str) -> None:
    expected = "1 where the item shows the concept, 0 where it does not"
    table = pl.DataFrame({"id": ["a", "b", "c"], "cat": values})
    matrix = load_matrix(ArraySource(table), items(["c", "b", "a"]), what="labels")
    text = f"labels (data frame), column 'cat', row 3: {message.format(expected)}"
    with pytest.raises(DataError, match=f"^{re.escape(text)}$"):
        matrix.labels("cat")


def test_a_column_that_is_not_there_names_the_nearest() -> None:
    matrix = load_matrix(ArraySource(frame()), items())
    for ask in (matrix.column, matrix.labels, lambda name: matrix.take([name])):
        missing = "scores .data frame., column 'cats': there is no such column.*write 'cat' if"
        with pytest.raises(DataError, match=missing):
            ask("cats")
        text = (
            "scores (data frame), column 'split': the column holds no numbers and was left out. "
            "Expected: numbers. To do: write numbers, 1 and 0 for labels."
        )
        with pytest.raises(DataError, match=f"^{re.escape(text)}$"):
            ask("split")


def test_text_of_one_letter_is_no_answer_in_words() -> None:
    table = frame().with_columns(pl.Series("gender", ["f", "m"] * (N // 2)))
    assert load_matrix(ArraySource(table), items()).counts["columns_left_out"] == [
        "gender",
        "split",
    ]


def test_columns_of_lists_are_left_out_beside_numbers(tmp_path: Path) -> None:
    table = frame().with_columns(pl.Series("emb", X.tolist()))
    table.write_parquet(tmp_path / "x.parquet")
    for file in (table, table.to_pandas(), tmp_path / "x.parquet"):
        matrix = load_matrix(ArraySource(file), items())
        assert matrix.names == NAMES
        assert matrix.counts["columns_left_out"] == ["emb", "split"]


def test_renamed_columns() -> None:
    source = ArraySource(frame(), columns={"Katze": "cat", "also a cat": "cat"})
    matrix = load_matrix(source, items())
    assert matrix.names == ("Katze", "also a cat")
    np.testing.assert_array_equal(matrix.column("Katze"), matrix.column("also a cat"))


def test_integers_that_single_precision_lacks_keep_their_value() -> None:
    table = pl.DataFrame({"id": ["a", "b"], "votes": [2**24 + 1, 2]})
    matrix = load_matrix(ArraySource(table), items(["a", "b"]))
    assert matrix.dtype == np.float64
    assert matrix.take(["votes"])[0, 0] == 2**24 + 1


def test_an_empty_cell_of_lists_is_an_item_without_a_row() -> None:
    table = pa.table({"id": ["a", "b"], "s": pa.array([None, [0.5, 0.1]], pa.list_(pa.float32()))})
    source = ArraySource(table, column="s", names=("x", "y"))
    matrix = load_matrix(source, items(["a", "b"]), max_unmatched=0.5)
    np.testing.assert_array_equal(matrix.column("x"), [np.nan, 0.5])
    assert matrix.counts["items_without_row_examples"] == ["a"]


@pytest.mark.parametrize("width", [1, 2, 5, 100])
def test_blocks_of_any_width_read_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(70, dtype=np.float32).reshape(10, 7)
    monkeypatch.setattr(matrices, "BLOCK_BYTES", width * 40)
    read = matrices.Blocks(values, {f"{place}": place for place in range(7)})
    for place in (6, 0, 3, 2, 6, 5):
        np.testing.assert_array_equal(read(f"{place}"), values[:, place])


def test_threads_that_ask_for_far_columns_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(4000, dtype=np.float32).reshape(100, 40)
    monkeypatch.setattr(matrices, "BLOCK_BYTES", 800)
    read = matrices.Blocks(values, {f"{place}": place for place in range(40)})
    wrong: list[int] = []

    def work(start: int) -> None:
        for step in range(200):
            place = (start + 7 * step) % 40
            if not np.array_equal(read(f"{place}"), values[:, place]):
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_only_the_columns_asked_for_are_read_from_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = load_matrix(as_parquet(tmp_path), items())
    asked: list[Any] = []
    read = pq.ParquetFile.read

    def spy(self: Any, columns: Any = None, **options: Any) -> Any:
        asked.append(columns)
        return read(self, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", spy)
    matrix.column("dog")
    assert asked == [["dog"]]


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 12))
def test_any_order_of_rows_gives_the_same(random: Any, rows: int, known: int) -> None:
    values = np.array([[random.choice([0.0, 1.0, np.nan]) for _ in "xy"] for _ in range(rows)])
    order = random.sample(range(rows), rows)
    table = pl.DataFrame({"id": [*range(rows)], "x": values[:, 0], "y": values[:, 1]})
    sources = [
        ArraySource(table),
        ArraySource(table[order]),
        ArraySource(values[order], ids=order, names=("x", "y")),
        ArraySource(np.asfortranarray(values), ids=[*range(rows)], names=("x", "y")),
    ]
    loaded = [load_matrix(one, items([*range(known)]), max_unmatched=1) for one in sources]
    for matrix in loaded:
        np.testing.assert_array_equal(matrix.take(["x", "y"]), loaded[0].take(["x", "y"]))
        assert {**matrix.counts, "columns_left_out": []} == loaded[0].counts
