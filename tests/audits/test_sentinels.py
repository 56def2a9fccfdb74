"""Sentinels of group attributes in audits of every kind, and how a config keeps them."""

from pathlib import Path

import polars as pl
import pytest
import yaml

from audits.comparisons import images as predicted
from equipoise import audit, audits
from equipoise.audits.quick import guess_config
from equipoise.core import DataError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Of each kind: the attribute of its example that gets the sentinel, and what is counted.
KINDS = {
    "activations": "gender",
    "answers": "age",
    "concepts": "term",
    "dataset": "skin",
    "diversity": "region",
    "questions": "gender",
    "regression": "gender",
    "retrieval": "race",
    "similarity": "race",
}
UNKNOWN, ROWS = "unknown", 40


def values_of(kind, **table):
    """Return an example's config with a sentinel in the first rows of an attribute."""
    values = yaml.safe_load((EXAMPLES / kind / "audit.yaml").read_text())
    data = values["data"]
    section = data if "table" in data else data["images"]
    frame = pl.read_csv(EXAMPLES / kind / section["table"], infer_schema_length=0)
    cells = frame[KINDS[kind]].to_list()
    extra = pl.Series(KINDS[kind], [UNKNOWN] * ROWS + cells[ROWS:])
    section |= {"table": frame.with_columns(extra), **table}
    return values


def plan_of(values, kind):
    return audits.plan(audits.parse_config(values), base=EXAMPLES / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_counts_a_sentinel_as_missing_and_says_so(kind):
    planned = plan_of(values_of(kind), kind)
    assert all(UNKNOWN not in row["group"] for row in planned.groups)
    # Concepts have groups of some terms only, and count no others.
    left_out = [row for row in planned.groups if not row["group"]]
    assert kind == "concepts" or any("missing" in row["note"] for row in left_out)
    [note] = [note for note in planned.notes if UNKNOWN in note]
    assert note.startswith(f"{KINDS[kind]}: ")
    assert str(ROWS) in note
    assert "missing: []" in note
    assert 'write `missing: ["", "unknown"]` to confirm' in note


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "concepts"])
def test_every_kind_keeps_a_sentinel_where_missing_is_written(kind):
    planned = plan_of(values_of(kind, missing=[]), kind)
    assert any(UNKNOWN in row["group"] for row in planned.groups)
    assert not any(UNKNOWN in note and "counts as missing" in note for note in planned.notes)


def test_a_list_confirms_a_sentinel_and_ends_the_warning():
    planned = plan_of(values_of("dataset", missing=["", UNKNOWN]), "dataset")
    assert all(UNKNOWN not in row["group"] for row in planned.groups)
    assert not any(UNKNOWN in note for note in planned.notes)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "concepts"])
def test_every_kind_refuses_numbers_as_groups(kind):
    values = values_of(kind)
    section = values["data"] if "table" in values["data"] else values["data"]["images"]
    years = 18 + pl.int_range(pl.len()) % 60
    section["table"] = section["table"].with_columns(years.cast(pl.String).alias(KINDS[kind]))
    with pytest.raises(DataError) as raised:
        plan_of(values, kind)
    assert raised.value.column == KINDS[kind]
    assert "60" in raised.value.problem


def associations(column, **table):
    """Return an example's config with a sentinel in a column that makes groups or regions."""
    values = yaml.safe_load((EXAMPLES / "associations" / "audit.yaml").read_text())
    people = values["data"]["people"]
    frame = pl.read_csv(EXAMPLES / "associations" / people["table"], infer_schema_length=0)
    cells = pl.Series(column, [UNKNOWN] * ROWS + frame[column].to_list()[ROWS:])
    people |= {"table": frame.with_columns(cells), **table}
    return values


@pytest.mark.parametrize("column", ["gender", "region"])
def test_groups_and_regions_of_associations_have_sentinels(column):
    planned = plan_of(associations(column), "associations")
    assert all(UNKNOWN not in row["group"] for row in planned.groups)
    [note] = [note for note in planned.notes if UNKNOWN in note]
    assert note.startswith(f"{column}: ")
    assert str(ROWS) in note


def test_a_set_of_associations_keeps_the_value_that_it_names():
    values = associations("gender")
    values["sets"]["unsure"] = {"people": {"gender": UNKNOWN}}
    with pytest.raises(DataError) as caught:  # two groups are compared, and now there are three
        audits.run(audits.parse_config(values), base=EXAMPLES / "associations")
    assert caught.value.column == "gender"


def predictions(place, *, model=None, **data):
    frame = predicted(900).with_columns(place=place)
    values = {
        "audit": "predictions",
        "data": {"table": frame, "id": "id", "target": "kind", "groups": ["place"], **data},
        "models": {"poor": {"table": frame, "prediction": "poor"}},
        "resampling": {"replicates": 50, "permutations": 199},
    }
    return audits.parse_config(values)


