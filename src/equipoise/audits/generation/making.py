"""Sets of images of captions: made, or in a plan only asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from equipoise.audits.config_generators import located_generator, options_of
from equipoise.audits.running.rehearsal import Rehearsal
from equipoise.evidence.pictures import NotMade, Pictures

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.config_inputs import GeneratorConfig
    from equipoise.audits.running.live import Live
    from equipoise.audits.running.runner import Runner
    from equipoise.counterfactuals.captions import CaptionSets

NAME = "generator"


@dataclass(frozen=True, eq=False)
class Made:
    """Images that were made, or that would be.

    Attributes
    ----------
    folder : Path or None
        Where they lie; None in a plan.
    table : pyarrow.Table
        A row per image; in a plan of one candidate of each set.
    pictures : Pictures
    info, inputs : mapping
    pending : mapping
        In a plan: how many there are, how many the store has, and what is to be done.
    """

    folder: Path | None
    table: pa.Table = field(repr=False)
    pictures: Pictures = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(repr=False)
    pending: Mapping[str, Any]


def made(config: Config, runner: Runner) -> Made:
    """Make what is missing of the images of all captions, or plan it.

    Raises
    ------
    ModelError
        When the model cannot be loaded or controlled, or fails too often.
    """
    given, captions = config.generator, config.captions
    assert given is not None  # noqa: S101 - the schema sees to both
    assert captions is not None  # noqa: S101
    if isinstance(runner, Rehearsal):
        return _planned(config, given, captions.sets(), runner)
    return _generated(config, given, captions.sets(), cast("Live", runner))


def _generated(config: Config, given: GeneratorConfig, sets: CaptionSets, runner: Live) -> Made:
    from equipoise.counterfactuals import generate_sets

    progress, more = runner.progress, _how(config, given)
    if progress is not None:
        more["progress"] = lambda step, done, total: progress(f"{NAME}: {step}", done, total)
    model = given.model
    found = generate_sets(
        sets,
        located_generator(model, runner.base),
        runner.store,
        **more,
    )
    return Made(found.folder, found.table, found.pictures, found.info, found.inputs, {})


def _how(config: Config, given: GeneratorConfig) -> dict[str, Any]:
    """Return how images are made, as `generate_sets` and `plan_sets` take it."""
    every = config.extraction
    found: dict[str, Any] = {
        name: getattr(given, name)
        for name in ("candidates", "shared", "shared_self", "seed", "sampling")
    }
    found |= {"options": options_of(given, every), "max_failures": every.max_failures}
    return found if every.part is None else found | {"part": every.part}


def _planned(config: Config, given: GeneratorConfig, sets: CaptionSets, runner: Rehearsal) -> Made:
    """Stand in for one candidate of each set: all others are like it."""
    from equipoise.counterfactuals import plan_sets

    called = given.called
    name = located_generator(called, runner.base) if isinstance(given.model, str) else called
    planned = plan_sets(sets, name, runner.store, **_how(config, given))
    n = len(sets)
    ids = [f"{one}/000" for one in sets.table["caption_id"].to_pylist()]
    table = (
        sets.table.append_column("image_id", pa.array(ids, pa.string()))
        .append_column("candidate", pa.array(np.zeros(n, dtype=np.int64)))
        .append_column("state", pa.array(["image"] * n))
    )
    every = [f"{one[:-3]}{number:03d}" for one in ids for number in range(given.candidates)]
    names = np.empty(len(every), dtype=object)
    names[:] = sorted(every)
    pictures = Pictures("images to be made", names, NotMade())
    pending = {
        "runs": name, "items": planned.images, "in_store": planned.present,
        "to_do": planned.to_do, "numbers": None, "bytes": planned.bytes,
        "seconds": planned.seconds,
    }  # fmt: skip
    return Made(None, table, pictures, {}, {}, pending)
