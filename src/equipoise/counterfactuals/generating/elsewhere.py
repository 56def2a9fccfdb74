"""External images: a table with a row for each requested image."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.errors import DataError
from equipoise.counterfactuals.generating.reading import Generated
from equipoise.counterfactuals.generating.requests import COLUMNS
from equipoise.data.tables import keys_of_json_lines, read_table
from equipoise.evidence import Pictures, pictures_of_table, pictures_on_disk
from equipoise.evidence.pictures import Files

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Names of the table of a folder of images."""

_PATHS = ("path", "file_name", "file", "image")
_STATES = ("image", "refused", "failed")
_NUMBERS = {"candidate": int, "seed": int, "shared": float, "shared_self": float}
Cells = list[str | None]


def external_images(given: Path | str | pa.Table, *, root: Path | None = None) -> Generated:
    """Read a table of external images; see `read_generated`.

    Raises
    ------
    DataError
        When a column is missing, or an image neither has a path nor a state that says why.
    """
    source = given if isinstance(given, pa.Table) else _table_file(Path(given))
    name = source if isinstance(source, str) else "the table of images"
    columns, embedded = columns_of(source)
    where = next((column for column in _PATHS if column in (*columns, embedded)), None)
    if "prompt" not in columns or where is None:
        raise DataError(
            f"it has the columns {', '.join(columns)}",
            file=name,
            expected=f"prompt, and one of {', '.join(_PATHS)}",
        )
    read = read_table(source, texts=columns, role="images")
    texts: dict[str, Cells] = {column: read.texts[column].to_list() for column in columns}
    for column in {*COLUMNS.names, *_PATHS} & {*columns}:
        texts[column] = [cell or None for cell in texts[column]]
    paths = None if embedded is not None else texts.pop(where)
    table = _images(texts, paths, name)
    states = table["state"].to_pylist()
    rows = [row for row, state in enumerate(states) if state == "image"]
    ids = [table["image_id"][row].as_py() for row in rows]
    folder = root or (Path(source).parent if isinstance(source, str) else Path())
    if paths is None:
        pictures = _embedded(Path(name), where, rows, ids)
    elif not ids:
        pictures = Pictures(name, np.empty(0, dtype=object), Files(()))
    else:
        files = [paths[row] or "" for row in rows]
        pictures = pictures_of_table(ids, files, root=folder, name=name, column=where)
    return Generated(folder, table, pictures, {}, {name: dict(read.digest)})


def _table_file(path: Path) -> str:
    if not path.is_dir():
        return str(path)
    for name in METADATA:
        if (path / name).is_file():
            return str(path / name)
    raise DataError(
        "it holds no images that were finished here, and no table of external images",
        file=str(path),
        expected=f"manifest.json of a whole generation, or {', '.join(METADATA)}",
    )


def columns_of(source: str | pa.Table) -> tuple[list[str], str | None]:
    """Return the columns of a table that can be read as text, and the column of images."""
    if isinstance(source, pa.Table):
        return [*source.column_names], None
    path = Path(source)
    try:
        if path.suffix in (".parquet", ".pq"):
            schema = pq.read_schema(path)
            images = [
                column.name
                for column in schema
                if pa.types.is_struct(column.type) or pa.types.is_binary(column.type)
            ]
            return [name for name in schema.names if name not in images], next(iter(images), None)
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            return keys_of_json_lines(path.read_bytes(), source), None
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")), None
    except FileNotFoundError:
        raise DataError("there is no such file or folder", file=source) from None
    except (OSError, ValueError, StopIteration, pa.ArrowException) as error:
        raise DataError(f"it cannot be read: {error}", file=source) from error


def _images(texts: dict[str, Cells], paths: Cells | None, name: str) -> pa.Table:
    """Return the columns of each image, made up where the table lacks them, and all others."""
    prompts = _complete(texts["prompt"], "prompt", name)
    id = "caption_id" if "caption_id" in texts and "prompt_id" not in texts else "prompt_id"  # noqa: A001
    places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    ids = [f"prompt-{places[prompt]:05d}" for prompt in prompts]
    if id in texts:
        ids = _complete(texts[id], id, name)
    seen: Counter[str] = Counter()
    numbers = []
    for prompt in ids:
        numbers.append(seen[prompt])
        seen[prompt] += 1
    made: dict[str, list[Any]] = {"prompt_id": ids, "candidate": numbers}
    made |= {
        column: _numbers(texts[column], column, name) for column in _NUMBERS if column in texts
    }
    if "image_id" in texts:
        images = _complete(texts["image_id"], "image_id", name)
    else:
        pairs = zip(ids, made["candidate"], strict=True)
        images = [f"{prompt}/{number:03d}" for prompt, number in pairs]
    first: dict[str, int] = {}
    for row, image in enumerate(images, start=1):
        if first.setdefault(image, row) != row:
            raise DataError(
                f"the image {image!r} stands in rows {first[image]} and {row}",
                file=name,
                expected="each image once",
                fix="give images ids of their own (image_id), or number them (candidate)",
            )
    made |= {"image_id": images, "state": _states(texts.get("state"), paths, len(ids), name)}
    columns: dict[str, pa.Array] = {}
    for field in COLUMNS:
        cells = made.get(field.name) or texts.get(field.name, [None] * len(ids))
        columns[id if field.name == "prompt_id" else field.name] = pa.array(cells, field.type)
    more = {column: pa.array(cells, pa.string()) for column, cells in texts.items()}
    return pa.table(more | columns).select([*columns, *(c for c in more if c not in columns)])


def _complete(cells: Cells, column: str, name: str) -> list[str]:
    if None in cells:
        raise DataError("it is empty", file=name, column=column, row=cells.index(None) + 1)
    return [cell or "" for cell in cells]


def _numbers(cells: Cells, column: str, name: str) -> list[float | None]:
    kind, numbers = _NUMBERS[column], []
    for row, cell in enumerate(cells, start=1):
        try:
            numbers.append(kind(cell) if cell else None)
        except ValueError:
            raise DataError(
                f"{cell!r} is no {'number' if kind is float else 'whole number'}",
                file=name,
                column=column,
                row=row,
            ) from None
    return numbers


def _states(given: Cells | None, paths: Cells | None, n: int, name: str) -> list[str]:
    states = []
    for row in range(n):
        path = None if paths is None else paths[row]
        state = (given[row] if given else None) or ("image" if path else "")
        if state not in _STATES or (state == "image" and paths is not None and not path):
            raise DataError(
                f"the state is {state!r} and the path {path!r}",
                file=name,
                column="state",
                row=row + 1,
                expected="a path, or a state that says why there is none: refused or failed",
            )
        states.append(state)
    return states


def _embedded(path: Path, column: str, rows: Sequence[int], ids: Sequence[str]) -> Pictures:
    """Return pictures that lie in the table itself, by the ids of the images."""
    order = sorted(range(len(rows)), key=ids.__getitem__)
    taken = pictures_on_disk(path, image=column).take([rows[place] for place in order])
    return Pictures(str(path), np.array(sorted(ids), dtype=object), taken.source)
