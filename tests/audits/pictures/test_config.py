"""The section of images: what is allowed, and what is refused in which words."""

from pathlib import Path
from typing import Any, get_args

import pytest

from equipoise import data
from equipoise.audits.config import parse_config
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.audits.pictures.config_rules import RuleConfig, RuleSection
from equipoise.core import ConfigError

CAPTIONS = {"format": "coco", "files": {"captions": "c.json"}}
STREET = {"format": "dollar_street", "files": "d.csv"}
NAMES = (
    "caption_groups, hall_captions, box_groups, hall_boxes, value_groups, continents, band_groups, "
    "income_bands, collapse_rows, ids_from, leave_out_images, leave_out_labels, "
    "leave_out_unlabelled, leave_out_visual_genome, class_mapping"
)


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
    [
        ({}, ": none of 'table', 'folder' and 'format' is given; expected one of them"),
        (
            {"table": "t.csv", "id": "i", "folder": "x"},
            ": 'table' and 'folder' are given; expected one of them",
        ),
        ({"table": "t.csv"}, ": id: required, and missing: the column that names the image"),
        (
            {"folder": "x", "id": "i"},
            ": 'id' goes with a table; the id of a file is its path in the folder",
        ),
        (
            {"folder": "x", "path": "file"},
            ": 'path' goes with 'table' or 'format', and 'folder' is given",
        ),
        (
            {**STREET, "delimiter": ";"},
            ": 'delimiter' goes with 'table', and 'format' is given",
        ),
        (
            {"table": "t.csv", "id": "i", "levels": ["a"]},
            ": 'levels' goes with 'folder', and 'table' is given",
        ),
        (
            {"format": "cocoa", "files": "x"},
            f".format: there is no format 'cocoa'; there are {', '.join(data.FORMATS)}; did you "
            "mean 'coco'?"
        ),
        ({"format": "coco"}, ": files: required, and missing: the annotations of coco"),
        (
            {"format": "coco", "files": "c.json"},
            ": files: coco has several; expected a mapping of captions, instances",
        ),
        (
            {"format": "coco", "files": {"caption": "c.json"}},
            ": files.caption: no file of coco. Allowed: captions, instances; did you mean "
            "'captions'?",
        ),
        (
            {"format": "fairface", "files": {"labels": "f.csv"}},
            ": files: fairface has one file or folder; expected its path alone",
        ),
        (
            {"format": "fairface", "files": 3},
            ".files: given 3; expected the path of a file or folder, or a mapping of names to "
            "paths",
        ),
        ({**STREET, "id": "x"}, ": 'id' is given, and dollar_street has ids of its own"),
        (
            {**STREET, "options": {"attributes": {"Male": ["m", "f"]}}},
            ": options.attributes: no option of dollar_street. Allowed: columns",
        ),
        (
            {**STREET, "options": {"columns": {"label": "x"}}},
            ": options.columns.label: Unexpected keyword argument",
        ),
        (
            {**CAPTIONS, "crop": {}},
            ".crop: 'labels', or 'left', 'top', 'right' and 'bottom': neither is given; expected "
            "one of the two",
        ),
        (
            {"table": "t.csv", "id": "i", "crop": {"left": "l", "top": "t"}},
            ".crop: given {'left': 'l', 'top': 't'}; expected four different columns 'left', "
            "'top', 'right' and 'bottom', and neither 'margin' nor 'pixels', which are of boxes",
        ),
        (
            {**STREET, "crop": {"labels": ["face"]}},
            ": crop.labels: boxes are in coco and visual_genome; name the columns 'left', 'top', "
            "'right' and 'bottom' of a table",
        ),
        (
            {**CAPTIONS, "crop": {"left": "l", "top": "t", "right": "r", "bottom": "b"}},
            ": crop.left: columns go with 'table'; name 'labels' of boxes",
        ),
        ({**CAPTIONS, "rules": "hall_captions"}, ".rules: given 'hall_captions'; expected a list"),
        (
            ruled(rule="hall_caption"),
            f".rules[0].rule: given 'hall_caption'. Allowed: {NAMES}; did you mean "
            "'hall_captions'?",
        ),
        (ruled(attribute="x"), ".rules[0].rule: required, and missing"),
        (
            ruled(rule="hall_captions", versoin="x"),
            ".rules[0].versoin: unknown key. Allowed here: rule, parents_and_children, "
            "neutral_means, version; did you mean 'version'?",
        ),
        (
            ruled(rule="hall_captions", neutral_means="nothin"),
            ".rules[0].neutral_means: given 'nothin'; expected 'nothing' or 'no group'; did you "
            "mean 'nothing'?",
        ),
        (
            ruled(rule="caption_groups", attribute="a", groups={"x": ["one"], "y": "one"}),
            ".rules[0]: 'one' is in the groups 'x' and 'y'; expected it in one",
        ),
        (
            ruled(rule="hall_boxes", size="large"),
            ".rules[0].size: no size is called 'large'. Allowed: all boxes, at least 600 pixels, "
            "large boxes, or a mapping with name, pixels, ignored and needed; did you mean 'large "
            "boxes'?",
        ),
        (
            ruled(rule="box_groups", attribute="a", groups={"x": "man"},
                  size={"name": "mine", "ignored": 0.3, "needed": 0.1}),
            ".rules[0].size: the sizes of 'mine' are 0 pixels and the shares 0.3 and 0.1; expected "
            "0 or more pixels, and shares from 0 to 1 with ignored at most needed",
        ),
        (
            ruled(rule="leave_out_images", why="they are blurred"),
            ".rules[0]: 'ids' or 'file': neither is given; expected one of them",
        ),
        (
            ruled(rule="collapse_rows"),
            ": rules[0]: collapse_rows says how a format is read; expected it first, with "
            "dollar_street",
        ),
        (
            {**CAPTIONS, "rules": [{"rule": "ids_from", "column": "a"}] * 2},
            ": rules: ids_from is there twice; expected one name for each image",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_key_and_what_is_allowed(
    images: dict[str, Any], said: str
) -> None:
    assert refusal(images) == f"c: data.images{said}"


def test_problems_of_several_rules_are_told_with_their_places() -> None:
    rules = [{"rule": "ids_from"}, {"rule": "continents", "colum": "x"}]
    assert refusal({**CAPTIONS, "rules": rules}) == (
        "c: 2 problems\n"
        "  data.images.rules[0].column: required, and missing\n"
        "  data.images.rules[1].colum: unknown key. Allowed here: rule, column, attribute, "
        "version; did you mean 'column'?"
    )


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


@pytest.mark.parametrize("name", [one for one, made in sections().items()
                                  if issubclass(made, RuleSection)])  # fmt: skip
def test_parameters_are_named_as_in_python(name: str) -> None:
    made = sections()[name]
    given = {key for key in made.model_fields if key not in ("rule", "file", "ids", "name")}  # type: ignore[attr-defined]
    code = made.makes  # type: ignore[attr-defined]
    known = {*(code.__dataclass_fields__ if isinstance(code, type) else code.__annotations__)}
    assert given <= known


def test_paths_are_written_as_they_are_in_the_file() -> None:
    values = {**CAPTIONS, "root": Path("a") / "b"}
    found = PicturesConfig.model_validate(values).model_dump(mode="json")
    assert (found["root"], found["files"]) == ("a/b", {"captions": "c.json"})
