"""How many images of a set must show their attribute: given, the source's, or learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.core.arrays import Booleans, Integers
from equipoise.counterfactuals.filters.candidates import Candidates
from equipoise.stats.intervals import wilson
from equipoise.stats.streams import unit_keys

if TYPE_CHECKING:
    from equipoise.counterfactuals.filters.checks import Stage

Thresholds = Mapping[str, "float | Mapping[str, float]"]

HOWARD_2024: Thresholds = MappingProxyType(
    {
        "race-gender": MappingProxyType({"gender": 12, "race": 9}),
        "physical-gender": MappingProxyType({"gender": 10, "physical": 5}),
        "physical-race": MappingProxyType({"race": 13, "physical": 8}),
    }
)
"""Images of a set that must show their attribute, by the attributes that vary together: Howard et
al. 2024, Table 10, of 12, 10 and 30."""

_FOLDS = 5
_FEWEST = 10


def needed(thresholds: Thresholds, combination: str, name: str, size: int) -> int:
    """Return how many images of a set must show an attribute.

    Raises
    ------
    InputError
        When there is no threshold for it, or it is no count from 2 to `size` and no share.
    """
    given: Any = of_combination(thresholds, combination).get(name)
    number = isinstance(given, int | float)
    if number and isinstance(given, float) and 0 < given <= 1:
        return math.ceil(given * size - 1e-9)
    if number and given == int(given) and min(2, size) <= given <= size:
        return int(given)
    raise InputError(
        f"thresholds[{combination!r}][{name!r}]: {given!r}; expected a whole number of images from "
        f"{min(2, size)} to {size}, or a share such as 0.75 (1.0: all)"
    )


def of_combination(thresholds: Thresholds, combination: str) -> Thresholds:
    """Return the thresholds of attributes that vary together; those of all where it has none.

    One attribute that varies alone has the name of its combination.
    """
    about = thresholds.get(combination)
    return about if isinstance(about, Mapping) else thresholds


@dataclass(frozen=True)
class Learned:
    """A threshold that agrees best with people's labels.

    Attributes
    ----------
    threshold : int
        Images of a set that must show the attribute; of several that agree as often, the most.
    size : int
        Images of a set.
    labels, yes : int
        Sets with a label, and those that people found to show the attribute.
    agreement : float
        Share of labels that the threshold agrees with, on the labels it was chosen by.
    accuracy, low, high : float
        Share of labels that thresholds chosen by others agree with, and its interval.
    majority : float
        Share of labels that "always" or "never" agrees with, whichever is more.
    curve : tuple of float
        Agreement at thresholds from 1 to `size`.
    """

    threshold: int
    size: int
    labels: int
    yes: int
    agreement: float
    accuracy: float
    low: float
    high: float
    majority: float
    curve: tuple[float, ...] = field(repr=False)


def learned_threshold(
    shown: npt.ArrayLike,
    labels: npt.ArrayLike,
    size: int,
    *,
    clusters: Any = None,
    level: float = 0.95,
) -> Learned:
    """Choose how many images of a set must show an attribute, by people's labels.

    Parameters
    ----------
    shown : array-like of int, shape (m,)
        Images of each set in which the attribute was detected.
    labels : array-like of bool, shape (m,)
        Whether people found that the set shows the attribute.
    size : int
        Images of a set.
    clusters : array-like of str, shape (m,), optional
        What must not be in two folds of the cross-validation, such as the caption set; each set
        alone unless given.
    level : float
        Of the interval.

    Returns
    -------
    Learned
        Cross-validated in up to five folds, the folds drawn by the clusters' names. The interval
        is Wilson's, with as many trials as there are clusters.

    Raises
    ------
    InputError
        When shapes differ, there are fewer than ten labels or two clusters, or all are the same.
    """
    counts, told = np.asarray(shown, dtype=np.int64), np.asarray(labels, dtype=bool)
    names = [str(name) for name in (range(len(told)) if clusters is None else clusters)]
    every = sorted({*names})
    fits = counts.shape == told.shape == (len(told),)
    if not fits or len(told) < _FEWEST or told.all() or not told.any() or len(every) < 2:
        raise InputError(
            f"labels: {int(told.sum())} yes of {len(told)} for {len(counts)} sets in {len(every)} "
            f"clusters; expected a label for each, {_FEWEST} or more of both kinds, in two or more "
            "clusters, to learn and validate a threshold"
        )
    keys = dict(zip(every, unit_keys(every).tolist(), strict=True))
    turn = {name: place % _FOLDS for place, name in enumerate(sorted(every, key=keys.__getitem__))}
    fold = np.array([turn[name] for name in names])
    right = 0
    for number in np.unique(fold).tolist():
        out = fold == number
        chosen, _ = _best(counts[~out], told[~out], size)
        right += int(((counts[out] >= chosen) == told[out]).sum())
    chosen, curve = _best(counts, told, size)
    accuracy, yes, n = right / len(told), int(told.sum()), len(told)
    low, high = wilson(accuracy * len(every), len(every), level)
    return Learned(
        chosen, size, n, yes, curve[chosen - 1], accuracy, float(low), float(high),
        max(yes, n - yes) / n, curve,
    )  # fmt: skip


def _best(shown: Integers, labels: Booleans, size: int) -> tuple[int, tuple[float, ...]]:
    """Return the largest threshold that agrees most often, and the agreement at each."""
    agree = ((shown >= np.arange(1, size + 1)[:, None]) == labels).mean(axis=1)
    return int(np.flatnonzero(agree == agree.max())[-1]) + 1, tuple(agree.tolist())


def learned_thresholds(
    candidates: Candidates,
    stage: Stage,
    labels: Mapping[str, Mapping[str, bool]],
    *,
    level: float = 0.95,
) -> dict[tuple[str, str], Learned]:
    """Learn the thresholds of every attribute and combination that people labelled.

    Parameters
    ----------
    candidates : Candidates
    stage : Stage
        Of `attribute_filter`, whatever its thresholds.
    labels : mapping of str to mapping of str to bool
        Attribute to candidates' names to whether people found that they show it.
    level : float

    Returns
    -------
    dict of (combination, attribute) to Learned
        Of those that have labels.

    Raises
    ------
    InputError
        When there are too few labels of one that varies; it names both.
    """
    found = {}
    place = {name: index for index, name in enumerate(candidates.names)}
    of_candidates, sets = candidates.of_candidates("attributes"), candidates.of_candidates("set")
    for check in stage.checks:
        name = check.name.removesuffix(" shown")
        told = {one: yes for one, yes in labels.get(name, {}).items() if one in place}
        for combination in candidates.combinations:
            if name not in combination.split("-"):
                continue
            rows = [place[one] for one in told if of_candidates[place[one]] == combination]
            if not rows:
                continue
            try:
                found[combination, name] = learned_threshold(
                    check.set_value[rows],
                    [told[candidates.names[row]] for row in rows],
                    int(candidates.sizes[of_candidates == combination].max()),
                    clusters=sets[rows],
                    level=level,
                )
            except InputError as error:
                raise InputError(f"{name} in sets of {combination}: {error}") from None
    return found
