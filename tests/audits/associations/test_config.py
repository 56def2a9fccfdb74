"""What is wrong with the configuration of an audit of associations, said with what is allowed."""

from typing import Any

import pytest

from audits.associations.association_world import asked, image_vectors, model, values
from equipoise import audits
from equipoise.core import ConfigError

START = "configuration: "
SCORE = asked("association_score", "doctor")
GROUPED = {"images": "images", "groups": "gender", "positive": "good", "negative": "bad"}


def message(*measure: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values(*measure, **changes))
    return str(error.value).removeprefix(START)


MESSAGES: list[tuple[dict[str, Any], str]] = [
    (
        {**SCORE, "offset": 0.1},
        "measure[0]: 'offset' is no option of association_score. Allowed: targets, attributes, "
        "modalities, fixed, model, version",
    ),
    (
        {"metric": "weat", "targets": ["science", "arts"]},
        "measure[0]: 'attributes' is required by weat, and missing",
    ),
    ({**SCORE, "attributes": ["men"]}, "measure[0]: attributes: 1 sets; expected two"),
    (asked("weat", "science"), "measure[0]: targets: 1 sets; weat compares two"),
    (
        asked("association_score", "doctor", "men"),
        "measure[0]: attributes: 'men' is among the targets too; a set plays one part",
    ),
    (
        {**SCORE, "fixed": ["arts"]},
        "measure[0]: fixed: 'arts' is no set of this question; has ['doctor', 'men', 'women']",
    ),
    (
        asked("xmcas", "doctor", further="arts", offset=0.1, neutral=["nurse"]),
        "measure[0]: 'offset' and 'neutral' both give k; expected one of them",
    ),
    (
        {"metric": "trend", **GROUPED, "negative": "good"},
        "measure[0]: positive and negative: both are 'good'",
    ),
    (
        {"metric": "label_concentration", "images": "images", "groups": "gender"},
        "measure[0]: 'labels' or 'label_column': give one of them",
    ),
    (
        {"metric": "trend", **GROUPED, "images": "words"},
        "measure[0].images: given 'words'. Allowed: images",
    ),
    (
        asked("association_score", "doctor", "doctor"),
        "measure[0].targets: 'doctor' appears more than once",
    ),
    (
        {**SCORE, "targets": 3},
        "measure[0].targets: given 3; expected names of sets, as a list or as lists by category",
    ),
    (
        {**SCORE, "targets": []},
        "measure[0].targets: given []; expected names of sets, as a list or as lists by category",
    ),
]


@pytest.mark.parametrize(("question", "expected"), MESSAGES)
def test_a_question_that_cannot_be_asked(question: dict[str, Any], expected: str) -> None:
    assert message(question) == expected


def test_an_unknown_set_is_told_with_the_nearest() -> None:
    assert message(asked("association_score", "docter")).startswith(
        "measure[0].targets: given 'docter'. Allowed: men, women, science"
    )
    assert message(asked("association_score", "docter")).endswith("; did you mean 'doctor'?")


def test_an_unknown_metric_is_told_with_the_nearest() -> None:
    told = message({**SCORE, "metric": "weatt"})
    assert told.startswith("measure[0].metric: given 'weatt'; expected 'association_score', 'weat'")
    assert told.endswith("; did you mean 'weat'?")


def test_an_unknown_modality_is_told_with_those_there_are() -> None:
    told = message({**SCORE, "modalities": ["IT"]})
    assert told.startswith("measure[0].modalities[0]: given 'IT'; expected 'II', 'ITP', 'ITA' or")


def test_mcas_is_over_all_modalities() -> None:
    outside = {"table": "x.csv", "subject": "name", "value": "salary"}
    question = asked("correlation", "doctor", of="mcas", modalities=["II"], outside=outside)
    assert message(question) == (
        "measure[0]: 'modalities' is for association_score: mcas is over all four"
    )


def test_a_question_asked_twice_needs_a_version() -> None:
    assert message(SCORE, asked("association_score", "doctor", "nurse")) == (
        "measure[1] asks what measure[0] asks; leave it out, or give it a 'version' of its own"
    )
    audits.parse_config(values(SCORE, {**SCORE, "version": "again"}))
    audits.parse_config(values({**SCORE, "modalities": ["II"]}, {**SCORE, "modalities": ["TT"]}))


