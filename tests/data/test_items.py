"""Tables of items keep their order and say what is missing."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from equipoise.data import ItemSource, load_items

ROWS = {"image": ["b", "a", "c"], "gender": ["F", None, "M"], "age": [1.0, 2.5, None]}


def test_items_are_in_the_order_of_the_table() -> None:
    items = load_items(ItemSource(pl.DataFrame(ROWS), "image", ("gender", "age")), what="images")
    assert (len(items), items.name, items.id) == (3, "images (data frame)", "image")
    assert items.ids.tolist() == ["b", "a", "c"]
    assert items.columns["gender"].tolist() == ["F", None, "M"]
    assert items.columns["age"].tolist() == ["1", "2.5", None]
    assert items.coded["gender"].vocabulary == ("F", "M")
    assert items.counts == {"rows": 3, "missing": {"gender": 1, "age": 1}}
    assert items.inputs["images (data frame)"]["rows"] == 3


def test_every_format_reads_the_same(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS)
    frame.write_csv(tmp_path / "i.csv")
    frame.write_parquet(tmp_path / "i.parquet")
    frame.write_ndjson(tmp_path / "i.jsonl")
    tables = [
        tmp_path / "i.csv",
        tmp_path / "i.parquet",
        tmp_path / "i.jsonl",
        str(tmp_path / "i.csv"),
    ]
    for table in [*tables, pd.DataFrame(ROWS), pa.table(ROWS), frame.lazy()]:
        items = load_items(ItemSource(table, "image", ("gender", "age")))
        assert items.ids.tolist() == ["b", "a", "c"]
        assert items.columns["gender"].tolist() == ["F", None, "M"]
        assert items.counts["missing"] == {"gender": 1, "age": 1}


TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@given(st.lists(TEXT, unique=True, min_size=1))
def test_any_text_that_is_not_blank_is_an_id(ids: list[str]) -> None:
    items = load_items(ItemSource(pl.DataFrame({"id": ids}), "id"))
    assert items.ids.tolist() == ids
    assert items.ids.dtype == np.object_
    assert json.dumps({**items.counts, **items.inputs})
