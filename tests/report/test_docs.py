"""docs/report.md describes every section, verdict and gate key, and nothing that is gone."""

import re
from dataclasses import fields
from pathlib import Path

from equipoise.report import GateRule
from equipoise.report.blocks import SYMBOLS
from equipoise.report.page import section_functions
from equipoise.report.voices import voices
from report.synthetic import faces
from report.synthetic_large import (
    augmentation,
    comparison,
    comparison_of_subjects,
    many_classes,
    planted_demo,
)

DOCS = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_every_section_is_documented_in_the_order_of_the_page() -> None:
    made = {}
    # Sections of one kind of audit are on that kind's page: tests/audits/test_kinds.py.
    own = {section for spoken in voices() for section in spoken.sections()}
    functions = [function for function in section_functions() if function not in own]
    for make in (
        faces,
        planted_demo,
        comparison,
        comparison_of_subjects,
        augmentation,
        many_classes,
    ):
        result = make()
        for place, function in enumerate(functions):
            section = function(result)
            if section is not None:
                made[place] = (section.id, section.title)
    assert len(made) == len(functions)
    documented = re.findall(r"^\| `([a-z]+)` \| ([^|]+?) \|", DOCS, flags=re.MULTILINE)
    assert documented[: len(made)] == [made[place] for place in sorted(made)]


def test_every_verdict_is_documented_with_its_symbol() -> None:
    for verdict, symbol in SYMBOLS.items():
        assert f"| {symbol} | {verdict.value} |" in DOCS


def test_every_gate_key_is_documented() -> None:
    gate = DOCS[DOCS.index("## The gate") :]
    assert all(f"`{field.name}`" in gate for field in fields(GateRule))