CODES = pl.int_range(pl.len()) % 3
SENTINEL = pl.when(CODES == 0).then(pl.lit("-1")).otherwise(CODES.cast(pl.String))


def test_a_run_has_no_group_of_a_sentinel_and_counts_its_rows():
    result = audits.run(predictions(SENTINEL))
    assert {part.group for f in result.findings for part in f.by_group} <= {
        "place 1", "place 2", "all others", "all rows",
    }  # fmt: skip
    assert result.manifest.counts["labels"]["sentinels"] == {"place": {"-1": 300}}
    assert any("“-1” (300 rows)" in warning for warning in result.manifest.warnings)
    [left_out] = [r for r in result.tables["group_sizes"].to_pylist() if not r["group"]]
    assert left_out["n"] == 300


def test_a_rule_that_names_a_value_keeps_it():
    frame = predicted(900).with_columns(place=SENTINEL)
    rule = {"rule": "value_groups", "attribute": "place group", "column": "place",
            "groups": {"unknown": ["-1"], "known": ["1"], "rest": ["2"]}}  # fmt: skip
    config = audits.parse_config(
        {
            "audit": "predictions",
            "data": {"images": {"table": frame, "id": "id", "rules": [rule]},
                     "target": "kind", "groups": ["place group"]},
            "models": {"poor": {"table": frame, "prediction": "poor"}},
        }
    )  # fmt: skip
    assert {row["group"] for row in audits.plan(config).groups} == {"unknown", "known", "rest"}


def test_a_band_has_no_sentinels():
    frame = predicted(900).with_columns(
        age=pl.when(CODES == 0).then(-1).otherwise(pl.int_range(pl.len()) % 50).cast(pl.String)
    )
    rule = {"rule": "band_groups", "attribute": "age band", "column": "age", "bounds": [25],
            "names": ["under 25", "25 and over"]}  # fmt: skip
    config = audits.parse_config(
        {
            "audit": "predictions",
            "data": {"images": {"table": frame, "id": "id", "rules": [rule]},
                     "target": "kind", "groups": ["age band"]},
            "models": {"poor": {"table": frame, "prediction": "poor"}},
        }
    )  # fmt: skip
    planned = audits.plan(config)
    assert sum(row["rows"] for row in planned.groups if row["group"]) == 600
    assert any("“-1”" in note for note in planned.notes)


def test_a_reference_that_names_a_value_keeps_it():
    frame = predicted(900).with_columns(place=SENTINEL)
    shares = {"place": {"1": 0.4, "2": 0.4, "-1": 0.2}}
    values = {
        "audit": "dataset",
        "data": {"images": {"table": frame, "id": "id"}, "groups": ["place"], "labels": ["kind"]},
        "reference": {"shares": shares},
    }
    planned = audits.plan(audits.parse_config(values))
    assert {row["group"] for row in planned.groups} == {"place 1", "place 2", "place -1"}
    values["reference"] = {"shares": {"place": {"1": 0.5, "2": 0.5}}}
    result = audits.run(audits.parse_config(values | {"resampling": {"replicates": 20}}))
    shares = {f.group for f in result.findings if f.metric == "representation"}
    assert shares <= {"place 1", "place 2"}


def quick_table(**columns):
    frame = predicted(900).rename({"poor": "pred"})
    return frame.with_columns(place=SENTINEL, age=AGE, **columns)


AGE = pl.when(CODES == 0).then(-1).otherwise(pl.int_range(pl.len()) % 80)


def test_quick_counts_sentinels_as_missing_and_bands_leave_them_out():
    guess = guess_config(quick_table(), target="kind", groups=["place", "age"])
    assert "missing" not in guess.cells
    assert {"place, missing: '-1'", "age, missing: '-1'"} <= {*guess.notes}
    result = audit(quick_table(), target="kind", groups=["place", "age"])
    sizes = {row["group"]: row["n"] for row in result.tables["group_sizes"].to_pylist()
             if row["groups"] == "age band"}  # fmt: skip
    assert sizes.pop("") == 300
    assert {*sizes} == {"age under 18", "age 18–29", "age 30–44", "age 45–59", "age 60 and over"}
    assert sum(sizes.values()) == 600


def test_quick_lists_sentinels_beside_other_texts_for_nothing():
    empty = pl.when(pl.int_range(pl.len()) < 9).then(pl.lit("N/A")).otherwise("pred").alias("pred")
    table = quick_table(pred=empty)
    config = guess_config(table, target="kind", groups=["place"]).config(table)
    assert config["data"]["missing"] == ["", "N/A", "-1"]
    assert config["models"]["pred"]["missing"] == ["", "N/A"]
    # Where a class has the text, the list would take the class away.
    renamed = table.with_columns(pl.col("kind", "pred").replace(table["kind"][0], "-1"))
    guess = guess_config(renamed, target="kind", groups=["place"])
    assert guess.config(renamed)["data"]["missing"] == ["", "N/A"]
    assert "place, missing: '-1'" not in guess.notes
