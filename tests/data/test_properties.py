"""What holds for any input."""

import csv
import io
import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from equipoise.data import (
    read_table,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


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
