"""Images that were made: from a folder of ours, or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from equipoise.core.errors import DataError
from equipoise.core.files import read_table
from equipoise.counterfactuals.generating.elsewhere import made_elsewhere
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.parts import read_part
from equipoise.evidence.picture_tables import Rows, TableFile
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.store import read_manifest
from equipoise.models.info import one_digest, sha256_of

TABLE = "images.parquet"


def read_generated(
    folder_or_table: Path | str | pa.Table, *, root: Path | None = None
) -> Generated:
    """Read images that were made: by `generate_prompts` or `generate_sets`, or elsewhere.

    Parameters
    ----------
    folder_or_table : Path, str or pyarrow.Table
        A folder of a store, ``<store>/generations/<key>``. Or of images made elsewhere a table
        (CSV, Parquet, JSON lines) with a row for each image that was asked for, or a folder that
        holds it as `metadata.csv`, `.jsonl` or `.parquet`. It has `prompt`, and where the image
        lies: `path`, `file_name`, `file` or `image`, which in a Parquet file may hold the images
        themselves. An image that is not there has a `state`: ``refused`` or ``failed``. Other
        columns are kept; `image_id`, `prompt_id` and `candidate` are made up where they are not
        there.
    root : Path, optional
        What paths start from: the folder of the table unless given.

    Returns
    -------
    Generated

    Raises
    ------
    DataError
        When there is no such folder or table, it is not finished, a column is missing, or an
        image neither has a path nor a state that says why.
    """
    if (
        isinstance(folder_or_table, str | Path)
        and (Path(folder_or_table) / "manifest.json").is_file()
    ):
        return _kept_before(Path(folder_or_table))
    return made_elsewhere(folder_or_table, root=root)


def _kept_before(folder: Path) -> Generated:
    manifest = read_manifest(folder)
    if not manifest.get("whole") or "parts" not in manifest:
        raise DataError(
            "no images that were finished lie in this folder",
            file=str(folder),
            fix="run the generation to its end, or name a table of images made elsewhere",
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
    return Generated(folder, table, pictures_of(folder, paths), info, input_of(folder, paths), 0)


def input_of(folder: Path, paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the parts of a folder as an input of an audit."""
    told = {
        "sha256": one_digest({path.name: sha256_of(path) for path in paths}),
        "bytes": sum(path.stat().st_size for path in paths),
        "rows": sum(pq.read_metadata(path).num_rows for path in paths),
    }
    return {f"generations/{folder.name}": told}


def pictures_of(folder: Path, paths: Sequence[Path]) -> Pictures:
    """Return the images that lie in parts."""
    starts: list[int] = []
    stretches: list[tuple[int, int]] = []
    found: list[tuple[str, int]] = []
    first = 0
    for number, path in enumerate(paths):
        told = read_part(path)
        names, states = told["image_id"].to_pylist(), told["state"].to_pylist()
        found += [
            (name, first + row)
            for row, (name, state) in enumerate(zip(names, states, strict=True))
            if state == "image"
        ]
        metadata = pq.read_metadata(path)
        at = first
        for group in range(metadata.num_row_groups):
            starts.append(at)
            stretches.append((number, group))
            at += metadata.row_group(group).num_rows
        first = at
    found.sort()
    ids = np.empty(len(found), dtype=object)
    ids[:] = [name for name, _ in found]
    files = tuple(_stamped(path) for path in paths)
    places = tuple(row for _, row in found)
    return Pictures(str(folder), ids, Rows(files, tuple(starts), tuple(stretches), "image", places))


def _stamped(path: Path) -> TableFile:
    found = path.stat()
    return TableFile(str(path), (found.st_mtime_ns, found.st_size))


def joined(told: pa.Table, asked: pa.Table, id: str) -> pa.Table:  # noqa: A002
    """Return what parts tell, in the order of the prompts, with the prompts' own columns."""
    rows = pc.index_in(told["prompt_id"], value_set=asked[id].combine_chunks()).to_numpy()
    order = np.lexsort([told["candidate"].to_numpy(), rows])
    table = told.take(pa.array(order))
    more = asked.take(pa.array(rows[order]))
    names = [id if name == "prompt_id" else name for name in table.column_names]
    table = table.rename_columns(names)
    for name in more.column_names:
        if name not in names:
            table = table.append_column(name, more[name])
    return table
