"""A few sets to look at: kept ones, and some that each stage rejected, as small pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.counterfactuals.filters.filtered import BEST
from equipoise.evidence.decoding import ImageError, decode
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData

# Pixels of the longer side, and images of a set that are shown.
_SIDE, _MOST = 96, 12

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("stage", "set", "image_id", "attributes", "reason", "png")]
    + [("kept", pa.bool_()), ("place", pa.int64())]
)


def gallery(config: Config, data: GenerationData) -> pa.Table:
    """Return sets drawn at random, with a small picture of each image.

    Parameters
    ----------
    config : Config
        Says how many, and the seed.
    data : GenerationData

    Returns
    -------
    pyarrow.Table
        `stage` ("" of kept sets), `set`, `image_id`, `attributes` (its values), `reason` (why the
        image fails there, or what became of it), `png` (base64), `kept`, `place` (of the image
        in its set). Empty without pictures.
    """
    if data.pictures is None or not config.gallery:
        return SCHEMA.empty_table()
    found = {name: place for place, name in enumerate(data.pictures.ids.tolist())}
    rows = [
        row
        for stage, chosen, reasons in _chosen(config, data)
        for one in chosen
        for row in _of_set(data, int(one), stage, reasons, found)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _chosen(config: Config, data: GenerationData) -> Iterator[tuple[str, Any, Any]]:
    """Yield the stage, some of its candidates, and every image's reason there."""
    filtered = data.filtered
    n = filtered.candidates.images
    yield "", _drawn(config, filtered.kept, "kept"), np.full(n, "", dtype=object)
    for place, stage in enumerate(filtered.stages):
        rejected = filtered.entering[place] & ~filtered.entering[place + 1]
        reasons = np.full(n, "", dtype=object)
        for check in reversed(stage.checks):
            failing = check.reason != ""
            reasons[failing] = check.reason[failing]
        yield stage.name, _drawn(config, rejected, stage.name), reasons
    if filtered.best is not None:
        over = filtered.entering[-1] & ~filtered.kept
        yield BEST, _drawn(config, over, BEST), np.full(n, "", dtype=object)


def _drawn(config: Config, mask: Any, name: str) -> Any:
    places = np.flatnonzero(mask)
    order = stream(config.resampling.seed, "gallery", name).permutation(len(places))
    return np.sort(places[order[: config.gallery]])


def _of_set(
    data: GenerationData, one: int, stage: str, reasons: Any, found: dict[str, int]
) -> Iterator[dict[str, Any]]:
    candidates = data.filtered.candidates
    begin, end = candidates.starts[one : one + 2].tolist()
    for place, row in enumerate(range(begin, min(end, begin + _MOST))):
        image = candidates.columns["image_id"][row]
        values = [candidates.columns[name][row] for name in candidates.types]
        yield {
            "stage": stage,
            "set": candidates.names[one],
            "image_id": image,
            "attributes": ", ".join(str(value) for value in values if value),
            "reason": reasons[row] or "",
            "png": _small(data, found.get(image)),
            "kept": not stage,
            "place": place,
        }


def _small(data: GenerationData, place: int | None) -> str:
    """Return a picture as base64 of a small PNG; "" where there is none."""
    if place is None or data.pictures is None:
        return ""
    from PIL import Image

    try:
        pixels = decode(data.pictures.read(place))
    except (ImageError, OSError):
        return ""
    picture = Image.fromarray(pixels)
    picture.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
