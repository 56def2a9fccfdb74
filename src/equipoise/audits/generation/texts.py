"""Texts that filters hold images against: captions, and one for each value of an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.counterfactuals.articles import agreeing

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.audits.generation.config_filters import AttributesConfig


def captions_of(table: pa.Table) -> list[str]:
    """Return every caption once, in the order of the table."""
    return [one for one in dict.fromkeys(table["caption"].to_pylist()) if one]


def values_of(table: pa.Table, types: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each type of attribute, in the order in which they appear."""
    return {
        name: tuple(str(one) for one in dict.fromkeys(table[name].to_pylist()) if one)
        for name in types
    }


def texts_of(
    shown: AttributesConfig, values: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], str]:
    """Return the text of every value, such as "an old person", by type and value."""
    return {
        (name, value): _text(shown.template(name), value)
        for name, every in values.items()
        for value in every
    }


def _text(template: str, value: str) -> str:
    before, after = template.split("{}")
    words = f"{value}{after}"
    if not before.strip():
        return words.strip()
    return f"{agreeing(before.strip(), words)} {words}" if before.endswith(" ") else before + words
