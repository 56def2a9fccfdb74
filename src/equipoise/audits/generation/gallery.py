"""A few sets to look at: kept ones, and some that each stage rejected, as small pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.counterfactuals.filters.filtered import BEST
from equipoise.evidence.decoding import ImageError, decode
from equipoise.explain.blurring import WHOLE, blurred
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData

# Pixels of the longer side, and images of a set that are shown: those that fail first.
_SIDE, _MOST = 96, 6

_KEPT = "Kept"
_WHY = {
    "complete": "Rejected: an image is missing",
    "similarity": "Rejected by similarity",
    "content": "Rejected by content",
    "attributes": "Rejected: too few show their attribute",
    BEST: "Passed, and not among the best",
}
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("section", "group", "caption", "image_id")]
    + [("image", pa.binary())]
)


def gallery(config: Config, data: GenerationData) -> pa.Table:
    """Return sets drawn at random, with a small picture of each image.

    Parameters
    ----------
    config : Config
        Says how many, the seed, and whether pictures are blurred.
    data : GenerationData

    Returns
    -------
    pyarrow.Table
        `section` (kept, or why not), `group` (the set), `caption` (an image's attributes, and why
        it fails), `image_id`, `image` (PNG). Empty without pictures.
    """
    if data.pictures is None or not config.gallery:
        return SCHEMA.empty_table()
    places = {name: place for place, name in enumerate(data.pictures.ids.tolist())}

    def small(name: str) -> bytes | None:
        return _small(data, places.get(name), blur=config.blur is not None)

    rows = [
        row
        for stage, chosen, reasons in _chosen(config, data)
        for place in chosen
        for row in _of_set(data, int(place), stage, reasons, small)
        if row["image"] is not None
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _chosen(config: Config, data: GenerationData) -> Iterator[tuple[str, Any, Any]]:
    """Yield the stage, some of its candidates, and every image's reason there."""
    filtered = data.filtered
    n = filtered.candidates.images
    yield _KEPT, _drawn(config, filtered.kept, _KEPT), np.full(n, "", dtype=object)
    for place, stage in enumerate(filtered.stages):
        rejected = filtered.entering[place] & ~filtered.entering[place + 1]
        reasons = np.full(n, "", dtype=object)
        for check in reversed(stage.checks):
            failing = check.reason != ""
            reasons[failing] = check.reason[failing]
        yield _WHY[stage.name], _drawn(config, rejected, stage.name), reasons
    if filtered.best is not None:
        over = filtered.entering[-1] & ~filtered.kept
        yield _WHY[BEST], _drawn(config, over, BEST), np.full(n, "", dtype=object)


def _drawn(config: Config, mask: Any, name: str) -> Any:
    places = np.flatnonzero(mask)
    order = stream(config.resampling.seed, "gallery", name).permutation(len(places))
    return np.sort(places[order[: config.gallery]])


def _of_set(
    data: GenerationData, place: int, stage: str, reasons: Any, small: Callable[[str], bytes | None]
) -> Iterator[dict[str, Any]]:
    candidates = data.filtered.candidates
    begin, end = candidates.starts[place : place + 2].tolist()
    rows = sorted(range(begin, end), key=lambda row: not reasons[row])[:_MOST]
    for row in sorted(rows):
        image = candidates.columns["image_id"][row]
        values = [candidates.columns[name][row] for name in candidates.types]
        shown = ", ".join(str(value) for value in values if value)
        yield {
            "section": stage,
            "group": candidates.names[place],
            "caption": f"{shown}: {reasons[row]}" if reasons[row] else shown,
            "image_id": image,
            "image": small(image),
        }


def _small(data: GenerationData, place: int | None, *, blur: bool) -> bytes | None:
    """Return a picture as a small PNG; None where there is none."""
    if place is None or data.pictures is None:
        return None
    from PIL import Image

    try:
        pixels = decode(data.pictures.read(place))
    except (ImageError, OSError):
        return None
    picture = Image.fromarray(pixels)
    picture.thumbnail((_SIDE, _SIDE))
    if blur:
        picture = Image.fromarray(blurred(np.asarray(picture), [WHOLE]))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
