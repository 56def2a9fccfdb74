"""Questions about people in one image: maps in which left and right cancel, and people hidden."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equipoise.core import Bytes, Floats
from equipoise.explain import maps
from equipoise.explain.scoring import scoring
from equipoise.models.images import Images, as_rgb
from equipoise.models.protocols import Model


def maps_and_falls(
    model: Model,
    images: Images,
    targets: Sequence[str],
    boxes: Floats | None = None,
    *,
    mirror: bool = True,
    question: str = "",
    method: str = "gradcam",
    layer: str | None = None,
) -> tuple[maps.ActivationMaps, Floats | None]:
    """Map an opinion of each image, and hide regions of it to see whether the opinion changes.

    Parameters
    ----------
    model, images, question, method, layer
        See `equipoise.explain.activation_maps`.
    targets : sequence of n str
        What is asked for in each image.
    boxes : ndarray of float64, shape (n, regions, 4), optional
        Left, top, right and bottom in pixels, each hidden on its own under the mean colour of the
        image; NaN where an image has no such region.
    mirror : bool
        Whether the means with those of the mirror image are taken, in which a preference for a
        side cancels. Each map has the sum 1 then, or is 0 where either of the two is.

    Returns
    -------
    ActivationMaps
    ndarray of float64, shape (n, regions), or None
        How far the score of an image falls, see `equipoise.explain.scoring`, when a region is
        hidden: above 0 it rests on it. NaN without a region; None without boxes.
    """
    turns: list[tuple[list[Bytes], Floats | None]] = [([*as_rgb(images)], boxes)]
    if mirror:
        turns.append(_mirrored(*turns[0]))
    scored, *controls = [
        maps.activation_maps(model, images, targets, question=question, method=method, layer=layer)
        for images, _ in turns
    ]
    for other in controls:
        pairs = np.stack([scored.maps, other.maps[:, :, ::-1]]).astype(np.float64)
        sums = pairs.sum(axis=(2, 3), keepdims=True)
        means = np.where((sums > 0.0).all(axis=0), pairs / np.where(sums > 0.0, sums, 1.0), 0.0)
        scored = replace(scored, maps=means.mean(axis=0).astype(np.float32))
    falls = []
    for turned, edges in turns:
        if edges is None:
            return scored, None
        falls.append(_falls(model, turned, edges, targets, question))
    return scored, np.mean(falls, axis=0)


def _mirrored(images: list[Bytes], boxes: Floats | None) -> tuple[list[Bytes], Floats | None]:
    turned = [np.ascontiguousarray(image[:, ::-1]) for image in images]
    if boxes is None:
        return turned, None
    widths, edges = np.array([[float(image.shape[1])] for image in images]), boxes.copy()
    edges[..., 0], edges[..., 2] = widths - boxes[..., 2], widths - boxes[..., 0]
    return turned, edges


def _falls(
    model: Model, images: Sequence[Bytes], boxes: Floats, targets: Sequence[str], question: str
) -> Floats:
    scored, falls = scoring(model, targets, question=question), np.full(boxes.shape[:2], np.nan)
    torch = scored.inside.torch
    for row, (image, target) in enumerate(zip(images, targets, strict=True)):
        people = np.flatnonzero(~np.isnan(boxes[row]).any(axis=1))
        variants = [image, *(_hidden(image, box) for box in boxes[row, people])]
        step = 1 if scored.alone else len(variants)
        scores: list[float] = []
        with torch.no_grad():
            for at in range(0, len(variants), step):
                inputs = scored.inputs(variants[at : at + step])
                scores += scored.score(inputs, [target] * step).tolist()
        falls[row, people] = scores[0] - np.array(scores[1:])
    return falls


def _hidden(image: Bytes, box: Floats) -> Bytes:
    x, top = np.maximum(np.floor(box[:2]), 0).astype(int)
    right, bottom = np.maximum(np.ceil(box[2:]), 0).astype(int)
    hidden = image.copy()
    hidden[top:bottom, x:right] = np.rint(image.mean(axis=(0, 1)))
    return hidden
