"""Sections of audits that rank or compare images by query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    model_validator,
)

from equipoise.audits.config import AuditConfig, group_name
from equipoise.config.fields import (
    ArrayConfig,
    CsvConfig,
    Group,
    Label,
    Listed,
    Models,
    Name,
    OneOrMore,
    RunConfig,
    Section,
    Share,
    Some,
    Table,
    TextsConfig,
    among,
    columns_of,
    distinct,
    levels_of,
    located,
)
from equipoise.config.files import nearest
from equipoise.config.images import PicturesConfig
from equipoise.config.switches import MetricSwitches
from equipoise.core import Strings
from equipoise.data import ItemSource
from equipoise.data.lexicons import lexicon
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.similarity import normalized_similarity_mad
from equipoise.metrics.registry import metrics_of

TARGETS = ("pool", "uniform")


def _desired(value: object) -> str | dict[str, float]:
    """Take the name of a target, or a share for every group."""
    if isinstance(value, str) and value in TARGETS:
        return value
    if not isinstance(value, Mapping) or not value:
        near = nearest(value, TARGETS)
        raise ValueError(
            f"expected 'pool', 'uniform', or a mapping of every group to its share{near}"
        )
    for name, share in value.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"the share of {name!r} is {share!r}; expected a number from 0 to 1")
    return {str(name): float(share) for name, share in value.items()}


def _prefixes(value: object) -> str | tuple[str, ...]:
    """Take the name of the list of prefixes, or prefixes."""
    if value == "howard_2024":
        return "howard_2024"
    texts = value if isinstance(value, list | tuple) else ()
    fits = (isinstance(text, str) and text.strip() and text.count("{}") < 2 for text in texts)
    if not texts or not all(fits):
        raise ValueError(
            "expected howard_2024, or a list of texts such as 'A photo of a', with '{}' at most "
            "once, where the subject goes"
        )
    return distinct(tuple(texts))


Prefixes = Annotated[
    str | tuple[str, ...],
    PlainValidator(_prefixes),
    PlainSerializer(lambda value: value if isinstance(value, str) else [*value]),
]
"""Name of the list of prefixes, or prefixes."""


def openings(prefixes: str | tuple[str, ...]) -> Sequence[str]:
    """Return prefixes; a named list is replaced by its prefixes."""
    if isinstance(prefixes, str):
        prefixes_of_list: Sequence[str] = lexicon(prefixes).content["prefixes"]
        return prefixes_of_list
    return prefixes


EVERY = ""
"""The key of numbers that hold for every choice of groups."""


def _by_groups(value: object) -> object:
    """Take a number or a list for those of every choice of groups."""
    return value if isinstance(value, Mapping) or value is None else {EVERY: value}


def _of_every(value: Mapping[str, Sequence[int]] | None) -> Any:
    """Return numbers as they are given: a list, or lists by choice of groups."""
    if value is None:
        return None
    return {name: [*ks] for name, ks in value.items()} if EVERY not in value else [*value[EVERY]]


Ks = Annotated[
    Mapping[str, OneOrMore[PositiveInt]] | None,
    BeforeValidator(_by_groups),
    PlainSerializer(_of_every),
]
"""How many of the best images count: a number or a list, or these by choice of groups."""


class DataConfig(Section):
    """The images that are ranked.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    groups : list of str or list of str
        Attributes to compare by; a list within the list: the intersections.
    subject : str, optional
        Column of what an image shows: each query ranks the images of its own subject. Without
        it every query ranks all images.
    sets : str, optional
        Column of the counterfactual set, whose images differ in the groups only.
    unit : str, optional
        Column of the unit that images repeat within, such as the person shown. It holds whole
        sets.
    min_group_size : int
        Smaller groups are shown, and neither the largest nor the smallest skew.
    max_unmatched : float
        Largest share of images or queries without a row in a file, and the other way round.
    """

    images: PicturesConfig
    groups: Some[Group]
    subject: Name | None = None
    sets: Name | None = None
    unit: Name | None = None
    min_group_size: PositiveInt = 1
    max_unmatched: Share = 0.01

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        return columns_of(self.groups, self.subject, self.sets, self.unit)


class QueriesConfig(TextsConfig):
    """The queries, such as neutral prompts.

    Attributes
    ----------
    subject : str, optional
        Column of what a query asks for. Queries of one subject are averaged: the mean of their
        unit vectors.
    """

    subject: Name | None = None


class ModelConfig(RunConfig):
    """One model: how to run it, or its recorded outputs.

    A model that is run embeds images and queries, or scores each image for each query.

    Attributes
    ----------
    images, queries : ArrayConfig, optional
        Embeddings in one space; images are ranked by cosine.
    scores : ArrayConfig, optional
        One row per image, one column per query.
    """

    of_files = ("images", "queries", "scores")
    images: ArrayConfig | None = None
    queries: ArrayConfig | None = None
    scores: ArrayConfig | None = None

    @model_validator(mode="after")
    def _check_rankings_model(self) -> Self:
        if self.model is not None:
            return self
        embedded = self.images is not None and self.queries is not None
        if embedded == (self.scores is not None) or (self.images is None) != (self.queries is None):
            raise ValueError(
                "expected either 'model', 'images' and 'queries', to rank images, or 'scores' alone"
            )
        return self


class RankingConfig(Section):
    """Measures of each ranking.

    Attributes
    ----------
    k : int or list of int, or mapping of str to these, optional
        How many of the best images count; the number of groups unless given. A mapping has them by
        entry of `data.groups`: "race × gender".
    prefixes : int, optional
        Prefixes of NDKL, and the last K of the curves; the square of the first k unless given,
        or what the smallest pool allows.
    desired : "pool", "uniform" or mapping of group to share
        The shares that are desired.
    first, second : str, optional
        Groups that are set against each other, where there are more than two.
    marginals : bool
        Measure each attribute of an intersection within each value of the others, too.
    curves : bool
        Measure every K up to `prefixes`, for the plots.
    """

    k: Ks = None
    prefixes: PositiveInt | None = None
    desired: Annotated[
        Literal["pool", "uniform"] | Mapping[str, float], PlainValidator(_desired)
    ] = "pool"
    first: Label | None = None
    second: Label | None = None
    marginals: bool = True
    curves: bool = True


class MetricsConfig(MetricSwitches):
    """Which metrics of rankings are measured, and whether normalised similarities are."""

    forms = (RankingMetric,)
    functions = (normalized_similarity_mad,)

    @property
    def rankings(self) -> Mapping[str, RankingMetric]:
        """The metrics of rankings to measure, by name."""
        metrics = metrics_of(RankingMetric, self.kind)
        return {name: metrics[name] for name in self.measured if name in metrics}

    @property
    def named(self) -> Strings:
        """Metrics that the config switches on itself."""
        extra = self.__pydantic_extra__ or {}
        return (*self.only, *(name for name, options in extra.items() if options is not False))


class HypothesisConfig(CsvConfig):
    """Preferences that are declared before the audit, a group or a number for each concept.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, a row per concept.
    concept : str
        Column of the concepts' names.
    favours : str, optional
        Column of the group that a concept favours.
    value : str, optional
        Column of numbers: with `favours` how strongly, alone how far towards `first`.
    first : str, optional
        The group that larger numbers of `value` favour.
    statistic : str
        Of `value`: `rank` (correlation) or `mean` (by sign).
    groups : str or list of str, optional
        Entry of `data.groups`; the only entry unless given.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    concept: Name
    favours: Name | None = None
    value: Name | None = None
    first: Label | None = None
    statistic: Literal["rank", "mean"] = "rank"
    groups: Group | None = None

    @model_validator(mode="after")
    def _check_rankings_hypothesis(self) -> Self:
        if self.favours is None and self.value is None:
            raise ValueError("neither 'favours' nor 'value' is given; expected one, or both")
        if self.favours is None and self.first is None:
            raise ValueError("'first' is required with 'value' alone: the group that it speaks for")
        if self.favours is not None and self.first is not None:
            raise ValueError("'first' is for 'value' alone: 'favours' names the groups")
        return self

    def source(self, base: Path) -> ItemSource:
        """Return the source to read, with paths relative to `base`."""
        columns = tuple(filter(None, (self.favours, self.value)))
        return ItemSource(located(self.table, base), self.concept, columns, **self.csv)


