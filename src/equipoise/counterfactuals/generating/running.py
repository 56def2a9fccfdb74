"""One generation from start to end: the key of its folder, its parts, its table."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise import __version__
from equipoise.core.errors import ModelError
from equipoise.counterfactuals.generating.drawing import Draws, Piece, pieces
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.generation import Settings, check_control
from equipoise.counterfactuals.generating.parts import (
    digest_of,
    failures,
    is_sound,
    part_bytes,
    read_part,
)
from equipoise.counterfactuals.generating.prompts import Asked
from equipoise.counterfactuals.generating.reading import TABLE, joined, kept
from equipoise.counterfactuals.generating.workers import Telling, worked
from equipoise.evidence.parts import part_name, parts_in
from equipoise.evidence.store import locked, write, write_manifest
from equipoise.models.generators import load_generator
from equipoise.models.info import one_digest, sha256_of

# Raised whenever the same prompts, model and settings would give other files than before.
_FORMAT = 1


def generated(asked: Asked, draws: Draws, model: Any, store: Path, settings: Settings) -> Generated:
    """Return the images that are asked for: what lies there, and what is missing made anew.

    Raises
    ------
    ModelError, RunError
        See `generate_prompts`.
    """
    models = loaded(model, settings)
    for one in models if draws.shared is not None else ():
        check_control(one)
    info = models[0].info
    facts = key_facts(asked, draws, info.key, settings)
    key = key_of(facts)
    folder = Path(store) / "generations" / key[:16]
    about = {
        "key": facts,
        "model": asdict(info),
        "id": asked.id,
        "images": asked.images,
        "versions": _versions(),
    }
    with locked(folder):
        write_manifest(folder, about | {"whole": False})
        run = _Run(folder, key, asked, draws, settings)
        paths, computed = run.work(models)
        told = pa.concat_tables([read_part(path) for path in paths])
        table = joined(told, asked.table, asked.id)
        _write_table(folder, table)
        states = dict(sorted(Counter(table["state"].to_pylist()).items()))
        parts = [path.name for path in paths]
        write_manifest(folder, about | {"whole": True, "states": states, "parts": parts})
    inputs = {f"generations/{key[:16]}": _input(paths, table.num_rows)}
    return kept(folder, table, paths, asdict(info), inputs, computed)


def key_facts(asked: Asked, draws: Draws, model: str, settings: Settings) -> dict[str, Any]:
    """Return all that decides what lies in a folder, but how many candidates there are."""
    rows = [[group.name, group.ids, group.prompts, group.sets] for group in asked.groups]
    return {
        "format": _FORMAT,
        "model": model,
        "sampling": settings.sampling.facts,
        "draws": draws.facts,
        "prompts": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
        "part": settings.part,
    }


def key_of(facts: dict[str, Any]) -> str:
    """Return the key of a folder."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def loaded(model: Any, settings: Settings) -> list[Any]:
    """Return a model, once on each device."""
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
    """The parts of one generation."""

    folder: Path
    key: str
    asked: Asked
    draws: Draws
    settings: Settings

    def work(self, models: Sequence[Any]) -> tuple[list[Path], int]:
        """Return the parts, in order, and how many images were made now.

        Raises
        ------
        ModelError
            When the model fails on too many images.
        """
        allowed = math.floor(self.settings.max_failures * self.asked.images + 1e-9)
        done, todo = self._ledger()
        there = self.asked.images - sum(len(piece) for piece in todo)
        failed = [path for path in done.values() if failures(path)]
        count = sum(failures(path) for path in failed)
        computed = 0
        telling = Telling(self.settings.progress, self.asked.images, there)
        with closing(worked(models, todo, self.settings.sampling, telling)) as outcomes:
            for piece, found in outcomes:
                path = self._path(piece)
                write(path, part_bytes(piece, found))
                done[piece.number] = path
                computed += len(piece)
                more = sum(isinstance(one, str) for one in found)
                failed += [path] if more else []
                count += more
                if count > allowed:
                    break
        if count > allowed or count == self.asked.images:
            raise self._too_many(models[0].info.name, failed, count, allowed)
        return [done[number] for number in sorted(done)], computed

    def _ledger(self) -> tuple[dict[int, Path], list[Piece]]:
        """Return the parts that lie there, and the pieces that are to be made."""
        done: dict[int, Path] = {}
        todo = []
        have = {part.path for part in parts_in(self.folder)}
        for piece in pieces(
            self.asked.groups, self.asked.candidates, self.draws, self.settings.part
        ):
            path = self._path(piece)
            if path in have and is_sound(path, len(piece)):
                done[piece.number] = path
            else:
                todo.append(piece)
        return done, todo

    def _path(self, piece: Piece) -> Path:
        return self.folder / part_name(piece.number, digest_of(self.key, piece))

    def _too_many(self, name: str, failed: Sequence[Path], count: int, allowed: int) -> ModelError:
        """Forget the parts with failures, so that the next run asks again, and say what failed."""
        first = next(row for row in read_part(failed[0]).to_pylist() if row["state"] == "failed")
        for path in failed:
            path.unlink(missing_ok=True)
        return ModelError(
            f"{name} failed on {count} of {self.asked.images} images, and max_failures allows "
            f"{allowed}; the first is {first['image_id']!r}: {first['reason']}"
        )


def _versions() -> dict[str, str]:
    return {"equipoise": __version__} | {name: version(name) for name in ("pillow", "pyarrow")}


def _write_table(folder: Path, table: pa.Table) -> None:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    write(folder / TABLE, file.getvalue())


def _input(paths: Sequence[Path], rows: int) -> dict[str, Any]:
    return {
        "sha256": one_digest({path.name: sha256_of(path) for path in paths}),
        "bytes": sum(path.stat().st_size for path in paths),
        "rows": rows,
    }
