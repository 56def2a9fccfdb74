"""What a filter leaves behind: every image, pair and set with what it was held against."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from equipoise.counterfactuals.filters.candidates import Bools, Candidates, Indices, Objects

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of images of one candidate.

    Attributes
    ----------
    first, second : ndarray of int64, shape (p,)
        Rows of the candidates.
    value : ndarray of float64, shape (p,)
    """

    first: Indices = field(repr=False)
    second: Indices = field(repr=False)
    value: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Check:
    """One thing that images are held against.

    Attributes
    ----------
    name : str
        Such as "caption similarity" or "gender shown".
    value : ndarray of float64, shape (n,)
        Of each image; NaN where it was not checked.
    threshold : float
        What the value has to exceed (`below`: stay below).
    rejected, checks : ndarray of float64, shape (n,)
        How many checks each image fails itself, and how many were made of it: one, or one for
        every other image of its set. NaN where it was not checked.
    reason : ndarray of objects, shape (n,)
        Why an image fails; "" otherwise.
    set_value, set_threshold : ndarray of float64, shape (candidates,)
        The number that decides for the set, and its bound.
    passed : ndarray of bool, shape (candidates,)
    below : bool
        Whether values, and those of sets, must stay below their bounds.
    pairs : Pairs or None
    """

    name: str
    value: Floats = field(repr=False)
    threshold: float
    rejected: Floats = field(repr=False)
    checks: Floats = field(repr=False)
    reason: Objects = field(repr=False)
    set_value: Floats = field(repr=False)
    set_threshold: Floats = field(repr=False)
    passed: Bools = field(repr=False)
    below: bool = False
    pairs: Pairs | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Stage:
    """One filter: a candidate passes it when it passes each of its checks.

    Attributes
    ----------
    name : str
    checks : tuple of Check
    """

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> Bools:
        """Whether each candidate passes, shape (candidates,)."""
        return np.asarray(np.logical_and.reduce([one.passed for one in self.checks]))


def own_check(  # noqa: PLR0913 - what a check is
    candidates: Candidates,
    name: str,
    value: Floats,
    threshold: float,
    fails: Bools,
    reason: Objects,
    *,
    checked: Bools | None = None,
    needed: Floats | None = None,
    below: bool = False,
) -> Check:
    """Return the check of something that an image shows or lacks by itself.

    Parameters
    ----------
    candidates : Candidates
    name : str
    value, threshold, fails, reason
        As in `Check`; `fails` says which images do.
    checked : ndarray of bool, shape (n,), optional
        Images that there is anything to check of; those that were made unless given.
    needed : ndarray of float64, shape (candidates,), optional
        How many images of a candidate must not fail; all unless given.
    below : bool
    """
    checked = candidates.made if checked is None else checked
    good = candidates.count(checked & ~fails).astype(np.float64)
    needed = candidates.sizes.astype(np.float64) if needed is None else needed
    return Check(
        name,
        np.where(checked, value, np.nan),
        threshold,
        np.where(checked, fails, np.nan),
        np.where(checked, 1.0, 0.0),
        np.where(checked & fails, reason, ""),
        good,
        needed,
        good >= needed,
        below,
    )


def made_stage(candidates: Candidates) -> Stage:
    """Return the stage before any filter: whether there is an image of every caption."""
    made = candidates.made
    texts = zip(candidates.state, candidates.columns["reason"], strict=True)
    reason = np.array([f"{state}: {why}" if why else str(state) for state, why in texts], object)
    everything = np.ones(candidates.images, dtype=bool)
    value = made.astype(np.float64)
    check = own_check(candidates, "image made", value, 0.0, ~made, reason, checked=everything)
    return Stage("complete", (check,))
