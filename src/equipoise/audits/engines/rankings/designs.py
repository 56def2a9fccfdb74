"""What is compared: one model and one choice of groups, and how rankings split into pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits import group_sizes
from equipoise.audits.config import group_name
from equipoise.core.errors import DataError, InputError
from equipoise.core.groups import Groups
from equipoise.data.problems import listed
from equipoise.metrics.rankings.pools import given_shares
from equipoise.metrics.rankings.statistics import expected_max_skew

if TYPE_CHECKING:
    from equipoise.audits.engines.rankings.config import QueryAudit, RankingAudit
    from equipoise.audits.engines.rankings.scores import RankingData, Scored

Objects = npt.NDArray[np.object_]

# Seconds for a permutation of one item among the first, all measures together, and for a design
# whatever its size: rough guides, from the example.
_SECONDS_PER_ITEM, _SECONDS_PER_DESIGN = 1e-8, 0.4
# Groups that an error lists.
_LISTED = 8


@dataclass(frozen=True, eq=False)
class ScoreDesign:
    """One model's scores, compared between one choice of groups.

    Attributes
    ----------
    model : str
    attributes : tuple of str
        Their intersections are the groups.
    data : RankingData
    config : QueryAudit
    """

    model: str
    attributes: tuple[str, ...]
    data: RankingData
    config: QueryAudit

    @property
    def scored(self) -> Scored:
        """The model's scores."""
        return self.data.models[self.model]

    @property
    def name(self) -> str:
        """The name of the choice of groups."""
        return group_name(self.attributes)

    @cached_property
    def groups(self) -> Groups:
        """The groups of the images with scores."""
        columns = {name: self.column(name) for name in self.attributes}
        return Groups.of(columns, min_size=self.config.data.min_group_size)

    @property
    def lacking(self) -> dict[str, int]:
        """Images in no group, by the attributes that they lack."""
        return group_sizes.lacking({name: self.codes(name) for name in self.attributes})

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """Return the codes of a column of the images with scores; -1 where missing."""
        return self.data.images.coded[name].codes[self.scored.used]

    def column(self, name: str) -> Objects:
        """Return a column of the images with scores."""
        return self.data.images.columns[name][self.scored.used]

    def exchanges(self, within: Sequence[str] = ()) -> bool:
        """Return whether a set holds images of several groups, `within` attributes held fixed."""
        data = self.config.data
        if data.sets is None:
            return True
        columns = [data.sets, *within, *([data.subject] if data.subject else [])]
        codes = [self.codes(name) for name in columns]
        kept = np.all([self.groups.codes >= 0, *(each >= 0 for each in codes)], axis=0)
        place = np.zeros(int(kept.sum()), dtype=np.int64)
        for each in codes:
            _, place = np.unique(
                place * (int(each.max(initial=0)) + 1) + each[kept], return_inverse=True
            )
        pairs = np.unique(place * len(self.groups) + self.groups.codes[kept])
        return bool((np.diff(pairs // len(self.groups)) == 0).any())

    def check(self, what: str) -> None:
        """Refuse fewer than two groups, and sets in none of which two stand.

        Parameters
        ----------
        what : str
            What is compared: "images that can be ranked".

        Raises
        ------
        DataError
            With the sizes of the groups, or the column of the sets.
        """
        file = self.data.images.name
        group_sizes.check_two(self.groups, f"groups {self.name}: fewer than two", what, file=file)
        if not self.exchanges():
            raise DataError(
                f"no set holds images of two groups of {self.name}",
                file=file,
                column=self.config.data.sets,
                expected="sets of images that differ in their groups only",
                fix="give the counterfactuals of one another the same value, name another column, "
                "or leave data.sets out",
            )


@dataclass(frozen=True, eq=False)
class RankingDesign(ScoreDesign):
    """One model's rankings, compared between one choice of groups.

    Attributes
    ----------
    model, attributes, data
        See `ScoreDesign`.
    config : RankingAudit
    within : tuple of str
        Attributes that are held fixed: each of their values is a pool of its own.
    """

    config: RankingAudit
    within: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Which attributes are held fixed; "default" where none is."""
        return f"within {group_name(self.within)}" if self.within else "default"

    @property
    def place(self) -> str:
        """The design as notes name it."""
        where = f"{self.model}, {self.name}"
        return f"{where} ({self.version})" if self.within else where

    def version_at(self, k: int) -> str:
        """Return the version of findings at one K."""
        if len(self.ks) == 1:
            return self.version
        return f"{self.version}, K = {k}" if self.within else f"K = {k}"

    @property
    def tests(self) -> int:
        """About how many tests the design makes."""
        options, pools = self.config.ranking, len(self.scored.queries)
        measures = len(options.measures) + options.similarity
        return len(self.ks) * measures * (pools + 1) + len(self.groups.names)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        items = len(self.scored.queries) * self.prefixes
        return _SECONDS_PER_DESIGN + draws * items * len(self.ks) * _SECONDS_PER_ITEM

    @cached_property
    def pools(self) -> dict[str, Any]:
        """How rankings split into pools: the keywords of the metrics."""
        data, scored = self.config.data, self.scored
        # Queries that rank all images; scores of vectors bring their names.
        names = [*scored.queries] if isinstance(scored.scores, np.ndarray) else None
        return {
            "queries": self.column(data.subject) if data.subject else names,
            "within": {name: self.column(name) for name in self.within} or None,
            "sets": self.column(data.sets) if data.sets else None,
        }

    @cached_property
    def pooled(self) -> list[list[int]]:
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
    def pool_sizes(self) -> list[int]:
        """Images with a group in each pool, smallest first."""
        return sorted(map(len, self.pooled))

    @property
    def has_curves(self) -> bool:
        """Whether a pool of several groups has more images than the last prefix."""
        several = (len(groups) for groups in self.pooled if len({*groups}) > 1)
        return max(several, default=0) > self.prefixes

    @property
    def smallest_pool(self) -> int:
        """Images in the smallest pool that has more than K; 0 where none has."""
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
        """The desired shares; those of another choice of groups don't apply."""
        return self.config.ranking.desired if self.has_desired else "pool"

    @property
    def has_desired(self) -> bool:
        """Whether the desired shares of the config are those of these groups."""
        shares = self.config.ranking.desired
        if not isinstance(shares, Mapping):
            return True
        sizes = zip(self.groups.names, self.groups.counts.tolist(), strict=True)
        return {name for name, n in sizes if n} <= {*shares} <= {*self.groups.names}

    @property
    def opposed(self) -> tuple[str | None, str | None] | None:
        """The groups of Bias@K as the metric takes them; None where more than two have no names."""
        named = self.config.ranking.first, self.config.ranking.second
        if named != (None, None) and {*named} <= {*self.groups.names}:
            return named
        return (None, None) if len(self.groups.names) == 2 else None

    @property
    def planned(self) -> dict[str, Any]:
        """Return the design's row in a plan, with the MaxSkew that random order gives."""
        groups, pool, k = int((self.groups.counts > 0).sum()), self.smallest_pool, self.ks[0]
        each = pool // groups if groups else 0
        known = groups > 1 and each > 0 and k < each * groups
        return {
            "model": self.model,
            "groups": self.name,
            "version": self.version,
            "number_of_groups": groups,
            "smallest_pool": pool,
            "k": [*self.ks],
            "prefixes": self.prefixes,
            "chance_max_skew": expected_max_skew([each] * groups, k) if known else None,
        }


def ranking_designs(config: RankingAudit, data: RankingData) -> list[RankingDesign]:
    """Return every model with every choice of groups; intersections with their marginals."""
    choices: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
    for attributes in config.data.groups:
        choices[attributes, ()] = None
        for name in attributes if config.ranking.marginals and len(attributes) > 1 else ():
            choices[(name,), tuple(other for other in attributes if other != name)] = None
    return [
        RankingDesign(model, attributes, data, config, within)
        for model in data.models
        for attributes, within in choices
    ]


def check_designs(designs: Sequence[RankingDesign], config: RankingAudit) -> None:
    """Refuse designs that can't give a number.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare, or no set holds two.
    InputError
        When `ranking.k` or `ranking.prefixes` is beyond every pool, or `ranking.desired`,
        `ranking.first` or `ranking.second` fits no choice of groups.
    """
    for design in designs:
        if design.within:
            group_sizes.check_two(
                design.groups, f"groups {design.name}: fewer than two", "images that can be ranked",
                file=design.data.images.name,
            )  # fmt: skip
        else:
            design.check("images that can be ranked")
    _check_pools(designs, config)
    _check_desired(designs, config)
    _check_opposed(designs, config)


def _check_pools(designs: Sequence[RankingDesign], config: RankingAudit) -> None:
    """Refuse numbers that no pool has images enough for."""
    largest = max((n for design in designs for n in design.pool_sizes), default=0)
    has = f"the largest pool has {largest} images with a group. Expected:"
    for k in config.ranking.k or ():
        if k > largest:
            raise InputError(f"ranking.k: {k}; {has} fewer, so that the first are some of a pool")
    prefixes = config.ranking.prefixes
    if prefixes is not None and prefixes > largest:
        raise InputError(f"ranking.prefixes: {prefixes}; {has} at most that many")


def _check_desired(designs: Sequence[RankingDesign], config: RankingAudit) -> None:
    """Refuse desired shares that fit no choice of groups: they would apply nowhere."""
    shares = config.ranking.desired
    if not isinstance(shares, Mapping):
        return
    fits = [design for design in designs if design.has_desired]
    try:
        given_shares(shares, (fits or [_nearest(designs, shares)])[0].groups)
    except InputError as error:
        raise InputError(f"ranking.{error}{_choices(designs)}") from None


def _check_opposed(designs: Sequence[RankingDesign], config: RankingAudit) -> None:
    """Refuse groups of Bias@K that no choice of groups has, and more than two without names."""
    options = config.ranking
    named = {"ranking.first": options.first, "ranking.second": options.second}
    names = [name for name in named.values() if name is not None]
    if not names:
        # A default measure is left out where it doesn't apply.
        default = options.measures == type(options).model_fields["measures"].default
        wanted = "bias_at_k" in options.measures and not default
        if wanted and all(design.opposed is None for design in designs):
            raise InputError(
                "ranking.measures: bias_at_k compares two groups; expected two of "
                f"{', '.join(designs[0].groups.names)} as ranking.first and ranking.second"
                f"{_choices(designs)}"
            )
        return
    groups = _nearest(designs, names).groups.names
    for key, name in named.items():
        if name is None or name not in groups:
            problem = "required, and missing" if name is None else f"{name!r} is no group"
            raise InputError(
                f"{key}: {problem}; expected one of {', '.join(groups)}{_choices(designs)}"
            )
    if options.first == options.second:
        raise InputError(
            f"ranking.first and ranking.second are both {options.first!r}; expected two different "
            f"groups of {', '.join(groups)}"
        )


def _nearest(designs: Sequence[RankingDesign], names: Iterable[str]) -> RankingDesign:
    """Return the first of the designs that have most of some groups."""
    wanted = {*names}
    return max(designs, key=lambda design: len(wanted & {*design.groups.names}))


def _choices(designs: Sequence[RankingDesign]) -> str:
    """Name the groups of every choice where there are several."""
    names = {design.name: design.groups.names for design in designs}
    if len(names) == 1:
        return ""
    texts = (f"of {name}: {listed(groups, _LISTED)}" for name, groups in names.items())
    return f". Groups {'; '.join(texts)}"


def design_notes(designs: Sequence[RankingDesign], config: RankingAudit) -> Iterator[str]:
    """Yield what doesn't apply to some groups, and where pools are too small."""
    yield from _desired_notes(designs, config)
    yield from _bias_notes(designs, config)
    for design in designs:
        wanted, pool = design.ks[0] ** 2, design.smallest_pool
        if config.ranking.prefixes is None and pool and design.prefixes < wanted:
            yield (
                f"{design.place}: the smallest pool has {pool} images, so NDKL and the curves run "
                f"over {design.prefixes} prefixes, not {wanted}."
            )
        yield from _small_pools(design, config)
        if not design.exchanges(design.within):
            yield (
                f"{design.place}: no set holds images of two groups, so none are exchanged within "
                "sets."
            )


def _desired_notes(designs: Sequence[RankingDesign], config: RankingAudit) -> Iterator[str]:
    others = [design for design in designs if not design.has_desired]
    if others:
        yield (
            f"ranking.desired gives shares to other groups than those of {_names(others)}: there "
            "the pool's shares are the target."
        )
    shares = config.ranking.desired
    none = [] if isinstance(shares, str) else [name for name, share in shares.items() if not share]
    if none:
        yield (
            f"ranking.desired gives {', '.join(none)} a share of 0: skews leave such a group "
            "out, and NDKL is infinite as soon as one of its images is among the first."
        )


def _bias_notes(designs: Sequence[RankingDesign], config: RankingAudit) -> Iterator[str]:
    others = [design for design in designs if design.opposed is None]
    if not others or "bias_at_k" not in config.ranking.measures:
        return
    if len(others) == len(designs):
        yield (
            f"Bias@K compares two groups, and there are more of {_names(others)}: it is not "
            "measured where ranking.first and ranking.second name none."
        )
    else:
        yield (
            f"ranking.first and ranking.second are no groups of {_names(others)}, which has more "
            "than two: no Bias@K there."
        )


def _names(designs: Iterable[RankingDesign]) -> str:
    return ", ".join(dict.fromkeys(design.name for design in designs))


def _small_pools(design: RankingDesign, config: RankingAudit) -> Iterator[str]:
    """Yield how many pools are too small for K and the prefixes."""
    sizes = design.pool_sizes
    for k in design.ks:
        few = sum(n <= k for n in sizes)
        if few:
            what = f"ranking.k, {k}" if config.ranking.k else f"groups, K = {k}"
            yield (
                f"{design.place}: {few} of {len(sizes)} pools have no more images with a group "
                f"than {what}: not estimable there, and counted."
            )
    prefixes = config.ranking.prefixes or 0
    few = sum(n < prefixes for n in sizes)
    if few:
        yield (
            f"{design.place}: {few} of {len(sizes)} pools have fewer images with a group than "
            f"ranking.prefixes, {prefixes}: NDKL is not estimable there, and counted."
        )
