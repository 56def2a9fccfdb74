"""The base of audits of rankings: groups, designs, measures, notes and plan."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Design, Measured, runs_models
from equipoise.audits.columns import placed, tables_of
from equipoise.audits.config import group_name, resampling_of
from equipoise.audits.engines.rankings.config import (
    QueriesConfig,
    QueryAudit,
    RankingAudit,
    openings,
)
from equipoise.audits.engines.rankings.preferences import HYPOTHESES, Hypothesis, with_preferences
from equipoise.audits.engines.rankings.scores import RankingData, Scored, load_scores, read_items
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.outputs import Models
from equipoise.core import (
    ConfigError,
    DataError,
    Estimate,
    Family,
    Groups,
    InputError,
    Integers32,
    NullHypothesis,
    Objects,
    Variant,
    record,
)
from equipoise.core.types import Json
from equipoise.data import Items
from equipoise.data.problems import listed
from equipoise.metrics.rankings.cosines import CosineScores
from equipoise.metrics.rankings.measures import (
    query_distribution,
    retrieval_curves,
    retrieval_measures,
)
from equipoise.metrics.rankings.pools import given_shares
from equipoise.metrics.rankings.preference import systematic_preference
from equipoise.metrics.rankings.statistics import expected_max_skew
from equipoise.metrics.spec import is_main
from equipoise.metrics.values.similarity import normalized_similarity_mad
from equipoise.metrics.values.subjects import FEW_SUBJECTS
from equipoise.stats import Resampling

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
    def scored(self) -> Scored:
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

    @cached_property
    def groups(self) -> Groups:
        """The groups of the images with scores."""
        columns = {name: self.column(name) for name in self.attributes}
        return Groups.of(columns, min_size=self.config.data.min_group_size)

    @property
    def lacking(self) -> dict[str, int]:
        """Images in no group, by the attributes that they lack."""
        return group_sizes.lacking({name: self.codes(name) for name in self.attributes})

    @property
    def compared(self) -> list[str]:
        """The groups that are large enough to be compared."""
        return [*compress(self.groups.names, self.groups.usable)]

    def at(self, version: str | None = None) -> Place:
        """Return where numbers are measured, of the design's own version unless given."""
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
        return [each for each in self.data.hypotheses if each.applies(self.groups)]

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
        kept = self.complete(data.sets, *self.within, data.subject)
        return kept.n_unique() > kept.drop("").n_unique()

    def check(self) -> None:
        """Refuse fewer than two groups, and sets in none of which two stand.

        Where attributes are held fixed, no set has to hold images of two groups.

        Raises
        ------
        DataError
            With the sizes of the groups, or the column of the sets; or with a hypothesis and a
            group that isn't there.
        """
        which, what = f"groups {self.name}: fewer than two", f"images that can be {self.done}"
        file = self.data.images.name
        group_sizes.check_two(self.groups, which, what, file=file)
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
        at_each_k = [name for name in options.measures if name != "ndkl"]
        measures = len(self.ks) * len(at_each_k) + ("ndkl" in options.measures)
        groups = len(self.groups.names)
        own = (measures + options.similarity) * (pools + 1)
        return own + 2 * groups + 2

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        shares = len(self.scored.queries) * self.prefixes * len(self.groups)
        return _SECONDS_PER_DESIGN + draws * shares * _SECONDS_PER_SHARE

    def arguments(self) -> dict[str, Any]:
        """Return what metrics take: each value of the attributes held fixed is a pool."""
        within = {name: self.column(name) for name in self.within}
        return {**super().arguments(), "within": within or None}

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
    def smallest_pool(self) -> int:
        """Images in the smallest pool that has more than K; 0 where none has."""
        return next((n for n in self.pool_sizes if n > max(self.ks)), 0)

    @cached_property
    def ks(self) -> tuple[int, ...]:
        """How many of the best images count; the number of groups unless the config says."""
        return self.config.ranking.k or (max(2, len(self.compared)),)

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
        """The groups of Bias@K; None where more than two are compared and none are named."""
        named = self.config.ranking.first, self.config.ranking.second
        if len({*named}) == 2 and {*named} <= {*self.groups.names}:
            return named
        return (None, None) if len(self.compared) == 2 else None

    @property
    def planned(self) -> dict[str, Json]:
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
        for name, names in {each.name: each.groups.names for each in designs}.items()
    )
    largest = max((n for design in designs for n in design.pool_sizes), default=0)
    if max(*(options.k or (0,)), options.prefixes or 0) > largest:
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
    default = options.measures == type(options).model_fields["measures"].default
    wanted = named != (None, None) or ("bias_at_k" in options.measures and not default)
    opposed = {design.opposed for design in designs}
    if wanted and (opposed == {None} or (named != (None, None) and named not in opposed)):
        raise InputError(
            "ranking.first and ranking.second: expected two different groups for bias_at_k. "
            f"Groups: {choices}"
        )


