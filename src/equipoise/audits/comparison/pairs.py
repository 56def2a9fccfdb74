"""Two models' numbers of one measure, lined up by subject: what is paired, and what cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.audits.comparison.parts import owners_of
from equipoise.core.errors import DataError
from equipoise.core.finding import Excluded, Family, Finding, Verdict
from equipoise.core.result import AuditResult

Floats = npt.NDArray[np.float64]
Named = tuple[str, str, str]
"""Metric, groups and version of a number."""

FEWEST = 6
"""Pairs from which on flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""

_READ = "read the intervals of both in their own reports"


@dataclass(frozen=True, eq=False)
class Known:
    """What runs say of names: those of groups, and whose part a finding is about."""

    groups: frozenset[str]
    owners: Mapping[tuple[str, str, str, str], str | None]

    @classmethod
    def of(cls, results: Sequence[AuditResult]) -> Known:
        """Read the names from runs."""
        return cls(_groups(results), owners_of(results))

    def owner(self, named: Named, part: str) -> str | None:
        """Return the subject that a part belongs to: itself, where subjects have no parts."""
        return self.owners.get((*named, part), part)


@dataclass(frozen=True, eq=False)
class Pairing:
    """One measure of two models, by subject.

    Attributes
    ----------
    named : tuple of str
        Metric, groups, version.
    models : tuple of str
        First and second; differences are second minus first.
    parts : tuple of str
        Subjects, or parts of them, that both have a finite number for; ("",) for a measure of the
        whole.
    values : ndarray, shape (2, parts)
    verdicts : tuple of (Verdict, Verdict)
    owners : tuple of str
        The subject of each part: the part itself where subjects have none.
    left : tuple of Excluded
        Subjects and parts without a number in one of the two.
    untested : str
        Why nothing is tested over the subjects; "" where they are.
    """

    named: Named
    models: tuple[str, str]
    parts: tuple[str, ...]
    values: Floats
    verdicts: tuple[tuple[Verdict, Verdict], ...]
    owners: tuple[str, ...]
    left: tuple[Excluded, ...]
    untested: str

    @cached_property
    def far(self) -> Floats:
        """How far each subject is from 0, where there is no disparity: shape (2, subjects).

        The mean over its parts, which depend on each other and are no pairs of their own.
        """
        place = {name: index for index, name in enumerate(dict.fromkeys(self.owners))}
        codes = [place[name] for name in self.owners]
        sums = [np.bincount(codes, weights=row) for row in np.abs(self.values)]
        return np.asarray(sums / np.bincount(codes))

    @property
    def averaged(self) -> str:
        """How many parts make a pair, where there are several; else ""."""
        many, parts = self.far.shape[1], len(self.parts)
        return f", {parts} parts averaged by subject" if parts > many else ""


def _groups(results: Iterable[AuditResult]) -> frozenset[str]:
    tables = [one.tables["group_sizes"] for one in results if "group_sizes" in one.tables]
    return frozenset(name for table in tables for name in table["group"].to_pylist())


def pairings(
    pair: tuple[str, str], models: Mapping[str, Sequence[Finding]], known: Known
) -> list[Pairing]:
    """Line up every measure that two models share.

    Parameters
    ----------
    pair : tuple of str
        The two models.
    models : mapping of str to sequence of Finding
    known : Known

    Raises
    ------
    DataError
        When they share none.
    """
    first, second = (_by_name(models[name]) for name in pair)
    shared = [named for named in first if named in second]
    found = [_pairing(named, pair, (first[named], second[named]), known) for named in shared]
    kept = [one for one in found if one is not None]
    if not kept:
        raise DataError(
            f"{pair[0]} and {pair[1]} have no measure of the same subjects in common",
            expected="runs with the same metrics, groups and subjects",
            fix="audit both models with one configuration",
        )
    return kept


def _by_name(findings: Sequence[Finding]) -> dict[Named, dict[str, Finding]]:
    """Return the findings that were tested, by measure and subject."""
    found: dict[Named, dict[str, Finding]] = {}
    for one in findings:
        if one.family is not Family.DESCRIPTIVE:
            found.setdefault((one.metric, one.groups, one.version), {})[one.subject] = one
    return found


def _pairing(
    named: Named,
    pair: tuple[str, str],
    both: tuple[Mapping[str, Finding], Mapping[str, Finding]],
    known: Known,
) -> Pairing | None:
    """Line up two models' numbers; the whole stands for itself only where there are no parts."""
    first, second = both
    every = [*dict.fromkeys((*first, *second))]
    wanted = [name for name in every if name] or every
    parts = [
        name for name in wanted
        if all(name in one and math.isfinite(one[name].value) for one in both)
    ]  # fmt: skip
    if not parts:
        return None
    owners = {name: known.owner(named, name) for name in wanted}
    # A part of which nobody knows whose it is stands for itself, and nothing is tested.
    told = {name: name if owner is None else owner for name, owner in owners.items()}
    return Pairing(
        named,
        pair,
        tuple(parts),
        np.array([[one[name].value for name in parts] for one in both]),
        tuple((first[name].verdict, second[name].verdict) for name in parts),
        tuple(told[name] for name in parts),
        tuple(_left(told, parts)),
        _untested(owners, parts, known.groups),
    )


def _left(told: Mapping[str, str], parts: Sequence[str]) -> Iterator[Excluded]:
    """Yield how many subjects, and of others how many parts, have no number in both models."""
    kept = {told[name] for name in parts}
    subjects = {*told.values()} - kept
    split = sum(owner in kept for owner in told.values()) - len(parts)
    if subjects:
        yield Excluded("subjects without a number in both", len(subjects))
    if split:
        yield Excluded("parts of subjects without a number in both", split)


def _untested(
    owners: Mapping[str, str | None], parts: Sequence[str], groups: frozenset[str]
) -> str:
    several = len(parts) > 1
    if several and groups.issuperset(parts):
        return "the numbers are those of the groups, which depend on each other: none is tested"
    if several and None in owners.values():
        return "the numbers are of parts whose subjects cannot be told apart: none is tested"
    subjects = {owners[name] for name in parts}
    if len(subjects) == 1:
        many = "one subject that both models have" if any(parts) else "one number a model"
        return f"{many}: nothing to pair; {_READ}"
    if len(subjects) < FEWEST:
        few = f"{len(subjects)} subjects are too few to test over"
        return f"{few}, {FEWEST} or more are needed; {_READ}"
    return ""
