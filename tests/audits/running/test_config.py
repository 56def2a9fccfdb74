"""Keys about models to run: what is refused, in which words."""

from typing import Any

import pytest

from audits.running.worlds import associations, concepts, diversity, retrieval
from equipoise.audits.config import parse_config
from equipoise.core.errors import ConfigError


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_config(values, source="c")
    return str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("clip", "; did you mean 'open_clip'?"),
        ("hg:clip", "; did you mean 'hf'?"),
    ],
)
def test_a_name_without_a_known_prefix_is_refused(given: Any, said: str) -> None:
    text = refusal(retrieval(model=given))
    assert text.startswith(f"c: models.m.model: given {given!r}")
    assert text.endswith(said)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"device": "gpu"}, "models.m.device: given 'gpu'; expected auto, cpu, cuda or cuda:1"),
        ({"modle": "x"}, "models.m.modle: unknown key. Allowed here: images, queries, scores, mo"),
    ],
)
def test_other_values_are_refused(section: dict[str, Any], said: str) -> None:
    assert said in refusal(retrieval(model="hf:clip", **section))


FILES = {"images": {"file": "a.npy"}, "queries": {"file": "b.npy"}}
ONE = "{}' are given; expected 'model' to run it, or '{}' to read what it said before"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (retrieval(model="hf:a", **FILES), "'model' and 'images"),
        (diversity(model="hf:a", file="a.npy"), "'model' and 'file"),
        (concepts(model="hf:a", file="a.csv"), "'model' and 'file"),
        (associations(model="hf:a", embeddings={"images": {"file": "a"}}), "'model' and 'embeddi"),
    ],
)
def test_a_model_is_run_or_read(values: dict[str, Any], said: str) -> None:
    found = refusal(values)
    key = found.split("'")[3]
    assert f"c: models.m: {said}" in found
    assert ONE.format(key, key) in found


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (retrieval(revision="main", **FILES), "revision"),
        (concepts(file="a.csv", templates="openai_7"), "templates"),
    ],
)
def test_keys_about_a_model_to_run_need_one(values: dict[str, Any], key: str) -> None:
    assert refusal(values) == (
        f"c: models.m: {key!r} is about a model to run, and no 'model' is given"
    )


def test_a_dual_encoder_needs_queries() -> None:
    values = retrieval()
    del values["queries"]
    assert refusal(values) == (
        "c: queries: required, and missing: model 'm' is to embed queries, which the table of "
        "queries names"
    )


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        (
            ["a {} of {}"],
            "expected texts with one '{}' each, where the word goes, not 'a {} of {}'",
        ),
        ([], "expected the name of a list of templates, or a list of texts"),
        (
            "openai_8",
            "no list of templates is called 'openai_8'. Allowed: openai_7, openai_80, plain, or "
            "texts with one '{}' each; did you mean 'openai_80'?",
        ),
    ],
)
def test_templates_have_one_place_for_the_word(templates: Any, said: str) -> None:
    values = retrieval()
    values["queries"] = values["queries"] | {"templates": templates}
    found = refusal(values)
    assert found.startswith("c: queries.templates: ")
    assert found.endswith(said)
