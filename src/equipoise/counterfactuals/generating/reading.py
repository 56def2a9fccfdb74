"""Generated images: those of a finished generation, and tables of images made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from equipoise.core import files
from equipoise.core.errors import DataError
from equipoise.counterfactuals.captions import word_id
from equipoise.counterfactuals.generating.parts import read_part
from equipoise.counterfactuals.generating.requests import COLUMNS, columns_of
from equipoise.data.tables import read_table
from equipoise.evidence import new_run, pictures_of_table, pictures_on_disk
from equipoise.evidence.pictures import Files, Pictures, Rows, TableFile
from equipoise.evidence.store import read_manifest
from equipoise.models.info import one_digest, sha256_of

TABLE, EXPORTED = "images.parquet", "metadata.csv"
_LONGEST = 150


@dataclass(frozen=True, eq=False)
class Generated:
    """Images of prompts or of caption sets.

    Attributes
    ----------
    folder : Path
        Where they lie: ``<store>/generations/<key>``; of external images the folder of their
        table.
    table : pyarrow.Table
        One row per requested image, none dropped: `image_id`, `caption_id` (of sets) or
        `prompt_id`, `prompt`, `set` (null without), `candidate` (from 0), `seed`, `shared` and
        `shared_self` (shares of the steps; null without control), `base` (the caption whose
        attention the others share), `state` (``image``, ``refused`` or ``failed``), `reason`,
        and the other columns of the prompts or captions.
    pictures : Pictures
        Those with the state ``image``, by `image_id`.
    info : mapping
        Facts of the model; empty where it is not known.
    inputs : mapping
        The images as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images that this run computed; 0 when all were there.
    """

    folder: Path
    table: pa.Table = field(repr=False)
    pictures: Pictures = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    computed: int = 0


def read_generated(
    folder_or_table: Path | str | pa.Table, *, root: Path | None = None
) -> Generated:
    """Read generated images: of `generate_prompts` or `generate_sets`, or external ones.

    Parameters
    ----------
    folder_or_table : Path, str or pyarrow.Table
        A folder of a store, ``<store>/generations/<key>``. Or of external images a table (CSV,
        Parquet, JSON lines) with a row for each requested image, or a folder that holds it as
        `metadata.csv`, `.jsonl` or `.parquet`. It has `prompt`, and where the image lies: `path`,
        `file_name`, `file` or `image`, which in a Parquet file may hold the images themselves. An
        image that is not there has a `state`: ``refused`` or ``failed``. Other columns are kept;
        `image_id`, `prompt_id` and `candidate` are made up where they are not there.
    root : Path, optional
        Folder of relative paths: that of the table unless given.

    Returns
    -------
    Generated

    Raises
    ------
    DataError
        When there is no such folder or table, it is not finished, a column is missing, or an
        image neither has a path nor a state that says why.
    """
    if isinstance(folder_or_table, pa.Table):
        return external_images(folder_or_table, root=root)
    folder = Path(folder_or_table)
    if not (folder / "manifest.json").is_file():
        return external_images(folder_or_table, root=root)
    manifest = read_manifest(folder)
    if not manifest.get("whole") or "parts" not in manifest:
        raise DataError(
            "no images that were finished lie in this folder",
            file=str(folder),
            fix="run the generation to its end, or name a table of external images",
        )
    paths = [folder / name for name in manifest["parts"]]
    missing = [path.name for path in (folder / TABLE, *paths) if not path.is_file()]
    if missing:
        raise DataError(
            f"{missing[0]} is missing", file=str(folder), fix="run the generation again"
        )
    try:
        table = files.read_table(folder / TABLE)
    except (OSError, pa.ArrowException):
        raise DataError(
            "it is damaged", file=str(folder / TABLE), fix="run the generation again"
        ) from None
    info = manifest.get("model", {})
    return Generated(folder, table, pictures_of(folder, paths), info, input_of(folder, paths))


def input_of(folder: Path, paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the parts of a folder as an input of an audit."""
    facts = {
        "sha256": one_digest({path.name: sha256_of(path) for path in paths}),
        "bytes": sum(path.stat().st_size for path in paths),
        "rows": sum(pq.read_metadata(path).num_rows for path in paths),
    }
    return {f"generations/{folder.name}": facts}


