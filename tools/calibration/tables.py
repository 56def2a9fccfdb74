"""Tables of measured calibration: CSV files of docs/calibration."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "calibration"


def write(
    name: str, head: Sequence[str], rows: Iterable[Sequence[object]], folder: Path = FOLDER
) -> None:
    """Write a table as CSV."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def read(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """Return the rows of a table by column."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def decimal(value: float, digits: int = 3) -> str:
    """Return a number with so many decimals; an empty cell for NaN."""
    return "" if math.isnan(value) else f"{value:.{digits}f}"
