"""What is compared: one model and one choice of groups, and how rankings split into pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.audits import group_sizes
from equipoise.audits.config import group_name
from equipoise.core.arrays import Integers32, Objects
from equipoise.core.errors import DataError, InputError
from equipoise.core.groups import Groups
from equipoise.data.problems import listed
from equipoise.metrics.rankings.pools import given_shares
from equipoise.metrics.rankings.statistics import expected_max_skew

if TYPE_CHECKING:
    from equipoise.audits.engines.rankings.config import QueryAudit, RankingAudit
    from equipoise.audits.engines.rankings.scores import RankingData, Scored


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

    def codes(self, name: str) -> Integers32:
        """Return the codes of a column of the images with scores; -1 where missing."""
        return self.data.images.coded[name].codes[self.scored.used]

    def column(self, name: str) -> Objects:
        """Return a column of the images with scores."""
        return self.data.images.columns[name][self.scored.used]

    @property
    def queries(self) -> dict[str, Any]:
        """The queries and sets of the images, as the metrics take them."""
        data, scored = self.config.data, self.scored
        # Queries that rank all images; scores of vectors bring their names.
        names = [*scored.queries] if isinstance(scored.scores, np.ndarray) else None
        return {
            "queries": self.column(data.subject) if data.subject else names,
            "sets": self.column(data.sets) if data.sets else None,
        }

    def complete(self, *names: str | None) -> pl.DataFrame:
        """Return the codes of the images in a group that lack none of some columns; "": groups."""
        columns = {name: self.codes(name) for name in names if name}
        frame = pl.DataFrame({"": self.groups.codes, **columns})
        return frame.filter(pl.all_horizontal(pl.all() >= 0))

    def exchanges(self, within: Sequence[str] = ()) -> bool:
        """Return whether a set holds images of several groups, `within` attributes held fixed."""
        data = self.config.data
        if data.sets is None:
            return True
        kept = self.complete(data.sets, *within, data.subject)
        return kept.n_unique() > kept.drop("").n_unique()

    def check(self, what: str, *, exchanged: bool = True) -> None:
        """Refuse fewer than two groups, and sets in none of which two stand.

        Parameters
        ----------
        what : str
            What is compared: "images that can be ranked".
        exchanged : bool
            Whether sets have to hold images of two groups.

        Raises
        ------
        DataError
            With the sizes of the groups, or the column of the sets.
        """
        file = self.data.images.name
        group_sizes.check_two(self.groups, f"groups {self.name}: fewer than two", what, file=file)
        if exchanged and not self.exchanges():
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
        return {**self.queries, "within": {name: self.column(name) for name in self.within} or None}

    @cached_property
    def pooled(self) -> pl.DataFrame:
        """The number of images with a group, `n`, and of groups of each pool, smallest first."""
        kept = self.complete(*self.within, self.config.data.subject).with_columns(_=0)
        pools = kept.group_by(pl.exclude(""))
        return pools.agg(pl.len().alias("n"), pl.col("").n_unique().alias("groups")).sort("n")

    @property
    def pool_sizes(self) -> list[int]:
        """Images with a group in each pool, smallest first."""
        return self.pooled["n"].to_list()

    @property
    def has_curves(self) -> bool:
        """Whether a pool of several groups has more images than the last prefix."""
        several = self.pooled.filter(pl.col("groups") > 1)["n"]
        return bool((several > self.prefixes).any())

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
        if len({*named}) == 2 and {*named} <= {*self.groups.names}:
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
        design.check("images that can be ranked", exchanged=not design.within)
    options = config.ranking
    choices = "; ".join(
        f"{name}: {listed(names, _LISTED)}"
        for name, names in {each.name: each.groups.names for each in designs}.items()
    )
    largest = max((n for design in designs for n in design.pool_sizes), default=0)
    if max(options.k or (0,)) > largest or (options.prefixes or 0) > largest:
        raise InputError(
            f"ranking.k and ranking.prefixes: the largest pool has {largest} images with a group; "
            "expected smaller numbers"
        )
    fits = [design for design in designs if design.has_desired]
    try:
        if isinstance(options.desired, Mapping):
            given_shares(options.desired, (fits or designs)[0].groups)
    except InputError as error:
        raise InputError(f"ranking.{error}. Groups: {choices}") from None
    named = options.first, options.second
    default = options.measures == type(options).model_fields["measures"].default
    wanted = named != (None, None) or ("bias_at_k" in options.measures and not default)
    opposed = {design.opposed for design in designs}
    if wanted and (opposed == {None} or (named != (None, None) and named not in opposed)):
        raise InputError(
            "ranking.first and ranking.second: expected two different groups for bias_at_k. "
            f"Groups: {choices}"
        )


def design_notes(designs: Sequence[RankingDesign], config: RankingAudit) -> Iterator[str]:
    """Yield what doesn't apply to some groups, and where pools are too small."""
    options = config.ranking
    others = dict.fromkeys(design.name for design in designs if not design.has_desired)
    if others:
        yield f"ranking.desired has no shares of {', '.join(others)}: the pool's are the target."
    shares = options.desired
    none = [] if isinstance(shares, str) else [name for name, share in shares.items() if not share]
    if none:
        yield (
            f"ranking.desired gives {', '.join(none)} a share of 0: skews leave such a group "
            "out, and NDKL is infinite as soon as one of its images is among the first."
        )
    others = dict.fromkeys(design.name for design in designs if design.opposed is None)
    if others and "bias_at_k" in options.measures:
        yield (
            f"Bias@K compares two groups. {', '.join(others)} has more, and ranking.first and "
            "ranking.second name none of them: no Bias@K there."
        )
    for design in designs:
        wanted, sizes = design.ks[0] ** 2, design.pool_sizes
        if options.prefixes is None and design.smallest_pool and design.prefixes < wanted:
            yield (
                f"{design.place}: the smallest pool has {design.smallest_pool} images, so NDKL and "
                f"the curves run over {design.prefixes} prefixes, not {wanted}."
            )
        for what, most in (
            *(("K", k) for k in design.ks),
            ("prefixes", (options.prefixes or 1) - 1),
        ):
            if few := sum(n <= most for n in sizes):
                yield (
                    f"{design.place}: {few} of {len(sizes)} pools have too few images with a group "
                    f"for the {what} ({most}): not estimable there, and counted."
                )
        if not design.exchanges(design.within):
            yield (
                f"{design.place}: no set holds images of two groups, so none are exchanged within "
                "sets."
            )
