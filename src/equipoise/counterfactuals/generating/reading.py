"""Generated images: those of a finished generation, and tables of images made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from equipoise.core import files
from equipoise.core.errors import DataError
from equipoise.counterfactuals.captions import word_id
from equipoise.counterfactuals.generating.parts import read_part
from equipoise.counterfactuals.generating.requests import COLUMNS, columns_of
from equipoise.data.join import check_ids
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
    paths = [folder / part for part in manifest.get("parts", ())]
    problem = "" if manifest.get("whole") and paths else "the generation was not finished"
    damaged, table = folder, pa.table({})
    try:
        table = files.read_table(folder / TABLE)
    except (OSError, pa.ArrowException):
        problem, damaged = problem or "it is missing or damaged", folder / TABLE
    gone = [path.name for path in paths if not path.is_file()]
    if problem or gone:
        raise DataError(
            problem or f"{gone[0]} is missing",
            file=str(damaged),
            fix="run the generation to its end, or name a table of external images",
        )
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
            words = "/".join(filter(None, word_id(image.split("/")).split("/")))
            name = f"images/{words}.png"
            if not words or name in taken or len(name.encode()) > _LONGEST:
                name = f"images/{place:08d}.png"
            names[image] = name
            taken.add(name)
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(generated.pictures.read(place))
        files = [names.get(image) for image in generated.table["image_id"].to_pylist()]
        columns = {"file_name": pa.array(files, pa.string())}
        for name in generated.table.column_names:
            column = generated.table[name]
            nested = pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type)
            columns[name] = pc.cast(column, pa.string()) if nested else column
        pyarrow.csv.write_csv(pa.table(columns), partial / EXPORTED)
    return len(names)


METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Names of the table of a folder of images."""

_PATHS = ("path", "file_name", "file", "image")
_STATES = ("image", "refused", "failed")
_NUMBERS = {
    "candidate": pl.Int64,
    "seed": pl.Int64,
    "shared": pl.Float64,
    "shared_self": pl.Float64,
}


def external_images(given: Path | str | pa.Table, *, root: Path | None = None) -> Generated:
    """Read a table of external images; see `read_generated`.

    Raises
    ------
    DataError
        When a column is missing, or an image neither has a path nor a state that says why.
    """
    source = given if isinstance(given, pa.Table) else str(given)
    if isinstance(source, str) and Path(source).is_dir():
        tables = (Path(source) / name for name in METADATA)
        source = str(next((path for path in tables if path.is_file()), Path(source) / METADATA[0]))
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
    known = {*COLUMNS.names, *_PATHS}
    frame = pl.DataFrame([*read.texts.values()])
    frame = frame.with_columns(pl.col(c).replace("", None) for c in columns if c in known)
    paths = frame[where].fill_null("") if where in columns else None
    table = _images(frame.drop(where) if where in columns else frame, paths, name)
    folder = root or (Path(source).parent if isinstance(source, str) else Path())
    rows = (table["state"] == "image").arg_true().to_list()
    ids: list[str] = table["image_id"].gather(rows).to_list()
    if paths is None:
        # The pictures lie in the table itself.
        order = sorted(range(len(rows)), key=ids.__getitem__)
        taken = pictures_on_disk(Path(name), image=where).take([rows[place] for place in order])
        pictures = Pictures(name, np.array(sorted(ids), dtype=object), taken.source)
    elif not ids:
        pictures = Pictures(name, np.empty(0, dtype=object), Files(()))
    else:
        files = paths.gather(rows).to_list()
        pictures = pictures_of_table(ids, files, root=folder, name=name, column=where)
    kinds = {column.name: column.type for column in COLUMNS}
    schema = pa.schema([(column, kinds.get(column, pa.string())) for column in table.columns])
    inputs = {name: dict(read.digest)}
    return Generated(folder, table.to_arrow().cast(schema), pictures, {}, inputs)


def _images(frame: pl.DataFrame, paths: pl.Series | None, name: str) -> pl.DataFrame:
    """Return the columns of each image, made up where the table lacks them, and all others."""
    by_caption = "caption_id" in frame.columns and "prompt_id" not in frame.columns
    key = "caption_id" if by_caption else "prompt_id"
    for column, kind in _NUMBERS.items():
        if column in frame.columns:
            numbers = frame[column].cast(kind, strict=False)
            wrong = numbers.is_null() & frame[column].is_not_null()
            _refuse(wrong, name, column, "a number, whole for a candidate or seed")
            frame = frame.with_columns(numbers)
    made = {column: pl.lit(None, pl.String) for column in COLUMNS.names}
    made |= dict.fromkeys(_NUMBERS, pl.lit(None, pl.Float64))
    if key not in frame.columns:
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(frame["prompt"]))}
        named = [f"prompt-{places[prompt]:05d}" for prompt in frame["prompt"]]
        frame = frame.with_columns(pl.Series(key, named))
    if "candidate" not in frame.columns:
        frame = frame.with_columns(pl.int_range(pl.len()).over(key).alias("candidate"))
    number = pl.col("candidate").cast(pl.String).str.zfill(3)
    made["image_id"] = pl.format("{}/{}", key, number)
    made["state"] = pl.lit("image" if paths is None else None, pl.String)
    order = [key if column == "prompt_id" else column for column in COLUMNS.names]
    lacking = [column for column in order if column not in frame.columns]
    frame = frame.with_columns(made[column].alias(column) for column in lacking)
    if paths is not None:
        has = pl.when(paths != "").then(pl.lit("image"))
        frame = frame.with_columns(pl.coalesce("state", has))
    for column in ("prompt", key, "image_id"):
        _refuse(frame[column].is_null(), name, column, "a text in every row")
    check_ids(frame["image_id"], name, fix="give images ids of their own, or number `candidate`")
    state = frame["state"]
    lost = (state == "image") & (paths == "") if paths is not None else state.is_null()
    _refuse(
        lost | ~state.is_in(_STATES).fill_null(value=False),
        name,
        "state",
        "a path, or a state that says why there is none: refused or failed",
    )
    return frame.select(*order, pl.exclude(order))


def _refuse(wrong: pl.Series, name: str, column: str, expected: str) -> None:
    if wrong.any():
        row = int(wrong.arg_true()[0]) + 1
        raise DataError(
            "the cell is empty or wrong", file=name, column=column, row=row, expected=expected
        )
