"""Images that were made, or not, and what they were asked for by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from equipoise.evidence import Pictures


@dataclass(frozen=True, eq=False)
class Generated:
    """Images of prompts or of caption sets.

    Attributes
    ----------
    folder : Path
        Where they lie: ``<store>/generations/<key>``; of images made elsewhere the folder of
        their table.
    table : pyarrow.Table
        One row per image asked for, none dropped: `image_id`, `caption_id` (of sets) or
        `prompt_id`, `prompt`, `set` (null without), `candidate` (from 0), `seed`, `shared` and
        `shared_self` (shares of the steps; null without control), `base` (the caption whose
        attention the others share), `state` (``image``, ``refused`` or ``failed``), `reason`,
        and the other columns of the prompts or captions.
    pictures : Pictures
        Those with the state ``image``, by `image_id`.
    info : mapping
        What the model is; empty where it is not known.
    inputs : mapping
        The images as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images asked of the model now; 0 when all was there.
    """

    folder: Path
    table: pa.Table = field(repr=False)
    pictures: Pictures = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    computed: int = 0
