"""Pictures of tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core import ConfigError, DataError, Integers
from equipoise.data import Items
from equipoise.evidence.pictures import Pictures, pictures_of_table

if TYPE_CHECKING:
    from equipoise.audits.config_fields import ImageTable


def required(
    pictures: Pictures | None,
    place: str,
    model: str,
    fix: str = "name the column of files under 'path'",
) -> Pictures:
    """Return the pictures that a model runs on; refuse to run it without them.

    Parameters
    ----------
    pictures : Pictures or None
    place : str
        The section's place in the config.
    model : str
        Entry of `models`.
    fix : str
        What to do.

    Raises
    ------
    ConfigError
        When there are none.
    """
    if pictures is None:
        raise ConfigError(
            f"{place}: models.{model}.model runs on the pictures, and nothing says where they "
            f"are. To do: {fix}"
        )
    return pictures


def pictures_of(
    section: ImageTable, items: Items, base: Path, made: Iterable[bool] | None = None
) -> Pictures | None:
    """Return the pictures of items, or of those that were made; None without a column of files.

    Raises
    ------
    DataError
        When an image that was made has no file.
    """
    if section.path is None:
        return None
    kept: Integers = np.arange(len(items))
    if made is not None:
        kept = np.flatnonzero([*made])
    paths = items.columns[section.path][kept]
    if empty := [row for row, path in zip(kept.tolist(), paths, strict=True) if not path]:
        raise DataError(
            "the image has no file",
            file=items.name,
            column=section.path,
            row=empty[0] + 1,
            expected="a path, or a state that says why there is no image",
        )
    return pictures_of_table(
        items.ids[kept].tolist(), paths.tolist(), root=base / (section.root or ""),
        name=items.name, column=section.path,
    )  # fmt: skip
