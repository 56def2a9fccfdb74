"""What a design can't give, whatever the model does, in counts and with what to change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Literal

import numpy as np
from scipy.special import betainc

from equipoise.core import Floats, InputError, Integers
from equipoise.core.types import Facts
from equipoise.report.text import count, percent, plural

ERROR_RATE = 0.2
"""Mean share of a class's rows that a model gets wrong, unless a plan is told another."""
# Error rates of classes have a beta distribution of this shape with the mean.
_SHAPE = 2.0
# Wrong labels that a class's mistakes are spread over evenly.
_LABELS = 6
_ROUNDING = 1e-9
# A design that keeps fewer of its classes or concepts than this is said to lose them.
_ENOUGH = 0.9


@dataclass(frozen=True)
class Assumed:
    """Assumptions of a plan on numbers that only a run gives.

    Attributes
    ----------
    error_rate : float
        Mean over classes of the share of rows that a model gets wrong.
    kept_share : float or None
        Share of candidates of sets that pass all filters; unknown unless given.
    """

    error_rate: float = ERROR_RATE
    kept_share: float | None = None

    def __post_init__(self) -> None:
        for name, share in asdict(self).items():
            if share is not None and not 0.0 < share < 1.0:
                raise InputError(f"{name}={share}: expected a share between 0 and 1")


@dataclass(frozen=True)
class Limit:
    """A limit of a design.

    Attributes
    ----------
    of : str
        What it limits: "mistakes", "concepts" or "sets".
    place : str
        Model, groups or version that it is about.
    numbers : mapping
        By name.
    text : str
        It in a line, with what to change.
    """

    of: Literal["mistakes", "concepts", "sets"]
    place: str
    text: str
    numbers: Facts = field(default_factory=dict)


