"""How alike the images of a set are, beside images that share nothing but their subject."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Chance, Ends, Estimate, no_ends
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import Percentile
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.vectors.sets import embedding_table
from equipoise.stats.chance import band
from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling
from equipoise.stats.streams import stream, unit_counts, unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


# Numbers that exchanged sets may sum: some seconds.
_MOST_SUMMED = 1_000_000_000
_FEWEST = 50


def set_similarity(
    vectors: Any,
    sets: Any,
    *,
    strata: Any = None,
    centred: bool = False,
    of: str = "",
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Mean cosine of the pairs of images within a set, averaged over sets.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        What says how an image looks: features of an encoder, or `background_layout` and
        `pose_layout`. Rows of zeros have no direction, and take no part.
    sets : array-like, shape (n,)
        The counterfactual set of each image; images without one take no part.
    strata : array-like, shape (n,), optional
        Chance exchanges images of one stratum, such as the subject. Default: all of them.
    centred : bool
        Subtract the mean over all images first, so that images that share nothing have about 0;
        for vectors that all point one way, such as colours.
    of : str
        What the vectors describe: "pose", "background" or "" (the image).
    resampling : Bootstrap, Permutation, Exact or None
        Bootstrap over sets. None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Metric "pose_similarity", "background_similarity" or "image_similarity": −1 to 1, higher:
        more alike within sets. Chance: the same when images of a stratum change places between
        sets; no p-value, for it is no question of groups. `.by` has every set.

    Raises
    ------
    InputError
        When vectors are no finite numbers, lengths differ, or `of` is another word.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.
    """
    metrics = {"": "image_similarity", "pose": "pose_similarity",
               "background": "background_similarity"}  # fmt: skip
    if of not in metrics:
        raise InputError(f"of={of!r}: expected 'pose', 'background' or ''")
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for set_similarity; use Bootstrap()")
    rows = np.asarray(embedding_table(vectors, "vectors"), dtype=np.float64)
    members, names = _codes(sets, len(rows), "sets")
    block = np.zeros(len(rows), dtype=np.int64)
    if strata is not None:
        block = _codes(strata, len(rows), "strata")[0]
    if centred:
        rows = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    scale = float(lengths.max(initial=0.0))
    directed = lengths > 1e-9 * scale if scale else np.zeros(len(rows), dtype=bool)
    kept = directed & (members >= 0) & (block >= 0)
    unit = rows[kept] / lengths[kept, None]
    means, counts = _means(unit, members[kept], len(names))
    used = counts > 1
    value = float(means[used].mean()) if used.any() else math.nan
    ends, method = _ends(means[used], [n for n, u in zip(names, used, strict=True) if u],
                         resampling, rng)  # fmt: skip
    chance = None
    if resampling is not None and used.any():
        chance = _chance(unit, members[kept], block[kept], len(names), resampling, rng)
    metric = metrics[of]
    return make_estimate(
        metric=metric,
        value=value,
        n={"images": int(kept.sum())},
        method=method,
        params={"centred": centred, "sets": int(used.sum())},
        chance=chance,
        no_chance="" if chance else "no resampling was asked for, or nothing to exchange",
        by=parts_to_table(
            [
                Part(metric, name, float(mean), n=int(count))
                for name, mean, count in zip(names, means, counts, strict=True)
                if count > 1
            ]
        ),
        excluded=_excluded(directed, members, block, int((counts == 1).sum())),
        unit="set",
        reason="no set has two images" if math.isnan(value) else "",
        ends=ends,
    )


def _codes(given: Any, count: int, what: str) -> tuple[Indices, tuple[str, ...]]:
    codes, names = encode(given, what=what)
    if len(codes) != count:
        raise InputError(f"{what}: {len(codes)} rows; expected {count}, as in vectors")
    return codes.astype(np.int64), names


def _means(unit: Floats, members: Indices, many: int) -> tuple[Floats, Indices]:
    """Return the mean cosine of the pairs of each set, NaN below two images, and its images."""
    counts = np.bincount(members, minlength=many)
    order = np.argsort(members, kind="stable")
    present = np.flatnonzero(counts)
    sums = np.zeros((many, unit.shape[1]))
    if len(present):
        starts = np.concatenate([[0], np.cumsum(counts[present])[:-1]])
        sums[present] = np.add.reduceat(unit[order], starts, axis=0)
    squares = np.einsum("sd,sd->s", sums, sums)
    pairs = counts * (counts - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 1, (squares - counts) / pairs, np.nan), counts


def _ends(
    means: Floats, names: list[str], resampling: Resampling | None, seed: int
) -> tuple[Ends, str]:
    if not isinstance(resampling, Bootstrap) or len(means) < 2:
        few = "none: fewer than two sets" if resampling is not None else NO_INTERVAL
        return no_ends, few
    times = unit_counts(seed, unit_keys(names), range(resampling.replicates)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = np.einsum("rs,s->r", times, means) / times.sum(axis=1)
    return Percentile(drawn), f"percentile bootstrap over sets, {resampling.replicates} replicates"


def _chance(
    unit: Floats,
    members: Indices,
    block: Indices,
    many: int,
    resampling: Bootstrap | Permutation,
    seed: int,
) -> Chance:
    draws = min(resampling.permutations, max(_FEWEST, _MOST_SUMMED // max(unit.size, 1)))
    generator = stream(seed, "set similarity")
    blocks = [np.flatnonzero(block == one) for one in np.unique(block)]
    found = []
    for _ in range(draws):
        mixed = members.copy()
        for rows in blocks:
            mixed[rows] = members[generator.permutation(rows)]
        means, counts = _means(unit, mixed, many)
        found.append(means[counts > 1].mean())
    return band(found, method=f"images change places between sets; {draws} permutations")


def _excluded(
    directed: npt.NDArray[np.bool_], members: Indices, block: Indices, alone: int
) -> dict[str, int]:
    found = {
        "vectors without a direction": int((~directed).sum()),
        "images without a set": int((members < 0).sum()),
        "images without a stratum": int((block < 0).sum()),
        "sets of one image": alone,
    }
    return {reason: count for reason, count in found.items() if count}


_alike = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    range="[−1, 1]",
    harm="lower",
    interval="percentile bootstrap over sets",
    chance="the value when images of a subject change places between sets",
    reference=(
        "Howard et al. 2024, SocialCounterfactuals, section 3 (members share pose, background)"
    ),
)
register(
    _alike(
        name="image_similarity",
        title="Similarity within sets",
        definition=(
            "Mean cosine of the pairs of images of a set, in an encoder's features; mean over sets."
        ),
        direction="Lower: members of a set share less.",
        parameters={
            "centred": "subtract the mean of all images: false",
            "strata": "images that change places",
        },
    )
)
register(
    _alike(
        name="pose_similarity",
        title="Similarity of poses",
        definition=(
            "image_similarity of descriptors of the pose: directions of edges inside the border, "
            "or a box, in a grid of 4 by 4."
        ),
        direction="Lower: members of a set differ more in pose.",
        parameters={
            "cells": "of the grid, each way: 4",
            "orientations": "bins of the direction: 8",
            "border": "share of each side that is background: 0.15",
        },
    )
)
register(
    _alike(
        name="background_similarity",
        title="Similarity of backgrounds",
        definition=(
            "image_similarity of descriptors of the background: colours of the border, or outside "
            "a box, in a grid of 4 by 4, minus the mean of all images."
        ),
        direction="Lower: members of a set differ more in background.",
        parameters={
            "cells": "of the grid, each way: 4",
            "border": "share of each side that is background: 0.15",
        },
    )
)
