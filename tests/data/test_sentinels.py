"""Values of group attributes that stand for a missing value, and how to keep them."""

import polars as pl
import pytest

from equipoise.data import ItemSource, LabelSource, load_items, load_predictions
from equipoise.data.predictions import PredictionSource
from equipoise.data.sentinels import sentinels_of


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1", "2", "5", "-1"), {"-1"}),
        (("Black", "White", "-1"), {"-1"}),
        (("0", "1", "-1", "-9", "-99"), {"-1", "-9", "-99"}),
        (("1", "2", "99"), {"99"}),
        (("18", "64", "999"), {"999"}),
        (("1.0", "2.0", "-1.0"), {"-1.0"}),
        (("man", "woman", "Unknown", " N/A ", "?"), {"Unknown", " N/A ", "?"}),
        (("man", "woman", "unsure", "not sure"), {"unsure", "not sure"}),
        (("man", "woman", "unclear", "undetermined"), {"unclear", "undetermined"}),
        (("man", "woman", "unidentified", "n/a"), {"unidentified", "n/a"}),
        (("man", "woman", "Can't tell", "can’t_tell"), {"Can't tell", "can’t_tell"}),
        (("man", "woman", "(not specified)", "Don't know"), {"(not specified)", "Don't know"}),
        (("man", "woman", "non-binary", "prefer not to say", "both"), set()),
        (("man", "woman", "undefined", "none", "-1"), {"undefined", "none", "-1"}),
        # Codes of two groups, and numbers in a range.
        (("-1", "1"), set()),
        (("none", "hat"), set()),
        (("-2", "-1", "0", "1"), set()),
        (("97", "98", "99"), set()),
        (("1", "10", "99"), set()),
        (("9", "8", "7"), set()),
        (("other", "man", "woman"), set()),
    ],
)  # fmt: skip
def test_sentinels_stand_apart_from_the_other_values(values, expected):
    assert {*sentinels_of(values)} == expected


ROWS = pl.DataFrame(
    {
        "id": [f"{row:02d}" for row in range(12)],
        "race": ["1", "2", "-1"] * 4,
        "label": ["yes", "no", "unknown"] * 4,
    }
)


def test_a_table_counts_sentinels_of_attributes_alone():
    items = load_items(ItemSource(ROWS, "id", ("race", "label"), attributes=("race",)))
    assert items.coded["race"].vocabulary == ("1", "2")
    assert items.coded["label"].vocabulary == ("no", "unknown", "yes")
    assert items.counts["missing"] == {"race": 4, "label": 0}
    assert items.counts["sentinels"] == {"race": {"-1": 4}}


@pytest.mark.parametrize("declared", [{"missing": ()}, {"missing": ("x",)}, {"levels": ("-1",)}])
def test_declared_values_stay_groups(declared):
    items = load_items(ItemSource(ROWS, "id", ("race",), attributes=("race",), **declared))
    assert items.coded["race"].vocabulary == ("-1", "1", "2")
    assert "sentinels" not in items.counts


def test_words_stay_a_group_where_nothing_else_could_be_compared():
    frame = ROWS.with_columns(hat=pl.Series(["none", "cap"] * 6))
    items = load_items(ItemSource(frame, "id", ("hat",), attributes=("hat",)))
    assert items.coded["hat"].vocabulary == ("cap", "none")
    assert items.counts["sentinels_kept"] == {"hat": ["none"]}


def test_targets_and_predictions_keep_unknown_as_a_class():
    source = LabelSource(ROWS, "id", "label", ("race", "label"))
    data = load_predictions(source, {"m": PredictionSource(table=ROWS, prediction="label")})
    assert {*data.target} == {"no", "unknown", "yes"}
    assert data.models["m"].versions["default"].coded.counts.tolist() == [4, 4, 4]
    assert data.counts["labels"]["sentinels"] == {"race": {"-1": 4}}
