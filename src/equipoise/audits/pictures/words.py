"""Steps in words, for the notes of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.data import Step

_LONGEST = 120


def steps_in_words(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return a sentence for each step: its name, the rule where that is short, and its counts."""
    return tuple(_sentence(step) for step in steps)


def _sentence(step: Step) -> str:
    rule = f" ({step.description})" if len(step.description) <= _LONGEST else ""
    return f"Images, {step.name}{rule}: {_counts(step.counts)}."


def _counts(counts: Mapping[str, Any]) -> str:
    parts = []
    for name, value in counts.items():
        shown = name.replace("_", " ")
        if isinstance(value, Mapping):
            listed = ", ".join(f"{key} {number:,}" for key, number in value.items() if number)
            parts.append(f"{shown}: {listed or 'none'}")
        elif isinstance(value, int) and value:
            parts.append(f"{shown} {value:,}")
    return "; ".join(parts) or "left nothing out"
