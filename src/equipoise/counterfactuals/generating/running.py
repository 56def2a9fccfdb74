"""One generation from start to end: the key of its folder, its parts, its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from equipoise import __version__
from equipoise.core.errors import ModelError
from equipoise.core.files import table_bytes
from equipoise.counterfactuals.generating.drawing import Draws, Piece
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.generation import Settings, check_control
from equipoise.counterfactuals.generating.ledger import Ledger, key_facts, key_of
from equipoise.counterfactuals.generating.parts import failures, part_bytes, read_part
from equipoise.counterfactuals.generating.prompts import Asked
from equipoise.counterfactuals.generating.rates import Clock
from equipoise.counterfactuals.generating.reading import TABLE, input_of, joined, pictures_of
from equipoise.counterfactuals.generating.workers import Telling, worked
from equipoise.evidence.store import held, write, write_manifest
from equipoise.models.loading import load_generator


def generated(asked: Asked, draws: Draws, model: Any, store: Path, settings: Settings) -> Generated:
    """Return the images that are asked for: what lies there, and what is missing made anew.

    Raises
    ------
    ModelError, RunError
        See `generate_prompts`.
    """
    models = _loaded(model, settings)
    for one in models if draws.shared is not None else ():
        check_control(one)
    _check_lengths(asked, models[0], settings)
    info = models[0].info
    facts = key_facts(asked, draws, info.key, settings.sampling, settings.part)
    key = key_of(facts)
    folder = Path(store) / "generations" / key[:16]
    about = {
        "key": facts,
        "model": asdict(info),
        "id": asked.id,
        "images": asked.images,
        "versions": _versions(),
    }
    with held(folder) as writable:
        run = _Run(Ledger(folder, key, asked, draws, settings.part), settings, about)
        paths, computed = run.work(models)
        told = pa.concat_tables([read_part(path) for path in paths])
        table = joined(told, asked.table, asked.id)
        if writable:
            _write_table(folder, table)
            write_manifest(folder, about | _counted(table, paths) | {"whole": True})
    return Generated(
        folder, table, pictures_of(folder, paths), asdict(info), input_of(folder, paths), computed
    )


def _check_lengths(asked: Asked, model: Any, settings: Settings) -> None:
    """Refuse texts that the model would cut, before any image is made; some models take all."""
    if hasattr(model, "check_prompts"):
        texts = [prompt for group in asked.groups for prompt in group.prompts]
        model.check_prompts(texts, settings.sampling)


def _counted(table: pa.Table, paths: Sequence[Path]) -> dict[str, Any]:
    counts = {one["values"]: one["counts"] for one in table["state"].value_counts().to_pylist()}
    return {"states": counts, "parts": [path.name for path in paths]}


def _versions() -> dict[str, str]:
    return {"equipoise": __version__} | {name: version(name) for name in ("pillow", "pyarrow")}


def _write_table(folder: Path, table: pa.Table) -> None:
    write(folder / TABLE, table_bytes(table, compression="zstd"))


def _loaded(model: Any, settings: Settings) -> list[Any]:
    """Return a model, once on each device that it may use."""
    if not isinstance(model, str):
        return [*model] if isinstance(model, Sequence) else [model]
    options = settings.options

    def load(device: str) -> Any:
        return load_generator(
            model,
            device=device,
            dtype=options.dtype,
            revision=options.revision,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
        )

    first = load(options.device)
    if first.info.device != "cuda":
        return [first]
    from equipoise.models.runtimes import gpus

    return [first, *(load(f"cuda:{index}") for index in range(1, gpus()))]


@dataclass(frozen=True, eq=False)
class _Run:
    """The work on the parts of one generation."""

    ledger: Ledger
    settings: Settings
    about: dict[str, Any]

    def work(self, models: Sequence[Any]) -> tuple[list[Path], int]:
        """Return the parts, in order, and how many images were asked of the model now.

        Raises
        ------
        ModelError
            When the model fails on too many images, or on all so far.
        """
        done, todo = self.ledger.split()
        images = self.ledger.asked.images
        there = images - sum(len(piece) for piece in todo)
        if todo:
            write_manifest(self.ledger.folder, self.about | {"whole": False})
        failed = {path: count for path in done.values() if (count := failures(path))}
        allowed = math.floor(self.settings.max_failures * images + 1e-9)
        clock, computed = Clock(self.ledger.folder), 0
        telling = Telling(self.settings.progress, images, there)
        with closing(worked(models, todo, self.settings.sampling, telling)) as outcomes:
            for piece, found in outcomes:
                path = self._kept(piece, found)
                done[piece.number] = path
                computed += len(piece)
                clock.keep(computed)
                if count := sum(isinstance(one, str) for one in found):
                    failed[path] = count
                if sum(failed.values()) > min(allowed, there + computed - 1):
                    raise self._too_many(models[0].info.name, failed, allowed)
        if sum(failed.values()) > min(allowed, images - 1):
            raise self._too_many(models[0].info.name, failed, allowed)
        return [done[number] for number in sorted(done)], computed

    def _kept(self, piece: Piece, found: Sequence[Any]) -> Path:
        path = self.ledger.path(piece)
        write(path, part_bytes(piece, found))
        return path

    def _too_many(self, name: str, failed: dict[Path, int], allowed: int) -> ModelError:
        """Forget the parts with failures, so that the next run asks again, and say what failed."""
        paths = sorted(failed)
        first = next(row for row in read_part(paths[0]).to_pylist() if row["state"] == "failed")
        for path in paths:
            path.unlink(missing_ok=True)
        return ModelError(
            f"{name} failed on {sum(failed.values())} of {self.ledger.asked.images} images, and "
            f"max_failures allows {allowed}; the first is {first['image_id']!r}: "
            f"{first['reason']}"
        )
