"""Results of the soak: rows, shown as a table and recorded in docs/guarantees."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"
TABLE = PAGE.parent / "guarantees" / "soak.csv"
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
        What went wrong; not in the recorded table.
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


def keep(rows: Iterable[Row], note: str, page: Path = PAGE, path: Path = TABLE) -> None:
    """Write rows as CSV, and the note between the markers of the page."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("check", "on", "tried", "as_promised", "other_values"))
        writer.writerows((row.check, row.case, row.tried, row.held, row.other) for row in rows)
    text = page.read_text(encoding="utf-8")
    before, _, remainder = text.partition(START)
    _, _, after = remainder.partition(END)
    page.write_text(f"{before}{START}\n{note}\n{END}{after}", encoding="utf-8")
