"""Matrices of the configuration as sources of data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.data import ArraySource, Items, Matrix, load_matrix

if TYPE_CHECKING:
    from equipoise.audits.concepts.config_inputs import MatrixConfig


def matrix_of(
    config: MatrixConfig, images: Items, base: Path, what: str, max_unmatched: float
) -> Matrix:
    """Read the matrix that a section describes and join it to the images."""
    source = ArraySource(
        file=base / config.file if isinstance(config.file, Path) else config.file,
        array=config.array,
        ids=_ids(config.ids, base),
        id=config.id,
        names=config.names,
        missing=config.missing,
        encoding=config.encoding,
        delimiter=config.delimiter,
    )
    return load_matrix(source, images, what=what, max_unmatched=max_unmatched)


def _ids(given: str | None, base: Path) -> str | Path | None:
    """Return a path where there is a suffix, else the name of an array in the same file."""
    return base / given if given is not None and Path(given).suffix else given


def columns_of(
    config: MatrixConfig, concepts: Iterable[str], name: str | None
) -> list[tuple[str, ...]]:
    """Return the columns of each concept under the mapping of a name; None: the plain one."""
    known = {**config.map, **config.maps.get(name or "", {})}
    return [known.get(concept, (concept,)) for concept in concepts]
