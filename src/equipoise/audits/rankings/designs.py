"""What an audit of rankings compares: one model's scores or rankings, and one choice of groups."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.audits import group_sizes
from equipoise.audits.config import group_name
from equipoise.audits.findings import Place
from equipoise.audits.rankings.config import EVERY, QueryAudit, RankingAudit
from equipoise.audits.rankings.hypotheses import Hypothesis
from equipoise.audits.rankings.scores import RankingData, RankingScores
from equipoise.core import DataError, Groups, InputError, Integers32, Objects, record
from equipoise.core.types import Json
from equipoise.data.problems import listed
from equipoise.metrics.rankings.cosines import CosineScores
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.pools import given_shares
from equipoise.metrics.rankings.similarity import normalized_similarity_mad
from equipoise.metrics.rankings.statistics import expected_max_skew

# Seconds for a permutation of a group's share in a prefix, all measures together, and for a design
# whatever its size: rough guides, from the examples.
_SECONDS_PER_SHARE, _SECONDS_PER_DESIGN = 3.5e-8, 0.5
# Scores that are held in memory, of all queries.
_CELLS = 1 << 25
# Groups that an error lists.
_LISTED = 8


@record
class ScoreDesign:
    """One model's scores, compared between one choice of groups.

    Attributes
    ----------
    model : str
    attributes : tuple of str
        Their intersections are the groups.
    data : RankingData
    config : QueryAudit
    within : tuple of str
        Attributes that are held fixed: each of their values is a pool of its own.
    done : str
        What is done with the images, for errors.
    """

    model: str
    attributes: tuple[str, ...]
    data: RankingData
    config: QueryAudit
    within: tuple[str, ...] = ()
    done: ClassVar[str] = "compared"

    @property
    def scored(self) -> RankingScores:
        """The model's scores."""
        return self.data.models[self.model]

    @property
    def name(self) -> str:
        """The name of the choice of groups."""
        return group_name(self.attributes)

    @property
    def version(self) -> str:
        """Which attributes are held fixed; "default" where none is."""
        return f"within {group_name(self.within)}" if self.within else "default"

    @property
    def place(self) -> str:
        """The design as notes name it."""
        where = f"{self.model}, {self.name}"
        return f"{where} ({self.version})" if self.within else where

    @cached_property
    def groups(self) -> Groups:
        """The groups of the images with scores."""
        section = self.config.data
        columns = {name: self.column(name) for name in self.attributes}
        units = None if section.unit is None else self.column(section.unit)
        (groups,) = group_sizes.groups_by(
            [self.attributes], columns, min_size=section.min_group_size, units=units
        )
        return groups

    @property
    def lacking(self) -> dict[str, int]:
        """Images in no group, by the attributes that they lack."""
        return group_sizes.lacking({name: self.codes(name) for name in self.attributes})

    @property
    def compared(self) -> list[str]:
        """The groups that are large enough to be compared."""
        return [*compress(self.groups.names, self.groups.usable)]

    def at(self, version: str | None = None) -> Place:
        """Return the place of the measurements, by default with the design's version."""
        config = self.config
        named = version or self.version
        within = group_name(self.within) if self.within else ""
        return Place(config.audit, self.model, self.name, named, config.resampling.level, within)

    def codes(self, name: str) -> Integers32:
        """Return the codes of a column of the images with scores; -1 where missing."""
        return self.data.images.coded[name].codes[self.scored.used]

    def column(self, name: str) -> Objects:
        """Return a column of the images with scores."""
        return self.data.images.columns[name][self.scored.used]

    def arguments(self) -> dict[str, Any]:
        """Return the scores, groups, queries and sets of the images, and the seed, for metrics.

        Cosines that fit in memory are all taken at once: several metrics read them.
        """
        data, scored = self.config.data, self.scored
        scores = scored.scores
        if isinstance(scores, CosineScores) and not data.subject and scores.cells <= _CELLS:
            scores = scores.table()
        # Queries that rank all images; scores of vectors bring their names.
        names = [*scored.queries] if isinstance(scores, np.ndarray) else None
        return {
            "scores": scores,
            "groups": self.groups,
            "queries": self.column(data.subject) if data.subject else names,
            "sets": self.column(data.sets) if data.sets else None,
            "units": self.column(data.unit) if data.unit else None,
            "rng": self.config.resampling.seed,
        }

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """The hypotheses about these groups."""
        return [
            hypothesis.among(self.groups)
            for hypothesis in self.data.hypotheses
            if hypothesis.applies(self.groups)
        ]

    def complete(self, *names: str | None) -> pl.DataFrame:
        """Return the codes of the images in a group that lack none of some columns; "": groups."""
        columns = {name: self.codes(name) for name in names if name}
        frame = pl.DataFrame({"": self.groups.large, **columns})
        return frame.filter(pl.all_horizontal(pl.all() >= 0))

    @property
    def exchanges(self) -> bool:
        """Whether a set holds images of several groups, `within` attributes held fixed."""
        data = self.config.data
        if data.sets is None:
            return True
        complete_rows = self.complete(data.sets, *self.within, data.subject)
        return complete_rows.n_unique() > complete_rows.drop("").n_unique()

    def check(self) -> None:
        """Refuse fewer than two groups, and sets that never hold two groups.

        Where attributes are held fixed, no set has to hold images of two groups.

        Raises
        ------
        DataError
            With the sizes of the groups, or the column of the sets; or with a hypothesis and a
            group that isn't there.
        """
        problem, needed_images = (
            f"groups {self.name}: fewer than two",
            f"images that can be {self.done}",
        )
        file = self.data.images.name
        group_sizes.check_two(self.groups, problem, needed_images, file=file)
        if not self.within and not self.exchanges:
            raise DataError(
                f"no set holds images of two groups of {self.name}",
                file=file,
                column=self.config.data.sets,
                expected="sets of images that differ in their groups only",
                fix="give the counterfactuals of one another the same value, name another column, "
                "or leave data.sets out",
            )
        for hypothesis in self.hypotheses:
            hypothesis.check(self.groups)


