"""What users bring: labels, scores and images in every shape, and what they are told."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.concepts.worlds import CONCEPTS, frame, run, small, tables, values, with_data
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts.data import ConceptData
from equipoise.core import AuditResult, DataError


def data(**columns: Any) -> dict[str, pl.DataFrame]:
    return tables(*world(3, n=400), **columns)


def loaded(given: dict[str, Any]) -> ConceptData:
    found = audits.load(audits.parse_config(given, source="c"))
    assert isinstance(found, ConceptData)
    return found


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(DataError) as raised:
        run(given)
    return str(raised.value)


def differences(result: AuditResult) -> dict[str, float]:
    return dict(frame(result, "concepts").select("concept", "difference").iter_rows())


def put(frame: pl.DataFrame, column: str, row: int, value: object) -> pl.DataFrame:
    cells = frame[column].to_list()
    cells[row] = value
    return frame.with_columns(pl.Series(column, cells, strict=False))


def test_ids_in_another_order_give_the_same_bytes() -> None:
    turned = data()
    straight = turned | {name: turned[name].reverse() for name in ("labels", "scores")}
    assert run(values(turned)).findings == run(values(straight)).findings


def test_every_shape_of_labels_and_scores_gives_the_same_numbers(tmp_path: Path) -> None:
    given = data()
    plain = differences(run(values(given)))
    scores = given["scores"].reverse().select(CONCEPTS).to_numpy()
    np.save(tmp_path / "scores.npy", scores)
    given["labels"].write_parquet(tmp_path / "labels.parquet")
    arrays = values(given)
    arrays["models"] = {"m": {"file": tmp_path / "scores.npy", "names": list(CONCEPTS)}}
    arrays["data"]["labels"] = {"file": tmp_path / "labels.parquet"}
    assert differences(run(arrays)) == plain
    listed = given["labels"].unpivot(index="image", variable_name="what").filter(value=1)
    assert differences(run(with_data(given, labels={"file": listed, "concept": "what"}))) == plain


def test_a_list_of_labels_counts_what_it_repeats_and_leaves_empty() -> None:
    given = data()
    listed = given["labels"].unpivot(index="image", variable_name="what").filter(value=1)
    more = pl.DataFrame(
        {"image": ["i0", "i1", "nowhere"], "value": [1, 1, 1], "what": [None, "chef", "chef"]}
    ).select(listed.columns)
    twice = pl.concat([listed, listed.head(2), more.with_columns(pl.col("value").cast(int))])
    found = loaded(with_data(given, labels={"file": twice, "concept": "what"}))
    counts = found.counts["labels"]
    assert counts["empty"] == 1
    assert counts["rows_without_item"] == 1
    already = listed.filter(image="i1", what="chef").height
    assert counts["repeated"] == 2 + already
    assert counts["pairs"] == listed.height + (1 - already)
    assert counts["images_without_any"] == 400 - len({*listed["image"], "i1"})


def test_a_list_of_labels_of_other_images_is_refused() -> None:
    listed = pl.DataFrame({"image": ["x1", "i1"], "what": ["chef", "chef"]})
    assert refusal(with_data(data(), labels={"file": listed, "concept": "what"})) == (
        "labels (data frame), column 'image', row 1: 1 of 2 rows name an image that the table of "
        "images does not have. Expected: at most a share of 0.01 (data.max_unmatched). To do: "
        "check that both tables name images alike, or raise data.max_unmatched."
    )


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (2, "2 is no label, the first of 1 such rows, of image 'i397'"),
        (None, "an empty cell in 1 rows, the first of image 'i397'"),
    ],
)
def test_labels_other_than_0_and_1_are_refused(cell: object, told: str) -> None:
    given = data()
    labels = put(given["labels"], "nurse", 2, cell)
    assert refusal(values(given | {"labels": labels})) == (
        f"labels (data frame), column 'nurse', row 3: {told}. Expected: 0 or 1. To do: write 0 "
        "where the concept is absent and 1 where it is shown, or leave the column out of "
        "'concepts'."
    )


def test_labels_in_words_are_refused() -> None:
    given = data()
    words = pl.Series("chef", ["yes" if one else "no" for one in given["labels"]["chef"]])
    told = refusal(values(given | {"labels": given["labels"].with_columns(words)}))
    assert told.startswith("labels (data frame), column 'chef', row 1: ")
    assert told.endswith("To do: write 1 and 0.")


def test_columns_that_are_no_labels_may_stand_beside_them() -> None:
    given = data()
    labels = given["labels"].with_columns(year=pl.lit(1999), note=pl.lit("x"))
    found = loaded(values(given | {"labels": labels}))
    assert sorted(found.models["m"].concepts) == sorted(CONCEPTS)
    assert found.counts["labels"]["concepts_left_out_examples"] == ["year"]
    assert found.counts["labels"]["columns_left_out"] == ["note"]


@pytest.mark.parametrize("score", [None, np.nan, np.inf])
def test_missing_and_infinite_scores_are_refused(score: float | None) -> None:
    given = data()
    scores = put(given["scores"], "chef", 4, score)
    assert refusal(values(given | {"scores": scores})) == (
        "scores of m (data frame), column 'chef', row 5: 1 scores are missing or infinite, the "
        "first of image 'i395'. Expected: a finite number for every image that has a row. To do: "
        "score the image, or remove its row: images without scores are counted."
    )


def test_images_without_scores_or_labels_are_counted() -> None:
    given = data()
    given["scores"] = given["scores"].tail(398)
    given["labels"] = given["labels"].head(397)
    result = run(values(given))
    left = {one.reason: one.count for one in result.findings[0].excluded}
    assert left["no row of labels"] == 3
    assert left["no row of scores"] == 2
    assert "m, gender, baseline: 2 rows left out (no row of scores)." in result.manifest.notes
    assert result.findings[0].n == 395


def test_too_many_images_without_scores_are_refused() -> None:
    given = data()
    assert "200 of 400" in refusal(values(given | {"scores": given["scores"].tail(200)}))


def test_a_mapped_class_without_its_column_is_refused() -> None:
    given = data()
    models = {"m": {"file": given["scores"], "map": {"chef": ["chef", "chief"]}}}
    told = refusal(values(given, models=models))
    assert told.startswith("scores of m (data frame), column 'chief': there is no such column.")
    assert told.endswith("To do: write 'chef' if that was meant.")


def test_a_map_of_what_nobody_labelled_is_refused() -> None:
    given = data()
    models = {"m": {"file": given["scores"], "map": {"shef": "chef"}}}
    assert refusal(values(given, models=models)) == (
        "labels (data frame): models.m.map names 'shef', of which there are no labels. Expected: "
        "some of 'bicycle', 'chef', 'guitar', 'nurse'. To do: correct the names, or remove them "
        "from there."
    )


def test_concepts_asked_for_must_have_labels_and_scores() -> None:
    given = data()
    assert refusal(values(given, concepts=["chef", "cook"])) == (
        "labels (data frame): 'concepts' names 'cook', of which there are no labels. Expected: "
        "some of 'bicycle', 'chef', 'guitar', 'nurse'. To do: correct the names, say under "
        "data.labels.map which labels stand for them, or leave them out of 'concepts'."
    )
    scores = given["scores"].drop("chef")
    assert refusal(values(given | {"scores": scores}, concepts=["chef", "nurse"])) == (
        "scores of m (data frame): no scores for the concepts 'chef'. Expected: scores by "
        "the names of concepts; there are scores of 'nurse', 'guitar', 'bicycle'. To do: say under "
        "models.m.map which of these stand for them, or leave them out of 'concepts'."
    )


def test_what_a_single_model_does_not_score_is_said_too() -> None:
    given = data()
    for lacking, told in (
        (["chef"], "m: 1 labelled concept has no scores and is not measured: chef."),
        (
            ["nurse", "chef"],
            "m: 2 labelled concepts have no scores and are not measured: chef, nurse.",
        ),
    ):
        asked = values(given | {"scores": given["scores"].drop(lacking)})
        assert told in run(asked).manifest.notes
        assert audits.plan(audits.parse_config(asked, source="c")).notes == (told,)
        chosen = audits.parse_config(asked | {"concepts": ["guitar"]}, source="c")
        assert audits.plan(chosen).notes == ()


def test_concepts_without_scores_are_left_out_and_said() -> None:
    given = data()
    models = {
        "m": {"file": given["scores"]},
        "other": {"file": given["scores"].drop("chef", "nurse")},
    }
    result = run(values(given, models=models))
    assert (
        "other: 2 labelled concepts have no scores and are not measured: chef, nurse."
        in result.manifest.notes
    )
    assert result.manifest.counts["concepts_without_scores"] == {
        "chef": ["other"],
        "nurse": ["other"],
    }
    assert {*frame(result, "concepts").filter(model="other")["concept"]} == {
        "", "guitar", "bicycle"
    }  # fmt: skip


def test_several_columns_count_by_their_largest_and_labels_by_any() -> None:
    given = data()
    other = given["scores"].with_columns(cook=pl.col("chef") + 1.0)
    labels = given["labels"].with_columns(cook=pl.col("nurse"))
    maps = {"map": {"chef": ["chef", "cook"]}, "maps": {"narrow": {"chef": "chef"}}}
    found = loaded(
        values(given | {"scores": other})
        | {"models": {"m": {"file": other} | maps}}
        | with_only_labels(given, labels, maps)
    )
    place = found.models["m"].concepts.index("chef")
    order = given["scores"].reverse()
    assert (found.models["m"].by_image(None)[:, place] == order["chef"].to_numpy() + 1.0).all()
    assert (found.models["m"].by_image("narrow")[:, place] == order["chef"].to_numpy()).all()
    shown = given["labels"].reverse()
    wide = found.labels.by_image(("chef",), None)[:, 0]
    assert (wide == ((shown["chef"] == 1) | (shown["nurse"] == 1)).to_numpy()).all()
    assert (found.labels.by_image(("chef",), "narrow")[:, 0] == shown["chef"].to_numpy()).all()


def with_only_labels(
    given: dict[str, pl.DataFrame], labels: pl.DataFrame, maps: dict[str, Any]
) -> dict[str, Any]:
    return {"data": with_data(given, labels={"file": labels} | maps)["data"]}


def test_an_image_of_several_groups_has_several_rows_and_one_unit() -> None:
    given = data()
    images = given["images"]
    both = pl.concat([images, images.head(30).with_columns(gender=pl.lit("c")), images.tail(5)])
    given["images"] = both
    told = refusal(values(given))
    assert "i0" in told
    assert "remove the repeated rows" in told
    images_section = {"table": both, "id": "image", "several_rows": True}
    result = run(with_data(given, images=images_section))
    sizes = dict(frame(result, "group_sizes").select("group", "n").iter_rows())
    assert sizes["c"] == 30
    assert sizes["a"] + sizes["b"] == 400
    finding = result.findings[0]
    assert finding.unit == "unit"
    left = {one.reason: one.count for one in finding.excluded}
    assert left["the image is in the group already"] == 5
    assert result.manifest.counts["images"]["images"] == 400
    assert result.manifest.counts["images"]["rows"] == 435


def test_rows_of_an_image_need_its_id() -> None:
    given = data()
    images = put(given["images"], "image", 3, None)
    section = {"table": images, "id": "image", "several_rows": True}
    assert refusal(with_data(given, images=section)) == (
        "images (data frame), column 'image', row 4: the id is empty. Expected: the id of an "
        "image in every row. To do: fill it in, or remove the row."
    )


def test_a_unit_is_resampled_as_a_whole() -> None:
    given = data(scene=[f"s{place // 4}" for place in range(400)])
    section = {"table": given["images"], "id": "image", "unit": "scene"}
    assert run(with_data(given, images=section)).findings[0].unit == "unit"


def test_bounds_need_numbers() -> None:
    given = data(box=["0.1"] * 399 + ["large"])
    choices = {"min_positives": 20, "where": {"box": {"min": 0.05}}}
    assert refusal(values(given, choices=choices)) == (
        "images (data frame), column 'box', row 400: 'large' is no number. Expected: a number, "
        "because 'where' has a bound on the column. To do: correct the cell, list its text under "
        "data.images.missing, or name the texts allowed under 'values'."
    )


def test_rows_outside_bounds_and_terms_are_counted() -> None:
    box = [0.01] * 50 + [None] * 10 + [0.2] * 340
    given = data(box=box, year=["2020"] * 390 + ["1999"] * 10)
    choices = {
        "min_positives": 20,
        "where": {"box": {"min": 0.05}, "year": {"values": ["2020"]}},
    }
    result = run(values(given, choices=choices))
    left = {one.reason: one.count for one in result.findings[0].excluded}
    assert left == {"box out of the range asked for": 60, "year out of the range asked for": 10}


def test_terms_that_no_row_has_are_named() -> None:
    terms = {"gender": {"A": ["a", "aa"], "B": ["b"]}}
    result = run(small(versions={"typo": {"terms": terms}}))
    note = "gender, typo: no row has the values aa that the terms of gender name."
    assert note in result.manifest.notes


def test_a_baseline_without_two_groups_is_refused() -> None:
    given = small()
    given["choices"] = {"terms": {"gender": {"A": ["a"], "B": ["nobody"]}}}
    assert refusal(given) == (
        "images (data frame): groups gender: fewer than two groups have 30 or more rows (A: "
        f"{int((world(3, n=400)[2] == 'a').sum())}). Expected: at least two groups of that size. "
        "To do: choose other groups or terms, or lower data.min_group_size."
    )
