"""CelebA: 40 attributes by face as text.

Source: mmlab.ie.cuhk.edu.hk/projects/CelebA.html and torchvision.datasets.CelebA:
`list_attr_celeba.txt` has the number of images, the names of the attributes, and then rows of a
file name and 1 or -1 for each attribute, apart by spaces. The copy on Kaggle (jessicali9530,
celeba-dataset), `list_attr_celeba.csv`, has a header of `image_id` and the names, and rows with
commas; it does not say how many there are.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from equipoise.core import DataError
from equipoise.data.files import read_whole
from equipoise.data.formats.registry import data_format
from equipoise.data.formats.rows import utf8_text
from equipoise.data.image_set import Gathered, ImageSet, Marks, Places, image_set
from equipoise.data.problems import check_columns, counted, show

GENDER = {"Male": ("Male", "not Male")}
_ID = "image_id"
_EXPECTED = (
    "the number of images, then a line of attribute names, then rows; or a CSV whose header is "
    f"{_ID} and the attribute names"
)
_FIX = "download the file again"


@data_format("celeba")
def read_celeba(
    path: Path | str, *, attributes: Mapping[str, tuple[str, str]] = GENDER
) -> ImageSet:
    """Read `list_attr_celeba.txt`, or the same as a CSV.

    Parameters
    ----------
    path : path
        Which of the two it is, its first line tells, whatever its name.
    attributes : mapping of str to (str, str)
        Attributes that become columns to group by, with the text for 1 and that for -1. The
        others become labels.

    Returns
    -------
    ImageSet
        With these columns, and as labels the attributes that are 1. Counts: "images",
        "attributes", "pairs" of image and label, and "images_without_labels", which stay.

    Raises
    ------
    DataError
        When the number of rows is not the number in the first line, a row has another number of
        cells, a cell is neither 1 nor -1, or a file is there twice.
    """
    content = read_whole(Path(path), ".txt or .csv", _EXPECTED)
    file = str(path)
    lines = [line for line in utf8_text(content, file).splitlines() if line.strip()]
    names, rows = _table(lines, file)
    check_columns(names, attributes, file)
    places, labels = Places(file, "image"), Marks()
    columns: dict[str, list[str | None]] = {name: [] for name in attributes}
    for row, cells in enumerate(rows, start=1):
        values = _values(cells, names, file, row)
        image = places.add(cells[0], f"row {row}")
        for name, value in values.items():
            if name in attributes:
                columns[name].append(attributes[name][value != "1"])
            elif value == "1":
                labels.add(image, name)
    counts = {
        "images": len(rows),
        "attributes": len(names),
        "pairs": labels.pairs,
        "images_without_labels": len(rows) - labels.images,
    }
    digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    gathered = Gathered([cells[0] for cells in rows], columns, labels)
    inputs = {file: {**digest, "rows": len(rows)}}
    return image_set(gathered, name=file, format="CelebA", inputs=inputs, counts=counts)


def _table(lines: Sequence[str], file: str) -> tuple[list[str], list[list[str]]]:
    """Return the attributes and the rows of the official file, or of a CSV."""
    first = lines[0].strip()
    if len(lines) > 2 and first.isdecimal():
        rows = [line.split() for line in lines[2:]]
        if int(first) != len(rows):
            raise DataError(
                f"the first line says {first} images and there are {counted(len(rows), 'row')}",
                file=file,
                expected="as many rows as the first line says",
                fix=f"{_FIX}: it may be cut off; or correct the number if you chose rows yourself",
            )
        return lines[1].split(), rows
    try:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    except csv.Error:
        header, rows = [""], []
    if header[0] != _ID or not rows:
        raise DataError(
            f"the first line is {show(first)}{'' if len(lines) > 1 else ', and no row follows'}",
            file=file,
            expected=_EXPECTED,
            fix="give list_attr_celeba.txt or list_attr_celeba.csv as it was downloaded; any other "
            "table is read as one: `table` in a configuration, read_plain in Python",
        )
    return header[1:], rows


def _values(cells: list[str], names: list[str], file: str, row: int) -> dict[str, str]:
    """Return the cells of a row by attribute."""
    if len(cells) != len(names) + 1:
        raise DataError(
            f"the row has {counted(len(cells), 'cell')}",
            file=file,
            row=row,
            expected=f"a file name and {counted(len(names), 'value')}",
            fix=_FIX,
        )
    values = dict(zip(names, cells[1:], strict=True))
    wrong = next((name for name, cell in values.items() if cell not in ("1", "-1")), None)
    if wrong is not None:
        raise DataError(
            f"the cell is {show(values[wrong])}",
            file=file,
            column=wrong,
            row=row,
            expected="1 or -1",
            fix=_FIX,
        )
    return values
