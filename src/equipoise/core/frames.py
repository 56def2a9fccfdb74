"""Rows as the data frame that results give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from equipoise.core.types import Json

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    Frame: TypeAlias = pl.DataFrame
else:
    Frame = "polars.DataFrame"


def frame_of(columns: Mapping[str, type], rows: Iterable[tuple[Json, ...]]) -> Frame:
    """Return rows as a data frame with columns of these types."""
    frame: Frame = import_module("polars").DataFrame([*rows], schema=columns, orient="row")
    return frame


def frame_of_table(table: pa.Table) -> Frame:
    """Return an Arrow table as a data frame."""
    frame: Frame = import_module("polars").from_arrow(table)
    return frame
