"""What is refused before anything is ranked: groups and sets without a pair, K beyond pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.audits.group_sizes import check_two
from equipoise.audits.retrieval.compared import check_sets
from equipoise.audits.retrieval.designs import Design, designs
from equipoise.core.errors import InputError

if TYPE_CHECKING:
    from equipoise.audits.retrieval.config import RankingAudit
    from equipoise.audits.retrieval.loading import RetrievalData


def checked(config: RankingAudit, data: RetrievalData) -> list[Design]:
    """Return every design; refuse those that cannot give a number.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare, or no set holds two.
    InputError
        When `ranking.k` or `ranking.prefixes` is beyond every pool.
    """
    every = [*designs(config, data)]
    for design in every:
        which = f"groups {design.name}: fewer than two"
        check_two(design.groups, which, "images that can be ranked", file=data.images.name)
        if not design.within:
            check_sets(design, file=data.images.name)
    _check_pools(every, config)
    return every


def _check_pools(every: Sequence[Design], config: RankingAudit) -> None:
    """Refuse numbers that no pool has images enough for."""
    largest = max((n for design in every for n in design.pool_sizes), default=0)
    has = f"the largest pool has {largest} images with a group. Expected:"
    for k in config.ranking.k or ():
        if k > largest:
            raise InputError(f"ranking.k: {k}; {has} fewer, so that the first are some of a pool")
    prefixes = config.ranking.prefixes
    if prefixes is not None and prefixes > largest:
        raise InputError(f"ranking.prefixes: {prefixes}; {has} at most that many")
