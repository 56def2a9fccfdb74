"""What an extraction has still to do, told without loading the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.evidence.decoding import Decoding
from equipoise.evidence.extraction import PART_OF_ANSWERS, Settings
from equipoise.evidence.parts import failures_of, parts_in
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.store import crops_digest, ids_digest, read_manifest


@dataclass(frozen=True)
class Pending:
    """What lies in a store for a model and a set of images, and what is missing.

    Attributes
    ----------
    images : int
        In the set.
    present : int
        Of them with a row or a failure in finished parts. Whether pictures have changed since is
        not looked at.
    bytes : int or None
        To be written, about; None where nothing tells how long a row is.
    """

    images: int
    present: int
    bytes: int | None


def pending(  # noqa: PLR0913 - all of them decide
    pictures: Pictures,
    model: str,
    table: str,
    store: Path,
    *,
    texts: Sequence[str] = (),
    question: str = "",
    key: str | None = None,
    features: bool = False,
    part: int | None = None,
) -> Pending:
    """Say what an extraction would do.

    Parameters
    ----------
    pictures : Pictures
    model : str
        The name for `load_model`; evidence is looked for by it where `key` is not given.
    table : str
        ``embeddings``, ``scores``, ``probabilities`` or ``answers``.
    store : Path
        Where evidence lies.
    texts, question, features, part
        As in the extraction.
    key : str, optional
        `ModelInfo.key` of the model, whatever its name.

    Returns
    -------
    Pending
    """
    wanted: dict[str, Any] = {
        "ids": ids_digest(pictures),
        "crops": crops_digest(pictures),
        "question": question,
        "features": features,
        "decoding": Decoding().facts,
        "part": part or (PART_OF_ANSWERS if table == "answers" else Settings.part),
    }
    if table == "scores":
        wanted["names"] = [*texts]
    present, size = 0, _row(table, len(texts))
    for manifest in sorted(Path(store).glob(f"{table}/*/manifest.json")):
        facts = read_manifest(manifest.parent)
        about = facts.get("key", {})
        told = facts.get("model", {}).get("name") if key is None else about.get("model")
        if told != (model if key is None else key):
            continue
        found, rows, length = _found(manifest.parent)
        size = length // rows if rows else size
        if all(about.get(name) == value for name, value in wanted.items()):
            present = max(present, min(found, len(pictures)))
    to_do = len(pictures) - present
    return Pending(len(pictures), present, None if size is None else size * to_do)


def _row(table: str, texts: int) -> int | None:
    return {"scores": 4 * texts, "answers": 100}.get(table)


def _found(folder: Path) -> tuple[int, int, int]:
    """Return the images and the rows of finished parts, and their bytes."""
    images = rows = length = 0
    for part in parts_in(folder):
        try:
            count = pq.read_metadata(part.path).num_rows
            images += count + len(failures_of(part.path))
        except (OSError, ValueError, pa.ArrowException):
            continue
        rows += count
        length += part.path.stat().st_size
    return images, rows, length
