"""What holds for any input."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import EquipoiseError
from equipoise.data import (
    Coded,
    LabelSource,
    Normalization,
    PredictionSource,
    load_predictions,
    read_table,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")


def summary(labels: pl.DataFrame, predictions: pl.DataFrame) -> Any:
    """Everything a loaded data set says, comparable."""
    data = load_predictions(
        LabelSource(labels, "id", "y", ("g",)),
        {"m": PredictionSource(predictions, None, ("p", "q"), open_vocabulary=True)},
        max_unmatched=1,
    )
    version = data.models["m"].versions["default"]
    rows = [data.ids, data.target, data.attributes["g"], version.label, data.models["m"].state]
    return [row.tolist() for row in rows], version.vocabulary, data.classes, data.counts


@given(st.randoms(use_true_random=False), st.integers(2, 30), st.integers(1, 30))
def test_permuted_rows_give_the_same(random: Any, n: int, m: int) -> None:
    labels = pl.DataFrame(
        {
            "id": [f"{i}" for i in range(n)],
            "y": ["a", "b", *random.choices(["a", "b", "c", None], k=n - 2)],
            "g": ["x", "y", *random.choices(["x", "y", None], k=n - 2)],
        }
    )
    predictions = pl.DataFrame(
        {
            "id": [f"{i}" for i in range(m)],
            "p": ["a", *random.choices(["a", "b", "z", None], k=m - 1)],
            "q": random.choices(["a", "b", None], k=m),
        },
        schema={"id": pl.String, "p": pl.String, "q": pl.String},
    )
    shuffled = [
        frame[random.sample(range(frame.height), frame.height)] for frame in (labels, predictions)
    ]
    assert summary(*shuffled) == summary(labels, predictions)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
def test_any_text_survives_csv_json_and_parquet(
    tmp_path_factory: Any, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    (folder / "t.csv").write_bytes(text.getvalue().encode())
    lines = (json.dumps({"a": a, "b": b}) for a, b in rows)
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pl.DataFrame(rows, schema=["a", "b"], orient="row").write_parquet(folder / "t.parquet")
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        table = read_table(folder / name, texts=("a", "b"))
        assert list(zip(table.texts["a"], table.texts["b"], strict=True)) == rows, name


def read_or_refuse(path: Path) -> str:
    """Read a table and return "", or the message of the error; any other exception escapes."""
    try:
        table = read_table(path, texts=("a",), numbers=("b",))
    except EquipoiseError as error:
        return str(error)
    assert table.rows == len(table.texts["a"]) == len(table.numbers["b"]) > 0
    return ""


@given(st.binary(max_size=60), st.sampled_from(FORMATS))
def test_any_bytes_are_read_or_refused_in_our_words(
    tmp_path_factory: Any, content: bytes, extension: str
) -> None:
    path = tmp_path_factory.mktemp("bytes") / f"t{extension}"
    path.write_bytes(content)
    # Sixty bytes at random hold no table with columns a and b.
    assert read_or_refuse(path).startswith(str(path))


@given(st.text('ab1.,"\n\r\t\0 é', max_size=40), st.sampled_from((".csv", ".tsv")))
def test_any_cells_below_a_header_are_read_or_refused(
    tmp_path_factory: Any, content: str, extension: str
) -> None:
    path = tmp_path_factory.mktemp("cells") / f"t{extension}"
    path.write_bytes(f"a{',' if extension == '.csv' else chr(9)}b\n{content}".encode())
    message = read_or_refuse(path)
    assert message == "" or message.startswith(str(path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.fixed_dictionaries({"a": JSON, "b": JSON}), max_size=4), st.binary(max_size=3))
def test_any_json_lines_are_read_or_refused(
    tmp_path_factory: Any, records: list[dict[str, Any]], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("json") / "t.jsonl"
    path.write_bytes("\n".join(json.dumps(record) for record in records).encode() + tail)
    message = read_or_refuse(path)
    assert message == "" or message.startswith(str(path))


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), min_size=1, max_size=6),
    st.sampled_from([None, Normalization()]),
    st.booleans(),
)
def test_any_text_in_cells_makes_no_foreign_exception(
    rows: list[tuple[str, str, str, str]], normalize: Normalization | None, opened: bool
) -> None:
    unique = [(f"{row}{text}", *others) for row, (text, *others) in enumerate(rows)]
    frame = pl.DataFrame(unique, schema=["id", "y", "g", "p"], orient="row")
    source = PredictionSource(
        frame, "p", normalize=normalize, open_vocabulary=opened, unknown=("?",)
    )
    try:
        data = load_predictions(LabelSource(frame, "id", "y", ("g",)), {"m": source})
    except EquipoiseError:
        return
    assert data.ids.tolist() == sorted(row[0] for row in unique)
    assert sum(data.counts["models"]["m"]["states"].values()) == len(rows)


@given(st.lists(st.one_of(st.none(), TEXT)))
def test_codes_give_the_texts_back(texts: list[str | None]) -> None:
    coded = Coded.of(pl.Series(texts, dtype=pl.String))
    assert coded.values.tolist() == texts
    assert list(coded.vocabulary) == sorted({text for text in texts if text is not None})
    assert coded.counts.sum() == np.sum([text is not None for text in texts])


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**60), 2**60)), min_size=1))
def test_floats_print_as_python_reads_them_back(values: list[float | None]) -> None:
    floats = [None if value is None else float(value) for value in values]
    table = read_table(pa.table({"a": pa.array(floats, pa.float64())}), texts=("a",))
    for text, value in zip(table.texts["a"], floats, strict=True):
        assert (text is None) == (value is None or np.isnan(value))
        assert text is None or float(text) == value
