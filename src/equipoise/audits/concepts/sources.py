"""Matrices of the configuration as sources of data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.audits.config_arrays import ids_at, is_made, located
from equipoise.data import ArraySource, Items, Matrix, load_matrix

if TYPE_CHECKING:
    from equipoise.audits.concepts.config_inputs import MatrixConfig


def matrix_of(
    config: MatrixConfig, images: Items, base: Path, what: str, max_unmatched: float
) -> Matrix:
    """Read the matrix that a section describes and join it to the images."""
    source = ArraySource(
        file=located(config.file, base),
        array=config.array,
        ids=ids_at(config.ids, base),
        id=config.id,
        names=config.names,
        missing=config.missing,
        encoding=config.encoding,
        delimiter=config.delimiter,
        made=is_made(config.file),
    )
    return load_matrix(source, images, what=what, max_unmatched=max_unmatched)


def columns_of(
    config: MatrixConfig, concepts: Iterable[str], name: str | None
) -> list[tuple[str, ...]]:
    """Return the columns of each concept under the mapping of a name; None: the plain one."""
    known = {**config.map, **config.maps.get(name or "", {})}
    return [known.get(concept, (concept,)) for concept in concepts]