def limit_of_mistakes(
    place: str,
    cells: Integers,
    least: float,
    assumed: Assumed,
    *,
    common: Floats | None = None,
) -> Limit | None:
    """Say how common a wrong label must be to count, and how many classes that leaves.

    Parameters
    ----------
    place : str
    cells : ndarray of int, shape (classes, groups)
        Rows of each class in each group that is compared.
    least : float
        Minimum expected count of a label in every group.
    assumed : Assumed
    common : ndarray, shape (classes,), optional
        Share of each class's second most common label, where predictions are at hand.

    Returns
    -------
    Limit or None
        None where nearly all classes are left. A label's expected count in a group is its share of
        the class's rows times the rows of the group, so the smallest group decides. `classes_left`
        has the mistakes of a class spread evenly over 6 labels, and `classes_left_at_most` gives
        all one label, where error rates of classes vary as a beta distribution of shape 2.
    """
    compared = (cells > 0).sum(axis=1) > 1
    cells = cells[compared]
    if least <= 0 or not len(cells):
        return None
    smallest = np.where(cells > 0, cells, cells.max()).min(axis=1)
    shares = least / smallest
    rate, wanted = "That", ceil(least * _LABELS / assumed.error_rate - _ROUNDING)
    if common is None:
        low, high = map(round, _classes_left(shares, assumed.error_rate))
        rate = f"At an error rate of {percent(assumed.error_rate)} that"
    else:
        left = common[compared] >= shares - _ROUNDING
        low = high = int(left.sum())
        lost = common[compared][~left & (common[compared] > 0)]
        wanted = ceil(least / float(np.median(lost)) - _ROUNDING) if lost.size else 0
    if low >= _ENOUGH * len(cells):
        return None
    typical = int(np.argsort(shares, kind="stable")[len(shares) // 2])
    share, rows = float(shares[typical]), int(cells[typical].sum())
    needed = ceil(share * rows - _ROUNDING)
    classes = count(low) if low == high else f"{count(low)} to {count(high)}"
    advice = "a smaller min_expected"
    if wanted:
        advice = f"about {count(wanted)} rows of each class in each group, or {advice}"
    text = (
        f"{place}: a wrong label counts from {count(needed)} of a class's {count(rows)} rows on "
        f"({percent(share)}): the minimum expected count is {least:g}, and the smallest group of "
        f"the class has {count(int(smallest[typical]))} rows. {rate} leaves {classes} of "
        f"{plural(len(cells), 'class', 'classes')}. To do: {advice}."
    )
    numbers = {
        "min_expected": least, "rows_of_a_cell": int(smallest[typical]), "rows_of_a_class": rows,
        "wrong_labels_needed": needed, "share_needed": share,
        "error_rate": assumed.error_rate if common is None else None, "classes": len(cells),
        "classes_left": low, "classes_left_at_most": high, "rows_of_a_cell_needed": wanted,
    }  # fmt: skip
    return Limit("mistakes", place, text, numbers)


def _classes_left(shares: Floats, error_rate: float) -> tuple[float, float]:
    """Return how many classes have a wrong label that counts: mistakes spread out, and alike."""
    b = _SHAPE * (1.0 - error_rate) / error_rate
    # The right label must count as well.
    most = betainc(_SHAPE, b, np.clip(1.0 - shares, 0.0, 1.0))
    spread, alike = (
        np.maximum(most - betainc(_SHAPE, b, np.clip(labels * shares, 0.0, 1.0)), 0.0).sum()
        for labels in (_LABELS, 1)
    )
    return float(spread), float(alike)


def limit_of_concepts(place: str, positives: Integers, least: int) -> Limit | None:
    """Say how many concepts have enough images in every group.

    Parameters
    ----------
    place : str
    positives : ndarray of int, shape (concepts, groups)
        Images that show a concept, by group that is compared.
    least : int
        Images that a group needs.

    Returns
    -------
    Limit or None
        None where all concepts have them. `enough_for_most` is the largest number that nine tenths
        of the concepts have in every group.
    """
    if not positives.size:
        return None
    fewest = positives.min(axis=1)
    left, n_concepts = int((fewest >= least).sum()), len(fewest)
    if left == n_concepts:
        return None
    lower = int(np.sort(fewest)[n_concepts - ceil(_ENOUGH * n_concepts)])
    advice = "images of the others"
    if 0 < lower < least:
        kept = count(int((fewest >= lower).sum()))
        advice += f", or choices.min_positives: {lower}, which keeps {kept}"
    text = (
        f"{place}: {count(left)} of {count(n_concepts)} concepts have {count(least)} labelled "
        f"images or more in every group; {count(n_concepts - left)} lose a group, or leave. "
        f"To do: {advice}."
    )
    numbers = {
        "min_positives": least, "concepts": n_concepts, "in_every_group": left,
        "left_out": n_concepts - left, "enough_for_most": lower,
    }  # fmt: skip
    return Limit("concepts", place, text, numbers)


def limit_of_sets(
    place: str, candidates: int, kept: int | None, needed: int, assumed: Assumed
) -> Limit | None:
    """Say how many sets pass the filters, and which share must.

    Parameters
    ----------
    place : str
    candidates : int
        Sets before the filters.
    kept : int or None
        Of these, sets that pass all filters; None before their images are made.
    needed : int
        Images that a group needs to be compared: a set has one of every group.
    assumed : Assumed

    Returns
    -------
    Limit or None
        None where enough sets are kept.
    """
    if not candidates:
        return None
    share = assumed.kept_share if kept is None else kept / candidates
    left = None if share is None else round(share * candidates)
    if left is not None and left >= needed:
        return None
    start = f"how many of {count(candidates)} sets pass the filters is unknown"
    asked, advice = needed / candidates, "filters that keep more"
    if share is not None and left is not None:
        start = f"{count(left)} of {count(candidates)} sets pass the filters ({percent(share)})"
    if share:
        more = f"{count(ceil(needed / share - _ROUNDING))} candidates"
        advice = f"{more}, or {advice}" if asked <= 1.0 else more
    if asked > 1.0:
        start += f", and groups of {count(needed)} images need more sets than there are"
    else:
        start += f", and groups of {count(needed)} images need {percent(asked)} to pass"
    numbers = {
        "candidates": candidates, "kept": left, "kept_share": share, "sets_needed": needed,
        "kept_share_needed": asked,
    }  # fmt: skip
    return Limit("sets", place, f"{place}: {start}. To do: {advice}.", numbers)


def distinct_limits(limits: Iterable[Limit | None]) -> Iterator[Limit]:
    """Yield limits whose numbers no earlier one has."""
    seen = list[Facts]()
    for limit in limits:
        if limit is not None and limit.numbers not in seen:
            seen.append(limit.numbers)
            yield limit
