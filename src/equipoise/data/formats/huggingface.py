"""Data sets of Hugging Face on disk: Parquet files.

Source: huggingface.co/docs/datasets, "Load" and `Dataset.to_parquet`, and the library's
`arrow_dataset.py`: the schema of the files has the features as JSON under the key "huggingface",
where a ClassLabel has the `names` of its numbers.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from equipoise.core import DataError
from equipoise.core.files import decode_json
from equipoise.core.labels import is_text
from equipoise.data.files import hash_file
from equipoise.data.formats.reading import RowPictures, data_format, row_files
from equipoise.data.image_set import ID, ImageRecords, ImageSet, image_set
from equipoise.data.problems import check_columns, check_ids
from equipoise.data.tables import as_text, is_numbers, open_parquet, read_columns

_FORMATS = ".parquet"


def _rows(_: Path, *, id: str | None = None, image: str = "image") -> RowPictures:  # noqa: A002 - as below
    return RowPictures(image, id)


@data_format("huggingface", rows=_rows)
def read_huggingface(
    path: Path | str,
    *,
    id: str | None = None,  # noqa: A002 - as in ItemSource
    image: str = "image",
) -> ImageSet:
    """Read the columns of a data set as facts of its images, not the images.

    Parameters
    ----------
    path : path
        A Parquet file, or a folder of them.
    id : str, optional
        Column of the ids; the numbers of the rows, from 0 and of equal length, unless given.
    image : str
        Column of the images.

    Returns
    -------
    ImageSet
        With every other column of texts, numbers or truth values as text; numbers of a ClassLabel
        as their names. Counts: "images", "missing": images by column where it is empty, and
        "columns_left_out", which hold lists or structures.

    Raises
    ------
    DataError
        When a file cannot be read, files differ in their columns, or an id is empty or repeats.
    """
    files, name = row_files(Path(path)), str(path)
    read = [_read(file, (image, *([id] if id else []))) for file in files]
    tables = [table for table, _ in read]
    if any(table.schema.names != tables[0].schema.names for table in tables):
        raise DataError("files differ in their columns", file=name, expected="the same columns")
    rows = pa.concat_tables(tables, promote_options="permissive")
    classes = _classes(tables[0].schema)
    texts = {
        column: _texts(rows[column], name, column, classes.get(column))
        for column in rows.column_names
    }
    if id:
        check_ids(texts[id], name)
    n = sum(map(len, tables))  # of rows, where no column is left, too
    digits = len(str(max(n - 1, 0)))
    numbers = (f"{row:0{digits}d}" for row in range(n))
    ids = texts.pop(id).to_list() if id else [*numbers]
    # The column that names the images here has this name already.
    columns = {
        f"{column} (data)" if column == ID else column: texts[column].to_list() for column in texts
    }
    image_records = ImageRecords(ids, columns)
    return image_set(
        image_records,
        name=name,
        format="Hugging Face",
        inputs={
            str(file): {**hash_file(file, _FORMATS), "rows": len(table)}
            for file, table in zip(files, tables, strict=True)
        },
        counts={
            "images": len(ids),
            "missing": image_records.count_missing(),
            "columns_left_out": sorted(read[0][1] - {image}),
        },
    )


def _read(file: Path, required: Sequence[str]) -> tuple[pa.Table, set[str]]:
    """Return the columns that hold plain values, and the names of the others."""
    with open_parquet(file) as parquet:
        schema = parquet.schema_arrow
        check_columns(schema.names, required, str(file))
        plain = [field.name for field in schema if is_text(field.type) or is_numbers(field.type)]
        table = read_columns(parquet, plain, file)
    return table, {*schema.names} - {*plain}


def _classes(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of a ClassLabel's numbers, by column."""
    try:
        info = decode_json((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = info["info"]["features"]
        return {
            column: [str(name) for name in feature["names"]]
            for column, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        # Files that another library wrote do not say it.
        return {}


def _texts(cells: pa.ChunkedArray, file: str, column: str, classes: list[str] | None) -> pl.Series:
    """Return a column as text; blank cells are null."""
    if classes is None or not pa.types.is_integer(cells.type):
        texts = as_text(cells, file, column).alias(column)
        return texts.set(texts.str.strip_chars() == "", None)
    # The library writes -1 where there is no label.
    names: dict[int | None, str | None] = {**dict(enumerate(classes)), -1: None, None: None}
    numbers = cells.to_pylist()
    wrong = [row for row, number in enumerate(numbers, start=1) if number not in names]
    if wrong:
        raise DataError(
            f"the number {numbers[wrong[0] - 1]} isn't a class",
            file=file,
            column=column,
            row=wrong[0],
            expected=f"0 to {len(classes) - 1}, the classes that the file names",
            fix="save the data set again",
        )
    return pl.Series(column, [names[number] for number in numbers], dtype=pl.String)
