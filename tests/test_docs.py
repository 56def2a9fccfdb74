"""Nothing documented is stale: keys, metric cards, links, examples."""

import ast
import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

from equipoise.audits import config as shared
from equipoise.audits import parse_config
from equipoise.audits.labels.predictions.config import (
    Config,
    DataConfig,
    MetricsConfig,
    ModelConfig,
)
from equipoise.config.fields import ExtractionConfig
from equipoise.config.files import keys, parse_yaml
from equipoise.discovery import KINDS
from equipoise.metrics import SPECS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}
CONFIG = TEXTS[ROOT / "docs" / "config.md"]


def section(page, title):
    """The text under a heading, up to the next of its level."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert match, f"no section {title!r}"
    return match[1]


OPTIONS = [
    get_args(field.annotation)[0]
    for name, field in MetricsConfig.model_fields.items()
    if name != "only"
]
KEYS = {
    "Top level": keys(Config),
    "data": keys(DataConfig),
    "models": [*keys(ModelConfig), *keys(shared.NormalizeConfig)],
    "metrics": [
        "only",
        *MetricsConfig.switched(),
        *(key for options in OPTIONS for key in keys(options)),
        *(key for types in MetricsConfig.registered().values() for key in types),
    ],
    "extraction": keys(ExtractionConfig),
    "resampling": keys(shared.ResamplingConfig),
    "testing": keys(shared.TestingConfig),
    "gate": keys(shared.GateConfig),
    "report": keys(shared.ReportConfig),
}


@pytest.mark.parametrize(("title", "key"), [(t, k) for t, names in KEYS.items() for k in names])
def test_every_key_is_in_a_table_of_its_section(title, key):
    rows = [line for line in section(CONFIG, title).splitlines() if line.startswith("|")]
    assert any(f"`{key}`" in "|".join(row.split("|")[:3]) for row in rows)


def test_the_row_of_the_key_audit_names_every_kind():
    row = next(r for r in section(CONFIG, "Top level").splitlines() if r.startswith("| `audit`"))
    assert all(f"`{kind}`" in row or f"[{kind}](audits/{kind}.md)" in row for kind in KINDS)


def test_every_documented_key_exists():
    for title, allowed in KEYS.items():
        rows = [line for line in section(CONFIG, title).splitlines() if line.startswith("| `")]
        named = {key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])}
        assert named <= set(allowed), title


API = TEXTS[ROOT / "docs" / "api.md"]


@pytest.mark.parametrize("module", ["equipoise", "equipoise.metrics", "equipoise.models"])
def test_every_public_name_is_in_the_reference(module):
    blocks = re.findall(
        rf"currentmodule:: {re.escape(module)}\n(.*?)(?=\.\. current|```)", API, re.DOTALL
    )
    listed = {name for block in blocks for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)}
    # Modules have pages of their own, and the specs are in the docs of the metrics.
    assert {*importlib.import_module(module).__all__} - {"metrics", "models", "SPECS"} == listed


@pytest.mark.parametrize("name", SPECS)
def test_every_metric_is_in_the_docs(name):
    assert any(f"`{name}`" in text for path, text in TEXTS.items() if path.parts[-2] != "decisions")


def links():
    for path, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:", target):
                yield path, target


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(("page", "target"), [*links()])
def test_every_relative_link_resolves(page, target):
    name, _, anchor = target.partition("#")
    target_path = (page.parent / name).resolve() if name else page
    assert target_path.exists()
    if anchor and target_path.suffix == ".md":
        headings = re.findall(r"^#+ (.+)$", target_path.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in map(slug, headings)


def test_every_page_has_a_place_in_a_table_of_contents():
    listed = {"docs/index.md"}
    for path, text in TEXTS.items():
        for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL):
            for entry in (entry for entry in block.split() if not entry.startswith(":")):
                matches = path.parent.glob(f"{entry}.md")
                listed |= {match.relative_to(ROOT).as_posix() for match in matches}
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES if page.parent != ROOT}
    assert pages == listed & pages


# The page for contributors names modules inside; its examples run in test_contributing.
USER_PAGES = [page for page in PAGES if page.name != "contributing.md"]


def examples():
    for text in map(TEXTS.__getitem__, USER_PAGES):
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            if re.search(r"^audit:", block, re.MULTILINE):
                yield block


@pytest.mark.parametrize("block", [*examples()])
def test_every_full_example_of_a_configuration_is_valid(block):
    assert parse_config(parse_yaml(block.encode(), "docs")[0]).audit in KINDS


def imports():
    """Return page, module and name of every import in the Python blocks of the pages."""
    imported = []
    for page in USER_PAGES:
        for block in re.findall(
            r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        ):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom):
                    imported += [(page.name, str(node.module), alias.name) for alias in node.names]
    return imported


@pytest.mark.parametrize(("page", "module", "name"), imports())
def test_every_import_of_the_pages_is_public(page, module, name):
    assert hasattr(importlib.import_module(module), name), page
    assert module.count(".") <= 1, f"{page}: {module} is not a public module"
