"""Chance level of distances between sets: images exchanged between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.chosen_rows import Table
from equipoise.metrics.diversity.sums import Floats, Span, blocks, scatter
from equipoise.stats.shuffling import keys, shuffle
from equipoise.stats.threads import each

# Permutations that share a pass over the images: at most, where bytes of labels and numbers of
# sums may be held for so many; and, so that time grows as the images do, at least.
_TOGETHER, _LABELS, _CELLS, _LEAST = 64, 1 << 26, 1 << 22, 32
# Sets that labels of 8 bits and of 16 tell apart.
_FEW, _MOST = 1 << 8, 1 << 16
# Columns of a tile in the kernel.
_WIDTH = 64


def exchanged(sets: Sequence[Table], counts: Sequence[int], permutations: int, seed: int) -> Floats:
    """Return ISS_cross of sets whose images are exchanged at random, shape (permutations,).

    Every permutation sums the unit vectors of its sets anew, in float64 and in the order of the
    images; images are read in blocks, once for up to 64 permutations.

    Parameters
    ----------
    sets : sequence of ndarray, shape (n_s, d)
    counts : sequence of int
        Rows of each set that are not zero: the sizes that stay.
    permutations, seed : int

    Raises
    ------
    InputError
        When there are more than 65,536 sets.
    """
    if len(sets) > _MOST:
        raise InputError(f"sets: {len(sets)}; expected at most {_MOST:,} that exchange images")
    streams = keys(seed, "exchange", many=permutations)
    tiles = -(-sets[0].shape[1] // _WIDTH)
    labels = max(_LEAST, _LABELS // (sum(counts) * _label_type(counts).itemsize))
    step = max(1, min(_TOGETHER, labels, _CELLS // (tiles * _WIDTH * len(sets))))
    parts = [streams[start : start + step] for start in range(0, permutations, step)]
    return np.concatenate(each(lambda some: _crosses(_sums(sets, counts, some), counts), parts))


def _sums(
    sets: Sequence[Table],
    counts: Sequence[int],
    streams: npt.NDArray[np.uint64],
) -> Floats:
    """Sum of unit vectors by set of each permutation, shape (permutations, sets, d)."""
    owner = np.repeat(np.arange(len(counts), dtype=_label_type(counts)), counts)
    labels = np.tile(owner, (len(streams), 1))
    shuffle(streams, labels)
    d = sets[0].shape[1]
    totals = np.zeros((-(-d // _WIDTH), len(streams), len(counts), _WIDTH))
    first = 0
    for one in sets:
        for rows, scale in blocks(one, "embeddings", Span(0, 0, len(one))):
            used = np.flatnonzero(scale)
            scatter(rows, scale, used, labels, first, totals)
            first += len(used)
    return np.concatenate(list(totals), axis=2)[:, :, :d]


def _label_type(counts: Sequence[int]) -> np.dtype[Any]:
    """Return the smallest type of labels that tells the sets apart."""
    return np.dtype(np.uint8 if len(counts) <= _FEW else np.uint16)


def _crosses(sums: Floats, counts: Sequence[int]) -> Floats:
    sets = len(counts)
    means = sums / np.asarray(counts, dtype=np.float64)[:, None]
    whole = means.sum(axis=1)
    # Σ_{a<b} m_a·m_b from the sum of all means.
    cosines = (np.einsum("rd,rd->r", whole, whole) - np.einsum("rsd,rsd->r", means, means)) / 2.0
    return np.asarray(1.0 - cosines / (sets * (sets - 1) / 2.0))
