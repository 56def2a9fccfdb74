"""The store of a generation: its parts as Parquet files, its key, and its rate."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.errors import RunError
from equipoise.core.files import read_table, table_bytes
from equipoise.counterfactuals.generating.requests import COLUMNS, Draws, Piece, Request, pieces
from equipoise.evidence.store import part_name, parts_in, warn_of_damage, write
from equipoise.models.generators import Sampling

if TYPE_CHECKING:
    from equipoise.models.images import Image

# Raised whenever the same prompts, model and settings would give other files than before.
_FORMAT = 1
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_SCHEMA = COLUMNS.append(pa.field("image", _IMAGE))
# Rows that are read together with a picture.
_TOGETHER = 8
_RATE = "rate.json"


def key_facts(
    request: Request, draws: Draws, model: str, sampling: Sampling, part: int
) -> dict[str, Any]:
    """Return all that decides the content of a folder, but the number of candidates.

    Parameters
    ----------
    request : Request
    draws : Draws
    model : str
        `ModelInfo.key`.
    sampling : Sampling
    part : int
        Images in a part.
    """
    rows = [[group.name, group.ids, group.prompts, group.sets] for group in request.groups]
    facts = {
        "format": _FORMAT,
        "model": model,
        "sampling": sampling.facts,
        "draws": asdict(draws),
        "prompts": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
        "part": part,
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts))  # as a manifest gives it back
    return plain


def key_of(facts: Mapping[str, Any]) -> str:
    """Return the key of a folder."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Ledger:
    """The parts of one generation.

    Attributes
    ----------
    folder : Path
    facts : dict
        From `key_facts`.
    request : Request
    draws : Draws
    verified : bool
        Whether checksums are verified, which reads every part; a plan only counts rows.
    """

    folder: Path
    facts: dict[str, Any]
    request: Request
    draws: Draws
    verified: bool = True

    def split(self) -> tuple[dict[int, Path], list[Piece]]:
        """Return the parts that are there and sound, by number, and the pieces to make."""
        done: dict[int, Path] = {}
        todo = []
        have = {part.path for part in parts_in(self.folder)}
        request = self.request
        for piece in pieces(request.groups, request.candidates, self.draws, self.facts["part"]):
            path = self.path(piece)
            if path in have and self._is_sound(path, len(piece)):
                done[piece.number] = path
            else:
                todo.append(piece)
        return done, todo

    def path(self, piece: Piece) -> Path:
        """Return the path of a piece's part: its name has the digest of the key and all draws."""
        rows = [[*row.values()] for row in piece.rows()]
        digest = hashlib.sha256(json.dumps([key_of(self.facts), rows]).encode()).hexdigest()[:16]
        return self.folder / part_name(piece.number, digest)

    def _is_sound(self, path: Path, images: int) -> bool:
        try:
            table = read_table(path) if self.verified else pq.read_metadata(path)
            if table.num_rows == images:
                return True
        except (OSError, pa.ArrowException):
            pass
        if self.verified:
            warn_of_damage(path)
        return False


def part_bytes(piece: Piece, images: Sequence[Any]) -> bytes:
    """Return the Parquet file of a part: the same bytes for the same images.

    Parameters
    ----------
    piece : Piece
    images : sequence
        For each image an array, None where it was refused, or the reason of a failure.
    """
    rows = piece.rows()
    for row, image in zip(rows, images, strict=True):
        if image is None:
            row |= {"state": "refused", "reason": "the model refused to show it"}
        elif isinstance(image, str):
            row |= {"state": "failed", "reason": image}
        else:
            picture = {"bytes": png(image), "path": f"{row['image_id']}.png"}
            row |= {"state": "image", "image": picture}
    return table_bytes(
        pa.Table.from_pylist(rows, schema=_SCHEMA), compression="none", row_group_size=_TOGETHER
    )


def png(image: Image) -> bytes:
    """Return an image as a PNG file."""
    from PIL import Image as pillow  # noqa: N813

    file = io.BytesIO()
    pillow.fromarray(image).save(file, "png")
    return file.getvalue()


def read_part(path: Path) -> pa.Table:
    """Return the rows of a part, without the images.

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
    """Return on how many images of a part the model failed."""
    return int(read_part(path)["state"].to_pylist().count("failed"))


class Clock:
    """The rate of a run, added to that of earlier runs in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.began = folder, time.perf_counter()
        self.images, self.seconds = _read_rate(folder)

    def save(self, images: int) -> None:
        """Write the number of images that this run has made so far, and its time."""
        seconds = round(self.seconds + time.perf_counter() - self.began, 3)
        rate = {"images": self.images + images, "seconds": seconds}
        write(self.folder / _RATE, json.dumps(rate).encode())


def _read_rate(folder: Path) -> tuple[int, float]:
    try:
        rate = json.loads((folder / _RATE).read_bytes())
        return int(rate["images"]), float(rate["seconds"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0, 0.0


def seconds_per_image(folder: Path) -> float | None:
    """Return the time of an image in a folder, loading aside; None before any was made."""
    images, seconds = _read_rate(folder)
    return seconds / images if images else None


def bytes_per_image(folder: Path) -> float | None:
    """Return the size of an image in a folder, parts and all; None before any was made."""
    images = size = 0
    for path in [*folder.glob("part-*.parquet")][:20]:
        try:
            images += pq.read_metadata(path).num_rows
            size += path.stat().st_size
        except (OSError, pa.ArrowException):
            continue
    return size / images if images else None
