"""Shares of true classes from shares of outcomes: the plain inverse, and the likeliest shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS, _STILL = 2000, 1e-9
# Below this singular value a drawn matrix counts as having no inverse.
_SINGULAR = 1e-9


def inverted(said: Floats, rates: Floats) -> Floats:
    """Return shares that reproduce the shares of outcomes, which may lie outside [0, 1].

    Least squares where there are more outcomes than classes.

    Parameters
    ----------
    said : ndarray, shape (r, outcomes)
        Shares of outcomes.
    rates : ndarray, shape (r, classes, outcomes)

    Returns
    -------
    ndarray, shape (r, classes)
        They sum to 1 where there are as many outcomes as classes.
    """
    back = np.linalg.pinv(rates.transpose(0, 2, 1), rcond=_SINGULAR)
    return np.asarray(np.einsum("rkj,rj->rk", back, said))


def likeliest(said: Floats, rates: Floats) -> Floats:
    """Return the shares in the simplex under which the outcomes are likeliest.

    Where the plain inverse lies inside the simplex, it is these; elsewhere expectation
    maximisation leads to the point of the border, see `inverted` for the parameters.
    """
    plain = inverted(said, rates)
    if rates.shape[1] == rates.shape[2]:
        inside = (plain >= 0.0).all(axis=1) & (np.abs(plain.sum(axis=1) - 1.0) < 1e-9)
    else:
        inside = np.zeros(len(plain), dtype=bool)
    found = plain.copy()
    outside = np.flatnonzero(~inside)
    if len(outside):
        start = np.clip(plain[outside], 0.0, 1.0) + 0.1 / plain.shape[1]
        start /= start.sum(axis=1, keepdims=True)
        found[outside] = _maximised(start, said[outside], rates[outside])
    return found


def _maximised(start: Floats, said: Floats, rates: Floats) -> Floats:
    """Return where expectation maximisation leads, each row until it stands still.

    Steps are squared (Varadhan & Roland 2008), for on the border plain ones hardly move.
    """
    found, moving = start.copy(), np.arange(len(start))
    for _ in range(_STEPS):
        here, asked, given = found[moving], said[moving], rates[moving]
        first = _step(here, asked, given)
        second = _step(first, asked, given)
        away, turn = first - here, second - 2.0 * first + here
        turned = np.sqrt((turn**2).sum(axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            far = np.where(turned > 0, np.sqrt((away**2).sum(axis=1)) / turned, 1.0)[:, None]
        leap = np.clip(here + 2.0 * far * away + far**2 * turn, 1e-12, None)
        leap = _step(leap / leap.sum(axis=1, keepdims=True), asked, given)
        worse = _fit(leap, asked, given) < _fit(second, asked, given)
        leap[worse] = second[worse]
        found[moving] = leap
        moving = moving[np.abs(leap - here).max(axis=1) > _STILL]
        if not len(moving):
            break
    found[found < 1e-7] = 0.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _step(shares: Floats, said: Floats, rates: Floats) -> Floats:
    expected = np.einsum("rk,rkj->rj", shares, rates)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(said > 0, said / np.maximum(expected, 1e-300), 0.0)
    moved = shares * np.einsum("rkj,rj->rk", rates, ratio)
    total = moved.sum(axis=1, keepdims=True)
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), shares)


def _fit(shares: Floats, said: Floats, rates: Floats) -> Floats:
    expected = np.maximum(np.einsum("rk,rkj->rj", shares, rates), 1e-300)
    return np.asarray((said * np.log(expected)).sum(axis=1))
