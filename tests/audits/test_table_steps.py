"""Tables with steps in audits of every kind: the findings are those of the prepared table."""

import polars as pl
import pytest

from audits.test_metamorphic import on_frames, world
from equipoise import audits
from equipoise.discovery import KINDS


def coded(frame):
    """Return a table whose texts are codes, and the step that gives their meanings."""
    meanings = {
        column.name: {
            f"code {place}": text for place, text in enumerate(column.unique().drop_nulls())
        }
        for column in frame
        if column.dtype == pl.String
    }
    codes = {
        name: pl.col(name).replace({text: code for code, text in texts.items()})
        for name, texts in meanings.items()
    }
    return {"file": frame.with_columns(**codes), "values": meanings}


FAST = ("dataset", "answers", "regression")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in FAST else pytest.mark.slow)
        for kind in sorted(KINDS, key=lambda kind: kind not in ("concepts", "retrieval"))
    ],
)
def test_steps_give_the_findings_of_the_prepared_table(kind):
    plain = world(kind)
    stepped = on_frames(plain, coded)
    assert "'values': {" in repr(stepped)
    result = audits.run(audits.parse_config(stepped))
    expected = audits.run(audits.parse_config(plain))
    assert repr(result.findings) == repr(expected.findings)


def many_valued(rows=400):
    """Return images of a gender with several findings a cell."""
    place = pl.int_range(rows, eager=True)
    both = pl.select(
        pl.when(place % 3 == 0).then(pl.lit("mass|effusion"))
        .when(place % 3 == 1).then(pl.lit("mass")).otherwise(pl.lit("none"))
    ).to_series()  # fmt: skip
    gender = pl.select(pl.when(place % 2 == 0).then(pl.lit("f")).otherwise(pl.lit("m"))).to_series()
    ids = place.cast(pl.String)
    return pl.DataFrame({"id": ids, "gender": gender, "findings": both, "score": (place % 97) / 97})


def test_values_of_a_split_column_are_labels_of_a_data_set():
    frame = many_valued()
    images = {"table": {"file": frame, "split": {"findings": "|"}}, "id": "id"}
    config = {"audit": "dataset", "data": {"images": images, "groups": ["gender"]}}
    for labels in ({}, {"labels": ["findings"]}):
        result = audits.run(audits.parse_config(config | {"data": config["data"] | labels}))
        rows = pl.DataFrame(result.tables["label_shares"])
        assert {*rows["label"]} == {"mass", "effusion", "none"}
        for label, group, share in rows.select("label", "group", "share").iter_rows():
            cells = frame.filter(gender=group)["findings"].str.split("|")
            assert share == pytest.approx(cells.list.contains(label).mean())


def test_rules_and_samples_keep_the_labels_of_a_split_column():
    rule = {"rule": "value_groups", "attribute": "sex", "column": "gender",
            "groups": {"woman": ["f"], "man": ["m"]}}  # fmt: skip
    images = {
        "table": {"file": many_valued(), "split": {"findings": "|"}}, "id": "id", "rules": [rule],
        "sample": {"n": 150, "by": "gender"},
    }  # fmt: skip
    config = {"audit": "dataset", "data": {"images": images, "groups": ["sex"]}}
    result = audits.run(audits.parse_config(config))
    assert {*pl.DataFrame(result.tables["label_shares"])["label"]} == {"mass", "effusion", "none"}
    assert {finding.n for finding in result.findings if finding.metric == "label_gap"} == {300}


def test_values_of_a_split_column_are_concepts():
    frame = many_valued()
    scores = frame.select("id", mass="score", effusion=1 - pl.col("score"))
    data = {"images": {"table": {"file": frame, "split": {"findings": "|"}}, "id": "id"}}
    long = frame.select("id", concept=pl.col("findings").str.split("|")).explode("concept")
    plain = {
        "images": {"table": frame, "id": "id"}, "labels": {"file": long, "concept": "concept"},
    }  # fmt: skip
    results = [
        audits.run(
            audits.parse_config({
                "audit": "concepts", "data": section | {"groups": ["gender"]},
                "models": {"m": {"file": scores}}, "concepts": ["mass", "effusion"],
            })
        )
        for section in (data, plain)
    ]  # fmt: skip
    assert repr(results[0].findings) == repr(results[1].findings)
