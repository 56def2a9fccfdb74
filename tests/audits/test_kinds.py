"""Every kind of audit: its template, its example, its page, its report."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from equipoise import audits
from equipoise.audits.config import schema
from equipoise.cli.app import app
from equipoise.discovery import KINDS
from yaml_keys import yaml_blocks, yaml_keys

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SHARED = ("config", "images", "models", "data", "running")
"""Pages of the keys that kinds share."""


def keys_of(kind):
    """Every key of a kind's schema, with the options of metrics that the registry has."""
    config_schema = schema(kind)
    parts = (json_schema(kind), *json_schema(kind)["$defs"].values())
    options = config_schema.model_fields["metrics"].annotation.registered().values()
    keys = {key for part in parts for key in part.get("properties", {})}
    return keys.union(*options)


@cache
def json_schema(kind):
    return schema(kind).model_json_schema()


def template_of(kind):
    return (files(KINDS[kind].value) / "template.yaml").read_text(encoding="utf-8")


def keys_of_page(page):
    """Keys that the YAML blocks of a page name, or its tables."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    in_tables = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    return in_tables.union(*map(yaml_keys, yaml_blocks(text)))


def places(text):
    """Yield the path of keys of each line of a template that has a key, commented or not."""
    above = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)((?:- )?)([^#:{]+):(?: .*)?", line) or re.fullmatch(
            r"( *# ?)( *(?:- )?)([\w-]+):(?: .*)?", line
        )
        if match:
            indent = len(match[1].replace("# ", "")) + len(match[2])
            above = [(i, key) for i, key in above if i < indent] + [(indent, match[3])]
            yield tuple(key for _, key in above)


def allows(part, path, definitions):
    """Whether a part of a JSON schema allows the keys of a path, each in the one before."""
    part = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    choices = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
    if choices or "items" in part:
        items = [part["items"]] if "items" in part else []
        return any(allows(choice, path, definitions) for choice in (*choices, *items))
    if not path or not {"type", "properties", "const", "enum"} & {*part}:
        return True
    below = part.get("properties", {}).get(path[0], part.get("additionalProperties", False))
    return below is True or (below is not False and allows(below, path[1:], definitions))


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_is_a_valid_configuration(kind, tmp_path):
    path = tmp_path / "audit.yaml"
    done = CliRunner().invoke(app, ["new", str(path), "--audit", kind])
    assert done.exit_code == 0, done.output
    assert audits.load_config(path).audit == kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_in_the_template_or_on_a_page(kind):
    pages = [DOCS / "audits" / f"{kind}.md", *(DOCS / f"{name}.md" for name in SHARED)]
    named = yaml_keys(template_of(kind)).union(*map(keys_of_page, pages))
    assert sorted(keys_of(kind) - named) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_template_exists(kind):
    config_schema = json_schema(kind)
    paths = [*places(template_of(kind))]
    assert {("audit",), ("models",)} <= {*paths} or kind in ("dataset", "generation")
    unknown = [path for path in paths if not allows(config_schema, path, config_schema["$defs"])]
    assert unknown == []


# Measured once: a plan is right within a factor of two.
@pytest.mark.parametrize(
    ("kind", "took"),
    {
        "activations": 2.7,
        "answers": 1.2,
        "associations": 3.9,
        "concepts": 9.5,
        "counterfactuals": 12.0,
        "dataset": 1.3,
        "diversity": 1.0,
        "generation": 1.5,
        "questions": 3.0,
        "regression": 1.5,
        "retrieval": 2.4,
        "similarity": 2.5,
        "text_to_image": 5.0,
    }.items(),
)
def test_plans_of_the_examples_estimate_their_duration(kind, took):
    path = ROOT / "examples" / kind / "audit.yaml"
    planned = audits.plan(audits.load_config(path), base=path.parent)
    assert took / 2 <= planned.seconds <= 2 * took
