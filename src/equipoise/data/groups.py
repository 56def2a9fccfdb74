"""Groups from what a data set has: declared, frozen rules that add a column of groups.

Each rule says in words what it does, the same words for the same rule, so that an analysis of
design choices can compare the columns of several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from equipoise.core import InputError
from equipoise.data.coded import Coded
from equipoise.data.image_parts import Flags

Terms = Mapping[str, Sequence[str]]
FrozenTerms = tuple[tuple[str, tuple[str, ...]], ...]
NO_GROUP = "no term of a group"
SEVERAL = "terms of several groups"


def frozen_terms(groups: Terms | FrozenTerms, what: str) -> FrozenTerms:
    """Return terms by group in a fixed order, checked.

    Raises
    ------
    InputError
        When there is no group, one has no terms, or a term belongs to two.
    """
    pairs = groups.items() if isinstance(groups, Mapping) else groups
    found = tuple(
        (group, tuple(sorted({term.strip().casefold() for term in terms})))
        for group, terms in pairs
    )
    if not found:
        raise InputError(f"{what} are empty; expected at least one group")
    owner: dict[str, str] = {}
    for group, terms in found:
        if not terms or not all(term.strip() for term in terms):
            raise InputError(f"the group {group!r} has no {what} or an empty one; expected some")
        for term in terms:
            if owner.setdefault(term, group) != group:
                raise InputError(
                    f"{term!r} is in the groups {owner[term]!r} and {group!r}; expected it in one"
                )
    return tuple(sorted(found))


def column_name(attribute: str, version: str) -> str:
    """Return the name of the column that a rule adds."""
    return f"{attribute} ({version})" if version else attribute


def in_words(groups: FrozenTerms) -> str:
    """Return terms by group as text."""
    return "; ".join(f"{group}: {', '.join(terms)}" for group, terms in groups)


def assigned(
    names: Sequence[str], member: Flags, excluded: Mapping[str, Flags]
) -> tuple[Coded, dict[str, Any]]:
    """Give each image the one group that it is of, and count the others by reason.

    Parameters
    ----------
    names : sequence of str
        Of the groups.
    member : ndarray of bool, shape (images, groups)
    excluded : mapping of str to ndarray of bool, shape (images,)
        Reasons to leave an image without a group, the first that holds counts; beside those of no
        and of several groups, which come last.
    """
    open_ = np.ones(len(member), dtype=np.bool_)
    left: dict[str, int] = {}
    reasons = {**excluded, SEVERAL: member.sum(axis=1) > 1, NO_GROUP: ~member.any(axis=1)}
    for reason, holds in reasons.items():
        left[reason] = int((open_ & holds).sum())
        open_ &= ~holds
    order = np.argsort(np.array(names, dtype=object))
    codes = np.where(open_, np.argsort(order)[member.argmax(axis=1)], -1).astype(np.int32)
    groups = Coded(codes, tuple(sorted(names)))
    sizes = dict(zip(groups.vocabulary, groups.counts.tolist(), strict=True))
    return groups, {"groups": sizes, "left_out": left}


class GroupRule(Protocol):
    """A rule that adds a column of groups."""

    @property
    def attribute(self) -> str:
        """What the groups are of."""
        ...

    @property
    def version(self) -> str:
        """Tells rules of one attribute apart."""
        ...

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        ...


def design_choices(*rules: GroupRule) -> dict[str, dict[str, dict[str, str]]]:
    """Return the `versions:` of an audit of concepts that compare rules of one attribute.

    Parameters
    ----------
    *rules : CaptionGroups, BoxGroups, ValueGroups or BandGroups
        Each with a version; the audit's `groups:` names the attribute, whose column is that of a
        rule without a version.

    Returns
    -------
    dict
        Version to the column that stands for the attribute in it.

    Raises
    ------
    InputError
        When a rule has no version, or two have the same.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for rule in rules:
        if not rule.version:
            raise InputError(
                f"the rule of {rule.attribute!r} has no version; it is the baseline: leave it out"
            )
        if rule.version in found:
            raise InputError(
                f"two rules have the version {rule.version!r}; expected different ones"
            )
        found[rule.version] = {"columns": {rule.attribute: rule.name}}
    return found
