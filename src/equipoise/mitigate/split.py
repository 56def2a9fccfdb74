"""Subjects to learn from and subjects to withhold: never one on both sides."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from equipoise.core.errors import InputError
from equipoise.stats.streams import stream


@dataclass(frozen=True)
class Split:
    """Which subjects are learned from, and which are withheld.

    Attributes
    ----------
    training, withheld : tuple of str
        Sorted, without a subject in common.
    """

    training: tuple[str, ...]
    withheld: tuple[str, ...]

    def __post_init__(self) -> None:
        check_split(self.training, self.withheld)


def check_split(training: Collection[str], withheld: Collection[str]) -> None:
    """Refuse a split with a subject on both sides, or nothing on one.

    Raises
    ------
    InputError
        Naming the subjects that stand on both sides.
    """
    both = sorted({*training} & {*withheld})
    if both:
        raise InputError(
            f"{len(both)} of the subjects are on both sides of the split: {', '.join(both[:5])}"
            f"{' …' if len(both) > 5 else ''}. What is learned from a subject cannot be tested on "
            "it. To do: give each subject to one side"
        )
    if not training or not withheld:
        side = "withheld" if training else "left to learn from"
        raise InputError(f"no subject is {side}; expected at least one on either side")


def split_subjects(subjects: Collection[str], *, withheld: float = 0.2, seed: int = 0) -> Split:
    """Withhold a share of the subjects, drawn at random.

    Parameters
    ----------
    subjects : collection of str
        At least two.
    withheld : float
        Share to withhold, in (0, 1); rounded up to whole subjects, at least one left.
    seed : int

    Raises
    ------
    InputError
        When there are fewer than two subjects, or the share is outside (0, 1).
    """
    names = sorted({*subjects})
    if len(names) < 2 or not 0.0 < withheld < 1.0:
        raise InputError(
            f"{len(names)} subjects, of which a share of {withheld} is to be withheld; expected at "
            "least two, and a share between 0 and 1"
        )
    count = min(len(names) - 1, math.ceil(withheld * len(names) - 1e-9))
    order = stream(seed, "mitigate", "split").permutation(len(names)).tolist()
    return Split(
        tuple(sorted(names[place] for place in order[count:])),
        tuple(sorted(names[place] for place in order[:count])),
    )


def folds(subjects: Collection[str], *, count: int = 4, seed: int = 0) -> tuple[Split, ...]:
    """Cut the subjects into parts, each withheld once while the others are learned from.

    Parameters
    ----------
    subjects : collection of str
    count : int
        Parts, at least 2 and at most one for each subject.
    seed : int

    Raises
    ------
    InputError
        When there are too few subjects for the parts.
    """
    names = sorted({*subjects})
    if not 2 <= count <= len(names):
        raise InputError(
            f"{count} folds of {len(names)} subjects; expected at least 2, and a subject in each"
        )
    order = stream(seed, "mitigate", "folds").permutation(len(names)).tolist()
    parts: Sequence[list[str]] = [[names[one] for one in order[k::count]] for k in range(count)]
    return tuple(Split(tuple(sorted({*names} - {*part})), tuple(sorted(part))) for part in parts)