class QueryAudit(AuditConfig):
    """The configuration of an audit of images by query.

    Attributes
    ----------
    data : DataConfig
    queries : QueriesConfig, optional
    models : mapping of str to ModelConfig
    hypotheses : list of HypothesisConfig
        Preferences that are declared before the audit.
    """

    data: DataConfig
    queries: QueriesConfig | None = None
    models: Models[ModelConfig]
    hypotheses: Listed[HypothesisConfig] = ()

    @property
    def declared_levels(self) -> Sequence[str]:
        """Groups that hypotheses name."""
        return [hypothesis.first for hypothesis in self.hypotheses if hypothesis.first is not None]

    @property
    def makes_queries(self) -> bool:
        """Whether a model that is run needs no table of queries."""
        return False

    @model_validator(mode="after")
    def _check_query_audit(self) -> Self:
        for name, model in self.models.items() if self.queries is None else ():
            if model.queries is not None or (model.model is not None and not self.makes_queries):
                raise ValueError(
                    f"queries: required, and missing: model {name!r} compares images with texts, "
                    "which the table of queries names"
                )
        names = [*self.group_names]
        for index, hypothesis in enumerate(self.hypotheses):
            key = f"hypotheses[{index}].groups"
            if hypothesis.groups is None and len(names) > 1:
                raise ValueError(f"{key}: required where data.groups has several entries: {names}")
            among(key, group_name(hypothesis.groups or ()) or None, names)
        return self