def test_labels_of_a_column_belong_to_a_model() -> None:
    question = {"metric": "label_concentration", "images": "images", "groups": "gender",
                "label_column": "job"}  # fmt: skip
    two = {"m": model(), "n": model()}
    assert message(question, models=two) == (
        "measure[0]: 'label_column' holds the labels of one model; name it as 'model'. "
        "Allowed: m, n"
    )
    audits.parse_config(values({**question, "model": "n"}, models=two))
    audits.parse_config(values({**SCORE, "model": "m"}, {**SCORE, "model": "n"}, models=two))
    assert message({**SCORE, "model": "o"}) == "measure[0].model: given 'o'. Allowed: m"


def test_figures_from_two_series_are_two_questions() -> None:
    def question(value: str) -> dict[str, Any]:
        outside = {"table": "x.csv", "subject": "name", "value": value}
        return asked("correlation", "doctor", outside=outside)

    audits.parse_config(values(question("salary"), question("share")))
    assert message(question("salary"), question("salary")).startswith("measure[1] asks what")


def test_sets_and_models_name_tables() -> None:
    assert message(SCORE, sets={"men": {"image": ["p01"]}}) == (
        "sets.men: given 'image'. Allowed: images, words; did you mean 'images'?"
    )
    wrong = {"m": {"embeddings": {"word": {"file": image_vectors()}}}}
    assert message(SCORE, models=wrong) == (
        "models.m.embeddings: given 'word'. Allowed: images, words; did you mean 'words'?"
    )
    pairs = {"m": {"pairs": [{"between": ["images", "wards"], "file": "x.npy"}]}}
    assert message(SCORE, models=pairs) == (
        "models.m.pairs[0].between: given 'wards'. Allowed: images, words; did you mean 'words'?"
    )


def test_a_model_compares_in_one_way() -> None:
    expected = "; expected one of them, for a model compares in one way; or 'model', to run it"
    assert message(SCORE, models={"m": {}}) == (
        f"models.m: 'embeddings' or 'pairs': neither is given{expected}"
    )
    pair = {"between": ["images", "words"], "file": "x.npy"}
    both = {"embeddings": {"words": {"file": "x.npy"}}, "pairs": [pair]}
    assert message(SCORE, models={"m": both}) == (
        f"models.m: 'embeddings' or 'pairs': both are given{expected}"
    )
    turned = {"between": ["words", "images"], "file": "y.npy"}
    assert message(SCORE, models={"m": {"pairs": [pair, turned]}}) == (
        "models.m: pairs[1]: scores between ['images', 'words'] are given twice"
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ([], "given []; expected ids, or a mapping of columns to the values wanted"),
        ({"gender": []}, "expected at least one value"),
        ({}, "given {}; expected ids, or a mapping of columns to the values wanted"),
        (["p01", "p01"], "'p01' appears more than once"),
        ({"gender": [True]}, "given {'gender': [True]}; expected text (in quotes where it looks "
         "like true, false or null), not True"),
        (1.5, "given 1.5; expected ids, or a mapping of columns to the values wanted"),
    ],
)  # fmt: skip
def test_members_that_are_no_ids_or_values(chosen: object, expected: str) -> None:
    told = message(SCORE, sets={"men": {"images": chosen}})
    assert told.startswith("sets.men.images: ")
    assert told.endswith(expected.removeprefix("given {'gender': []}; "))


def test_single_ids_and_whole_numbers_are_taken_as_text() -> None:
    config: Any = audits.parse_config(values(SCORE, sets={"x": {"words": "man", "images": [7]}}))
    assert config.sets["x"] == {"words": ("man",), "images": ("7",)}
    assert config.resolved["sets"]["x"] == {"words": ["man"], "images": ["7"]}


def test_the_gate_names_the_pair_that_is_compared() -> None:
    rule = {"metric": "association_score", "max": 0.1, "groups": "men against women"}
    audits.parse_config(values(SCORE, gate=[rule]))
    assert message(SCORE, gate=[{**rule, "groups": "men"}]) == (
        "gate[0].groups: given 'men'. Allowed: men against women"
    )
