"""Questions about people in one image: maps in which left and right cancel, and people hidden."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from equipoise.core import Bytes, Floats
from equipoise.explain.maps import ActivationMaps, activation_maps
from equipoise.explain.scoring import scoring
from equipoise.models.images import Images, as_rgb
from equipoise.models.protocols import Model

_AT_ONCE = 16


def mirrored_maps(
    model: Model, images: Images, targets: Sequence[str], *, question: str = "",
    method: str = "gradcam", layer: str | None = None,
) -> ActivationMaps:  # fmt: skip
    """Map an opinion of each image and of its mirror image, and return the mean of the two.

    Parameters
    ----------
    model, images, targets, question, method, layer
        See `equipoise.explain.activation_maps`.

    Returns
    -------
    ActivationMaps
        Each map has the sum 1: one that prefers a side, whatever is there, prefers none. It is 0
        everywhere where either of the two is.
    """
    arrays = as_rgb(images)
    own, other = (
        activation_maps(model, some, targets, question=question, method=method, layer=layer)
        for some in (arrays, _mirrored(arrays))
    )
    both = np.stack([own.maps, other.maps[:, :, ::-1]]).astype(np.float64)
    sums = both.sum(axis=(2, 3), keepdims=True)
    means = np.where((sums > 0.0).all(axis=0), both / np.where(sums > 0.0, sums, 1.0), 0.0)
    return replace(own, maps=means.mean(axis=0).astype(np.float32))


def falls(
    model: Model,
    images: Images,
    boxes: npt.ArrayLike,
    targets: Sequence[str],
    *,
    question: str = "",
    mirror: bool = False,
) -> Floats:
    """Return how far the score of each image falls when a region of it is hidden.

    Parameters
    ----------
    model, images, targets, question
        See `equipoise.explain.activation_maps`.
    boxes : array-like, shape (n, regions, 4)
        Left, top, right and bottom in pixels, each hidden on its own under the mean colour of the
        image; NaN where an image has no such region.
    mirror : bool
        Whether the mean with the mirror image is taken.

    Returns
    -------
    ndarray of float64, shape (n, regions)
        In units of the model's score, see `equipoise.explain.scoring`; above 0: the score rests
        on the region. NaN without a region.
    """
    arrays, edges = as_rgb(images), np.asarray(boxes, dtype=np.float64)
    found = _falls(model, arrays, edges, targets, question)
    if not mirror:
        return found
    turned = edges.copy()
    widths = np.array([image.shape[1] for image in arrays], dtype=np.float64)[:, None]
    turned[..., 0], turned[..., 2] = widths - edges[..., 2], widths - edges[..., 0]
    return (found + _falls(model, _mirrored(arrays), turned, targets, question)) / 2.0


def _falls(
    model: Model, images: Sequence[Bytes], boxes: Floats, targets: Sequence[str], question: str
) -> Floats:
    whole = _opinions(model, images, targets, question)
    found = np.full(boxes.shape[:2], np.nan)
    for region in range(boxes.shape[1]):
        rows = np.flatnonzero(~np.isnan(boxes[:, region]).any(axis=1)).tolist()
        hidden = [_hidden(images[row], boxes[row, region]) for row in rows]
        left = _opinions(model, hidden, [targets[row] for row in rows], question)
        found[rows, region] = whole[rows] - left
    return found


def _opinions(
    model: Model, images: Sequence[Bytes], targets: Sequence[str], question: str
) -> Floats:
    """Return the score that maps follow, of each image with its target."""
    if not images:
        return np.empty(0)
    scored = scoring(model, targets, question=question)
    step, parts = 1 if scored.alone else _AT_ONCE, []
    with scored.inside.torch.no_grad():
        for start in range(0, len(images), step):
            some = slice(start, start + step)
            score = scored.score(scored.inputs(images[some]), targets[some])
            parts.append(score.double().cpu().numpy())
    return np.concatenate(parts)


def _mirrored(images: Sequence[Bytes]) -> list[Bytes]:
    return [np.ascontiguousarray(image[:, ::-1]) for image in images]


def _hidden(image: Bytes, box: Floats) -> Bytes:
    left, top = (max(int(np.floor(edge)), 0) for edge in box[:2])
    right, bottom = (max(int(np.ceil(edge)), 0) for edge in box[2:])
    found = image.copy()
    found[top:bottom, left:right] = np.rint(image.mean(axis=(0, 1)))
    return found
