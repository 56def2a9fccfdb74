"""Configurations and tables that cannot be used are refused in one sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from audits.examples import written_again
from equipoise import audits
from equipoise.core.errors import ConfigError, DataError
from painted import PROMPTS, Painter, Seer, asked

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "text_to_image"
SHARE = {"of": "colour", "model": "seer", "classes": {"red": ["red"], "blue": ["blue"]}}
TABLE = pa.table({"image_id": ["1", "2"], "prompt": ["a fire", "a fire"], "state": ["x", "y"]})


def parse(**changes: Any) -> Any:
    return audits.parse_config(asked(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompts": {"attributes": {"a": ["x"]}}}, "targets: required, and missing; or name a"),
        ({"prompts": {"targets": []}}, "expected a text, or a list of texts"),
        ({"prompts": {"targets": ["a", "a"]}}, "'a' appears more than once"),
        ({"prompts": {"targets": ["a", ""]}}, "expected texts that are not empty, not ''"),
        ({"prompts": {"targets": {"x": ["a"], "y": ["a"]}}}, "the target 'a' appears more than"),
        ({"prompts": PROMPTS | {"template": "a thing"}}, "expected a text with one '{}'"),
        ({"prompts": PROMPTS | {"targets": ["red"]}}, "'red' is an attribute and a target"),
        ({"prompts": PROMPTS | {"lexicon": "mandal"}}, "mandal_2024_prompts"),
        ({"generators": {"g": {}}}, "'model' or 'images': neither is given"),
        ({"generators": {"g": {"model": Painter(), "images": {"table": TABLE}}}}, "both are given"),
        ({"generators": {"g": {"model": "hf:x"}}}, "expected a name such as 'diffusers:"),
        ({"generators": {"g": {"images": {"table": TABLE}, "steps": 3}}}, "'steps' is about a"),
        ({"generators": {"g": {"model": Painter(), "height": 30}}}, "height is 30; expected a"),
        (
            {"generators": {"g": {"model": Painter(), "guidance": []}}},
            "given []; expected at least one entry",
        ),
        ({"models": {}}, "models: required, and missing: what embeds the images and prompts"),
        ({"models": {"seer": {}}}, "'images' is missing. To do: name the vectors of images"),
        ({"associations": {"pairs": [["red", "bleu"]]}}, "associations.pairs[0]"),
        ({"associations": {"pairs": [["red", "red"]]}}, "'red' is there twice"),
        ({"associations": {"encoders": ["seen"]}}, "associations.encoders"),
        ({"associations": {"clusters": "prompt"}}, "prompt needs ten prompts of each set"),
        ({"associations": None, "shares": []}, "nothing to measure"),
        ({"shares": [{"of": "c", "classes": {"a": ["b"], "c": ["d"]}}]}, "neither is given"),
        ({"shares": [SHARE | {"model": "see"}]}, "shares[0].model"),
        ({"shares": [SHARE, SHARE]}, "shares[1].of: 'colour' is there twice"),
        ({"shares": [SHARE | {"classes": {"red": ["red"]}}]}, "expected at least two beside"),
        ({"shares": [SHARE | {"no_person": ["x"]}]}, "no_person: 'x' is none of the classes"),
        ({"shares": [SHARE | {"refused": ["unknown"]}]}, "is listed under more than one of"),
        (
            {"shares": [SHARE | {"question": "Which?", "templates": ["a {}"]}]},
            "'templates' is about a zero-shot classifier",
        ),
        (
            {"shares": [{k: v for k, v in SHARE.items() if k != "model"}
                        | {"said": {"painter": {"table": TABLE}}, "labelled": {"table": TABLE}}]},
            "labelled.said: required, and missing",
        ),
        ({"gate": [{"metric": "share_mad", "max": 1, "groups": "hue"}]}, "gate[0].groups"),
        (
            {"gate": [{"metric": "ndkl", "max": 1}]},
            "gate[0]: 'ndkl' is not measured by audits of text to image. Allowed: ",
        ),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**changes)
    assert message in str(caught.value)


def elsewhere(table: pa.Table = TABLE, **more: Any) -> dict[str, Any]:
    return {"generators": {"g": {"images": {"table": table, **more}}}}


SAID = SHARE | {"said": {"g": {"table": pa.table({"image_id": ["1"], "said": ["red"]})}}}
del SAID["model"]
PLAIN: dict[str, Any] = {"associations": None, "models": {}, "shares": [SAID]}


def outside(*rows: tuple[str, str, str]) -> dict[str, Any]:
    names = ("target", "group", "value")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    return PLAIN | elsewhere() | {"shares": [SAID | {"outside": {"table": table}}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (PLAIN | elsewhere(TABLE.set_column(1, "prompt", [["a", "b"]])), "no row has a prompt of"),
        (PLAIN | elsewhere(state="state"), "none of 2 rows has an image"),
        (PLAIN | elsewhere(guidance="state"), "the guidance is 'x'"),
        (elsewhere(), "nothing says where they are. To do: name the column of files under 'path'"),
        (
            PLAIN | elsewhere() | {"shares": [SAID | {"said": {"g": {"table": pa.table(
                {"image_id": ["9"], "said": ["red"]})}}}]},
            "none of its ids is that of an image of g; the first is '9'",
        ),
        (
            PLAIN | elsewhere() | {"shares": [SAID | {"labelled": {"said": "label", "table":
                pa.table({"image_id": ["9"], "label": ["pink"]})}}]},
            "the label is 'pink'",
        ),
        (outside(("moon", "red", "1")), "it has none of the targets"),
        (outside(("fire", "red", "1")), "'fire': 'blue' has no share"),
        (outside(("fire", "red", "x")), "the share is 'x'"),
        (outside(("fire", "red", "1"), ("fire", "red", "2")), "'fire' and 'red' are there twice"),
        (outside(("fire", "red", "0"), ("fire", "blue", "0")), "'fire': all shares are 0"),
        (
            {"shares": [SHARE | {"labelled": {"table": pa.table(
                {"image_id": ["9"], "label": ["red"]})}}]},
            "To do: name the column of files under 'labelled.path'",
        ),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used_are_refused(changes: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, DataError)) as caught:
        audits.run(parse(**changes), base=tmp_path)
    assert message in str(caught.value)


def vectors(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Vectors of two images and all texts, of which something is changed."""
    from equipoise.audits.text_to_image.config_prompts import PromptsConfig

    texts = [*PromptsConfig.model_validate(PROMPTS).texts]
    rows = Seer().embed_texts(texts).tolist()
    images = {"image_id": ["1", "2"], "vector": Seer().embed_texts(["red", "blue"]).tolist()}
    given = {"texts": {"id": texts, "vector": rows}, "images": images}
    change(given)
    return elsewhere() | {
        "shares": [],
        "models": {
            "seer": {
                "texts": {"file": pa.table(given["texts"]), "id": "id", "column": "vector"},
                "images": {
                    "g": {"file": pa.table(given["images"]), "id": "image_id", "column": "vector"}
                },
            }
        },
    }


def without_a_text(given: dict[str, Any]) -> None:
    given["texts"]["id"][0] = "another text"


def shorter(given: dict[str, Any]) -> None:
    given["images"]["vector"] = [row[:3] for row in given["images"]["vector"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_a_text, "the prompt 'a red thing' has no usable vector"),
        (shorter, "images of g have vectors of 3 numbers, texts of 4"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        audits.run(parse(**vectors(change)), base=tmp_path)
    assert message in str(caught.value)


def test_the_examples_data_are_what_its_script_writes(tmp_path: Path) -> None:
    names = ["images.csv", "labelled.csv", "large.npz", "said.csv", "shares.csv", "small.npz"]
    assert written_again(EXAMPLE, tmp_path) == names
