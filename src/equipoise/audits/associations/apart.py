"""Sets of attributes without the targets, which would be compared with themselves there.

An item has similarity 1 with itself, which says nothing of its set. Leaving out these pairs alone
would leave the two sets of a question dependent, so that exchanging members gave p-values that are
too small: see docs/decisions/0015-targets-are-left-out-of-attributes.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from equipoise.audits.associations.cases import Case, cases_of
from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.associations.spaces import Side, Space
from equipoise.core.errors import DataError

# Kinds of which both targets and attributes are taken, by modality.
_ALIKE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"": ("image", "text"), "II": ("image",), "TT": ("text",)}
)

# Metrics that compare several targets with the same members of a set.
_AT_ONCE = ("weat", "differential_association", "total_absolute_association")


def around(space: Space, name: str, kind: str, targets: Sequence[Side]) -> Side:
    """Return the members of a set of attributes that are not among the targets.

    Parameters
    ----------
    space : Space
    name, kind : str
        Of the set, and of its members.
    targets : sequence of Side

    Raises
    ------
    DataError
        When the model has a usable vector or score of no member, or of targets alone.
    """
    return without_targets(space, kind, space.chosen(name, kind), targets)


def without_targets(space: Space, kind: str, side: Side, targets: Sequence[Side]) -> Side:
    """Return the members that are not among the targets.

    Raises
    ------
    DataError
        When the model has a usable vector or score of targets alone.
    """
    places = np.concatenate([one.places for one in targets])
    kept = np.flatnonzero(~np.isin(side.places, places))
    if len(kept) == len(side):
        return side
    left = replace(side.only(kept), shared=len(side) - len(kept))
    if not len(left) or not len(space.usable(left)):
        raise _alone(space.model, kind, side.name, tuple(one.name for one in targets))
    return left


def check_apart(asked: MeasureConfig, space: Space) -> None:
    """Refuse a question whose targets are all that a model can use of a set of attributes.

    Raises
    ------
    DataError
        When they are.
    """
    if asked.metric == "sc_weat":
        return
    for case in cases_of(asked, space):
        groups = [case.targets] if asked.metric in _AT_ONCE else [(one,) for one in case.targets]
        for kind in kinds_alike(case):
            for name in (*asked.attributes, *asked.further):
                for targets in groups:
                    usable, apart = usable_apart(space, name, kind, targets)
                    if usable and not apart:
                        raise _alone(space.model, kind, name, targets)


def kinds_apart(asked: MeasureConfig, spaces: Iterable[Space]) -> frozenset[str]:
    """Return the kinds whose targets a question leaves out of its sets of attributes."""
    cases = (case for space in spaces for case in cases_of(asked, space))
    return frozenset(kind for case in cases for kind in kinds_alike(case))


def left_with(asked: MeasureConfig, target: str) -> tuple[str, ...]:
    """Return the targets that are left out of the attributes where one is a target."""
    return tuple(asked.target_names) if asked.metric in _AT_ONCE else (target,)


def kinds_alike(case: Case) -> tuple[str, ...]:
    """Return the kinds of which a case takes both targets and attributes."""
    return _ALIKE.get(case.modality, ()) if case.targets else ()


def usable_apart(space: Space, name: str, kind: str, targets: Sequence[str]) -> tuple[int, int]:
    """Return how many members of a set can be used, and how many of these are no targets."""
    usable = apart = 0
    for table in space.tables(name, kind):
        members = np.intersect1d(space.data.sets[name][table], space.places(table))
        others = [space.data.sets[one][table] for one in targets if table in space.data.sets[one]]
        usable += len(members)
        apart += int((~np.isin(members, np.concatenate([[], *others]))).sum())
    return usable, apart


def _alone(model: str, kind: str, name: str, targets: Sequence[str]) -> DataError:
    """Return the error of a set of attributes of which targets alone can be used."""
    listed = " or ".join(dict.fromkeys(targets))
    return DataError(
        f"{model}: every usable {kind} of the set {name!r} is in {listed}, too, and would be "
        "compared with itself",
        expected=f"{kind}s that stand for {name} alone: targets are left out of attributes",
        fix=f"add {kind}s to {name!r} that are in no target, or measure fewer targets at once",
    )
