"""What an extraction has still to do, told without loading the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.evidence.decoding import Decoding
from equipoise.evidence.extraction import PART_OF_ANSWERS, Settings
from equipoise.evidence.parts import failures_of, parts_in
from equipoise.evidence.pictures import Files, Pictures
from equipoise.evidence.store import crops_digest, ids_digest, read_manifest


@dataclass(frozen=True)
class Pending:
    """What lies in a store for a model and a set of images, and what is missing.

    Attributes
    ----------
    images : int
        In the set.
    present : int
        Of them with a row in finished parts. Whether pictures have changed since is not looked at;
        a part with a picture whose file was there and is gone counts as missing, for it will be
        made anew.
    failed : int
        With a failure in such parts, which is kept and not tried again.
    gone : int or None
        Whose file is not there now; None where pictures are no files of their own.
    bytes : int or None
        To be written, about; None where nothing tells how long a row is.
    """

    images: int
    present: int
    failed: int
    gone: int | None
    bytes: int | None

    @property
    def to_do(self) -> int:
        """Images that are to be read, and of which the model is to be asked."""
        return self.images - self.present - self.failed


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
    source = pictures.source
    gone = source.gone if isinstance(source, Files) else None
    best, size = (0, 0), _row(table, len(texts))
    for manifest in sorted(Path(store).glob(f"{table}/*/manifest.json")):
        facts = read_manifest(manifest.parent)
        about = facts.get("key", {})
        told = facts.get("model", {}).get("name") if key is None else about.get("model")
        if told != (model if key is None else key):
            continue
        parts = [*_parts(manifest.parent)]
        rows = sum(part.rows for part in parts)
        size = sum(part.bytes for part in parts) // rows if rows else size
        if all(about.get(name) == value for name, value in wanted.items()):
            lost = _by_part(pictures, gone or (), wanted["part"])
            best = max(best, _held(parts, lost), key=sum)
    found = Pending(len(pictures), *best, None if gone is None else len(gone), None)
    return found if size is None else replace(found, bytes=size * found.to_do)


def _row(table: str, texts: int) -> int | None:
    return {"scores": 4 * texts, "answers": 100}.get(table)


@dataclass(frozen=True)
class _Part:
    """A finished part: its rows and bytes, and the stage of each failure by image."""

    number: int
    rows: int
    bytes: int
    failures: Mapping[str, str]


def _parts(folder: Path) -> Iterator[_Part]:
    """Yield the finished parts that can be read."""
    for part in parts_in(folder):
        try:
            rows = pq.read_metadata(part.path).num_rows
            failures = {one.image_id: one.stage for one in failures_of(part.path)}
            yield _Part(part.number, rows, part.path.stat().st_size, failures)
        except (OSError, ValueError, pa.ArrowException):
            continue


def _by_part(pictures: Pictures, gone: Sequence[int], part: int) -> Mapping[int, set[str]]:
    """Return the ids of the pictures whose files are not there, by the part that they are in."""
    found: dict[int, set[str]] = {}
    for place in gone:
        found.setdefault(place // part, set()).add(pictures.ids[place])
    return found


def _held(parts: Sequence[_Part], lost: Mapping[int, set[str]]) -> tuple[int, int]:
    """Return the rows and the failures of parts without a picture that is gone since."""
    # Of one number the last is taken, as in the ledger.
    every = {part.number: part for part in parts}
    held = [
        part
        for part in every.values()
        if all(part.failures.get(one) == "read" for one in lost.get(part.number, ()))
    ]
    return sum(part.rows for part in held), sum(len(part.failures) for part in held)
