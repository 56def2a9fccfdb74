"""Every kind of audit: its template, its example, its page, its report."""

from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from equipoise import audits
from equipoise.audits.config import schema
from equipoise.cli.app import app
from equipoise.discovery import KINDS
from schema_keys import schema_keys
from yaml_keys import page_keys, yaml_keys

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SHARED = ("config", "images", "models", "data")
"""Pages of the keys that kinds share."""


def keys_of(kind):
    """Every key of a kind's schema, with the options of metrics that the registry has."""
    options = schema(kind).model_fields["metrics"].annotation.registered().values()
    return schema_keys(schema(kind)).union(*options)


def template_of(kind):
    return (files(KINDS[kind].value) / "template.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_is_a_valid_configuration(kind, tmp_path):
    path = tmp_path / "audit.yaml"
    done = CliRunner().invoke(app, ["new", str(path), "--audit", kind])
    assert done.exit_code == 0, done.output
    assert audits.load_config(path).audit == kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_in_the_template_or_on_a_page(kind):
    pages = [DOCS / "audits" / f"{kind}.md", *(DOCS / f"{name}.md" for name in SHARED)]
    named = yaml_keys(template_of(kind)).union(
        *(page_keys(page.read_text(encoding="utf-8")) for page in pages)
    )
    assert sorted(keys_of(kind) - named) == []


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
