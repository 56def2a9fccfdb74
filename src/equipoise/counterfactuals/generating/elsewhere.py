"""Images made elsewhere: a table with a row for each image that was asked for."""

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
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.parts import COLUMNS
from equipoise.data.tables import keys_of_json_lines, read_table
from equipoise.evidence import Pictures, pictures_of_table, pictures_on_disk
from equipoise.evidence.pictures import Files

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""The table that a folder of images is read by."""

_PATHS = ("path", "file_name", "file", "image")
_STATES = ("image", "refused", "failed")
_NUMBERS = ("candidate", "seed", "shared", "shared_self")


def made_elsewhere(given: Path | str | pa.Table, *, root: Path | None = None) -> Generated:
    """Read a table of images made elsewhere.

    Parameters
    ----------
    given : Path, str or pyarrow.Table
        A CSV, Parquet or JSON lines file, or a folder with `metadata.csv`, `.jsonl` or
        `.parquet`. `prompt` is needed, and where the image lies: `path`, `file_name`, `file` or
        `image`, which may hold the images themselves in a Parquet file. `state` says why an image
        is not there. Other columns are kept.
    root : Path, optional
        What paths start from: the folder of the table unless given.

    Raises
    ------
    DataError
        When a column is missing, or an image neither has a path nor a state that says why.
    """
    source = _table_of(given)
    name = source if isinstance(source, str) else "the table of images"
    columns, embedded = columns_of(source)
    where = next((one for one in _PATHS if one in columns or one == embedded), None)
    if "prompt" not in columns or where is None:
        raise DataError(
            f"it has the columns {', '.join(columns)}",
            file=name,
            expected=f"prompt, and one of {', '.join(_PATHS)}",
        )
    found = read_table(source, texts=columns, role="images")
    texts = {one: _emptied(one, found.texts[one].to_list()) for one in columns}
    paths = texts.pop(where) if embedded is None else None
    rows = _rows(texts, paths, name)
    table = _table(rows, texts)
    folder = root or (Path(source).parent if isinstance(source, str) else Path())
    have = [place for place, state in enumerate(rows["state"]) if state == "image"]
    ids = [rows["image_id"][place] for place in have]
    if paths is None:
        pictures = _inside(Path(name), where, have, ids)
    else:
        pictures = _files(ids, [paths[place] for place in have], folder, name, where)
    return Generated(folder, table, pictures, {}, {name: dict(found.digest)})


def _emptied(column: str, values: list[str | None]) -> list[str | None]:
    """Return cells with null for empty ones, where the column is one of ours."""
    own = column in COLUMNS.names or column in _PATHS
    return [value or None for value in values] if own else values


def _table_of(given: Path | str | pa.Table) -> str | pa.Table:
    if isinstance(given, pa.Table):
        return given
    path = Path(given)
    if not path.is_dir():
        return str(path)
    for name in METADATA:
        if (path / name).is_file():
            return str(path / name)
    raise DataError(
        "it holds no images that were finished here, and no table of images made elsewhere",
        file=str(path),
        expected=f"manifest.json of a whole generation, or {', '.join(METADATA)}",
    )


def columns_of(source: str | pa.Table) -> tuple[list[str], str | None]:
    """Return the columns of a table that can be read as text, and that which holds images."""
    if isinstance(source, pa.Table):
        return [*source.column_names], None
    path = Path(source)
    try:
        if path.suffix in (".parquet", ".pq"):
            schema = pq.read_schema(path)
            held = [one.name for one in schema if _holds_images(one.type)]
            return [name for name in schema.names if name not in held], next(iter(held), None)
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            return keys_of_json_lines(path.read_bytes(), source), None
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")), None
    except FileNotFoundError:
        raise DataError("there is no such file or folder", file=source) from None
    except (OSError, ValueError, StopIteration, pa.ArrowException) as error:
        raise DataError(f"it cannot be read: {error}", file=source) from error


def _holds_images(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or pa.types.is_binary(kind))


def _rows(
    texts: dict[str, list[str | None]], paths: list[str | None] | None, name: str
) -> dict[str, list[Any]]:
    """Return our columns of each row; made up where the table does not have them."""
    prompts = _whole(texts["prompt"], "prompt", name)
    places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    ids = [f"prompt-{places[prompt]:05d}" for prompt in prompts]
    for column in ("caption_id", "prompt_id"):
        if column in texts:
            ids = _whole(texts[column], column, name)
    seen: Counter[str] = Counter()
    numbers = []
    for one in ids:
        numbers.append(seen[one])
        seen[one] += 1
    rows: dict[str, list[Any]] = {"ids": ids, "candidate": numbers}
    rows |= {
        column: _numbers(texts[column], column, name) for column in _NUMBERS if column in texts
    }
    whole = [f"{one}/{number:03d}" for one, number in zip(ids, rows["candidate"], strict=True)]
    if "image_id" in texts:
        whole = _whole(texts["image_id"], "image_id", name)
    _once(whole, name)
    return rows | {"image_id": whole, "state": _states(texts.get("state"), paths, name)}


def _whole(values: list[str | None], column: str, name: str) -> list[str]:
    for row, value in enumerate(values, start=1):
        if not value:
            raise DataError("it is empty", file=name, column=column, row=row)
    return [value or "" for value in values]


def _once(ids: list[str], name: str) -> None:
    first: dict[str, int] = {}
    for row, one in enumerate(ids, start=1):
        if one in first:
            raise DataError(
                f"the image {one!r} stands in rows {first[one]} and {row}",
                file=name,
                expected="each image once",
                fix="give images ids of their own (image_id), or number them (candidate)",
            )
        first[one] = row


def _numbers(values: list[str | None], column: str, name: str) -> list[float | int | None]:
    kind = float if column.startswith("shared") else int
    found: list[float | int | None] = []
    for row, value in enumerate(values, start=1):
        try:
            found.append(kind(value) if value else None)
        except ValueError:
            raise DataError(
                f"{value!r} is no {'number' if kind is float else 'whole number'}",
                file=name,
                column=column,
                row=row,
            ) from None
    return found


def _states(given: list[str | None] | None, paths: list[str | None] | None, name: str) -> list[str]:
    count = len(given if given is not None else paths or [])
    found = []
    for row in range(count):
        path = None if paths is None else paths[row]
        state = given[row] if given is not None else None
        if state is None:
            state = "image" if path else ""
        if state not in _STATES or (state == "image" and paths is not None and not path):
            raise DataError(
                f"the state is {state!r} and the path {path!r}",
                file=name,
                column="state",
                row=row + 1,
                expected="a path, or a state that says why there is none: refused or failed",
            )
        found.append(state)
    return found


def _table(rows: dict[str, list[Any]], texts: dict[str, list[str | None]]) -> pa.Table:
    id = "caption_id" if "caption_id" in texts and "prompt_id" not in texts else "prompt_id"  # noqa: A001
    columns: dict[str, pa.Array] = {}
    for field in COLUMNS:
        made = rows.get("ids" if field.name == "prompt_id" else field.name)
        values = made or texts.get(field.name, [None] * len(rows["ids"]))
        columns[id if field.name == "prompt_id" else field.name] = pa.array(values, field.type)
    more = {name: pa.array(held, pa.string()) for name, held in texts.items()}
    return pa.table(columns | {name: one for name, one in more.items() if name not in columns})


def _files(
    ids: list[str], paths: Sequence[str | None], root: Path, name: str, column: str
) -> Pictures:
    if not ids:
        return Pictures(name, np.empty(0, dtype=object), Files(()))
    return pictures_of_table(
        ids, [path or "" for path in paths], root=root, name=name, column=column
    )


def _inside(path: Path, column: str, have: Sequence[int], ids: list[str]) -> Pictures:
    """Return pictures that lie in the table itself, under our ids."""
    order = sorted(range(len(have)), key=ids.__getitem__)
    taken = pictures_on_disk(path, image=column).take([have[place] for place in order])
    names = np.empty(len(order), dtype=object)
    names[:] = [ids[place] for place in order]
    return Pictures(str(path), names, taken.source)