def pictures_of(folder: Path, paths: Sequence[Path]) -> Pictures:
    """Return the images of parts, sorted by id."""
    starts: list[int] = []
    stretches: list[tuple[int, int]] = []
    images: list[tuple[str, int]] = []
    files = []
    row = 0
    for number, path in enumerate(paths):
        part, metadata, stat = read_part(path), pq.read_metadata(path), path.stat()
        files.append(TableFile(str(path), (stat.st_mtime_ns, stat.st_size)))
        states = part["state"].to_pylist()
        images += [
            (name, row + place)
            for place, name in enumerate(part["image_id"].to_pylist())
            if states[place] == "image"
        ]
        for group in range(metadata.num_row_groups):
            starts.append(row)
            stretches.append((number, group))
            row += metadata.row_group(group).num_rows
    images.sort()
    ids = np.array([name for name, _ in images], dtype=object)
    places = tuple(place for _, place in images)
    rows = Rows(tuple(files), tuple(starts), tuple(stretches), "image", places)
    return Pictures(str(folder), ids, rows)


def join_parts(rows: pa.Table, request: pa.Table, id: str) -> pa.Table:  # noqa: A002
    """Return the rows of parts, in the order of the prompts, with the prompts' own columns."""
    places = pc.index_in(rows["prompt_id"], value_set=request[id].combine_chunks()).to_numpy()
    order = np.lexsort([rows["candidate"].to_numpy(), places])
    table = rows.take(pa.array(order))
    names = [id if name == "prompt_id" else name for name in table.column_names]
    table = table.rename_columns(names)
    more = request.take(pa.array(places[order]))
    for name in more.column_names:
        if name not in names:
            table = table.append_column(name, more[name])
    return table


def export_images(generated: Generated, folder: Path, *, overwrite: bool = False) -> int:
    """Write images as PNG files, and their table as `metadata.csv`.

    The folder appears when it is whole. `read_generated` reads it, and so does the "imagefolder"
    of Hugging Face's datasets.

    Parameters
    ----------
    generated : Generated
    folder : Path
        Must not exist, or be empty.
    overwrite : bool
        Replace an earlier export, if no other file lies in its folder.

    Returns
    -------
    int
        How many images were written.

    Raises
    ------
    RunError
        When the folder is taken, or cannot be written.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    with new_run(folder, overwrite=overwrite) as partial:
        for place, image in enumerate(generated.pictures.ids.tolist()):
            # The words of the id, or a number where these are no fit name.
            parts = [part for part in word_id(image.split("/")).split("/") if part]
            name = "/".join(["images", *parts]) + ".png"
            if not parts or name in taken or len(name.encode()) > _LONGEST:
                name = f"images/{place:08d}.png"
            names[image] = name
            taken.add(name)
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(generated.pictures.read(place))
        files = [names.get(image) for image in generated.table["image_id"].to_pylist()]
        columns = {"file_name": pa.array(files, pa.string())}
        for name in generated.table.column_names:
            column = generated.table[name]
            kind = column.type
            plain = pa.types.is_string(kind) or pa.types.is_integer(kind)
            if not plain and not pa.types.is_floating(kind):
                column = pc.cast(column, pa.string())
            columns[name] = column
        pyarrow.csv.write_csv(pa.table(columns), partial / EXPORTED)
    return len(names)


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
    for column in COLUMNS:
        cells = made.get(column.name) or texts.get(column.name, [None] * len(ids))
        columns[id if column.name == "prompt_id" else column.name] = pa.array(cells, column.type)
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
