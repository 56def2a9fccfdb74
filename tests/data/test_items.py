"""Tables of items keep their order and say what is missing."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import DataError
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


def test_ids_are_text_whatever_they_are_stored_as() -> None:
    for ids in ([1, 2], [1.0, 2.0], ["1", "2"]):
        assert load_items(ItemSource(pl.DataFrame({"id": ids}), "id")).ids.tolist() == ["1", "2"]


def test_texts_that_mean_missing_do_not_apply_to_ids() -> None:
    frame = pl.DataFrame({"id": ["NA", "b"], "g": ["NA", "x"]})
    items = load_items(ItemSource(frame, "id", ("g",), missing=("NA",)))
    assert items.ids.tolist() == ["NA", "b"]
    assert items.columns["g"].tolist() == [None, "x"]


def test_a_set_of_one_item_loads() -> None:
    assert len(load_items(ItemSource(pl.DataFrame({"id": ["a"]}), "id"))) == 1


BAD: list[tuple[pl.DataFrame, str]] = [
    (
        pl.DataFrame({"id": ["a", "b", "a"], "g": ["x", "y", "x"]}),
        "items (data frame), column 'id': the id 'a' is in rows 1 and 3 (1 row too many). "
        "Expected: every id once. To do: remove the repeated rows.",
    ),
    (
        pl.DataFrame({"id": ["a", None], "g": ["x", "y"]}),
        "items (data frame), column 'id', row 2: 1 empty id. Expected: an id in every row. "
        "To do: fill the ids in, or remove the rows.",
    ),
    (
        pl.DataFrame({"id": ["a", "b"], "G": ["x", "y"]}),
        "items (data frame), column 'g': there is no such column. Expected: one of 'id', 'G'. "
        "To do: write 'G' if that was meant.",
    ),
    (
        pl.DataFrame({"id": ["a", "b"], "g": ["", "NA"]}),
        "items (data frame), column 'g': every cell is missing. Expected: a value in at least "
        "some rows. To do: name another column, or look at `missing:` (now 'NA').",
    ),
    (
        pl.DataFrame({"id": [], "g": []}),
        "items (data frame): there are no rows of data. Expected: at least one row of data. "
        "To do: check that the table was written completely.",
    ),
]


@pytest.mark.parametrize(("frame", "message"), BAD)
def test_bad_tables_have_one_clear_error(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        load_items(ItemSource(frame, "id", ("g",), missing=("NA",)))


TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@given(st.lists(TEXT, unique=True, min_size=1))
def test_any_text_that_is_not_blank_is_an_id(ids: list[str]) -> None:
    items = load_items(ItemSource(pl.DataFrame({"id": ids}), "id"))
    assert items.ids.tolist() == ids
    assert items.ids.dtype == np.object_
    assert json.dumps({**items.counts, **items.inputs})
