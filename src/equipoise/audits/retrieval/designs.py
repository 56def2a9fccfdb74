"""What is measured: model × groups, and within the values of the other attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.config_sections import group_name
from equipoise.audits.retrieval.compared import Compared

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit
    from equipoise.audits.retrieval.loading import RetrievalData


@dataclass(frozen=True, eq=False)
class Design(Compared):
    """One model's rankings, held against one choice of groups.

    Attributes
    ----------
    model, attributes, data
        See `Compared`.
    config : RankingAudit
    within : tuple of str
        Attributes that are held fixed: each of their values is a pool of its own.
    """

    config: RankingAudit
    within: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """What is held fixed, in words; "default" where nothing is."""
        return f"within {group_name(self.within)}" if self.within else "default"

    @cached_property
    def pools(self) -> dict[str, Any]:
        """How rankings split into pools: the keywords of the metrics."""
        data = self.config.data
        held = {name: self.column(name) for name in self.within}
        return {
            "queries": self.column(data.subject) if data.subject else self._names,
            "within": held or None,
            "sets": self.column(data.sets) if data.sets else None,
        }

    @property
    def _names(self) -> Any:
        """Names of queries that rank all images; scores of vectors bring their own."""
        return [*self.scored.queries] if isinstance(self.scored.scores, np.ndarray) else None

    @property
    def pool_sizes(self) -> list[int]:
        """Images with a group in each pool, smallest first."""
        return sorted(len(groups) for groups in self._pooled)

    @property
    def has_curves(self) -> bool:
        """Whether a pool of several groups has more images than the last prefix."""
        several = (len(groups) for groups in self._pooled if len({*groups}) > 1)
        return max(several, default=0) > self.prefixes

    @cached_property
    def _pooled(self) -> list[list[int]]:
        """The groups of the images of each pool; images without one are in none."""
        subject = self.config.data.subject
        split = [self.column(name) for name in (*self.within, *([subject] if subject else []))]
        codes = self.groups.codes.tolist()
        keys = zip(*split, strict=True) if split else [()] * len(codes)
        pools: dict[tuple[Any, ...], list[int]] = {}
        for key, code in zip(keys, codes, strict=True):
            if code >= 0 and None not in key:
                pools.setdefault(key, []).append(code)
        return [*pools.values()]

    @property
    def smallest_pool(self) -> int:
        """Images in the smallest pool of which the first k can be taken; 0: there is none."""
        return next((n for n in self.pool_sizes if n > max(self.ks)), 0)

    @cached_property
    def ks(self) -> tuple[int, ...]:
        """How many of the best images count; the number of groups unless the config says."""
        return self.config.ranking.k or (max(2, int((self.groups.counts > 0).sum())),)

    @cached_property
    def prefixes(self) -> int:
        """The last prefix of NDKL and of the curves."""
        if self.config.ranking.prefixes is not None:
            return self.config.ranking.prefixes
        # Where no pool has more than K images nothing is estimable, and nothing need be long.
        return min(self.ks[0] ** 2, self.smallest_pool - 1 if self.smallest_pool else self.ks[0])

    @property
    def desired(self) -> Any:
        """The desired shares; those of another choice of groups do not apply."""
        given = self.config.ranking.desired
        return given if self.has_desired else "pool"

    @property
    def has_desired(self) -> bool:
        """Whether the desired shares that the config has are those of these groups."""
        given = self.config.ranking.desired
        if not isinstance(given, Mapping):
            return True
        sizes = zip(self.groups.names, self.groups.counts.tolist(), strict=True)
        return {name for name, n in sizes if n} <= {*given} <= {*self.groups.names}

    @property
    def opposed(self) -> tuple[str | None, str | None] | None:
        """The groups of Bias@K as the metric takes them; None where more than two have no names."""
        options = self.config.ranking
        given = options.first, options.second
        if given != (None, None) and {*given} <= {*self.groups.names}:
            return given
        return (None, None) if len(self.groups.names) == 2 else None


def designs(config: RankingAudit, data: RetrievalData) -> Iterator[Design]:
    """Yield every model with every choice of groups; intersections with their marginals."""
    for model in data.models:
        seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        for attributes in config.data.groups:
            for compared, within in _choices(attributes, marginals=config.ranking.marginals):
                if (compared, within) not in seen:
                    seen.add((compared, within))
                    yield Design(model, compared, data, config, within)


def _choices(
    attributes: tuple[str, ...], *, marginals: bool
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    yield attributes, ()
    if marginals and len(attributes) > 1:
        for one in attributes:
            yield (one,), tuple(name for name in attributes if name != one)
