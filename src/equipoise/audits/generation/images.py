"""The images of an audit of generation: generated from captions, or read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.outputs import LiveModels
from equipoise.core.errors import DataError
from equipoise.counterfactuals.filters.candidates import IMAGE
from equipoise.data import load_items
from equipoise.data.outputs import Outputs
from equipoise.evidence.pictures import NotMade, Pictures, pictures_of_table

if TYPE_CHECKING:
    from equipoise.audits.generation.config import (
        CaptionsConfig,
        Config,
        GeneratorConfig,
        ImagesConfig,
    )
    from equipoise.audits.outputs import Models

GENERATOR = "generator"


@dataclass(frozen=True, eq=False)
class Images:
    """Images with their sets and attributes.

    Attributes
    ----------
    table : pyarrow.Table
        A row per image, as `candidates_of` takes it.
    pictures : Pictures or None
    inputs : mapping
        Per file "sha256", "bytes", "rows".
    file : str
        Path of the table, for errors.
    copies : int or None
        In a dry run of a generator: candidates that each row stands for. None where the images
        exist.
    """

    table: pa.Table = field(repr=False)
    pictures: Pictures | None = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    file: str = ""
    copies: int | None = None


def images_of(config: Config, models: Models) -> Images:
    """Generate or read the images.

    Raises
    ------
    DataError
        When the table or folder can't be used.
    ModelError
        When the generator can't be loaded or controlled, or fails too often.
    """
    images, captions, generator = config.images, config.captions, config.generator
    if images is None:
        assert captions is not None  # noqa: S101 - the config requires both
        assert generator is not None  # noqa: S101
        return _generated(config, captions, generator, models)
    if images.generations is not None:
        return _generations(models.base / images.generations, config)
    return _table(images, config, models.base)


def _generated(
    config: Config, captions: CaptionsConfig, generator: GeneratorConfig, models: Models
) -> Images:
    """Generate the images; in a dry run return a stand-in for each set."""
    from equipoise.counterfactuals import generate_sets, plan_sets

    options = config.extraction
    how: dict[str, Any] = {
        name: getattr(generator, name)
        for name in ("candidates", "shared", "shared_self", "seed", "sampling")
    }
    how |= {"options": generator.options(options), "max_failures": options.max_failures}
    if options.part is not None:
        how["part"] = options.part
    sets, progress = captions.sets(), models.progress
    if isinstance(models, LiveModels):
        if progress is not None:
            how["progress"] = lambda step, done, total: progress(
                f"{GENERATOR}: {step}", done, total
            )
        model = generator.located(models.base)
        made = generate_sets(sets, model, models.store, **how)
        models.keep(_outputs(made.table["image_id"], info=made.info, inputs=made.inputs))
        return Images(made.table, made.pictures, made.inputs)
    # The name of a model folder lies beside the config; a loaded model has its own name.
    by_name = isinstance(generator.model, str)
    name = generator.located(models.base) if by_name else generator.called
    planned = plan_sets(sets, name, models.store, **how)
    ids = [f"{caption}/{{:03d}}" for caption in sets.table["caption_id"].to_pylist()]
    table = (
        sets.table.append_column("image_id", pa.array([one.format(0) for one in ids]))
        .append_column("candidate", pa.array(np.zeros(len(ids), dtype=np.int64)))
        .append_column("state", pa.array([IMAGE] * len(ids)))
    )
    every = [one.format(number) for one in ids for number in range(generator.candidates)]
    pending = {
        "runs": name, "items": planned.images, "in_store": planned.present,
        "to_do": planned.to_do, "numbers": None, "bytes": planned.bytes,
        "seconds": planned.seconds,
    }  # fmt: skip
    models.keep(_outputs(table["image_id"], pending=pending))
    names = np.empty(len(every), dtype=object)
    names[:] = sorted(every)
    pictures = Pictures("images to be made", names, NotMade())
    return Images(table, pictures, {}, copies=generator.candidates)


def _outputs(ids: pa.ChunkedArray, **more: Any) -> Outputs:
    return Outputs(
        model=GENERATOR, content="images", source="generator.model", on="captions",
        ids=pl.Series("", ids.to_pylist(), dtype=pl.String), **more,
    )  # fmt: skip


def _generations(folder: Path, config: Config) -> Images:
    from equipoise.counterfactuals import read_generated

    generated = read_generated(folder)
    table = generated.table
    for name in ("set", "caption", *config.attributes):
        if name not in table.column_names:
            raise DataError(
                "there is no such column",
                file=str(folder),
                column=name,
                expected=f"one of {', '.join(table.column_names)}",
                fix="name the attributes as the captions do",
            )
    return Images(table, generated.pictures, generated.inputs)


def _table(images: ImagesConfig, config: Config, base: Path) -> Images:
    items = load_items(images.source(base, config.attributes), what="images")
    names = images.named | {name: name for name in config.attributes}
    columns: dict[str, Any] = {"image_id": pa.array(items.ids.tolist(), pa.string())}
    for name, column in names.items():
        columns[name] = pa.array(items.columns[column].tolist(), pa.string())
    if "candidate" in columns:
        columns["candidate"] = _numbers(columns["candidate"])
    paths = columns.pop("path", None)
    table = pa.table(columns)
    pictures = None if paths is None else _pictures(images, table, paths, base, items.name)
    file = images.table.as_posix() if isinstance(images.table, Path) else ""
    return Images(table, pictures, items.inputs, file)


def _numbers(column: pa.Array) -> pa.Array:
    """Return numbers of candidates as integers, so that the tenth follows the ninth."""
    texts = column.to_pylist()
    if all(text is not None and text.isdecimal() for text in texts):
        return pa.array([int(text) for text in texts], pa.int64())
    return pa.array([text or "" for text in texts], pa.string())


def _pictures(
    images: ImagesConfig, table: pa.Table, paths: pa.Array, base: Path, name: str
) -> Pictures:
    states = table["state"].to_pylist() if "state" in table.column_names else [IMAGE] * len(paths)
    rows = zip(table["image_id"].to_pylist(), paths.to_pylist(), states, strict=True)
    ids, files = [], []
    for row, (image, path, state) in enumerate(rows, start=1):
        if state != IMAGE:
            continue
        if not path:
            raise DataError(
                "the path of the image is empty",
                file=name,
                column=images.path,
                row=row,
                expected="a file",
                fix="mark an image that doesn't exist in a column `state`, such as refused",
            )
        ids.append(image)
        files.append(path)
    root = base if images.root is None else base / images.root
    return pictures_of_table(ids, files, root=root, name=name, column=images.path)
