"""The page about images names every key, format, rule and parameter, and none that is gone."""

import re
from pathlib import Path
from typing import get_args

import pytest

from equipoise.audits.config_images import BoxSizeConfig, CropConfig, PicturesConfig, RuleConfig
from equipoise.data import FORMATS

PAGE = (Path(__file__).parents[3] / "docs" / "images.md").read_text(encoding="utf-8")
RULES = {
    get_args(one.model_fields["rule"].annotation)[0]: {*one.model_fields} - {"rule"}
    for one in get_args(get_args(RuleConfig)[0])
}


def first_cells(title):
    """Rows of the tables under a heading: the names of the first cell, joined, and the row."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return {
        name: row
        for row in found[1].splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }


def test_every_key_has_its_row():
    assert {*first_cells("Which images there are")} == {*PicturesConfig.model_fields}
    assert {*first_cells("Crops")} == {*CropConfig.model_fields}


def test_every_format_and_its_files_and_options_have_rows():
    rows = first_cells("Formats")
    options = {option for one in FORMATS.values() for option in one.options.model_fields}
    assert {*rows} == {*FORMATS, *options}
    for name, one in FORMATS.items():
        assert all(f"`{role}`" in rows[name] for role in one.roles)
        assert all(f"`{name}`" in rows[option] for option in one.options.model_fields)


def test_every_rule_has_a_row():
    assert {*first_cells("Rules")} - {"rule", "size"} == {*RULES, *BoxSizeConfig.model_fields}


@pytest.mark.parametrize("name", RULES)
def test_parameters_of_a_rule_are_those_of_its_row(name):
    cell = first_cells("Rules")[name].split("|")[2]
    named = {*re.findall(r"`(\w+)`", cell)} - ({"id", "file"} if name == "collapse_rows" else set())
    assert named - {"dollar_street"} == RULES[name]
