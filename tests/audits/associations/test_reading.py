"""Unusual sets, embeddings and figures: an error that says what to do, or a note that counts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.associations.association_world import (
    asked,
    image_vectors,
    images,
    pick,
    rows_of,
    run,
    values,
    word_vectors,
    words,
)
from equipoise import audits
from equipoise.core import AuditResult, DataError

ROOT = Path(__file__).resolve().parents[3]
SCORE = asked("association_score", "doctor", modalities=["II"])
LABELS = {"metric": "predicted_label_weat", "images": "images", "groups": "gender",
          "labels": "prompts", "attributes": ["men", "women"]}  # fmt: skip
GROUPED = {"images": "images", "groups": "gender", "positive": "good", "negative": "bad"}


def refused(*measure: dict[str, Any], **changes: Any) -> DataError:
    """The error of a run, which is also that of the plan."""
    config = audits.parse_config(values(*measure, **changes))
    with pytest.raises(DataError) as planned:
        audits.plan(config)
    with pytest.raises(DataError) as error:
        audits.run(config)
    assert str(error.value) == str(planned.value)
    return error.value


def model_of(vectors: np.ndarray, texts: np.ndarray | None = None) -> dict[str, Any]:
    both = {
        "images": {"file": vectors},
        "words": {"file": word_vectors() if texts is None else texts},
    }
    return {"m": {"embeddings": both}}


def notes(result: AuditResult) -> str:
    return "\n".join(result.manifest.notes)


@pytest.mark.parametrize(
    ("members", "file", "column", "expected", "fix"),
    [
        ({"words": ["man", "mele"]}, "words (data frame)", "word", "ids", "'male'"),
        ({"images": {"gender": "Mael"}}, "images (data frame)", "gender", "'Female'", "'Male'"),
        ({"images": {"gendre": "Male"}}, "images (data frame)", "gendre", "", "'gender'"),
        (
            {"images": {"gender": "Male", "job": "nurse"}}, "images (data frame)", None,
            "at least one row", "fewer values",
        ),
    ],
)  # fmt: skip
def test_a_set_that_fits_no_row(
    members: dict[str, Any], file: str, column: str | None, expected: str, fix: str
) -> None:
    error = refused(SCORE, sets={"men": members})
    assert (error.file, error.column) == (file, column)
    assert expected in (error.expected or "")
    assert fix in (error.fix or "")


def test_vectors_of_different_lengths() -> None:
    error = refused(SCORE, models=model_of(image_vectors()[:, :5]))
    assert error.file == "embeddings of images by m (array)"
    assert "images 5, words 8" in error.problem


def test_vectors_that_cannot_be_used_are_left_out_and_counted() -> None:
    vectors = image_vectors()
    men = rows_of("gender", "Male")
    vectors[men[0]], vectors[men[1], 2], vectors[men[2], 0] = 0, np.nan, np.inf
    result = run(SCORE, models=model_of(vectors))
    found = pick(result, "association_score")
    assert {(one.reason, one.count) for one in found.excluded} == {
        ("men: zero vector", 1),
        ("men: not a number or infinite", 2),
    }
    assert "m, images: 2 vectors hold NaN or an infinity, and are left out of every set (" in notes(
        result
    )
    assert "m, images: 1 vector is zero, and is left out of every set (p01)." in notes(result)
    kept = np.delete(image_vectors(), men[:3], axis=0)
    fewer = values(SCORE)["data"]
    table = images().filter(~pl.col("image").is_in([f"p{k:02d}" for k in men[:3]]))
    fewer["images"] = {**fewer["images"], "table": table}
    assert found.value == pick(run(SCORE, models=model_of(kept), data=fewer), found.metric).value


def test_a_set_without_a_vector_that_can_be_used() -> None:
    vectors = image_vectors()
    vectors[rows_of("job", "doctor")] = 0
    with pytest.raises(DataError, match=r"^m: none of the images of the set 'doctor'"):
        run(SCORE, models=model_of(vectors))


def test_words_that_cannot_be_used_leave_the_others() -> None:
    texts = word_vectors()
    texts[rows_of("list", "good")[0]] = np.nan
    texts[rows_of("list", "prompt")[0]] = 0
    labels = {"metric": "label_concentration", "images": "images", "groups": "gender",
              "labels": "prompts"}  # fmt: skip
    models = model_of(image_vectors(), texts)
    result = run({"metric": "trend", **GROUPED}, labels, models=models)
    alone = {"good": {"words": ["gentle"]}}
    assert pick(result, "trend").value == pick(run(
        {"metric": "trend", **GROUPED}, sets=alone), "trend").value  # fmt: skip
    assert {row["label"] for row in result.tables["labels"].to_pylist()} == {"a photo of a nurse"}


def test_vectors_that_are_not_normalised_and_float16_are_told() -> None:
    result = run(SCORE, models=model_of(image_vectors().astype(np.float16)))
    told = "m, images: the 64 vectors are not all of length 1, and were normalised."
    assert told in notes(result)
    unit = image_vectors() / np.linalg.norm(image_vectors(), axis=1, keepdims=True)
    assert "images: the" not in notes(run(SCORE, models=model_of(unit)))
    assert "m, images: vectors are stored as float16, and were computed with in float64." in notes(
        result
    )
    found = pick(result, "association_score").value
    assert found == pytest.approx(pick(run(SCORE), "association_score").value, abs=1e-3)


def test_items_without_an_embedding_are_counted_up_to_a_share() -> None:
    known = pl.DataFrame({"image": images()["image"]}).with_columns(
        v=pl.Series(image_vectors().tolist())
    )
    short = known.filter(pl.col("image") != "doctor00")
    models = model_of(word_vectors())
    models["m"]["embeddings"]["images"] = {"file": short, "id": "image", "column": "v"}
    assert "doctor00" in str(refused(SCORE, models=models))
    data = values(SCORE)["data"]
    data["images"] = {**data["images"], "max_unmatched": 0.1}
    result = run(SCORE, models=models, data=data)
    found = pick(result, "association_score")
    assert [(one.reason, one.count) for one in found.excluded] == [
        ("doctor: no embedding or score", 1)
    ]
    assert "m, images: 1 item has no vector, and is left out of every set (doctor00)." in notes(
        result
    )


def test_sets_of_one_small_sets_and_unequal_targets_are_told() -> None:
    few = {"arts": {"words": ["poetry"]}}
    told = notes(run(asked("weat", "science", "arts"), sets=few))
    assert "Sets of one, which no interval resamples: arts (text)." in told
    assert "Sets of fewer than 10, whose intervals are too short: men (4 texts)" in told
    assert "science and arts have 3 and 1 texts: partitions keep these sizes." in told
    assert "No measurement names the sets good, bad, prompts, doctor, nurse." in told


def test_sizes_of_sets_are_those_that_a_model_can_use() -> None:
    broken = word_vectors()
    broken[rows_of("list", "science")[:2]] = np.nan
    broken[rows_of("list", "arts")[0]] = 0.0
    pair = {"science": {"words": ["physics", "geometry"]}}
    models = model_of(image_vectors()) | {"holes": model_of(image_vectors(), broken)["m"]}
    told = notes(run(asked("weat", "science", "arts", modalities=["TT"]), sets=pair, models=models))
    assert "Sets of one, which no interval resamples: science (text of holes)." in told
    assert "science (2 texts of m)" in told
    assert "arts (3 texts of m), arts (2 texts of holes)" in told
    assert "science and arts have 2 and 3 texts of m: partitions keep these sizes." in told
    assert "science and arts have 1 and 2 texts of holes: partitions keep these sizes." in told


def test_images_without_a_usable_vector_are_not_counted_in_their_region() -> None:
    broken = image_vectors()
    broken[:32] = np.nan
    told = notes(run({"metric": "trend", **GROUPED, "regions": "region"}, models=model_of(broken)))
    assert "Fewer than 10 images, whose intervals are too short: " in told
    assert "Female in north (1), Male in north (2)" in told


def test_a_member_of_two_sets_stays_in_both_and_is_named() -> None:
    both = {"women": {"words": ["woman", "female", "him"]}}
    told = notes(run(asked("weat", "science", "arts", modalities=["TT"]), sets=both))
    assert "men and women share 1 of their members, which stay in both: him." in told


def test_items_without_the_value_of_a_condition_are_counted() -> None:
    assert "images: 24 items have no gender, and are in no set or group by it." in notes(run(SCORE))


def test_all_scores_equal_is_not_estimable() -> None:
    same = word_vectors()
    same[rows_of("list", "science")] = same[rows_of("list", "arts")] = same[0]
    result = run(
        asked("weat", "science", "arts", modalities=["TT"]),
        models=model_of(image_vectors(), same),
    )
    found = pick(result, "weat")
    assert np.isnan(found.value)
    assert found.reason == "all scores are equal: their standard deviation is 0"


@pytest.mark.parametrize(
    ("question", "sets", "column", "problem"),
    [
        (
            {"metric": "trend", **GROUPED}, {"bad": {"words": ["cruel", "gentle"]}}, None,
            "'gentle' is in the set 'good'",
        ),
        (asked("mcas", "science"), {}, None, "measure[0] (mcas)"),
        ({**LABELS, "groups": "region"}, {}, "region", "'east', 'north', 'south'"),
        ({**LABELS, "first": "Man"}, {}, "gender", "'Man'"),
    ],
)  # fmt: skip
def test_a_measurement_without_the_sets_or_groups_that_it_needs(
    question: dict[str, Any], sets: dict[str, Any], column: str | None, problem: str
) -> None:
    error = refused(question, sets=sets)
    assert error.column == column
    assert problem in error.problem


def test_a_region_without_images_of_a_group_has_no_number() -> None:
    table = images().with_columns(
        region=pl.when((pl.col("region") == "east") & (pl.col("gender") == "Female"))
        .then(None)
        .otherwise(pl.col("region"))
    )
    data = values()["data"] | {"images": {"table": table, "id": "image", "kind": "image"}}
    result = run({"metric": "gender_difference", **GROUPED, "regions": "region"}, data=data)
    found = pick(result, "gender_difference", subject="east")
    assert np.isnan(found.value)
    assert found.reason == "fewer than two groups"
    assert (
        "Fewer than 10 images, whose intervals are too short: Female in east (0), Male in east (6)"
        in notes(result)
    )
    assert [(one.group, one.note) for one in found.by_group] == [
        ("Female", "no images"),
        ("Male", ""),
    ]


def test_a_subject_without_a_figure_is_left_out_and_named() -> None:
    jobs = pl.DataFrame({"name": ["nurse", "pilot"], "salary": [80, 130]})
    outside = {"table": jobs, "subject": "name", "value": "salary"}
    question = asked("correlation", "doctor", "nurse", modalities=["II"], outside=outside)
    result = run(question)
    assert "salary: no figure for doctor, 1 of 2 left out." in notes(result)
    assert pick(result, "correlation").reason == "fewer than three pairs"


def test_a_label_of_the_column_that_is_none_of_the_labels() -> None:
    table = images().with_columns(label=pl.lit("a photo of a pilot"))
    data = values()["data"] | {"images": {"table": table, "id": "image", "kind": "image"}}
    question = {"metric": "label_concentration", "images": "images", "groups": "gender",
                "label_column": "label", "k": 1}  # fmt: skip
    assert pick(run(question, data=data), "label_concentration").value == 0
    with pytest.raises(DataError) as error:
        run({**LABELS, "label_column": "label"}, data=data)
    assert (error.value.file, error.value.column) == ("images (data frame)", "label")
    assert "'a photo of a pilot'" in error.value.problem


def test_sc_weat_of_a_large_set_is_refused() -> None:
    many = pl.DataFrame({"word": [f"w{k}" for k in range(1001)]})
    data = values()["data"] | {"words": {"table": words(), "id": "word", "kind": "text"}}
    data["many"] = {"table": many, "id": "word", "kind": "text"}
    models = model_of(image_vectors())
    models["m"]["embeddings"]["many"] = {"file": np.ones((1001, 8))}
    everyone = {"all": {"many": [f"w{k}" for k in range(1001)]}}
    with pytest.raises(DataError, match="1001 members of 'all'") as error:
        run(asked("sc_weat", "all"), data=data, models=models, sets=everyone)
    assert error.value.expected == "at most 1000 members"


def test_the_data_of_the_example_are_made_by_its_script(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "associations"
    subprocess.run([sys.executable, folder / "make.py", tmp_path], check=True)
    made = sorted(tmp_path.iterdir())
    assert {one.name for one in made} == {
        one.name for one in folder.iterdir() if one.suffix in (".csv", ".npy", ".npz")
    }
    for one in made:
        if one.suffix == ".csv":
            assert one.read_bytes() == (folder / one.name).read_bytes()
        else:
            _same_arrays(one, folder / one.name)


def _same_arrays(first: Path, second: Path) -> None:
    one, other = (np.load(path) for path in (first, second))
    if isinstance(one, np.ndarray):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        return
    np.testing.assert_array_equal(one["ids"], other["ids"])
    np.testing.assert_allclose(one["embeddings"], other["embeddings"], rtol=1e-5, atol=1e-6)


def test_the_example_leans_as_it_was_made() -> None:
    path = ROOT / "examples" / "associations" / "audit.yaml"
    result = audits.run(audits.load_config(path), base=path.parent)
    told = {
        f.subject: (f.verdict.value, f.direction.partition(" (")[0])
        for f in result.findings
        if f.metric == "association_score" and f.version == "II" and f.model == "strong"
    }
    for job in ("doctor", "engineer", "pilot", "chief executive"):
        assert told[job] == ("disparity", f"{job} is closer to men than to women")
    assert told["nurse"] == ("disparity", "nurse is closer to women than to men")
    assert told["painter"][0] == told["baker"][0] == "below threshold"
