"""What is measured: model × groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.group_sizes import check_two
from equipoise.audits.retrieval.compared import Compared, check_sets
from equipoise.core.errors import DataError

if TYPE_CHECKING:
    from equipoise.audits.similarity.config import Config
    from equipoise.audits.similarity.loading import SimilarityData

# Standard errors that a test at 5 % finds in four of five cases.
_FOUND = 2.8


@dataclass(frozen=True, eq=False)
class Design(Compared):
    """One model's similarities, held against one choice of groups.

    Attributes
    ----------
    model, attributes
        See `Compared`.
    data : SimilarityData
    config : Config
    """

    data: SimilarityData
    config: Config

    @property
    def scale(self) -> float | None:
        """What makes a logit of a score, where it is known."""
        return self.config.models[self.model].scale

    @cached_property
    def pools(self) -> dict[str, Any]:
        """What is compared with what: the keywords of the metrics."""
        data = self.config.data
        table = isinstance(self.scored.scores, np.ndarray)
        names = [*self.scored.queries] if table else None
        return {
            "queries": self.column(data.subject) if data.subject else names,
            "sets": self.column(data.sets) if data.sets else None,
            "clusters": self.column(data.unit) if data.unit else None,
        }

    def favours(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Yield the place of every hypothesis about the groups, and whom it favours by concept."""
        for index in self.config.expected(self.name):
            first, expected = self.config.hypotheses[index].first, self.data.expected[index]
            declared = expected.favours if first is None else dict.fromkeys(expected.values, first)
            yield index, declared

    @property
    def concepts(self) -> int:
        """Concepts that have images."""
        if self.config.data.subject is None:
            return len(self.scored.queries)
        return len({*self.column(self.config.data.subject).tolist()} - {None})

    @cached_property
    def smallest(self) -> tuple[int, ...]:
        """Images of the groups that are compared, in the concept whose two smallest have fewest."""
        codes = np.where(np.append(self.groups.usable, False)[self.groups.codes], 1, 0)
        subject = self.config.data.subject
        owners = [""] * len(codes) if subject is None else self.column(subject).tolist()
        pools: dict[Any, dict[int, int]] = {}
        rows = zip(owners, self.groups.codes.tolist(), codes.tolist(), strict=True)
        for owner, group, usable in rows:
            if usable and owner is not None:
                held = pools.setdefault(owner, {})
                held[group] = held.get(group, 0) + 1
        sizes = [tuple(sorted(held.values())) for held in pools.values() if len(held) > 1]
        return min(sizes, default=(), key=lambda one: one[:2])

    @property
    def detectable(self) -> float | None:
        """Gap in standard deviations that a single test finds in four of five cases."""
        if len(self.smallest) < 2:
            return None
        return _FOUND * math.sqrt(sum(1 / n for n in self.smallest[:2]))


def designs(config: Config, data: SimilarityData) -> list[Design]:
    """Return every model with every choice of groups.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare, no set holds two, or a
        hypothesis favours what is no group.
    """
    every = [
        Design(model, attributes, data, config)
        for model in data.models
        for attributes in config.data.groups
    ]
    for design in every:
        which = f"groups {design.name}: fewer than two"
        check_two(design.groups, which, "images that can be compared", file=data.images.name)
        check_sets(design, file=data.images.name)
    for design in every:
        _check_hypotheses(design)
    return every


def _check_hypotheses(design: Design) -> None:
    """Refuse hypotheses that favour what is no group."""
    for index, favours in design.favours():
        for concept, group in favours.items():
            if group not in design.groups.names:
                about = f"{group!r}, declared for {concept!r}, is no group of {design.name}"
                raise DataError(
                    f"hypotheses[{index}]: {about}",
                    expected=", ".join(design.groups.names),
                    fix="name the groups as findings do",
                )
