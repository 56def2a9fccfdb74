"""The section of one measurement of associations: a metric with its options."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PositiveInt, model_validator
from pydantic_core import PydanticKnownError

from equipoise.config.fields import (
    Label,
    Labels,
    Listed,
    Name,
    OutsideConfig,
    Section,
    among,
    distinct,
    several,
)
from equipoise.metrics.naming import find_records
from equipoise.metrics.spec import SETS, SPECS, MetricSpec

Modality = Literal["II", "ITP", "ITA", "TT"]


def measured_metrics(kind: str = "associations") -> dict[str, MetricSpec]:
    """Return the metrics of a kind that a measurement may name, also of plugins."""
    return {name: spec for name, spec in SPECS.items() if spec.needs and kind in spec.kinds}


def _check_metric(value: str) -> str:
    return _name_among(value, measured_metrics())


def _check_score(value: str) -> str:
    """Refuse a metric that isn't a score of single targets by two sets."""
    metrics = measured_metrics().items()
    single = [name for name, spec in metrics if spec.needs == SETS and spec.targets == "each"]
    return _name_among(value, single)


def _name_among(value: str, allowed: Iterable[str]) -> str:
    """Return the name of a metric, whatever the field calls it."""
    names = [*allowed]
    for record in find_records(value):
        if record.name in names:
            return record.name
    *first_names, last = map(repr, names)
    expected = f"{', '.join(first_names)} or {last}"
    raise PydanticKnownError("literal_error", {"expected": expected})


def _by_category(value: object) -> object:
    return value if isinstance(value, Mapping) or value is None else {"": value}


Names = Annotated[Labels, BeforeValidator(several)]


