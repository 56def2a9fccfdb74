"""The section of one measurement of associations: a metric with its options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_fields import Label, Labels, Name, OutsideConfig, Section
from equipoise.audits.config_yaml import nearest

Metric = Literal[
    "association_score",
    "weat",
    "sc_weat",
    "differential_association",
    "mcas",
    "xmcas",
    "total_absolute_association",
    "predicted_label_weat",
    "label_concentration",
    "trend",
    "gender_difference",
    "alignment",
    "correlation",
]
Modality = Literal["II", "ITP", "ITA", "TT"]


_SETS = ("targets", "attributes")
_WORDS = ("images", "groups", "positive", "negative")
_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "xmcas": (*_SETS, "further"),
        "predicted_label_weat": ("images", "groups", "labels", "attributes"),
        "label_concentration": ("images", "groups"),
        "trend": _WORDS,
        "gender_difference": _WORDS,
        "alignment": (*_SETS, "hypothesis"),
        "correlation": (*_SETS, "outside"),
    }
)
"""Keys that a metric needs; `_SETS` unless it is here."""
_TAKES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "association_score": ("modalities", "fixed"),
        "weat": ("modalities", "alternative", "ddof", "fixed"),
        "sc_weat": ("modalities", "alternative", "ddof", "fixed"),
        "differential_association": ("modalities", "resample_texts"),
        "mcas": ("generated", "resample_texts", "span"),
        "xmcas": ("offset", "neutral", "resample_texts"),
        "total_absolute_association": ("modalities", "fixed"),
        "predicted_label_weat": ("label_column", "first", "alternative", "ddof"),
        "label_concentration": ("labels", "label_column", "k", "whole_vocabulary"),
        "trend": ("regions", "outside", "span"),
        "gender_difference": ("regions", "outside", "span"),
        "alignment": ("of", "modalities", "statistic"),
        "correlation": ("of", "modalities", "span"),
    }
)
"""Keys that a metric takes beside those it needs and `_ALWAYS`."""
_ALWAYS = ("model", "version")

_TWO_TARGETS = ("weat", "differential_association")


def _targets(value: object) -> object:
    """Take a list of sets, or lists by category, as lists by category; "" without one."""
    if value is None:
        return None
    given = value if isinstance(value, Mapping) else {"": value}
    found = {str(category): _names(names) for category, names in given.items()}
    flat = [name for names in found.values() for name in names]
    if not flat:
        raise ValueError("expected names of sets, as a list or as lists by category")
    if twice := sorted({name for name in flat if flat.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} appears more than once")
    return found


def _names(value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError("expected names of sets, as a list or as lists by category")
    return tuple(given)


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[Labels, BeforeValidator(_one_or_more)]


class MeasureConfig(Section):
    """One question: a metric, and the sets or groups it is asked of.

    Attributes
    ----------
    metric : str
    targets : list of str, or mapping of str to list of str
        Sets that are associated; by category where they have one.
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
        One set whose members are the labels, or several that are a label each.
    label_column : str
        Column of that table with the labels predicted; by similarity otherwise.
    modalities : list of str
        Of II, ITP, ITA and TT; all that the sets allow otherwise.
    fixed : list of str
        Sets that intervals take as given.
    resample_texts : bool
        Draw inference over texts too.
    alternative, ddof : str, int
        Of weat, sc_weat and predicted_label_weat.
    generated : bool
        Target images were generated from target texts: diffusion bias and amplification too.
    offset, neutral : float, list of str
        k of xmcas; or sets declared neutral to estimate it from.
    first : str
        The group whose labels are X.
    k : int
        Labels in the top share.
    whole_vocabulary : bool
        Count labels that were never predicted.
    of : str
        Metric whose values per target are correlated or aligned.
    outside, hypothesis : OutsideConfig
    statistic : str
        Of alignment: `mean` or `rank`.
    span : float
        Share of the data in each local fit.
    model : str, optional
        The only model that is asked; the one that predicted the labels of `label_column`.
    version : str
        Name of this choice of sets, where a question is asked in several ways.
    """

    metric: Metric
    targets: Annotated[Any, BeforeValidator(_targets)] = None
    attributes: Labels = ()
    further: Names = ()
    images: Name | None = None
    groups: Name | None = None
    regions: Name | None = None
    positive: Name | None = None
    negative: Name | None = None
    labels: Names = ()
    label_column: Name | None = None
    modalities: Annotated[tuple[Modality, ...], Field(strict=False)] = ()
    fixed: Labels = ()
    resample_texts: bool = False
    alternative: Literal["greater", "less", "two-sided"] | None = None
    ddof: Literal[0, 1] = 1
    generated: bool = False
    offset: float = 0.0
    neutral: Names = ()
    first: Label | None = None
    k: Annotated[int, Field(ge=1)] = 10
    whole_vocabulary: bool = False
    of: Literal["association_score", "mcas"] = "association_score"
    outside: OutsideConfig | None = None
    hypothesis: OutsideConfig | None = None
    statistic: Literal["mean", "rank"] = "mean"
    span: Annotated[float, Field(gt=0, le=1)] = 2.0 / 3.0
    model: Label | None = None
    version: str = ""

    @model_validator(mode="after")
    def _options_of_its_metric(self) -> MeasureConfig:
        needs = _NEEDS.get(self.metric, _SETS)
        allowed = (*needs, *_TAKES[self.metric], *_ALWAYS)
        # A key that has its default counts as not given: what is resolved reads back as the same.
        every = type(self).model_fields
        given = {
            key
            for key in self.model_fields_set
            if getattr(self, key) != every[key].get_default(call_default_factory=True)
        }
        for key in sorted(given - {"metric", *allowed}):
            raise ValueError(
                f"{key!r} is no option of {self.metric}. Allowed: {', '.join(allowed)}"
                f"{nearest(key, allowed)}"
            )
        for key in needs:
            if key not in self.model_fields_set or getattr(self, key) is None:
                raise ValueError(f"{key!r} is required by {self.metric}, and missing")
        return self

    @model_validator(mode="after")
    def _right_number_of_sets(self) -> MeasureConfig:
        if "attributes" in _NEEDS.get(self.metric, _SETS) and len(self.attributes) != 2:
            raise ValueError(f"attributes: {len(self.attributes)} sets; expected two")
        if self.metric in _TWO_TARGETS and len(self.target_names) != 2:
            raise ValueError(f"targets: {len(self.target_names)} sets; {self.metric} compares two")
        if self.metric == "label_concentration" and bool(self.labels) == bool(self.label_column):
            raise ValueError("'labels' or 'label_column': give one of them")
        if self.offset and self.neutral:
            raise ValueError("'offset' and 'neutral' both give k; expected one of them")
        if self.of == "mcas" and self.modalities:
            raise ValueError("'modalities' is for association_score: mcas is over all four")
        return self

    @model_validator(mode="after")
    def _sets_play_one_part(self) -> MeasureConfig:
        parts = {"targets": self.target_names, "attributes": self.attributes,
                 "further": self.further}  # fmt: skip
        seen: dict[str, str] = {}
        for part, names in parts.items():
            for name in names:
                if seen.setdefault(name, part) != part:
                    raise ValueError(
                        f"{part}: {name!r} is among the {seen[name]} too; a set plays one part"
                    )
        if self.positive is not None and self.positive == self.negative:
            raise ValueError(f"positive and negative: both are {self.positive!r}")
        for name in self.fixed:
            if name not in seen:
                raise ValueError(f"fixed: {name!r} is no set of this question; has {[*seen]}")
        return self

    @property
    def target_names(self) -> tuple[str, ...]:
        """Targets, whatever their category."""
        return tuple(name for names in (self.targets or {}).values() for name in names)

    @property
    def categories(self) -> Mapping[str, str]:
        """Category of each target, "" where it has none."""
        given = (self.targets or {}).items()
        return {name: category for category, names in given for name in names}

    @property
    def set_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of sets by the key that they stand under."""
        single = {key: getattr(self, key) for key in ("positive", "negative")}
        return {
            "targets": self.target_names,
            "attributes": self.attributes,
            "further": self.further,
            "labels": self.labels,
            "neutral": self.neutral,
            **{key: (name,) for key, name in single.items() if name is not None},
        }

    @property
    def is_composite(self) -> bool:
        """Whether every number is over all four modalities."""
        return self.metric in ("mcas", "xmcas") or self.of == "mcas"

    @property
    def figures(self) -> OutsideConfig | None:
        """The external figures, or those of a hypothesis."""
        return self.outside or self.hypothesis

    @property
    def group_text(self) -> str:
        """What findings call the groups that are compared."""
        if self.groups is not None:
            return self.groups
        return " against ".join(self.attributes)
