"""docs/report.md describes every section and verdict, and nothing that is gone."""

import re
from pathlib import Path

from equipoise.report import render
from equipoise.report.blocks import SYMBOLS
from equipoise.report.text import VERDICT_TITLES
from report.synthetic import (
    augmentation,
    comparison,
    faces,
    many_classes,
)

DOCS = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_every_shared_section_is_documented_in_the_order_of_the_page():
    # Sections of one kind of audit are on that kind's page: tests/audits/test_kinds.py.
    shared = re.findall(r"^- `([a-z]+)`:", DOCS, flags=re.MULTILINE)
    results = (faces(), many_classes(), comparison(), augmentation())
    pages = [re.findall(r'class="section" id="([a-z]+)"', render(result)) for result in results]
    sections = {name for page in pages for name in ["summary", "groups", "findings", *page]}
    assert sections <= {*shared}
    for page in pages:
        assert page == sorted(page, key=shared.index)


def test_every_verdict_is_documented_with_its_symbol():
    for verdict, symbol in SYMBOLS.items():
        assert f"| {symbol} | {VERDICT_TITLES[verdict]} | `{verdict.value}` |" in DOCS
