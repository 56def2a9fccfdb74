"""Keys about models to run: what is refused, in which words."""

from typing import Any

import pytest

from audits.running.worlds import IMAGES, associations, concepts, diversity, retrieval
from equipoise.audits.config import parse_config
from equipoise.audits.running.config import PREFIXES, RunConfig
from equipoise.core.errors import ConfigError
from equipoise.models.registry import adapters


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_config(values, source="c")
    return str(raised.value)


def test_the_prefixes_are_those_of_the_loaders() -> None:
    assert {*PREFIXES} == {*adapters()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("clip", "; did you mean 'open_clip'?"),
        ("hg:clip", "; did you mean 'hf'?"),
        ("hf:", "; did you mean 'hf'?"),
        (3, ""),
    ],
)
def test_a_name_without_a_known_prefix_is_refused(given: Any, said: str) -> None:
    assert refusal(retrieval(model=given)) == (
        f"c: models.m.model: given {given!r}; expected a name such as "
        "'hf:openai/clip-vit-base-patch32', with one of hf:, open_clip:, timm:, onnx:, "
        f"python:, equipoise:, edited:{said}"
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"device": "gpu"}, "models.m.device: given 'gpu'; expected auto, cpu, cuda or cuda:1"),
        ({"device": "cuda:"}, "models.m.device: given 'cuda:'"),
        ({"dtype": "fp16"}, "models.m.dtype: given 'fp16'; expected 'auto', 'float32'"),
        ({"modle": "x"}, "models.m.modle: unknown key. Allowed here: images, queries, scores, mo"),
        ({"allow_pickle": "yes"}, "models.m.allow_pickle: given 'yes'; expected true or false"),
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
        (diversity(file="a.npy", device="cpu"), "device"),
        (concepts(file="a.csv", templates="openai_7"), "templates"),
        (concepts(file="a.csv", words={"a": ["b"]}), "words"),
        (concepts(file="a.csv", score="logit"), "score"),
    ],
)
def test_keys_about_a_model_to_run_need_one(values: dict[str, Any], key: str) -> None:
    assert refusal(values) == (
        f"c: models.m: {key!r} is about a model to run, and no 'model' is given"
    )


@pytest.mark.parametrize("kind", [diversity, concepts])
def test_neither_a_file_nor_a_model_is_an_error(kind: Any) -> None:
    values = kind() | {"models": {"m": {}}}
    assert refusal(values).startswith("c: models.m: 'file' is missing. To do: name the file of its")


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
        (["{}", "none"], "expected texts with one '{}' each, where the word goes, not 'none'"),
        ("{x} {}", "expected texts with one '{}' each, where the word goes, not '{x} {}'"),
        ([], "expected the name of a list of templates, or a list of texts"),
        (3, "expected the name of a list of templates, or a list of texts"),
        (["{}", "{}"], "'{}' appears more than once"),
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


@pytest.mark.parametrize("templates", ["plain", "a photo of a {}", ["{}", "one {}"]])
def test_templates_are_a_name_a_text_or_texts(templates: Any) -> None:
    values = retrieval()
    values["queries"] = values["queries"] | {"templates": templates}
    found: Any = parse_config(values)
    alone = "{}" in templates and isinstance(templates, str)
    expected = (templates,) if alone else tuple(templates)
    assert found.queries.templates == ("plain" if templates == "plain" else expected)


def test_texts_of_images_are_refused() -> None:
    values = associations()
    values["data"]["images"] = IMAGES | {"kind": "image", "text": "file"}
    assert refusal(values) == "c: data.images: 'text' is about texts, and 'kind' is image"


def test_references_need_embeddings_by_models_that_are_read() -> None:
    values = diversity(file="a.npy") | {"references": {"faces": {"images": IMAGES}}}
    assert refusal(values) == (
        "c: references.faces.models: required, and missing: the embeddings by the models m"
    )
    values = diversity() | {"references": {"faces": {"images": IMAGES}}}
    assert parse_config(values).audit == "diversity"


def test_a_resolved_configuration_reads_back_as_the_same() -> None:
    for kind in (retrieval, diversity, concepts):
        config = parse_config(kind(model="hf:clip", revision="v1", dtype="float32"))
        assert parse_config(config.resolved) == config


def test_a_loaded_model_is_told_by_its_name() -> None:
    class Info:
        name = "python:mine"

    class Loaded:
        info = Info()

    model = Loaded()
    assert RunConfig(model=model).model is model
    assert RunConfig(model=model).model_dump(mode="json")["model"] == "(loaded) python:mine"
