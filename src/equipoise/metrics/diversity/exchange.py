"""Chance level of distances between sets: images exchanged between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from equipoise.metrics.diversity.sums import Floats, unit_rows
from equipoise.stats.streams import stream

# Numbers in the indicator matrix of a block of permutations: bounds the memory.
_CELLS = 8_000_000
# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 13


def exchanged(
    sets: Sequence[npt.NDArray[np.generic]], counts: Sequence[int], permutations: int, seed: int
) -> Floats:
    """Return ISS_cross of sets whose images are exchanged at random, shape (permutations,).

    Parameters
    ----------
    sets : sequence of ndarray, shape (n_s, d)
    counts : sequence of int
        Rows of each set that are not zero: the sizes that stay.
    permutations, seed : int
    """
    rows = np.concatenate([unit_rows(one) for one in sets])
    # The sum of all is the same in every permutation: the last set is what the others leave.
    sizes = np.asarray(counts, dtype=np.float64)
    owner = np.repeat(np.arange(len(counts)), counts)
    block = max(1, min(64, _CELLS // (len(rows) * len(counts))))
    found = []
    for start in range(0, permutations, block):
        many = min(block, permutations - start)
        drawn = np.stack(
            [stream(seed, "exchange", start + i).permutation(owner) for i in range(many)]
        )
        found.append(_crosses(rows, drawn, sizes))
    return np.asarray(np.concatenate(found).round(_DECIMALS), dtype=np.float64)


def _crosses(rows: Floats, owners: npt.NDArray[np.int64], sizes: Floats) -> Floats:
    many, sets = len(owners), len(sizes)
    member = owners[:, None, :] == np.arange(sets - 1)[None, :, None]
    sums = (member.reshape(-1, len(rows)).astype(np.float64) @ rows).reshape(many, sets - 1, -1)
    last = rows.sum(axis=0) - sums.sum(axis=1)
    means = np.concatenate([sums, last[:, None]], axis=1) / sizes[:, None]
    whole = means.sum(axis=1)
    # Σ_{a<b} m_a·m_b from the sum of all means.
    cosines = (np.einsum("rd,rd->r", whole, whole) - np.einsum("rsd,rsd->r", means, means)) / 2.0
    return np.asarray(1.0 - cosines / (sets * (sets - 1) / 2.0))
