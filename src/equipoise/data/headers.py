"""Whether the first line of a table has names of columns, or is data."""

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import PurePosixPath

from equipoise.core import DataError
from equipoise.data.problems import listed

_ROWS = 200
_SHOWN = 4
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")


def check_names(start: str, delimiter: str, file: str) -> None:
    """Refuse a CSV whose first line looks like data, which would be lost as names of columns.

    Parameters
    ----------
    start : str
        The start of the file.
    delimiter, file : str

    Raises
    ------
    DataError
        When the first line has the name of a file above such names, or each of its cells looks
        like the cells below it.
    """
    rows = _first_rows(start, delimiter)
    if len(rows) > 1 and _looks_like_data(rows[0], [*zip(*rows[1:], strict=False)]):
        raise DataError(
            f"the first line looks like data: {listed(rows[0], _SHOWN)}",
            file=file,
            expected="names of columns in the first line",
            fix="write a line of names above it; in a configuration, `header:` names the columns",
        )


def _first_rows(start: str, delimiter: str) -> list[list[str]]:
    """Return the cells of the first lines with any."""
    try:
        reader = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        return [*islice((row for row in reader if row), _ROWS)]
    except csv.Error:
        return []


def _looks_like_data(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether names of columns look like their cells."""
    pairs = [(name, cells) for name, cells in zip(names, columns, strict=False) if name.strip()]
    if any(_are_files(name, cells) for name, cells in pairs):
        return True
    repeated = [name in cells and not _NUMBER.fullmatch(name) for name, cells in pairs]
    # Numbers are names of columns, too: years, classes, or what a program counted.
    numbers = [all(map(_NUMBER.fullmatch, (name, *filter(None, cells)))) for name, cells in pairs]
    return any(repeated) and all(map(max, repeated, numbers))


def _are_files(name: str, cells: Sequence[str]) -> bool:
    """Whether a name and most cells below it end as names of files of one kind do."""
    suffix = PurePosixPath(name.strip()).suffix.casefold()
    alike = sum(cell.strip().casefold().endswith(suffix) for cell in cells)
    return re.fullmatch(r"\.[a-z]+[0-9]?", suffix) is not None and 2 * alike > len(cells)
