"""Generated images: read from a store or a table, and exported as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from equipoise.core.errors import DataError
from equipoise.core.files import read_table
from equipoise.counterfactuals.captions import word_id
from equipoise.counterfactuals.generating.parts import read_part
from equipoise.evidence import new_run
from equipoise.evidence.pictures import Pictures, Rows, TableFile
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
    from equipoise.counterfactuals.generating.elsewhere import external_images

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
        table = read_table(folder / TABLE)
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