@record
class RankingDesign(ScoreDesign):
    """One model's rankings, compared between one choice of groups.

    Attributes
    ----------
    model, attributes, data, within
        See `ScoreDesign`.
    config : RankingAudit
    """

    config: RankingAudit
    done = "ranked"

    def version_at(self, k: int) -> str:
        """Return the version of findings at one K."""
        if len(self.ks) == 1:
            return self.version
        return f"{self.version}, K = {k}" if self.within else f"K = {k}"

    def metrics_at(self, k: int) -> dict[str, RankingMetric]:
        """Return the metrics of one K; those of prefixes are the same at every K."""
        metrics = self.config.metrics.rankings.items()
        return {n: metric for n, metric in metrics if k == self.ks[0] or not metric.of_prefixes}

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        pools, groups = len(self.scored.queries), len(self.groups.names)
        measures = sum(len(self.metrics_at(k)) for k in self.ks)
        measures += self.config.metrics.has(normalized_similarity_mad)
        n_measured = measures * (pools + 1)
        return n_measured + 2 * groups + 2

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        shares = len(self.scored.queries) * self.prefixes * len(self.groups)
        return _SECONDS_PER_DESIGN + draws * shares * _SECONDS_PER_SHARE

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the metrics; each fixed attribute value is a pool."""
        within = {name: self.column(name) for name in self.within}
        return {**super().arguments(), "within": within or None}

    @cached_property
    def pooled(self) -> pl.DataFrame:
        """The number of images with a group, `n`, and of groups of each pool, smallest first."""
        complete_rows = self.complete(*self.within, self.config.data.subject).with_columns(_=0)
        pools = complete_rows.group_by(pl.exclude(""))
        return pools.agg(pl.len().alias("n"), pl.col("").n_unique().alias("groups")).sort("n")

    @property
    def pool_sizes(self) -> list[int]:
        """Images with a group in each pool, smallest first."""
        return self.pooled["n"].to_list()

    @property
    def smallest_pool(self) -> int:
        """Images in the smallest pool that has more than K; 0 where none has."""
        return next((n for n in self.pool_sizes if n > max(self.ks)), 0)

    @cached_property
    def ks(self) -> tuple[int, ...]:
        """How many of the best images count; the number of groups unless the config says."""
        by_groups = self.config.ranking.k or {}
        name = EVERY if self.within or EVERY in by_groups else self.name
        return by_groups.get(name, (max(2, len(self.compared)),))

    @cached_property
    def prefixes(self) -> int:
        """The last prefix of NDKL and of the curves."""
        if self.config.ranking.prefixes is not None:
            return self.config.ranking.prefixes
        # Where no pool has more than K images nothing is estimable, and nothing need be long.
        return min(self.ks[0] ** 2, self.smallest_pool - 1 if self.smallest_pool else self.ks[0])

    @property
    def desired(self) -> Any:
        """Desired shares of these groups, or None if the config has other groups."""
        return self.config.ranking.desired if self.has_desired else "pool"

    @property
    def has_desired(self) -> bool:
        """Whether the config's desired shares name exactly these groups."""
        shares = self.config.ranking.desired
        if not isinstance(shares, Mapping):
            return True
        sizes = zip(self.groups.names, self.groups.counts.tolist(), strict=True)
        named = {*map(self.groups.display_name, map(str, shares))}
        return {name for name, n in sizes if n} <= named <= {*self.groups.names}

    @property
    def opposed(self) -> tuple[str | None, str | None] | None:
        """The opposed groups, or None if the config names none of more than two."""
        named = self.config.ranking.first, self.config.ranking.second
        names = {self.groups.display_name(name) for name in named if name is not None}
        if len(names) == 2 and names <= {*self.groups.names}:
            return named
        return (None, None) if len(self.compared) == 2 else None

    @property
    def planned(self) -> dict[str, Json]:
        """Return the design's row in a plan, with the MaxSkew that random order gives."""
        groups, pool, k = int((self.groups.counts > 0).sum()), self.smallest_pool, self.ks[0]
        n_per_group = pool // groups if groups else 0
        feasible = groups > 1 and n_per_group > 0 and k < n_per_group * groups
        return {
            "model": self.model,
            "groups": self.name,
            "version": self.version,
            "number_of_groups": groups,
            "smallest_pool": pool,
            "k": [*self.ks],
            "prefixes": self.prefixes,
            "chance_max_skew": expected_max_skew([n_per_group] * groups, k) if feasible else None,
        }


