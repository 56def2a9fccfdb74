"""Read the images of an audit of generation: one table, whatever it is called where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import DataError
from equipoise.counterfactuals.filters.candidates import IMAGE
from equipoise.data import load_items

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.config_inputs import ImagesConfig
    from equipoise.evidence.pictures import Pictures

Objects = npt.NDArray[np.object_]
Inputs = Mapping[str, Mapping[str, Any]]


def read(config: Config, base: Path) -> tuple[pa.Table, Pictures | None, Inputs]:
    """Return the table of images with columns as we name them, their pictures, and inputs.

    Raises
    ------
    DataError
        When the table or folder cannot be used.
    """
    images = config.images
    assert images is not None  # noqa: S101 - the schema sees to it, or what was made stands here
    if images.generations is not None:
        return _generations(base / images.generations, config)
    return _elsewhere(images, config, base)


def objects(column: Any) -> Objects:
    """Return a column of a table as an array of objects."""
    values = column.to_pylist()
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _generations(folder: Path, config: Config) -> tuple[pa.Table, Pictures, Inputs]:
    from equipoise.counterfactuals import read_generated

    found = read_generated(folder)
    table = found.table
    for name in ("set", "caption", *config.attributes):
        if name not in table.column_names:
            raise DataError(
                "there is no such column",
                file=str(folder),
                column=name,
                expected=f"some of {', '.join(table.column_names)}",
                fix="name the attributes as the captions do",
            )
    return table, found.pictures, found.inputs


def _elsewhere(
    images: ImagesConfig, config: Config, base: Path
) -> tuple[pa.Table, Pictures | None, Inputs]:
    items = load_items(images.source(base, config.attributes), what="images")
    columns: dict[str, Any] = {"image_id": pa.array(items.ids.tolist(), pa.string())}
    for name, column in images.named.items():
        columns[name] = pa.array(items.columns[column].tolist(), pa.string())
    for name in config.attributes:
        columns[name] = pa.array(items.columns[name].tolist(), pa.string())
    if "candidate" in columns:
        columns["candidate"] = _numbers(columns["candidate"])
    paths = columns.pop("path", None)
    table = pa.table(columns)
    if paths is None:
        return table, None, items.inputs
    return table, _pictures(images, table, paths, base, items.name), items.inputs


def _numbers(column: pa.Array) -> pa.Array:
    """Return numbers of candidates as such, so that the tenth follows the ninth."""
    texts = column.to_pylist()
    if all(one is not None and one.isdecimal() for one in texts):
        return pa.array([int(one) for one in texts], pa.int64())
    return pa.array([one or "" for one in texts], pa.string())


def _pictures(
    images: ImagesConfig, table: pa.Table, paths: pa.Array, base: Path, name: str
) -> Pictures:
    from equipoise.evidence.pictures import pictures_of_table

    states = table["state"].to_pylist() if "state" in table.column_names else [IMAGE] * len(paths)
    every = zip(table["image_id"].to_pylist(), paths.to_pylist(), states, strict=True)
    ids, files = [], []
    for row, (one, path, state) in enumerate(every, start=1):
        if state != IMAGE:
            continue
        if not path:
            raise DataError(
                "the path of the image is empty",
                file=name,
                column=images.path,
                row=row,
                expected="a file",
                fix="say in a column `state` that there is none, such as refused",
            )
        ids.append(one)
        files.append(path)
    root = base if images.root is None else base / images.root
    return pictures_of_table(ids, files, root=root, name=name, column=images.path)
