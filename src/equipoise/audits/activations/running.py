"""What is run before an audit of activations: pictures and a model become maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.config_arrays import MADE, ArrayConfig
from equipoise.audits.pictures.known import known, need_pictures
from equipoise.audits.running.asked import to_run
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.live import Live
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.audits.running.runner import Offer, Ran
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig
    from equipoise.audits.running.runner import Runner
    from equipoise.evidence.pictures import Pictures

_OFFERS: tuple[Offer, ...] = ("classifier", "encoder", "scorer", "answerer")
_SIDE = 32


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, and put maps in their places.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, a model is of another kind, or it has no such
        label or layer.
    """
    run = to_run(config.models)
    if not run and config.data.images.is_plain:
        return Prepared.nothing(config)
    found = known(config.data.images, runner.base, columns=config.data.columns)
    items = load_items(found.items.source(runner.base, config.data.columns), what="images")
    models, ran = dict(config.models), []
    for name, given in run.items():
        pictures = need_pictures(found, why=f"models.{name}.model")
        runner.offer(name, given, *_OFFERS)
        said, overlays, grid = _said(name, given, pictures, items, config, runner)
        ran.append(said)
        cells, frames = (
            ArrayConfig(file=said.table.replace_schema_metadata(MADE), id="id", column=c)
            for c in ("map", "frame")
        )
        models[name] = given.model_copy(
            update={
                "model": None, "maps": cells, "frames": frames, "grid": grid, "overlays": overlays,
            }
        )  # fmt: skip
    data = config.data.model_copy(update={"images": found.items})
    return gathered(
        config,
        config.model_copy(update={"data": data, "models": models}),
        known={"images": found},
        ran=ran,
        members=lambda _: members_of(items.ids, items.columns, config.data.groups),
    )


def _said(
    name: str,
    given: ModelConfig,
    pictures: Pictures,
    items: Items,
    config: Config,
    runner: Runner,
) -> tuple[Ran, pa.Table | None, tuple[int, int]]:
    ids = tuple(pictures.ids.tolist())
    if not isinstance(runner, Live):
        return _stand_in(name, given, ids), None, (_SIDE, _SIDE)
    return _ran(name, given, pictures, _targets(given, pictures, items, config), config, runner)


def _stand_in(name: str, given: ModelConfig, ids: tuple[str, ...]) -> Ran:
    """Return maps of the right shape, which a plan counts and does not read."""
    numbers = _SIDE * _SIDE
    flat = np.ones(len(ids) * numbers, dtype=np.float16)
    table = pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "map": pa.FixedSizeListArray.from_arrays(pa.array(flat), numbers),
            "frame": pa.array([[0.0, 0.0, 1e9, 1e9]] * len(ids), pa.list_(pa.float64(), 4)),
        }
    )
    told = {
        "runs": given.called, "items": len(ids), "in_store": None, "to_do": None,
        "numbers": numbers, "bytes": 4 * numbers * len(ids),
    }  # fmt: skip
    return Ran(name, "images", table, {}, ids, pending=told)


def _targets(
    given: ModelConfig, pictures: Pictures, items: Items, config: Config
) -> tuple[str, ...]:
    """Return what is asked for in each picture.

    Raises
    ------
    DataError
        When an image has no target.
    """
    if given.target is not None:
        return (given.target,) * len(pictures)
    column = str(config.data.target)
    by_id = dict(zip(items.ids.tolist(), items.columns[column].tolist(), strict=True))
    for row, one in enumerate(items.columns[column].tolist(), start=1):
        if one is None:
            raise DataError(
                "there is nothing to ask for",
                file=items.name,
                column=column,
                row=row,
                expected="a label, a text or an answer",
                fix="fill it in, or remove the row",
            )
    return tuple(by_id[one] for one in pictures.ids.tolist())


def _ran(
    name: str,
    given: ModelConfig,
    pictures: Pictures,
    targets: tuple[str, ...],
    config: Config,
    runner: Live,
) -> tuple[Ran, pa.Table | None, tuple[int, int]]:
    from equipoise.audits.activations.mapping import Asked, maps_of
    from equipoise.audits.activations.pictures import overlays_of
    from equipoise.explain.scoring import scoring

    precise = given.model_copy(update={"dtype": given.dtype or "float32"})
    model = runner.opened(precise)
    try:
        scoring(model, targets, question=given.question)
    except InputError as error:
        raise ConfigError(f"models.{name}: {error}") from None
    table, folder = maps_of(
        Asked(model, given, targets),
        pictures,
        runner.store,
        max_failures=config.extraction.max_failures,
        part=config.extraction.part,
        progress=runner.progress,
    )
    failures = {row["id"]: row["stage"] for row in table.to_pylist() if row["stage"]}
    whole = table.filter(pa.compute.equal(table["stage"], ""))
    grid = _grid(whole, name)
    overlays = overlays_of(whole, grid, pictures, config, runner.base) if config.gallery else None
    inputs = {f"evidence/activations/{folder.name}": _input(whole)}
    said = Ran(
        name,
        "images",
        _fixed(whole, grid),
        _info(model),
        tuple(pictures.ids.tolist()),
        failures=failures,
        inputs=inputs,
    )
    return said, overlays, grid


def _info(model: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(model.info)


def _grid(table: pa.Table, name: str) -> tuple[int, int]:
    grids = {tuple(one) for one in table["grid"].to_pylist()}
    if len(grids) != 1:
        raise DataError(
            f"models.{name}: maps of {len(grids)} sizes; the model takes images of any size",
            fix="cut or resize the images to one size",
        )
    rows, columns = grids.pop()
    return rows, columns


def _fixed(table: pa.Table, grid: tuple[int, int]) -> pa.Table:
    columns = {"id": table["id"]}
    for name, width in (("map", grid[0] * grid[1]), ("frame", 4)):
        flat = table[name].combine_chunks().flatten()
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, width)
    return pa.table(columns)


def _input(table: pa.Table) -> dict[str, Any]:
    import hashlib

    digest = hashlib.sha256()
    for name in ("id", "map", "frame"):
        digest.update(repr(table[name].to_pylist()).encode())
    return {"sha256": digest.hexdigest(), "bytes": table.nbytes, "rows": len(table)}
