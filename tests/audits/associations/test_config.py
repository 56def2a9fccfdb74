"""Errors in the config of an audit of associations name the key and what is allowed."""

from typing import Any

import pytest

from audits.associations.association_world import asked, image_vectors, model, values
from equipoise import audits
from equipoise.core import ConfigError

SCORE = asked("association_score", "doctor")
WORDS = {"images": "images", "groups": "gender", "positive": "good", "negative": "bad"}
LABELS = {"metric": "label_concentration", "images": "images", "groups": "gender"}
OUTSIDE = {"table": "x.csv", "subject": "name", "value": "salary"}
PAIR = {"between": ["images", "words"], "file": "x.npy"}
TURNED = {"between": ["words", "images"], "file": "y.npy"}
ARRAY = {"file": image_vectors()}


def refused(*measure: dict[str, Any], **changes: Any) -> tuple[str, str]:
    """The key that an error names, and its text."""
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values(*measure, **changes))
    key, _, text = str(error.value).removeprefix("configuration: ").partition(": ")
    return key, text


@pytest.mark.parametrize(
    ("question", "key", "word"),
    [
        ({**SCORE, "offset": 0.1}, "measure[0]", "Allowed: targets, attributes, modalities"),
        ({"metric": "weat", "targets": ["science", "arts"]}, "measure[0]", "'attributes'"),
        ({**SCORE, "attributes": ["men"]}, "measure[0]", "attributes: 1 sets"),
        (asked("weat", "science"), "measure[0]", "targets: 1 sets"),
        (asked("association_score", "doctor", "men"), "measure[0]", "'men' is among the targets"),
        ({**SCORE, "fixed": ["arts"]}, "measure[0]", "fixed: 'arts'"),
        (
            asked("xmcas", "doctor", further="arts", offset=0.1, neutral=["nurse"]),
            "measure[0]", "'offset' and 'neutral'",
        ),
        ({"metric": "trend", **WORDS, "negative": "good"}, "measure[0]", "both are 'good'"),
        (LABELS, "measure[0]", "'labels' or 'label_column'"),
        ({"metric": "trend", **WORDS, "images": "words"}, "measure[0].images", "Allowed: images"),
        (asked("association_score", "doctor", "doctor"), "measure[0].targets", "'doctor'"),
        ({**SCORE, "targets": 3}, "measure[0].targets", "given 3"),
        ({**SCORE, "targets": []}, "measure[0].targets", "given []"),
        (asked("association_score", "docter"), "measure[0].targets", "did you mean 'doctor'?"),
        ({**SCORE, "metric": "weatt"}, "measure[0].metric", "did you mean 'weat'?"),
        ({**SCORE, "modalities": ["IT"]}, "measure[0].modalities[0]", "'II', 'ITP', 'ITA'"),
        ({**SCORE, "model": "o"}, "measure[0].model", "Allowed: m"),
        (
            asked("correlation", "doctor", of="mcas", modalities=["II"], outside=OUTSIDE),
            "measure[0]", "'modalities' is for association_score",
        ),
    ],
)  # fmt: skip
def test_a_measurement_is_refused_with_what_is_allowed(
    question: dict[str, Any], key: str, word: str
) -> None:
    place, text = refused(question)
    assert place == key
    assert word in text


@pytest.mark.parametrize(
    ("changes", "key", "word"),
    [
        ({"sets": {"men": {"image": ["p01"]}}}, "sets.men", "did you mean 'images'?"),
        (
            {"models": {"m": {"embeddings": {"word": ARRAY}}}},
            "models.m.embeddings", "did you mean 'words'?",
        ),
        (
            {"models": {"m": {"pairs": [{"between": ["images", "wards"], "file": "x.npy"}]}}},
            "models.m.pairs[0].between", "did you mean 'words'?",
        ),
        ({"models": {"m": {}}}, "models.m", "neither is given"),
        (
            {"models": {"m": {"embeddings": {"words": {"file": "x.npy"}}, "pairs": [PAIR]}}},
            "models.m", "both are given",
        ),
        ({"models": {"m": {"pairs": [PAIR, TURNED]}}}, "models.m", "pairs[1]"),
        (
            {"gate": [{"metric": "association_score", "max": 0.1, "groups": "men"}]},
            "gate[0].groups", "Allowed: men against women",
        ),
        *(
            ({"sets": {"men": {"images": members}}}, "sets.men.images", word)
            for members, word in (
                ([], "expected ids, or a mapping"),
                ({}, "expected ids, or a mapping"),
                (1.5, "expected ids, or a mapping"),
                ({"gender": []}, "at least one value"),
                (["p01", "p01"], "'p01' appears more than once"),
                ({"gender": [True]}, "not True"),
            )
        ),
    ],
)  # fmt: skip
def test_sets_models_and_gates_are_refused(changes: dict[str, Any], key: str, word: str) -> None:
    place, text = refused(SCORE, **changes)
    assert place == key
    assert word in text


def figures(value: str) -> dict[str, Any]:
    return asked("correlation", "doctor", outside={**OUTSIDE, "value": value})


@pytest.mark.parametrize(
    ("first", "second", "distinct"),
    [
        (SCORE, asked("association_score", "doctor", "nurse"), {**SCORE, "version": "again"}),
        (
            {**SCORE, "modalities": ["II"]}, {**SCORE, "modalities": ["II", "TT"]},
            {**SCORE, "modalities": ["TT"]},
        ),
        ({**SCORE, "model": "m"}, SCORE, {**SCORE, "model": "n"}),
        (figures("salary"), figures("salary"), figures("share")),
    ],
)  # fmt: skip
def test_measurements_differ_in_what_findings_are_about(
    first: dict[str, Any], second: dict[str, Any], distinct: dict[str, Any]
) -> None:
    models = {"m": model(), "n": model()}
    key, text = refused(first, second, models=models)
    assert "asks what measure[0] asks" in f"{key}: {text}"
    audits.parse_config(values(first, distinct, models=models))


def test_labels_of_a_column_belong_to_a_model() -> None:
    question, two = {**LABELS, "label_column": "job"}, {"m": model(), "n": model()}
    assert "Allowed: m, n" in refused(question, models=two)[1]
    audits.parse_config(values({**question, "model": "n"}, models=two))


def test_single_ids_and_whole_numbers_are_taken_as_text() -> None:
    config: Any = audits.parse_config(values(SCORE, sets={"x": {"words": "man", "images": [7]}}))
    assert config.sets["x"] == {"words": ("man",), "images": ("7",)}
    assert config.resolved["sets"]["x"] == {"words": ["man"], "images": ["7"]}
