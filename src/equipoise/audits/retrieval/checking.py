"""What is refused before anything is ranked: groups and sets without a pair, names of no group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.audits.group_sizes import check_two
from equipoise.audits.retrieval.compared import check_sets
from equipoise.audits.retrieval.designs import Design, designs
from equipoise.core.errors import InputError
from equipoise.data.problems import listed
from equipoise.metrics.retrieval.tops import given_shares

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit
    from equipoise.audits.retrieval.loading import RetrievalData


_SHOWN = 8


def checked(config: RankingAudit, data: RetrievalData) -> list[Design]:
    """Return every design; refuse those that cannot give a number.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare, or no set holds two.
    InputError
        When `ranking.k` or `ranking.prefixes` is beyond every pool, or `ranking.desired`,
        `ranking.first` or `ranking.second` fits no choice of groups.
    """
    every = [*designs(config, data)]
    for design in every:
        which = f"groups {design.name}: fewer than two"
        check_two(design.groups, which, "images that can be ranked", file=data.images.name)
        if not design.within:
            check_sets(design, file=data.images.name)
    _check_pools(every, config)
    _check_desired(every, config)
    _check_opposed(every, config)
    return every


def not_applied(every: Sequence[Design], config: RankingAudit) -> Iterator[str]:
    """Yield which choices of groups the desired shares and Bias@K are not for."""
    others = [one for one in every if not one.has_desired]
    if others:
        yield (
            f"ranking.desired gives shares to other groups than those of {_listed(others)}: there "
            "the pool's shares are the target."
        )
    given = config.ranking.desired
    unwanted = [] if isinstance(given, str) else [name for name, one in given.items() if not one]
    if unwanted:
        yield (
            f"ranking.desired gives {', '.join(unwanted)} a share of 0: skews leave such a group "
            "out, and NDKL is infinite as soon as one of its images is among the first."
        )
    others = [one for one in every if one.opposed is None]
    if not others or "bias_at_k" not in config.ranking.measures:
        return
    if len(others) == len(every):
        yield (
            f"Bias@K compares two groups, and there are more of {_listed(others)}: it is not "
            "measured where ranking.first and ranking.second name none."
        )
    else:
        yield (
            f"ranking.first and ranking.second are no groups of {_listed(others)}, which has more "
            "than two: no Bias@K there."
        )


def _listed(every: Iterable[Design]) -> str:
    return ", ".join(dict.fromkeys(one.name for one in every))


def _check_desired(every: Sequence[Design], config: RankingAudit) -> None:
    """Refuse desired shares that fit no choice of groups: they would apply nowhere."""
    given = config.ranking.desired
    if not isinstance(given, Mapping):
        return
    fits = [one for one in every if one.has_desired]
    try:
        given_shares(given, (fits or [_nearest(every, given)])[0].groups)
    except InputError as error:
        raise InputError(f"ranking.{error}{_choices(every)}") from None


def _check_opposed(every: Sequence[Design], config: RankingAudit) -> None:
    """Refuse groups of Bias@K that no choice of groups has, and more than two without names."""
    options = config.ranking
    named = {"ranking.first": options.first, "ranking.second": options.second}
    given = [one for one in named.values() if one is not None]
    if not given:
        # What an audit measures unless told otherwise is left out where it does not apply.
        default = options.measures == type(options).model_fields["measures"].default
        if (
            "bias_at_k" in options.measures
            and not default
            and all(one.opposed is None for one in every)
        ):
            raise InputError(
                "ranking.measures: bias_at_k compares two groups; expected two of "
                f"{', '.join(every[0].groups.names)} as ranking.first and ranking.second"
                f"{_choices(every)}"
            )
        return
    groups = _nearest(every, given).groups.names
    for key, name in named.items():
        if name is None or name not in groups:
            found = "required, and missing" if name is None else f"{name!r} is no group"
            raise InputError(
                f"{key}: {found}; expected one of {', '.join(groups)}{_choices(every)}"
            )
    if options.first == options.second:
        raise InputError(
            f"ranking.first and ranking.second are both {options.first!r}; expected two different "
            f"groups of {', '.join(groups)}"
        )


def _nearest(every: Sequence[Design], names: Iterable[str]) -> Design:
    """Return the first of the designs that have most of some groups."""
    wanted = {*names}
    return max(every, key=lambda one: len(wanted & {*one.groups.names}))


def _choices(every: Sequence[Design]) -> str:
    """Name the groups of every choice where there are several."""
    found = {one.name: one.groups.names for one in every}
    if len(found) == 1:
        return ""
    told = (f"of {name}: {listed(groups, _SHOWN)}" for name, groups in found.items())
    return f". Groups {'; '.join(told)}"


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
