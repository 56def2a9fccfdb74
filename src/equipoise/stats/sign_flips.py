"""The test of paired differences: their signs are exchangeable when neither side is larger."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.stats.chance import PValue, p_value
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

# Differences whose signs are all enumerated: 65,536 of them.
_EVERY = 16
_AT_ONCE = 1 << 20


def sign_flips(
    differences: npt.ArrayLike,
    *,
    harm: Harm = "either",
    permutations: int = 100_000,
    seed: int = 0,
) -> PValue:
    """Return the p-value of a mean of paired differences against randomly flipped signs.

    Parameters
    ----------
    differences : array-like, shape (n,)
        One per pair, finite; one of 0 is the same with either sign. Pairs must be independent.
    harm : "higher", "lower" or "either"
        Which direction counts as more extreme; of "either" the smaller p-value is doubled.
    permutations : int
        Flips drawn; up to 16 differences other than 0 all are enumerated, and p is exact.
    seed : int

    Raises
    ------
    InputError
        When differences are not finite numbers in one dimension.

    References
    ----------
    Fisher 1935, The Design of Experiments, section 21.
    """
    array = np.asarray(differences, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError("differences must be finite numbers in one dimension, one for each pair")
    if not len(array):
        return PValue(np.nan, "no p-value: no pairs")
    array = array[array != 0.0]
    scale = float(np.abs(array).sum())
    if len(array) <= _EVERY:
        signs = np.array([*product((1.0, -1.0), repeat=len(array))])
        equal = np.full(len(signs), 1.0 / len(signs))
        return p_value(signs @ array, float(array.sum()), harm, weights=equal, scale=scale)
    return p_value(_drawn(array, permutations, seed), float(array.sum()), harm, scale=scale)


def _drawn(array: Floats, permutations: int, seed: int) -> Floats:
    random, drawn = stream(seed, "sign flips"), []
    step = max(_AT_ONCE // len(array), 1)
    for start in range(0, permutations, step):
        many = min(step, permutations - start)
        signs = random.integers(0, 2, (many, len(array)), dtype=np.int8) * 2 - 1
        drawn.append((signs * array).sum(axis=1))
    return np.concatenate(drawn)
