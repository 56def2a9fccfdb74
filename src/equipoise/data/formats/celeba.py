"""CelebA: 40 attributes by face as text.

Source: mmlab.ie.cuhk.edu.hk/projects/CelebA.html and torchvision.datasets.CelebA:
`list_attr_celeba.txt` has the number of images, the names of the attributes, and then rows of a
file name and 1 or -1 for each attribute, apart by spaces. The copy on Kaggle (jessicali9530,
celeba-dataset), `list_attr_celeba.csv`, has a header of `image_id` and the names, and rows with
commas; it does not say how many there are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import DataError
from equipoise.data.files import read_text, split_lines
from equipoise.data.formats.reading import data_format
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import check_columns, check_ids, show

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
    (text, digest), file = read_text(path, ".txt or .csv", _EXPECTED), str(path)
    names, rows = _table([line for line in split_lines(text) if line.strip()], file)
    check_columns(names, attributes, file)
    ids = [cells[0] for cells in rows]
    check_ids(pl.Series(_ID, ids), file)
    for row, (_, *cells) in enumerate(rows, start=1):
        pairs = zip(names, cells, strict=False)
        wrong = [name for name, cell in pairs if cell not in ("1", "-1")]
        if wrong or len(cells) != len(names):
            raise DataError(
                f"the row has {len(cells) + 1} cells; {len(wrong)} of them are neither 1 nor -1",
                file=file,
                column=wrong[0] if wrong else None,
                row=row,
                expected=f"a file name and {len(names)} times 1 or -1",
                fix=_FIX,
            )
    has_attribute = np.array([cells[1:] for cells in rows]) == "1"
    columns: dict[str, list[str | None]] = {}
    for name, texts in attributes.items():
        columns[name] = np.where(has_attribute[:, names.index(name)], *texts).tolist()
    labels: list[tuple[int, str]] = []
    for image, place in np.argwhere(has_attribute).tolist():
        if names[place] not in attributes:
            labels.append((image, names[place]))
    image_records = ImageRecords(ids, columns, labels)
    return image_set(
        image_records,
        name=file,
        format="CelebA",
        inputs={file: {**digest, "rows": len(rows)}},
        counts={"images": len(rows), "attributes": len(names), **image_records.count_labels()},
    )


def _table(lines: Sequence[str], file: str) -> tuple[list[str], list[list[str]]]:
    """Return the attributes and the rows of the official file, or of a CSV."""
    first_line = lines[0].strip()
    if len(lines) > 2 and first_line.isdecimal():
        rows = [line.split() for line in lines[2:]]
        if int(first_line) != len(rows):
            raise DataError(
                f"the first line says {first_line} images and there are {len(rows)} rows",
                file=file,
                expected="as many rows as the first line says",
                fix=f"{_FIX}: it may be cut off; or correct the number if you chose rows yourself",
            )
        return lines[1].split(), rows
    header, *rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    if header[0] != _ID or not rows:
        raise DataError(
            f"the first line is {show(first_line)}, and {len(rows)} rows follow",
            file=file,
            expected=_EXPECTED,
            fix="give list_attr_celeba.txt or list_attr_celeba.csv as it was downloaded; any other "
            "table is read as one: `table` in a configuration, read_plain in Python",
        )
    return header[1:], rows
