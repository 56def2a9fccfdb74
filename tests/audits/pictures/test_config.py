"""The section of images: what is allowed, and what is refused in which words."""

from typing import Any, get_args

import pytest

from equipoise import data
from equipoise.audits.config import parse_config
from equipoise.audits.config_images import RuleConfig
from equipoise.core import ConfigError

CAPTIONS = {"format": "coco", "files": {"captions": "c.json"}}
STREET = {"format": "dollar_street", "files": "d.csv"}


def refusal(images: dict[str, Any]) -> str:
    values = {
        "audit": "diversity",
        "data": {"images": images, "sets": ["gender"]},
        "models": {"clip": {"file": "clip.npy"}},
    }
    with pytest.raises(ConfigError) as raised:
        parse_config(values, source="c")
    return str(raised.value)


def ruled(**rule: Any) -> dict[str, Any]:
    return {**CAPTIONS, "rules": [rule]}


@pytest.mark.parametrize(
    ("images", "said"),
    [({}, ": none of 'table', 'folder' and 'format' is given; expected one of them"),
        ({"table": "t.csv"}, ": id: required, and missing: the column that names the image"),
        (
            {**STREET, "delimiter": ";"},
            ": 'delimiter' goes with 'table', and 'format' is given",
        ),
        (
            {"format": "cocoa", "files": "x"},
            f".format: there is no format 'cocoa'; there are {', '.join(data.FORMATS)}; did you "
            "mean 'coco'?"
        ),
        (
            {"format": "coco", "files": "c.json"},
            ": files: coco has several; expected a mapping of captions, instances",
        ),
        (
            {"format": "coco", "files": {"caption": "c.json"}},
            ": files.caption: no file of coco. Allowed: captions, instances; did you mean "
            "'captions'?",
        ),
        ({**STREET, "id": "x"}, ": 'id' is given, and dollar_street has ids of its own"),
        (
            {**STREET, "options": {"columns": {"label": "x"}}},
            ": options.columns.label: Unexpected keyword argument",
        ),
        (
            {"table": "t.csv", "id": "i", "crop": {"left": "l", "top": "t"}},
            ".crop: given {'left': 'l', 'top': 't'}; expected four different columns 'left', "
            "'top', 'right' and 'bottom', and neither 'margin' nor 'pixels', which are of boxes",
        ),
        (
            {**CAPTIONS, "crop": {"left": "l", "top": "t", "right": "r", "bottom": "b"}},
            ": crop.left: columns go with 'table'; name 'labels' of boxes",
        ),
        ({**CAPTIONS, "rules": "hall_captions"}, ".rules: given 'hall_captions'; expected a list"),
        (ruled(attribute="x"), ".rules[0].rule: required, and missing"),
        (
            ruled(rule="hall_captions", neutral_means="nothin"),
            ".rules[0].neutral_means: given 'nothin'; expected 'nothing' or 'no group'; did you "
            "mean 'nothing'?",
        ),
        (
            ruled(rule="box_groups", attribute="a", groups={"x": "man"},
                  size={"name": "mine", "ignored": 0.3, "needed": 0.1}),
            ".rules[0].size: the sizes of 'mine' are 0 pixels and the shares 0.3 and 0.1; expected "
            "0 or more pixels, and shares from 0 to 1 with ignored at most needed",
        ),],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_key_and_what_is_allowed(
    images: dict[str, Any], said: str
) -> None:
    assert refusal(images) == f"c: data.images{said}"


def sections() -> dict[str, type]:
    union = get_args(RuleConfig)[0]
    return {get_args(one.model_fields["rule"].annotation)[0]: one for one in get_args(union)}


def test_every_rule_of_the_data_has_a_name() -> None:
    rules = {
        name
        for name in data.__all__
        if name in ("hall_captions", "hall_boxes", "continents", "income_bands")
        or name.startswith("leave_out_")
        or (isinstance(found := getattr(data, name), type) and hasattr(found, "description"))
    }
    snake = {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in one).lstrip("_") for one in rules
    }
    # Boxes are cut by the key `crop`, and sizes of boxes are no rule.
    assert snake - {"crop_boxes", "box_size", "rule"} == {*sections()}
