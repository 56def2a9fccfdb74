"""Plain tables: CSV, Parquet, JSON lines and data frames with a row per image, or per label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equipoise.data.formats.rows import read_rows
from equipoise.data.image_set import Gathered, ImageSet, Marks, image_set


def read_plain(
    table: Path | str | Any,
    *,
    id: str,  # noqa: A002 - as in ItemSource
    columns: Sequence[str] = (),
    label: str | None = None,
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> ImageSet:
    """Read a table that has no format of its own.

    Parameters
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the ids.
    columns : sequence of str
        Attributes to keep.
    label : str, optional
        Column of labels. An image may then have several rows, one for each label, which agree in
        the columns.
    missing : sequence of str
        Texts that mean "missing", beside the empty cell.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Returns
    -------
    ImageSet
        Counts: "rows", "images", and "missing": images by column where it is empty; with labels
        "pairs" and "rows_without_label" too.

    Raises
    ------
    DataError
        When a column is missing, an id is empty, repeats without `label`, or its rows differ.
    """
    wanted = (*columns, *([label] if label else []))
    rows = read_rows(
        table, wanted, id=id, unique=label is None, missing=missing,
        encoding=encoding, delimiter=delimiter,
    )  # fmt: skip
    ids = rows.filled(id)
    first: dict[str, int] = {}
    for row, one in enumerate(ids):
        start = first.setdefault(one, row)
        if start != row:
            rows.check_same(start, row, columns)
    kept = [*first.values()]
    position = {one: place for place, one in enumerate(first)}
    gathered = Gathered([*first], {name: [rows.cells[name][r] for r in kept] for name in columns})
    counts: dict[str, Any] = {"rows": len(ids), "images": len(first)}
    counts["missing"] = {name: values.count(None) for name, values in gathered.columns.items()}
    if label:
        cells = rows.cells[label]
        gathered.labels = Marks(
            (position[ids[row]], cell) for row, cell in enumerate(cells) if cell is not None
        )
        counts |= {"pairs": gathered.labels.pairs, "rows_without_label": cells.count(None)}
    return image_set(
        gathered, name=rows.name, format="plain table", inputs=rows.inputs, counts=counts
    )
