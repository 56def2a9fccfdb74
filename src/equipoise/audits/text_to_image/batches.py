"""Images of one generator that models look at together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from equipoise.evidence.pictures import Pictures

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("image_id", "prompt", "state", "seed")]
    + [("guidance", pa.float64())]
)
"""What is known of each image that was asked for."""

PLANNED = b"equipoise: planned"
"""Marks the table of images that are yet to be made, in a plan."""

IMAGE, REFUSED, FAILED = "image", "refused", "failed"


@dataclass(frozen=True, eq=False)
class Batch:
    """Images of one generator that models look at together.

    Attributes
    ----------
    generator, name : str
        Of the generator, and of the batch in messages and the plan.
    table : pyarrow.Table
        `SCHEMA`; a row for each image that was asked for.
    prefix : str
        What stands before the ids of `pictures` in the table.
    pictures : Pictures or None
        None where nothing says where they are.
    inputs, info : mapping
        Files that were read, and what the generator is.
    pending : mapping
        In a plan: what is to be made.
    """

    generator: str
    name: str
    table: pa.Table = field(repr=False)
    prefix: str = ""
    pictures: Pictures | None = field(default=None, repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    pending: Mapping[str, Any] = field(default_factory=dict)
