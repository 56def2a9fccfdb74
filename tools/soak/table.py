"""Results of the soak: rows, and the table of them in docs/guarantees.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"
START, END = "<!-- soak -->", "<!-- /soak -->"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    check, case : str
        What is checked ("Kills"), and on what ("Extraction").
    tried, held : int
        How often, and how often the result was as promised.
    failures : tuple of str
        What went wrong; not in the table of the page.
    other : int, optional
        Damaged files that read as other values: their format has no checksum.
    """

    check: str
    case: str
    tried: int
    held: int
    failures: tuple[str, ...] = ()
    other: int | None = None


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| check | on | tried | as promised | read as other values |",
        "|---|---|--:|--:|--:|",
    ]
    for row in rows:
        other = "" if row.other is None else f"{row.other:,}"
        lines.append(f"| {row.check} | {row.case} | {row.tried:,} | {row.held:,} | {other} |")
    return "\n".join(lines)


def keep(rows: Iterable[Row], note: str, page: Path = PAGE) -> None:
    """Replace the table between the markers of the page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n{note}\n\n{table(rows)}\n{END}{after}", encoding="utf-8")