class MeasureConfig(Section):
    """One question: a metric with its sets or groups.

    Attributes
    ----------
    metric : str
    targets : list of str, or mapping of str to list of str
        Sets that are associated; by category where they have one.
    each_member : bool
        Each member of the targets is a target of its own; its category is the set.
    attributes : list of two str
        The sets that targets are closer to, or farther from.
    further : list of str
        Sets of further groups, for xmcas.
    images : str
        Table whose images are grouped.
    groups, regions : str
        Columns of that table.
    positive, negative : str
        Sets of words, for trend and gender_difference.
    labels : list of str
        One set, whose members are the labels.
    modalities : list of str
        Of II, ITP, ITA and TT; all that the sets allow otherwise.
    resample_texts : bool
        Draw inference over texts too.
    alternative : str
        Of weat, sc_weat and predicted_label_weat. One-sided where a hypothesis is declared.
    ddof : int
        What is subtracted from the number of members or targets, in standard deviations.
    declared_sides : mapping of str to list of str
        Targets by the side that they are declared to go with, for summaries by it.
    first : str
        Group whose labels are expected to go with the first attributes (or, with `less`, with the
        second): required by a one-sided predicted_label_weat.
    common_labels : "drop" or "keep"
        Of predicted_label_weat: whether labels frequent for both groups are left out.
    studentized : bool
        Test WEAT in standard errors of the difference, for targets of unequal size and spread.
    generated : bool
        Target images were generated from target texts: diffusion bias and amplification too.
    offset : float
        k of xmcas.
    neutral : list of str
        Sets that are declared neutral, whose mean |MCAS| is k in place of `offset`.
    size_of_mean : bool
        k is the size of their mean MCAS.
    centre : list of two float, optional
        Similarity and MCAS of the point whose distance from each target is given beside xmcas.
    k : int
        Labels in the top share.
    whole_vocabulary : bool
        Count labels that were never predicted.
    of : str
        Metric whose values per target are correlated or aligned.
    outside, hypothesis : OutsideConfig
    statistic : str
        Of alignment: `mean` or `rank`.
    version : str
        Name of this choice of sets, where a question is asked in several ways.
    """

    metric: Annotated[str, AfterValidator(_check_metric)]
    targets: Annotated[Mapping[Label, Names] | None, BeforeValidator(_by_category)] = None
    each_member: bool = False
    attributes: Labels = ()
    further: Names = ()
    images: Name | None = None
    groups: Name | None = None
    regions: Name | None = None
    positive: Name | None = None
    negative: Name | None = None
    labels: Names = ()
    modalities: Listed[Modality] = ()
    resample_texts: bool = False
    alternative: Literal["greater", "less", "two-sided"] = "two-sided"
    first: Label | None = None
    ddof: Literal[0, 1] = 1
    common_labels: Literal["drop", "keep"] = "drop"
    studentized: bool = False
    generated: bool = False
    offset: float = 0.0
    neutral: Names = ()
    size_of_mean: bool = False
    centre: Annotated[tuple[float, float], Field(strict=False)] | None = None
    declared_sides: Mapping[Label, Names] = {}
    k: PositiveInt = 10
    whole_vocabulary: bool = False
    of: Annotated[str, AfterValidator(_check_score)] = "association_score"
    outside: OutsideConfig | None = None
    hypothesis: OutsideConfig | None = None
    statistic: Literal["mean", "rank"] = "mean"
    version: str = ""

    @model_validator(mode="after")
    def _check_associations_measure(self) -> Self:
        needs = self.spec.needs
        allowed = (*needs, *self.spec.takes, "version")
        # A key that has its default counts as not given: what is resolved reads back as the same.
        for key, field in type(self).model_fields.items():
            is_set = getattr(self, key) != field.default
            if is_set and key not in ("metric", *allowed):
                raise ValueError(
                    f"{key!r} isn't an option of {self.metric}. Allowed: {', '.join(allowed)}"
                )
            if not is_set and key in needs:
                raise ValueError(f"{key!r} is required by {self.metric}, and missing")
        distinct((*self.target_names, *self.attributes, *self.further))
        declared = distinct(tuple(chain.from_iterable(self.declared_sides.values())))
        among("declared_sides", declared, self.target_names)
        refused = {
            "attributes: expected two sets": "attributes" in needs and len(self.attributes) != 2,
            "targets: expected two sets": self.spec.targets == "two"
            and len(self.target_names) != 2,
            f"'modalities' is for association_score: {self.of} is over all four": self.modalities
            and "modalities" not in SPECS[self.of].takes,
            "labels: expected one set": len(self.labels) > 1,
            "'first': a one-sided 'alternative' needs the group whose labels are expected to go "
            "with the first attributes": "first" in allowed
            and self.alternative != "two-sided"
            and self.first is None,
        }
        for message, wrong in refused.items():
            if wrong:
                raise ValueError(message)
        return self

    @property
    def spec(self) -> MetricSpec:
        """The record of the metric."""
        return SPECS[self.metric]

    @property
    def in_all_modalities(self) -> bool:
        """Whether each number is over all four modalities."""
        metrics = (self.metric, self.of) if "of" in self.spec.takes else (self.metric,)
        return any("modalities" not in SPECS[metric].takes for metric in metrics)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Targets, whatever their category."""
        return tuple(name for names in (self.targets or {}).values() for name in names)

    @property
    def side_of(self) -> Mapping[str, str]:
        """Declared side of each target that has one."""
        return {name: side for side, names in self.declared_sides.items() for name in names}

    @property
    def categories(self) -> Mapping[str, str]:
        """Category of each target, "" where it has none."""
        by_category = (self.targets or {}).items()
        return {name: category for category, names in by_category for name in names}

    @property
    def set_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of sets by the key that they stand under."""
        return {
            "targets": self.target_names,
            "attributes": self.attributes,
            "further": self.further,
            "neutral": self.neutral,
            "labels": self.labels,
            "positive": (self.positive,) if self.positive else (),
            "negative": (self.negative,) if self.negative else (),
        }

    @property
    def figures(self) -> OutsideConfig | None:
        """External figures, or the figures of a hypothesis."""
        return self.outside or self.hypothesis

    @property
    def group_text(self) -> str:
        """What findings call the groups that are compared."""
        if self.groups is not None:
            return self.groups
        return " against ".join(self.attributes)

    @property
    def sides(self) -> tuple[str, ...]:
        """The two sets of attributes, where no column of groups is compared."""
        return () if self.groups is not None else tuple(self.attributes)