class RankingAudit(QueryAudit):
    """The configuration of an audit of rankings.

    Attributes
    ----------
    prefixes : str or list of str, optional
        What neutral prompts of the images' subjects begin with, where there is no table of
        `queries`.
    metrics : MetricsConfig
    ranking : RankingConfig
    """

    prefixes: Prefixes | None = None
    metrics: MetricsConfig
    ranking: RankingConfig = RankingConfig()

    @property
    def declared_levels(self) -> Sequence[str]:
        """Groups that the desired shares, Bias@K and hypotheses name."""
        options = self.ranking
        shares = options.desired if isinstance(options.desired, Mapping) else {}
        pair = filter(None, (options.first, options.second))
        return levels_of((*super().declared_levels, *map(str, shares), *pair))

    @property
    def makes_queries(self) -> bool:
        """Whether prompts are made of the subjects of the images."""
        return self.prefixes is not None

    @model_validator(mode="after")
    def _check_ranking_audit(self) -> Self:
        default = type(self).model_fields["prefixes"].default
        if self.queries is not None and self.prefixes != default:
            raise ValueError(
                "'queries' and 'prefixes' are given; expected 'queries' for prompts of your "
                "own, or 'prefixes' to make them of the images' subjects"
            )
        if self.prefixes is not None and self.data.subject is None:
            raise ValueError("data.subject: required with 'prefixes': the column of the subjects")
        chosen = {*(self.ranking.k or ())} - {EVERY}
        among("ranking.k", chosen, [group_name(groups) for groups in self.data.groups])
        return self

    @property
    def group_names(self) -> Sequence[str]:
        """Names of the choices of groups, and of the attributes of intersections."""
        single = [name for group in self.data.groups for name in group]
        return tuple(dict.fromkeys([*super().group_names, *single]))