_VERSIONS = {
    Variant.POOL_ORDER: "null: pool order",
    Variant.UNIFORM_TARGET: "uniform target",
    Variant.POOL_TARGET: "pool's shares as target",
}
# Estimates whose distribution over queries no table holds.
_NO_SPREAD = ("skew_at_k", "normalized_similarity_mad")
_COLUMNS = {
    "query_distributions": "model groups version metric +queries +not_estimable #mean #sd #lowest "
    "#first_quartile #median #third_quartile #highest &lowest_queries &highest_queries",
    "hypotheses": HYPOTHESES,
}


def _estimates(
    design: RankingDesign, arguments: Mapping[str, Any], resampling: Resampling | None
) -> Iterator[tuple[str, Estimate]]:
    """Yield the version and the estimate of every measure at every K, and of similarities."""
    opposed, options = design.opposed, design.config.ranking
    measures = [name for name in options.measures if name != "bias_at_k" or opposed]
    first, second = opposed or (None, None)
    for k in design.ks:
        # NDKL is over the same prefixes at every K: one fact.
        own = [name for name in measures if name != "ndkl" or k == design.ks[0]]
        found = {} if not own else retrieval_measures(
            **arguments, k=k, measures=own, prefixes=design.prefixes,
            desired=design.desired, first=first, second=second, resampling=resampling,
        )  # fmt: skip
        for name, estimate in found.items():
            yield design.version if name == "ndkl" else design.version_at(k), estimate
    if options.similarity:
        spread = normalized_similarity_mad(**arguments, resampling=resampling)
        yield design.version, spread


def _several(estimate: Estimate) -> bool:
    own = [part for part in estimate.parts if is_main(part, estimate)]
    return len(own) > 1 and any(not math.isnan(part.value) for part in own)


def _findings(
    estimate: Estimate, place: Place, design: RankingDesign
) -> Iterator[UncorrectedFinding]:
    for finding in _of_estimate(estimate, place):
        why = "of two groups' shares one follows from the other: max_skew is tested"
        yield without_verdict(finding, why) if _repeats(finding, design) else finding


def _repeats(finding: UncorrectedFinding, design: RankingDesign) -> bool:
    """Return whether of two groups' shares one is tested already: the other follows from it."""
    compared, measured = design.compared, design.config.ranking.measures
    metric, subject = finding.finding.metric, finding.finding.subject
    if len(compared) != 2 or "max_skew" not in measured:
        return False
    if metric == "skew_at_k":
        return "bias_at_k" in measured or subject != compared[0]
    # The mean of Bias@K over queries has a sign, which that of MaxSkew@K has not.
    shares = ("min_skew", "retrieval_mad", "retrieval_entropy")
    return metric in shares or (metric == "bias_at_k" and bool(subject))


