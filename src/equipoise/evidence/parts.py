"""Parts: what a model gave for some images, as one Parquet file with the failures beside the rows.

A part's name holds the digest of all that it was made from, so a file of the right name is the
right file, and nothing else is a ledger.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.errors import RunError
from equipoise.core.files import read_table, table_bytes
from equipoise.evidence.asking import COLUMNS, Asked
from equipoise.evidence.pictures import Pictures

_NAME = re.compile(r"part-(\d{5,})-([0-9a-f]{16})\.parquet")
_FAILURES = b"equipoise.failures"

FAILURES = pa.schema([("image_id", pa.string()), ("stage", pa.string()), ("reason", pa.string())])


@dataclass(frozen=True)
class Failure:
    """An image that has no row.

    Attributes
    ----------
    image_id : str
    stage : str
        ``read``, ``decode`` or ``model``.
    reason : str
    """

    image_id: str
    stage: str
    reason: str


@dataclass(frozen=True)
class Part:
    """A part that lies in a folder.

    Attributes
    ----------
    number : int
    digest : str
    path : Path
    """

    number: int
    digest: str
    path: Path


def part_name(number: int, digest: str) -> str:
    """Return the file name of a part."""
    return f"part-{number:05d}-{digest}.parquet"


def parts_in(folder: Path) -> list[Part]:
    """Return the parts that lie in a folder, by number and digest."""
    found = []
    for path in folder.glob("part-*.parquet"):
        match = _NAME.fullmatch(path.name)
        if match:
            found.append(Part(int(match[1]), match[2], path))
    return sorted(found, key=lambda part: (part.number, part.digest))


def digest_of(key: str, pictures: Pictures, contents: Sequence[str]) -> str:
    """Return the digest of a part.

    Parameters
    ----------
    key : str
        Of the model, the question and the decoding.
    pictures : Pictures
        The images of the part.
    contents : sequence of str
        SHA-256 of the bytes of each; empty where they could not be read.
    """
    crops = [None] * len(pictures) if pictures.crops is None else pictures.crops.tolist()
    rows = [*zip(pictures.ids.tolist(), crops, contents, strict=True)]
    return hashlib.sha256(json.dumps([key, rows]).encode()).hexdigest()[:16]


def part_bytes(
    asked: Asked, ids: Sequence[str], values: np.ndarray[Any, Any], failures: Sequence[Failure]
) -> bytes:
    """Return the Parquet file of a part: the same bytes for the same rows."""
    column = COLUMNS[asked.table]
    table = pa.table({"image_id": pa.array(ids, pa.string()), column: asked.arrow(values)})
    told = json.dumps([asdict(failure) for failure in failures])
    return table_bytes(
        table.replace_schema_metadata({_FAILURES: told.encode()}),
        compression="zstd" if asked.table == "answers" else "none",
        use_dictionary=False,
    )


def failures_of(path: Path) -> list[Failure]:
    """Return the failures that a part tells.

    Raises
    ------
    ValueError
        When it is no part, or damaged.
    """
    metadata = pq.read_schema(path).metadata or {}
    if _FAILURES not in metadata:
        raise ValueError("no part of an extraction")
    return [Failure(**failure) for failure in json.loads(metadata[_FAILURES])]


def is_sound(path: Path, images: int) -> bool:
    """Whether a part is whole: its checksums hold, and every image has a row or a failure."""
    try:
        whole = bool(read_table(path).num_rows + len(failures_of(path)) == images)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        whole = False
    if not whole:
        warn_of_damage(path)
    return whole


def warn_of_damage(path: Path) -> None:
    """Log that a part is damaged and is computed again."""
    # Where logging is not set up, a warning reaches standard error.
    logging.getLogger("equipoise").warning("%s: it is damaged and is computed again", path)


def read_rows(paths: Sequence[Path]) -> pa.Table:
    """Return the rows of parts, in order.

    Raises
    ------
    RunError
        When one is damaged.
    """
    tables = [_read(path) for path in paths]
    held = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables([table.replace_schema_metadata(None) for table in held])


def _read(path: Path) -> pa.Table:
    try:
        return read_table(path)
    except (OSError, pa.ArrowException):
        raise RunError(f"{path}: it is damaged. To do: delete it and run again") from None


def failure_table(failures: Sequence[Failure]) -> pa.Table:
    """Return failures as a table: image_id, stage, reason."""
    return pa.Table.from_pylist([asdict(failure) for failure in failures], schema=FAILURES)
