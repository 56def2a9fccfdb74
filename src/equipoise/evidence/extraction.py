"""Run a model over pictures once, and keep what it gave: resumable, content-keyed evidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from equipoise.core.errors import DataError, ModelError
from equipoise.evidence import store as files
from equipoise.evidence.asking import Request, RunOptions, asked
from equipoise.evidence.decoding import Decoding, quiet
from equipoise.evidence.engine import outcomes
from equipoise.evidence.parts import (
    Failure,
    failure_table,
    failures_of,
    is_sound,
    part_name,
    parts_in,
    read_rows,
)
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.working import Outcome, Piece

Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done, and what there is to do."""


@dataclass(frozen=True, eq=False)
class Extraction:
    """What a model gave for a set of images.

    Attributes
    ----------
    folder : Path
        Where it lies: ``<store>/<table>/<key>``.
    parts : tuple of Path
        Its Parquet files, in the order of ids.
    names : tuple of str
        What the numbers of a row of `scores` or `probabilities` are of.
    failures : pyarrow.Table
        `image_id`, `stage` (``read``, ``decode`` or ``model``) and `reason` of each image that
        has no row.
    info : mapping
        What the model is, as the manifest has it.
    inputs : mapping
        The evidence as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images the model ran on now; 0 when all was there.
    """

    folder: Path
    parts: tuple[Path, ...] = field(repr=False)
    names: tuple[str, ...]
    failures: pa.Table = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    computed: int

    @cached_property
    def table(self) -> pa.Table:
        """One row per image without failure, by id.

        `image_id`, and `embedding`, `scores` or `probabilities` (a fixed-size list of float32) or
        `answer` (a string).
        """
        return read_rows(self.parts)


@dataclass(frozen=True)
class Settings:
    """How an extraction is run.

    Attributes
    ----------
    options : RunOptions
        How a model is loaded by its name.
    engine : str
        ``native`` (this machine) or ``ray`` (a cluster).
    part : int
        Images in one file.
    max_failures : float
        Share of the images that may fail.
    decoding : Decoding
    progress : callable or None
    """

    options: RunOptions = RunOptions()
    engine: str = "native"
    part: int = 256
    max_failures: float = 0.05
    decoding: Decoding = Decoding()
    progress: Progress | None = None


def extract_embeddings(
    pictures: Pictures,
    model: Any,
    store: Path,
    *,
    features: bool = False,
    **settings: Any,
) -> Extraction:
    """Embed images with a dual encoder, or with the features of a classifier.

    Parameters
    ----------
    pictures : Pictures
    model : str, DualEncoder or Classifier
        A name for `load_model`, or a loaded model.
    store : Path
        Where evidence lies.
    features : bool
        Take a classifier's features also of a model that embeds images.
    **settings
        See `Settings`.

    Raises
    ------
    ModelError
        When the model cannot be loaded, gives something else, or fails on every image.
    DataError
        When more images fail than `max_failures` allows.
    RunError
        When the store cannot be written, or another process writes it.
    """
    request = Request("embeddings", features=features)
    return extracted(request, pictures, model, store, Settings(**settings))


def extract_scores(
    pictures: Pictures, texts: Sequence[str], model: Any, store: Path, **settings: Any
) -> Extraction:
    """Score every image against every text with an image-text matching model."""
    request = Request("scores", texts=tuple(texts))
    return extracted(request, pictures, model, store, Settings(**settings))


def extract_probabilities(
    pictures: Pictures, model: Any, store: Path, **settings: Any
) -> Extraction:
    """Classify images."""
    return extracted(Request("probabilities"), pictures, model, store, Settings(**settings))


def extract_answers(
    pictures: Pictures, question: str, model: Any, store: Path, **settings: Any
) -> Extraction:
    """Ask a question about every image."""
    request = Request("answers", question=question)
    return extracted(request, pictures, model, store, Settings(**{"part": 32, **settings}))


def extracted(
    request: Request, pictures: Pictures, model: Any, store: Path, settings: Settings
) -> Extraction:
    """Return the evidence of a request: what lies there, and what is missing computed anew."""
    loaded = settings.options.load(model) if isinstance(model, str) else model
    ready = asked(loaded, request)
    about = _about(request, ready.names, pictures, ready.info, settings)
    key = hashlib.sha256(json.dumps(about["key"], sort_keys=True).encode()).hexdigest()
    folder = Path(store) / request.table / key[:16]
    from equipoise.evidence.working import Worker

    with files.locked(folder), quiet():
        files.write_manifest(folder, about | {"whole": False})
        worker = Worker(key, ready, settings.decoding, threads=2)
        done = _work(folder, pictures, worker, settings)
        failures = [failure for o in done for failure in o.failures]
        if len(failures) == len(pictures):
            raise DataError(
                f"no image is left of {len(pictures)}; the first: {_told(failures[0])}",
                file=pictures.name,
            )
        paths = tuple(folder / part_name(o.number, o.digest) for o in done)
        for part in parts_in(folder):
            if part.path not in paths:
                part.path.unlink()
        import pyarrow.parquet as pq

        pq.write_table(failure_table(failures), folder / "failures.parquet")
        files.write_manifest(folder, about | {"whole": True})
    inputs = {f"evidence/{request.table}/{key[:16]}": _input(paths)}
    computed = sum(o.rows for o in done if o.data is not None)
    return Extraction(
        folder, paths, ready.names, failure_table(failures), about["model"], inputs, computed
    )


def _about(
    request: Request, names: tuple[str, ...], pictures: Pictures, info: Any, settings: Settings
) -> dict[str, Any]:
    crops = None if pictures.crops is None else hashlib.sha256(pictures.crops.tobytes()).hexdigest()
    key = {
        "format": 1,
        "table": request.table,
        "model": info.key,
        "names": list(names),
        "question": request.question,
        "features": request.features,
        "decoding": settings.decoding.facts,
        "ids": files.ids_digest(pictures),
        "crops": crops,
        "part": settings.part,
    }
    return {"key": key, "model": asdict(info), "images": len(pictures)}


def _work(folder: Path, pictures: Pictures, worker: Any, settings: Settings) -> list[Outcome]:
    n = len(pictures)
    have = {}
    sizes = {at // settings.part: min(settings.part, n - at) for at in range(0, n, settings.part)}
    for part in parts_in(folder):
        if is_sound(part.path, sizes.get(part.number, -1)):
            have[part.number] = part.digest
    pieces = [
        Piece(k, pictures.take(range(k * settings.part, k * settings.part + size)), have.get(k, ""))
        for k, size in sizes.items()
    ]
    done = []
    count = 0
    for outcome in outcomes(worker, pieces, settings.engine):
        if outcome.trouble:
            raise ModelError(f"{worker.asked.info.name} {outcome.trouble}")
        if outcome.data is not None:
            files.write(folder / part_name(outcome.number, outcome.digest), outcome.data)
        else:
            failed = failures_of(folder / part_name(outcome.number, outcome.digest))
            outcome = Outcome(outcome.number, outcome.digest, None, 0, tuple(failed))
        count += sizes[outcome.number]
        if settings.progress is not None:
            settings.progress(f"images through {worker.asked.info.name}", count, n)
        done.append(outcome)
    return sorted(done, key=lambda outcome: outcome.number)


def _told(failure: Failure) -> str:
    return f"{failure.image_id}: {failure.reason}"


def _input(paths: Sequence[Path]) -> dict[str, Any]:
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    rows = sum(pq.read_metadata(path).num_rows for path in paths)
    return {
        "sha256": digest.hexdigest(),
        "bytes": sum(path.stat().st_size for path in paths),
        "rows": rows,
    }
