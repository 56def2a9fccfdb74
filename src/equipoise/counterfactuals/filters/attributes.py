"""The filter of detectability: enough images of a set show their attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.counterfactuals.filters.candidates import Candidates, Indices
from equipoise.counterfactuals.filters.stages import Check, Floats, Stage, own_check
from equipoise.counterfactuals.filters.thresholds import Thresholds, needed


def attribute_filter(
    candidates: Candidates,
    images: npt.ArrayLike,
    values: Mapping[str, tuple[Sequence[str], npt.ArrayLike]],
    thresholds: Thresholds,
) -> Stage:
    """Keep candidates of which enough images look most like their own value of each attribute.

    Parameters
    ----------
    candidates : Candidates
        n images.
    images : array-like, shape (n, d)
        Embeddings, in the order of the candidates; rows without an image are not read.
    values : mapping of str to (names, vectors)
        Of every attribute that varies its values, and a vector of shape (values, d) of a text for
        each, such as "an old person".
    thresholds : mapping
        Images of a candidate that must show their attribute: of each attribute, or by the
        attributes that vary together (`HOWARD_2024`). A whole number of at least 2, or a share of
        the set above 0 and at most 1.

    Returns
    -------
    Stage
        A check "<attribute> shown" for every attribute.

    Raises
    ------
    InputError
        When shapes do not fit, a value or a threshold is missing, or a threshold exceeds a set.
    """
    checks = [
        _shown(candidates, images, name, *_of(values, name), thresholds)
        for name in candidates.types
        if any(name in one.split("-") for one in candidates.combinations)
    ]
    return Stage("attributes", tuple(checks))


def _of(
    values: Mapping[str, tuple[Sequence[str], npt.ArrayLike]], name: str
) -> tuple[Sequence[str], npt.ArrayLike]:
    if name not in values:
        raise InputError(f"values: {name!r} is missing; expected its values with their vectors")
    return values[name]


def _shown(
    candidates: Candidates,
    images: npt.ArrayLike,
    name: str,
    names: Sequence[str],
    vectors: npt.ArrayLike,
    thresholds: Thresholds,
) -> Check:
    own = _codes(candidates, name, names)
    checked = candidates.made & (own >= 0)
    seen = np.asarray(images)
    texts = np.asarray(vectors, dtype=np.float64)
    if seen.ndim != 2 or texts.shape != (len(names), seen.shape[1]):
        raise InputError(
            f"values[{name!r}]: vectors of shape {texts.shape} for images of shape {seen.shape}; "
            f"expected ({len(names)}, {seen.shape[-1]})"
        )
    cosines = np.zeros((candidates.images, len(names)))
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    rows = seen[checked].astype(np.float64)
    cosines[checked] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ units.T
    margin, other = _margins(cosines, own)
    looks = np.array([f"looks more like “{one}”" for one in names], dtype=object)[other]
    return own_check(
        candidates,
        f"{name} shown",
        margin,
        0.0,
        margin <= 0,
        looks,
        checked=checked,
        needed=_needed(candidates, name, thresholds),
    )


def _codes(candidates: Candidates, name: str, names: Sequence[str]) -> Indices:
    place = {one: index for index, one in enumerate(names)}
    column = candidates.columns[name].tolist()
    unknown = sorted({str(one) for one in column if one and one not in place})
    if unknown:
        raise InputError(f"values[{name!r}]: {unknown[0]!r} is missing; expected every value")
    return np.array([place[one] if one else -1 for one in column], dtype=np.int64)


def _margins(cosines: Floats, own: Indices) -> tuple[Floats, Indices]:
    """Return by how much the own value leads the best other one, and which that is."""
    rows = np.arange(len(own))
    others = cosines.copy()
    others[rows, own] = -np.inf
    best = others.argmax(axis=1)
    return cosines[rows, own] - others[rows, best], best


def _needed(candidates: Candidates, name: str, thresholds: Thresholds) -> Floats:
    """Return how many images of each candidate must show the attribute; 0 where it is constant."""
    found = np.zeros(len(candidates))
    combination = candidates.of_candidates("attributes")
    for one in candidates.combinations:
        if name not in one.split("-"):
            continue
        rows = combination == one
        size = int(candidates.sizes[rows].max())
        found[rows] = needed(thresholds, one, name, size)
    return found
