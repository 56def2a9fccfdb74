"""Descriptors of the pictures of an audit: where edges lie inside, what the border looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from equipoise.audits.running.asked import array_of
from equipoise.audits.running.live import Live
from equipoise.metrics.quality.layout import CELLS, ORIENTATIONS, background_layout, pose_layout

if TYPE_CHECKING:
    from equipoise.audits.config_arrays import ArrayConfig
    from equipoise.audits.running.runner import Runner
    from equipoise.evidence.pictures import Pictures

_WIDTHS = {"pose": CELLS * CELLS * ORIENTATIONS, "background": CELLS * CELLS * 3}


def laid_out(pictures: Pictures, runner: Runner) -> dict[str, ArrayConfig]:
    """Return both descriptors of every picture that can be decoded.

    A plan decodes none: it gets numbers of the same shape.
    """
    if not isinstance(runner, Live):
        return {
            name: array_of(pa.array(pictures.ids, pa.string()), np.ones((len(pictures), width)),
                           [str(place) for place in range(width)])
            for name, width in _WIDTHS.items()
        }  # fmt: skip
    ids, poses, backgrounds = [], [], []
    for place, name in enumerate(pictures.ids.tolist()):
        described = _described(pictures, place)
        if described is not None:
            ids.append(name)
            poses.append(described[0])
            backgrounds.append(described[1])
    return {
        name: array_of(pa.array(ids, pa.string()), np.array(found).reshape(len(ids), _WIDTHS[name]),
                       [str(place) for place in range(_WIDTHS[name])])
        for name, found in (("pose", poses), ("background", backgrounds))
    }  # fmt: skip


def _described(
    pictures: Pictures, place: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...] | None:
    """Return the pose and the background of a picture; None where it cannot be decoded."""
    from equipoise.evidence.decoding import Decoding, ImageError, decode

    crop = None if pictures.crops is None else pictures.crops[place]
    try:
        image = decode(pictures.read(place), Decoding(), crop)
    except (OSError, ImageError):
        return None
    if min(image.shape[:2]) < CELLS:
        return None
    return pose_layout([image])[0], background_layout([image])[0]
