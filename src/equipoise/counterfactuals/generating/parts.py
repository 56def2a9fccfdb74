"""A part: whole candidates with their images, as one Parquet file."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.errors import RunError
from equipoise.core.files import read_table, table_bytes
from equipoise.counterfactuals.generating.drawing import Piece
from equipoise.evidence.parts import warn_of_damage

if TYPE_CHECKING:
    from equipoise.models.images import Image

_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
COLUMNS = pa.schema(
    [
        ("image_id", pa.string()),
        ("prompt_id", pa.string()),
        ("prompt", pa.string()),
        ("set", pa.string()),
        ("candidate", pa.int64()),
        ("seed", pa.int64()),
        ("shared", pa.float64()),
        ("shared_self", pa.float64()),
        ("base", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
    ]
)
"""What is told of each image, beside the columns of its prompt."""

_SCHEMA = COLUMNS.append(pa.field("image", _IMAGE))
# Rows that are read together where one picture is.
_TOGETHER = 8


def digest_of(key: str, piece: Piece) -> str:
    """Return the digest of a part: of the folder's key and all that was drawn for it."""
    rows = [[*row.values()] for candidate in piece.candidates for row in candidate.rows()]
    return hashlib.sha256(json.dumps([key, rows]).encode()).hexdigest()[:16]


def part_bytes(piece: Piece, found: Sequence[Any]) -> bytes:
    """Return the Parquet file of a part: the same bytes for the same images.

    Parameters
    ----------
    piece : Piece
    found : sequence
        For each image an array, None where it was refused, or the reason why there is none.
    """
    asked = [row for candidate in piece.candidates for row in candidate.rows()]
    rows = [row | _told(row["image_id"], one) for row, one in zip(asked, found, strict=True)]
    return table_bytes(
        pa.Table.from_pylist(rows, schema=_SCHEMA), compression="none", row_group_size=_TOGETHER
    )


def _told(name: str, found: Image | str | None) -> dict[str, Any]:
    if found is None:
        return {"state": "refused", "reason": "the model refused to show it", "image": None}
    if isinstance(found, str):
        return {"state": "failed", "reason": found, "image": None}
    return {
        "state": "image",
        "reason": None,
        "image": {"bytes": png(found), "path": f"{name}.png"},
    }


def png(image: Image) -> bytes:
    """Return an image as a PNG file."""
    from PIL import Image as pillow  # noqa: N813

    file = io.BytesIO()
    pillow.fromarray(image).save(file, "png")
    return file.getvalue()


def is_sound(path: Path, images: int, *, verified: bool) -> bool:
    """Whether a part is whole: every image has a row and, where verified, its checksums hold."""
    try:
        rows = read_table(path).num_rows if verified else pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException):
        rows = -1
    if verified and rows != images:
        warn_of_damage(path)
    return bool(rows == images)


def read_part(path: Path) -> pa.Table:
    """Return what a part tells, without the images.

    Raises
    ------
    RunError
        When it is damaged.
    """
    try:
        return read_table(path, COLUMNS.names)
    except (OSError, ValueError, pa.ArrowException):
        raise RunError(f"{path}: it is damaged. To do: delete it and run again") from None


def failures(path: Path) -> int:
    """Return on how many images of a part the model failed.

    Raises
    ------
    RunError
        When it is damaged.
    """
    return int(read_part(path)["state"].to_pylist().count("failed"))
