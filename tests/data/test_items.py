"""Tables of items keep their order and say what is missing."""

import polars as pl

from equipoise.data import ItemSource, load_items

ROWS = {"image": ["b", "a", "c"], "gender": ["F", None, "M"], "age": [1.0, 2.5, None]}


def test_items_are_in_the_order_of_the_table():
    items = load_items(ItemSource(pl.DataFrame(ROWS), "image", ("gender", "age")), what="images")
    assert (len(items), items.name, items.id) == (3, "images (data frame)", "image")
    assert items.ids.tolist() == ["b", "a", "c"]
    assert items.columns["gender"].tolist() == ["F", None, "M"]
    assert items.columns["age"].tolist() == ["1", "2.5", None]
    assert items.coded["gender"].vocabulary == ("F", "M")
    assert items.counts == {"rows": 3, "missing": {"gender": 1, "age": 1}}
    assert items.inputs["images (data frame)"]["rows"] == 3
