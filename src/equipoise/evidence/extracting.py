"""One extraction from start to end: the key of its folder, its parts, its failures."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise import __version__
from equipoise.core.errors import DataError, EquipoiseError, ModelError, RunError
from equipoise.core.files import table_bytes
from equipoise.evidence.asking import Request
from equipoise.evidence.decoding import quiet
from equipoise.evidence.engine import Engine, Telling, engine_of
from equipoise.evidence.extraction import Extraction, Settings
from equipoise.evidence.ledger import Ledger
from equipoise.evidence.parts import Failure, failure_table
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.store import crops_digest, held, ids_digest, write, write_manifest
from equipoise.evidence.twins import same_pictures
from equipoise.evidence.working import Outcome
from equipoise.models.info import one_digest, sha256_of

# Raised whenever the same images, model and settings would give other files than before.
_FORMAT = 1
# Pictures with several ids that the manifest names.
_FIRST = 20


def extracted(
    request: Request, pictures: Pictures, model: Any, store: Path, settings: Settings
) -> Extraction:
    """Return the evidence of a request: what lies there, and what is missing computed anew.

    Raises
    ------
    ModelError, DataError, RunError
        See `extract_embeddings`.
    """
    engine = engine_of(settings, model, request)
    facts = _facts(request, engine, pictures, settings)
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    folder = Path(store) / request.table / key[:16]
    info = asdict(engine.info)
    about = {"key": facts, "model": info, "images": len(pictures), "versions": _versions()}
    ledger = Ledger(folder, pictures, settings.part)
    with held(folder) as writable, quiet():
        if writable:
            write_manifest(folder, about | {"whole": False})
        done = _done(ledger, engine, key, settings)
        failures = _failures(done, pictures)
        rows = len(pictures) - len(failures)
        identical = same_pictures(pictures, b"".join(one.contents for one in done))
        if writable:
            ledger.drop_others(done)
            _write_failures(folder, failures)
            counts = {"rows": rows, "failures": _by_stage(failures)}
            write_manifest(folder, about | {"whole": True} | counts | _told(identical))
        parts = tuple(ledger.path(outcome) for outcome in done)
        inputs = {f"evidence/{request.table}/{key[:16]}": _input(parts, rows)}
    computed = sum(outcome.computed for outcome in done)
    return Extraction(
        folder, parts, engine.names, failure_table(failures), info, inputs, computed, identical
    )


def _facts(
    request: Request, engine: Engine, pictures: Pictures, settings: Settings
) -> dict[str, Any]:
    """Return all that decides what the parts hold but the pictures themselves."""
    return {
        "format": _FORMAT,
        "table": request.table,
        "model": engine.info.key,
        "names": list(engine.names),
        "question": request.question,
        "features": request.features,
        "decoding": settings.decoding.facts,
        "ids": ids_digest(pictures),
        "crops": crops_digest(pictures),
        "part": settings.part,
    }


def _told(identical: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Say how many images share their bytes with another, and which are the first of them."""
    if not identical:
        return {}
    counts = {"images": sum(map(len, identical)), "pictures": len(identical)}
    return {"identical": counts | {"first": [[*ids] for ids in identical[:_FIRST]]}}


def _versions() -> dict[str, str]:
    return {"equipoise": __version__} | {n: version(n) for n in ("daft", "pillow", "pyarrow")}


def _done(ledger: Ledger, engine: Engine, key: str, settings: Settings) -> list[Outcome]:
    """Return what became of every part, in order.

    Raises
    ------
    ModelError, DataError
        When too many images fail.
    RunError
        When a part cannot be written.
    """
    n = len(ledger.pictures)
    allowed = math.floor(settings.max_failures * n + 1e-9)
    telling = Telling(settings.progress, n)
    done: list[Outcome] = []
    failed = 0
    with closing(engine.outcomes(key, [*ledger.pieces()], telling)) as outcomes:
        for outcome in outcomes:
            done.append(ledger.keep(outcome))
            failed += len(done[-1].failures)
            if failed > allowed:
                break
    done.sort(key=lambda outcome: outcome.number)
    if failed > allowed or failed == n:
        ledger.forget(done)
        failures = _failures(done, ledger.pictures)
        with suppress(RunError):  # the error that is raised says more
            _write_failures(ledger.folder, failures)
        raise _too_many(ledger, engine, failures, allowed, rows=sum(one.rows for one in done))
    return done


def _too_many(
    ledger: Ledger, engine: Engine, failures: Sequence[Failure], allowed: int, *, rows: int
) -> EquipoiseError:
    first = failures[0]
    told = f"the first is {first.image_id!r}: {first.reason}"
    if not rows and all(failure.stage == "model" for failure in failures):
        return ModelError(
            f"{engine.info.name} failed on each of {len(failures)} images; {told}. "
            "To do: run the model on one of them, and see what it needs"
        )
    return DataError(
        f"{len(failures)} of {len(ledger.pictures)} images failed, and max_failures allows "
        f"{allowed}; {told}",
        file=ledger.pictures.name,
        fix=_advice(ledger, wrong_folder=not rows and {one.stage for one in failures} == {"read"}),
    )


def _advice(ledger: Ledger, *, wrong_folder: bool) -> str:
    listed = ledger.folder / "failures.parquet"
    if wrong_folder:
        return (
            "see whether the files lie there: the folder that paths start from is the one that "
            f"the configuration gives as 'root'. The rest was not tried; {listed} lists these"
        )
    return (
        f"see {listed}; repair these images, or raise max_failures to do without them (removed "
        "from the set, they make it another, which is computed anew)"
    )


def _failures(done: Sequence[Outcome], pictures: Pictures) -> list[Failure]:
    """Return every failure; those of reading say where the picture was looked for.

    Parts do not say it: they hold for the same pictures in another folder.
    """
    found = [failure for outcome in done for failure in outcome.failures]
    if not found:
        return found
    unread = {failure.image_id for failure in found if failure.stage == "read"}
    where = {
        one: pictures.where(place)
        for place, one in enumerate(pictures.ids.tolist())
        if one in unread
    }
    return [
        replace(one, reason=f"{one.reason} ({where[one.image_id]})") if one.stage == "read" else one
        for one in found
    ]


def _by_stage(failures: Sequence[Failure]) -> dict[str, int]:
    return dict(sorted(Counter(failure.stage for failure in failures).items()))


def _write_failures(folder: Path, failures: Sequence[Failure]) -> None:
    write(folder / "failures.parquet", table_bytes(failure_table(failures)))


def _input(parts: Sequence[Path], rows: int) -> dict[str, Any]:
    return {
        "sha256": one_digest({part.name: sha256_of(part) for part in parts}),
        "bytes": sum(part.stat().st_size for part in parts),
        "rows": rows,
    }
