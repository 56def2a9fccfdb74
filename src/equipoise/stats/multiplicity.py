"""Corrections for the number of tests: q-values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Return q-values that control the false discovery rate.

    Among the tests with q <= α at most the share α is false on average, when tests are
    independent or positively dependent.

    Parameters
    ----------
    p : array-like, shape (tests,)
        P-values; NaN where there was no test: stays NaN and is not counted.

    Returns
    -------
    ndarray, shape (tests,)
        In [0, 1], at least as large as `p`.

    Raises
    ------
    InputError
        When a p-value lies outside [0, 1] or `p` is not one-dimensional.

    References
    ----------
    Benjamini & Hochberg 1995, JRSS B 57, 289-300.
    """
    values, order = _sorted(p)
    ranks = np.arange(1, len(order) + 1)
    steps = values[order] * (len(order) / ranks)
    return _unsorted(values, order, np.minimum.accumulate(steps[::-1])[::-1])


def holm(p: npt.ArrayLike) -> Floats:
    """Return adjusted p-values that control the chance of even one false discovery.

    Parameters
    ----------
    p : array-like, shape (tests,)
        P-values; NaN where there was no test: stays NaN and is not counted.

    Returns
    -------
    ndarray, shape (tests,)
        In [0, 1], at least as large as `p`; valid under any dependence of the tests.

    Raises
    ------
    InputError
        When a p-value lies outside [0, 1] or `p` is not one-dimensional.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    values, order = _sorted(p)
    steps = values[order] * np.arange(len(order), 0, -1)
    return _unsorted(values, order, np.maximum.accumulate(steps))


def _sorted(p: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.int64]]:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"p: shape {values.shape}; expected one p-value per test, shape (tests,)")
    if ((values < 0) | (values > 1)).any():
        raise InputError("p: expected p-values between 0 and 1, NaN where there was no test")
    tested = np.flatnonzero(~np.isnan(values))
    return values, tested[np.argsort(values[tested], kind="stable")]


def _unsorted(values: Floats, order: npt.NDArray[np.int64], adjusted: Floats) -> Floats:
    out = np.full_like(values, np.nan)
    out[order] = np.minimum(adjusted, 1.0)
    return out