def check_designs(designs: Sequence[RankingDesign], config: RankingAudit) -> None:
    """Refuse designs that can't give a number.

    Raises
    ------
    InputError
        When `ranking.k` or `ranking.prefixes` is beyond every pool, or `ranking.desired`,
        `ranking.first` or `ranking.second` fits no choice of groups.
    """
    options = config.ranking
    choices = "; ".join(
        f"{name}: {listed(names, _LISTED)}"
        for name, names in {design.name: design.groups.names for design in designs}.items()
    )
    largest = max((n for design in designs for n in design.pool_sizes), default=0)
    ks = chain.from_iterable((options.k or {}).values())
    if max(*ks, options.prefixes or 0, 0) > largest:
        raise InputError(
            f"ranking.k and ranking.prefixes: the largest pool has {largest} images with a group; "
            "expected smaller numbers"
        )
    if isinstance(options.desired, Mapping):
        fits = [design for design in designs if design.has_desired]
        try:
            given_shares(options.desired, (fits or designs)[0].groups)
        except InputError as error:
            raise InputError(f"ranking.{error}. Groups: {choices}") from None
    named = options.first, options.second
    opposing = [name for name, metric in config.metrics.rankings.items() if metric.opposes]
    asked = not {*opposing}.isdisjoint(config.metrics.named)
    requires_two_groups = named != (None, None) or asked
    opposed = {design.opposed for design in designs}
    if requires_two_groups and (
        opposed == {None} or (named != (None, None) and named not in opposed)
    ):
        raise InputError(
            "ranking.first and ranking.second: expected two different groups for "
            f"{', '.join(opposing) or 'metrics of two groups'}. Groups: {choices}"
        )
