"""What holds for any input."""

import csv
import io
import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from equipoise.data import (
    LabelSource,
    PredictionSource,
    load_predictions,
    read_table,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def summary(labels, predictions):
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
def test_permuted_rows_give_the_same(random, n, m):
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
def test_any_text_survives_csv_json_and_parquet(tmp_path_factory, rows):
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
