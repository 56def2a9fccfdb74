"""Unusual sets, embeddings and figures; configurations that are refused."""

import numpy as np
import polars as pl
import pytest

from audits.associations.association_world import (
    DATA,
    IMAGES,
    image_vectors,
    measure,
    model,
    model_of,
    pick,
    rows_of,
    run,
    values,
)
from equipoise import audits
from equipoise.core import ConfigError, DataError

SCORE = measure("association_score", "doctor", modalities=["II"])
GROUPED = {"images": "images", "groups": "gender"}
LABELS = {**GROUPED, "metric": "predicted_label_weat", "labels": "prompts",
          "attributes": ["men", "women"]}  # fmt: skip
TREND = {**GROUPED, "metric": "trend", "positive": "good", "negative": "bad"}
SALARY = {"table": "x.csv", "subject": "name", "value": "salary"}
PAIRS = {"between": ["images", "words"], "file": "x.npy"}


def images(**changes):
    return DATA | {"images": DATA["images"] | changes}


@pytest.mark.parametrize(
    ("question", "changes", "column", "words"),
    [
        (SCORE, {"sets": {"men": {"words": ["man", "mele"]}}}, "word", "'male'"),
        (SCORE, {"sets": {"men": {"images": {"gender": "Mael"}}}}, "gender", "'Male'"),
        (SCORE, {"sets": {"men": {"images": {"gendre": "Male"}}}}, "gendre", "'gender'"),
        (
            SCORE, {"sets": {"men": {"images": {"gender": "Male", "job": "nurse"}}}}, None,
            "gender Male and job nurse",
        ),
        (SCORE, {"sets": {"men": {"images": {"job": "doctor"}}}}, None, "'men' has no image"),
        (SCORE, {"models": {"m": model_of(image_vectors()[:, :5])}}, None, "(array) 5, embeddings"),
        (TREND, {"sets": {"bad": {"words": ["gentle"]}}}, None, "'gentle' is in the set 'good'"),
        (measure("mcas", "science"), {}, None, "measure[0]"),
        (LABELS | {"groups": "region"}, {}, "region", "'east', 'north', 'south'"),
        (
            SCORE, {"models": {"m": model_of(np.where(
                (IMAGES["job"] == "doctor").fill_null(False).to_numpy()[:, None], 0.0,
                image_vectors()))}}, None, "texts of doctor",
        ),
        (
            LABELS | {"alternative": "greater", "first": "Mail"}, {}, "gender", "'Mail'",
        ),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used(question, changes, column, words):
    with pytest.raises(DataError) as error:
        run(question, **changes)
    assert error.value.column == column
    assert words in str(error.value)


def test_vectors_that_cannot_be_used_are_left_out_and_counted():
    vectors = image_vectors()
    men = rows_of("gender", "Male")
    vectors[men[0]], vectors[men[1], 2], vectors[men[2], 0] = 0, np.nan, np.inf
    finding = pick(run(SCORE, models={"m": model_of(vectors)}), "association_score")
    assert sorted(exclusion.count for exclusion in finding.excluded) == [1, 2]
    usable = np.delete(image_vectors(), men[:3], axis=0)
    fewer = images(table=IMAGES.filter(~pl.col("image").is_in([f"p{k:02d}" for k in men[:3]])))
    again = run(SCORE, models={"m": model_of(usable)}, data=fewer)
    assert finding.value == pick(again, finding.metric).value


def test_items_without_an_embedding_are_counted_up_to_a_share():
    short = pl.DataFrame({"image": IMAGES["image"], "v": image_vectors().tolist()}).filter(
        pl.col("image") != "doctor00"
    )
    embedded = model_of(short)
    embedded["embeddings"]["images"] |= {"id": "image", "column": "v"}
    with pytest.raises(DataError, match="doctor00"):
        run(SCORE, models={"m": embedded})
    result = run(SCORE, models={"m": embedded}, data=images(max_unmatched=0.1))
    assert [exclusion.count for exclusion in pick(result, "association_score").excluded] == [1]


def test_notes_name_small_and_shared_sets():
    sets = {"arts": {"words": ["poetry"]}, "women": {"words": ["woman", "female", "him"]},
            "science": {"words": ["physics", "he"]}}  # fmt: skip
    result = run(measure("weat", "science", "arts", modalities=["TT"]), sets=sets)
    text = " ".join(result.manifest.notes)
    assert all(words in text for words in ("arts (1)", "'him'", "'he'"))
    assert "fewer than 50 targets" in text
    assert "may be too" not in text


def test_a_note_names_targets_of_uneven_size_and_spread():
    words = ["poetry", "dance", "sculpture", "physics", "cruel", "lazy", "geometry", "honest"]
    sets = {"arts": {"words": words}, "science": {"words": ["chemistry", "gentle"]}}
    question = measure("weat", "science", "arts", modalities=["TT"])
    notes = " ".join(run(question, sets=sets).manifest.notes)
    assert "differ in size and spread" in notes
    assert "studentized: true" in notes
    fixed = run(question | {"studentized": True}, sets=sets)
    assert "differ in size" not in " ".join(fixed.manifest.notes)


@pytest.mark.parametrize(
    ("question", "key", "words"),
    [
        (SCORE | {"offset": 0.1}, "", "Allowed: targets, attributes, modalities"),
        ({"metric": "weat", "targets": ["science", "arts"]}, "", "'attributes'"),
        (measure("weat", "science"), "", "targets: expected two"),
        (LABELS | {"alternative": "greater"}, "", "'first'"),
        (measure("association_score", "doctor", "men"), "", "'men' appears more"),
        (GROUPED | {"metric": "label_concentration"}, "", "'labels'"),
        (TREND | {"images": "words"}, ".images", "Allowed: images"),
        (measure("association_score", "doctor", "doctor"), ".targets", "'doctor'"),
        (measure("association_score", "docter"), ".targets", "did you mean 'doctor'?"),
        (
            measure("correlation", "doctor", of="mcas", modalities=["II"], outside=SALARY), "",
            "'modalities'",
        ),
    ],
)  # fmt: skip
def test_a_measurement_is_refused(question, key, words):
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values(question))
    assert f"measure[0]{key}: " in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sets": {"men": {"image": ["p01"]}}}, "did you mean 'images'?"),
        ({"models": {"m": {"embeddings": {"word": {"file": "x.npy"}}}}}, "did you mean 'words'?"),
        (
            {"models": {"m": {"pairs": [PAIRS | {"between": ["images", "wards"]}]}}},
            "models.m.pairs[0].between",
        ),
        ({"models": {"m": model() | {"pairs": [PAIRS]}}}, "expected 'embeddings', 'pairs'"),
        (
            {"gate": [{"metric": "association_score", "max": 0.1, "groups": "men"}]},
            "Allowed: men against women",
        ),
        *(
            ({"sets": {"men": {"images": members}}}, "sets.men.images")
            for members in ([], {}, 1.5, {"gender": []}, ["p01", "p01"], {"gender": [True]})
        ),
        ({"measure": [SCORE, SCORE | {"modalities": ["II", "TT"]}]}, "measure[0]"),
    ],
)  # fmt: skip
def test_sets_models_and_gates_are_refused(changes, words):
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values(SCORE, **changes))
    assert words in str(error.value)


def test_a_note_about_several_models_appears_once_and_names_them():
    config = audits.parse_config(values(SCORE, models={"m": model(), "other": model(seed=1)}))
    for notes in (audits.run(config).manifest.notes, audits.plan(config).notes):
        scaled = [note for note in notes if note.startswith("m, images")]
        assert [note for note in scaled if "other, images" in note] == scaled != []
        texts = [note.partition(": ")[2] or note for note in notes]
        assert len(texts) == len({*texts})