def _of_estimate(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the mean over queries, each query, and other targets and nulls beside."""
    if estimate.metric == "skew_at_k":
        # As a whole this is MaxSkew@K again; its own findings are the groups' mean skews.
        yield from _group_skews(estimate, place)
        return
    several = _several(estimate)
    first = next((part for part in estimate.parts if is_main(part, estimate)), None)
    yield tested(
        whole(
            estimate, place, Family.COMPOSITE,
            by_group=() if first is None or several else first.by_group,
            shows="" if first is None else first.shows,
        )
    )  # fmt: skip
    for finding in parts(estimate, place):
        main = is_main(finding.finding, estimate)
        if main and several:
            yield tested(finding)
        elif not main and not finding.finding.subject:
            yield beside(finding)


def _group_skews(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the mean skew of each group, and whether chance alone would make it as large.

    The mean of log shares lies below 0 where shares vary, so its own sign is no direction.
    """
    k, shares = estimate.params["k"], estimate.params["desired"]
    for each in parts(estimate, place):
        finding = each.finding
        if finding.metric != "group_skew":
            continue
        text, reason = "", finding.reason
        if math.isfinite(finding.excess) and finding.excess != 0:
            rarer = "rarer" if finding.excess < 0 else "more frequent"
            text = f"{finding.subject} is {rarer} among the first {k} than chance gives"
        if not isinstance(shares, str) and not shares[finding.subject] > 0:
            reason = "its desired share is 0, and no share can be held against nothing"
        finding = replace(finding, metric="skew_at_k", direction=text, reason=reason)
        yield tested(UncorrectedFinding(finding, "either"))


def tested(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Take the test from numbers that chance alone makes infinite."""
    finding = draft.finding
    if finding.metric == "ndkl" and (math.isinf(finding.value) or math.isinf(finding.chance)):
        why = "a group whose desired share is 0 is among the first, which alone makes NDKL infinite"
    elif math.isinf(finding.chance):
        why = "by chance alone a group is often absent among the first, whose skew is −∞"
    elif not math.isnan(finding.value) and math.isnan(finding.p_value):
        why = finding.reason or "there is nothing to exchange"
    else:
        return draft
    return without_verdict(draft, why)


def beside(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Describe the other target, or the other null, beside the measure."""
    finding = draft.finding
    name = _VERSIONS[finding.variant]
    pooled = finding.variant is Variant.POOL_ORDER
    described = replace(
        finding,
        null=NullHypothesis.POOL_ORDER if pooled else finding.null,
        version=name if finding.version == "default" else f"{finding.version}, {name}",
        family=Family.DESCRIPTIVE,
        reason=finding.reason or "stands beside the measure, whose own target is tested",
    )
    return replace(draft, finding=described)


# Images of a query that a person may look at, over all groups and in each.
_SHOWN = 100

ConfigT = TypeVar("ConfigT", bound=QueryAudit)
RankingT = TypeVar("RankingT", bound=RankingAudit)
DesignT = TypeVar("DesignT", bound=Design)


class ByQuery(Audit[ConfigT, RankingData, DesignT]):
    """Audits of images by query; a kind adds how its data are measured."""

    items = "images"

    def load(self, config: ConfigT, models: Models) -> RankingData:
        """Read images, queries and hypotheses, and read or compute every model's scores."""
        images = read_items(config, models)
        return load_scores(config, models, images, self.queries(config, images))

    def queries(self, config: ConfigT, images: Items) -> QueriesConfig | None:
        """Return the section of the queries."""
        return config.queries

    def groups(self, config: ConfigT, data: RankingData) -> list[Groups]:
        """Return the groups of all images."""
        section = config.data
        return group_sizes.groups_by(
            section.groups, data.images.columns, min_size=section.min_group_size
        )

    def examples(self, config: ConfigT, data: RankingData) -> dict[str, pl.DataFrame]:
        """Return the images that each query ranks first, over all and in each group."""
        codes = self.groups(config, data)[0].codes
        subjects = None if config.data.subject is None else data.images.columns[config.data.subject]
        return {name: one.best(codes, subjects, _SHOWN) for name, one in data.models.items()}

    def sizes(self, config: ConfigT, data: RankingData) -> Iterator[group_sizes.Row]:
        """Return the sizes of the groups that the first model compares, of marginals, too."""
        by_name = {each.groups.name: each for each in reversed(self.designs(config, data))}
        for name in reversed(by_name):
            yield from group_sizes.sizes_of(by_name[name].groups)

    def warnings(
        self, config: ConfigT, data: RankingData, designs: Sequence[DesignT]
    ) -> Iterable[str]:
        """Return which models have few queries."""
        for name, scored in data.models.items():
            if len(scored.queries) < FEW_SUBJECTS:
                yield (
                    f"{name}: {len(scored.queries)} queries or subjects. With fewer than "
                    f"{FEW_SUBJECTS}, the intervals of their means are too narrow."
                )

    def notes(
        self, config: ConfigT, data: RankingData, designs: Sequence[DesignT]
    ) -> Iterable[str]:
        """Return the notes on images and queries that aren't used."""
        for name, scored in data.models.items():
            yield from scored.notes(name)
        attributes = {name for group in config.data.groups for name in group}
        for column in config.data.columns:
            missing = data.images.counts["missing"][column]
            if column not in attributes and missing:
                yield f"Images without {column} ({missing}) are not compared."


class Rankings(ByQuery[RankingT, RankingDesign]):
    """Audits of rankings."""

    def queries(self, config: RankingT, images: Items) -> QueriesConfig | None:
        """Return the prompts of the config; neutral ones where models run without any."""
        if config.queries is None and config.makes_queries and runs_models(config):
            return _neutral(config, images)
        return config.queries

    def designs(self, config: RankingT, data: RankingData) -> list[RankingDesign]:
        """Return every model with every choice of groups; intersections with their marginals."""
        choices: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
        for attributes in config.data.groups:
            choices[attributes, ()] = None
            for name in attributes if config.ranking.marginals and len(attributes) > 1 else ():
                choices[(name,), tuple(other for other in attributes if other != name)] = None
        designs = [
            RankingDesign(model, attributes, data, config, within)
            for model in data.models
            for attributes, within in choices
        ]
        check_designs(designs, config)
        return designs

    def check(self, config: RankingT, data: RankingData, design: RankingDesign) -> None:
        """Refuse fewer than two groups, sets in none of which two stand, and unknown groups."""
        design.check()

    def measure(
        self,
        config: RankingT,
        data: RankingData,
        design: RankingDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design at every K, its normalised similarities and its curves."""
        findings: list[UncorrectedFinding] = []
        spreads: list[dict[str, Any]] = []
        at = {"model": design.model, "groups": design.name}
        arguments = design.arguments()
        for version, estimate in _estimates(design, arguments, resampling):
            findings += _findings(estimate, design.at(version), design)
            if _several(estimate) and estimate.metric not in _NO_SPREAD:
                spread = query_distribution(estimate)
                spreads.append({**at, "version": version, "metric": estimate.metric, **spread})
        preference = systematic_preference(**arguments, k=design.ks[0], resampling=resampling)
        every, rows = with_preferences(design, preference, findings, resampling)
        tables = tables_of({"query_distributions": spreads, "hypotheses": rows}, _COLUMNS)
        several = design.pooled.filter(pl.col("groups") > 1)["n"]
        if config.ranking.curves and (several > design.prefixes).any():
            curves = retrieval_curves(
                **arguments, k=design.prefixes, desired=design.desired,
                resampling=resampling_of(config, 1),
            )  # fmt: skip
            tables["curves"] = placed(curves, {**at, "version": design.version})
        return Measured(every, tables)

    def details(
        self,
        config: RankingT,
        data: RankingData,
        designs: Sequence[RankingDesign],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return images, each model's queries and ranked images, and each design.

        Per design: groups, smallest pool, K, prefixes, and the MaxSkew@K that random order alone
        gives with groups of equal size.
        """
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "queries": len(each.queries), "ranked": len(each.used),
                    **each.counts,
                }
                for name, each in data.models.items()
            ],
            "rankings": [design.planned for design in designs],
        }  # fmt: skip

    def notes(
        self, config: RankingT, data: RankingData, designs: Sequence[RankingDesign]
    ) -> Iterable[str]:
        """Return the notes on images and queries that aren't used, and on small pools."""
        yield from super().notes(config, data, designs)
        options = config.ranking
        if others := dict.fromkeys(each.name for each in designs if not each.has_desired):
            shown = ", ".join(others)
            yield f"ranking.desired has no shares of {shown}: the pool's are the target."
        others = dict.fromkeys(each.name for each in designs if each.opposed is None)
        if others and "bias_at_k" in options.measures:
            yield f"Bias@K compares two groups: it isn't measured for {', '.join(others)}."
        for design in designs:
            sizes = design.pool_sizes
            for what, most in (("K", max(design.ks)), ("prefixes", (options.prefixes or 1) - 1)):
                if few := sum(n <= most for n in sizes):
                    yield (
                        f"{design.place}: {few} of {len(sizes)} pools have too few images with a "
                        f"group for the {what} ({most}): not estimable there, and counted."
                    )
            if not design.exchanges:
                yield (
                    f"{design.place}: no set holds images of two groups, so none are exchanged "
                    "within sets."
                )


def _neutral(config: RankingAudit, images: Items) -> QueriesConfig:
    """Return the neutral prompts of every subject of the images.

    Raises
    ------
    ConfigError
        When no image has a subject, or prefixes make a prompt twice.
    """
    from equipoise.counterfactuals.captions import neutral_prompts

    column = str(config.data.subject)
    subjects = sorted({str(name) for name in images.columns[column] if name is not None})
    if not subjects:
        raise ConfigError(
            f"data.subject: no image has a {column!r}; name the column of what images show"
        )
    try:
        table = neutral_prompts(subjects, openings(config.prefixes or ()))
    except InputError as error:
        raise ConfigError(f"prefixes: {error}") from None
    return QueriesConfig(table=table, id="prompt", subject="subject")
