"""Rows of tables in the formats of data sets, which are UTF-8, and plain tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core import DataError
from equipoise.core.files import read_regular
from equipoise.data.files import parse_json, to_utf8
from equipoise.data.image_set import Gathered, ImageSet, Marks, image_set
from equipoise.data.join import check_ids
from equipoise.data.problems import show
from equipoise.data.tables import read_table

_FIXES = {
    "`encoding": "convert the file to UTF-8",
    "`delimiter": "write cells apart by commas, or by tabs in a .tsv",
}


def utf8_text(content: bytes, file: str) -> str:
    """Return the text of a file, without a byte order mark.

    Raises
    ------
    DataError
        When it is not UTF-8.
    """
    with as_formats_are():
        to_utf8(content, file, "utf-8", header=False)
    return content.decode("utf-8-sig")


@contextmanager
def as_formats_are() -> Iterator[None]:
    """Tell errors of tables without the options that a format leaves no room for."""
    try:
        yield
    except DataError as error:
        fix = next((new for old, new in _FIXES.items() if old in (error.fix or "")), None)
        if fix is None:
            raise
        raise DataError(
            error.problem,
            file=error.file,
            column=error.column,
            row=error.row,
            expected=error.expected,
            fix=fix,
        ) from None


Cells = list[str | None]


@dataclass(frozen=True)
class Rows:
    """The cells of a table, by column.

    Attributes
    ----------
    name : str
        The path as given.
    cells : mapping of str to list of str or None
        None where a cell is empty.
    digest : mapping
    """

    name: str
    cells: Mapping[str, Cells]
    digest: Mapping[str, Any]

    @property
    def inputs(self) -> dict[str, Mapping[str, Any]]:
        """What was read, for the record."""
        return {self.name: self.digest}

    def wrong(self, column: str, row: int, expected: str, fix: str = "") -> DataError:
        """Return the error of a cell; rows count from 0 here and from 1 in the message."""
        value = self.cells[column][row]
        return DataError(
            "the cell is empty" if value is None else f"the cell is {show(value)}",
            file=self.name,
            column=column,
            row=row + 1,
            expected=expected,
            fix=fix or "correct the cell, or download the file again",
        )

    def check_same(self, first: int, second: int, columns: Iterable[str]) -> None:
        """Raise where two rows of one image differ."""
        for column in columns:
            one, other = self.cells[column][first], self.cells[column][second]
            if one != other:
                raise DataError(
                    f"rows {first + 1} and {second + 1} are of one image and have {show(one)} and "
                    f"{show(other)}",
                    file=self.name,
                    column=column,
                    expected="the same in every row of an image",
                    fix="correct one of them, leave the column out, or give the rows different ids",
                )

    def filled(self, column: str, expected: str = "a value in every row") -> list[str]:
        """Return a column that has no empty cell."""
        cells = self.cells[column]
        if None in cells:
            raise self.wrong(column, cells.index(None), expected)
        return [cell for cell in cells if cell is not None]


def read_rows(
    path: Path | str | Any,
    columns: Sequence[str],
    *,
    id: str | None = None,  # noqa: A002 - the field has this name
    unique: bool = True,
    role: str = "images",
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> Rows:
    """Read some columns of a table as text.

    Parameters
    ----------
    path : path or data frame
    columns : sequence of str
    id : str, optional
        The column of ids, which may not be empty, and if `unique` not repeat.
    role : str
        What stands for the name of a data frame.
    missing : sequence of str
        Texts that mean "missing", beside the empty cell; not for ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Raises
    ------
    DataError
        As `read_table`.
    """
    names = tuple(dict.fromkeys((*columns, *([id] if id else []))))
    with as_formats_are():
        table = read_table(path, texts=names, role=role, encoding=encoding, delimiter=delimiter)
    if id:
        check_ids(table.texts[id], table.name, unique=unique, fix="remove one of the repeated rows")
    empty = {"", *missing}
    cells = {
        name: [
            None if cell is None or (name != id and cell.strip() in empty) else cell
            for cell in table.texts[name].to_list()
        ]
        for name in names
    }
    return Rows(table.name, cells, table.digest)


_ROW_FILES = "a Parquet file, a folder of them, or a folder that save_to_disk wrote"


def row_files(path: Path) -> list[Path]:
    """Return the files that hold the rows of a data set, in their order.

    Raises
    ------
    DataError
        When there are none, or the folder holds several splits.
    """
    if not path.exists():
        raise DataError(
            "there is no such file or folder",
            file=str(path),
            expected=_ROW_FILES,
            fix="check the path; in a configuration it is relative to its file",
        )
    if not path.is_dir():
        return [path]
    splits = path / "dataset_dict.json"
    if splits.exists():
        names = [str(one) for one in _listed(splits, "splits")]
        raise DataError(
            f"the folder holds the splits {', '.join(names)}",
            file=str(path),
            expected="the folder of one split",
            fix=f"name one of them, such as {path / names[0]}" if names else "name one of them",
        )
    state = path / "state.json"
    if state.exists():
        return [path / str(one.get("filename")) for one in _listed(state, "_data_files", dict)]
    files = sorted(path.rglob("*.parquet"))
    if not files:
        raise DataError(
            "there is no Parquet file and no state.json in this folder",
            file=str(path),
            expected=_ROW_FILES,
            fix="name the folder as it was downloaded or saved",
        )
    return files


def _listed(file: Path, key: str, kind: type = str) -> list[Any]:
    """Return a list that a JSON file of save_to_disk has."""
    try:
        found = parse_json(read_regular(file).decode("utf-8"))[key]
        if isinstance(found, list) and all(isinstance(one, kind) for one in found):
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DataError(
        f"the file has no list {key!r}",
        file=str(file),
        expected="what save_to_disk writes",
        fix="save the data set again with save_to_disk",
    )


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
