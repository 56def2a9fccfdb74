"""Every kind of audit: its template, its example, its page, its report."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from equipoise import audits
from equipoise.audits import AuditConfig
from equipoise.audits.config import schema
from equipoise.cli.app import app
from equipoise.config.fields import RunConfig
from equipoise.config.images import PicturesConfig
from equipoise.discovery import KINDS
from yaml_keys import yaml_blocks, yaml_keys

ROOT = Path(__file__).resolve().parents[2]
OTHERS = [kind for kind in KINDS if kind != "predictions"]


def keys_of(model):
    """Every key of a schema, in the JSON schema that pydantic makes of it."""
    model_schema = model.model_json_schema()
    parts = (model_schema, *model_schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}


def table_rows(page):
    text = page.read_text(encoding="utf-8")
    yield from (line for line in text.splitlines() if line.startswith("|"))


def documented(page):
    in_tables = {key for row in table_rows(page) for key in re.findall(r"`(\w+)`", row)}
    return in_tables.union(*map(yaml_keys, yaml_blocks(page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_is_a_valid_configuration(kind, tmp_path):
    path = tmp_path / "audit.yaml"
    done = CliRunner().invoke(app, ["new", str(path), "--audit", kind])
    assert done.exit_code == 0, done.output
    assert audits.load_config(path).audit == kind


@pytest.mark.parametrize("kind", OTHERS)
def test_every_key_is_in_a_table_of_the_page(kind):
    keys = keys_of(schema(kind)) - keys_of(AuditConfig)
    page = ROOT / "docs" / "audits" / f"{kind}.md"
    text, shared = page.read_text(encoding="utf-8"), set()
    for section, elsewhere in ((PicturesConfig, "images.md"), (RunConfig, "models.md")):
        if f"](../{elsewhere})" in text:
            shared |= keys_of(section) & documented(ROOT / "docs" / elsewhere)
    assert keys <= documented(page) | shared


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
