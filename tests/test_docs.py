"""Nothing documented is stale: public names, links, examples."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from equipoise.audits import parse_config
from equipoise.config.files import parse_yaml
from equipoise.discovery import KINDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}


API = TEXTS[ROOT / "docs" / "api.md"]


@pytest.mark.parametrize("module", ["equipoise", "equipoise.metrics", "equipoise.models"])
def test_every_public_name_is_in_the_reference(module):
    blocks = re.findall(
        rf"currentmodule:: {re.escape(module)}\n(.*?)(?=\.\. current|```)", API, re.DOTALL
    )
    listed = {name for block in blocks for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)}
    # Modules have pages of their own, and the specs are in the docs of the metrics.
    assert {*importlib.import_module(module).__all__} - {"metrics", "models", "SPECS"} == listed


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
