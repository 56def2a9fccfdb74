"""docs/mitigation.md names every key, and its examples are read by the schemas."""

from pathlib import Path

import pytest
import yaml

from equipoise.audits.config import load_as
from equipoise.audits.config_groups import GroupSourceConfig
from equipoise.cli.augmentation import AugmentConfig
from equipoise.config.fields import TextsConfig
from equipoise.config.images import PicturesConfig
from equipoise.mitigate import config as mitigation
from equipoise.mitigate.neurons import config as neurons
from equipoise.mitigate.training import Schedule
from schema_keys import schema_keys
from yaml_keys import yaml_blocks, yaml_keys

PAGE = Path(__file__).parents[2] / "docs" / "mitigation.md"
BLOCKS = yaml_blocks(PAGE.read_text(encoding="utf-8"))
VALUES = [yaml.safe_load(block) for block in BLOCKS]
SCHEMAS = {
    "recipes": mitigation.Config,
    "concepts": neurons.Config,
    "faces": AugmentConfig,
}
ELSEWHERE = (PicturesConfig, GroupSourceConfig, TextsConfig, Schedule)
"""Sections that other pages document."""


def schema_of(values):
    return next((schema for key, schema in SCHEMAS.items() if key in values), None)


@pytest.mark.parametrize("schema", SCHEMAS.values())
def test_every_key_is_in_a_block_of_its_command(schema):
    blocks = [
        block for block, values in zip(BLOCKS, VALUES, strict=True) if schema_of(values) is schema
    ]
    elsewhere = set().union(*map(schema_keys, ELSEWHERE)) | {"name"}
    named = set().union(*map(yaml_keys, blocks))
    assert schema_keys(schema) - elsewhere - named == set()


def test_the_examples_are_valid(tmp_path):
    read = []
    for place, (block, values) in enumerate(zip(BLOCKS, VALUES, strict=True)):
        if "images" in values and schema_of(values):
            (tmp_path / f"{place}.yaml").write_text(block, encoding="utf-8")
            read.append(type(load_as(tmp_path / f"{place}.yaml", schema_of(values))))
    assert {*read} == {*SCHEMAS.values()}


def test_the_block_of_recipes_has_the_defaults():
    recipes = next(values["recipes"] for values in VALUES if [*values] == ["recipes"])
    images = {"table": "sets.csv", "attributes": ["gender"]}
    shared = {"model": "hf:clip", "images": images, "output": "out"}
    generators = {name: recipes.pop(name) for name in ("balanced", "learned")}
    configs = [
        mitigation.Config.model_validate({**shared, "recipes": recipes}),
        mitigation.Config.model_validate(
            {**shared, "recipes": generators, "generation": {"probe": "hf:clip"}}
        ),
    ]
    for config in configs:
        for name, recipe in config.recipes.items():
            said = {"said": recipe.said} if hasattr(recipe, "said") else {}
            assert recipe == type(recipe)(name=name, **said)
