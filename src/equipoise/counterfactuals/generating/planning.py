"""What a generation would do, told without loading the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from equipoise.counterfactuals.captions import CaptionSets
from equipoise.counterfactuals.generating.drawing import Shares
from equipoise.counterfactuals.generating.generation import How, Settings, drawn
from equipoise.counterfactuals.generating.ledger import Ledger, key_facts, key_of
from equipoise.counterfactuals.generating.prompts import Asked, asked_captions, asked_prompts
from equipoise.counterfactuals.generating.rates import read_rate
from equipoise.evidence.store import read_manifest


@dataclass(frozen=True)
class Planned:
    """What lies in a store, and what is missing.

    Attributes
    ----------
    prompts : int
        Prompts or captions.
    sets : int or None
        Of captions; None of prompts without control.
    candidates : int
        Of each set, or images of each prompt.
    images : int
        Asked for.
    present : int
        Of them in finished parts, by a model of this name.
    to_do : int
    bytes : int or None
        To be written, about, by the images that lie there; None before any was made.
    seconds : float or None
        That it takes, about, at the rate at which images were made there; None before any was.
    folder : Path or None
        Where they lie; None where nothing does yet: the name is made of the model's files.
    """

    prompts: int
    sets: int | None
    candidates: int
    images: int
    present: int
    to_do: int
    bytes: int | None
    seconds: float | None
    folder: Path | None


def plan_prompts(
    prompts: pa.Table,
    model: str,
    store: Path,
    *,
    images: int = 1,
    seed: int = 0,
    **how: Unpack[How],
) -> Planned:
    """Say what `generate_prompts` would do."""
    asked = asked_prompts(prompts, images)
    return _planned(asked, drawn(seed), model, Path(store), Settings(**how))


def plan_sets(
    captions: CaptionSets | pa.Table,
    model: str,
    store: Path,
    *,
    candidates: int = 100,
    shared: Shares = (0.1, 0.9),
    shared_self: Shares | float | None = None,
    seed: int = 0,
    **how: Unpack[How],
) -> Planned:
    """Say what `generate_sets` would do."""
    asked = asked_captions(captions, candidates)
    draws = drawn(seed, shared, shared_self)
    return _planned(asked, draws, model, Path(store), Settings(**how))


def _planned(asked: Asked, draws: Any, model: str, store: Path, settings: Settings) -> Planned:
    best: tuple[int, Path | None] = (0, None)
    per_image: float | None = None
    size: float | None = None
    for folder, manifest in _folders(store, model, settings):
        known = manifest["key"]
        facts = key_facts(asked, draws, known.get("model"), settings.sampling, settings.part)
        rate = read_rate(folder).per_image
        if facts == known:
            ledger = Ledger(folder, key_of(facts), asked, draws, settings.part, verified=False)
            present = asked.images - sum(len(piece) for piece in ledger.split()[1])
            best = max(best, (present, folder), key=lambda one: one[0])
            per_image = rate if rate is not None else per_image
        per_image = rate if per_image is None else per_image
        size = _size(folder) if size is None else size
    to_do = asked.images - best[0]
    return Planned(
        prompts=asked.table.num_rows,
        sets=None if draws.shared is None else len(asked.groups),
        candidates=asked.candidates,
        images=asked.images,
        present=best[0],
        to_do=to_do,
        bytes=None if size is None else round(size * to_do),
        seconds=None if per_image is None else per_image * to_do,
        folder=best[1],
    )


def _folders(store: Path, model: str, settings: Settings) -> Iterator[tuple[Path, Any]]:
    """Yield what a model of this name made with these settings: as fast, and of the same size."""
    for path in sorted(store.glob("generations/*/manifest.json")):
        manifest = read_manifest(path.parent)
        known = manifest.get("key", {})
        if (
            manifest.get("model", {}).get("name") == model
            and known.get("sampling") == settings.sampling.facts
        ):
            yield path.parent, manifest


def _size(folder: Path) -> float | None:
    """Return the bytes of an image, parts and all, of those that lie in a folder."""
    parts = [*folder.glob("part-*.parquet")][:20]
    rate = [_length(path) for path in parts]
    images = sum(rows for rows, _ in rate)
    return sum(length for _, length in rate) / images if images else None


def _length(path: Path) -> tuple[int, int]:
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path).num_rows, path.stat().st_size
    except (OSError, pa.ArrowException):
        return 0, 0
