"""One record per metric: what its numbers mean, when they count, how they are shown."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Literal, TypedDict, Unpack

from equipoise.core import Chance, Ends, Estimate, Facts, Finding, Harm, InputError, Span, Strings
from equipoise.core.estimate import Parts

Unit = Literal["share", "points", "log ratio", "degrees", "number"]

POINTS = "five percentage points: the difference that audits of image models call practical"
COSINE = "0.01 for each difference of two mean cosines: zero-shot decisions begin to change"
COHEN = "the limit between Cohen's bands negligible and small"
Band = Literal["negligible", "small", "medium", "large"]
BANDS: Mapping[Band, float] = MappingProxyType(
    {"negligible": 0.0, "small": 0.1, "medium": 0.3, "large": 0.5}
)


def band_of(value: float) -> Band | Literal[""]:
    """Return the band of an effect size, "" for what is not finite."""
    if not math.isfinite(value):
        return ""
    return [name for name, lower in BANDS.items() if value >= lower][-1]


PAIRWISE = "pairwise Newcombe, simultaneous over groups, units by their design effect"
WILSON = "Wilson; percentile bootstrap over units of repeated rows"
SHARES = "55 : 45 against 50 : 50"
OVER_QUERIES = "Student's t by the jackknife over queries; none for one query"
RANDOM_ORDER = "the order is random within each counterfactual set, else within the pool"
LEANING = "{direction} in the embeddings{model} ({title} {value})."
CHANGE, AGAINST_REST = "_change", "_against_rest"
SENTENCE = "{title}{model}{subject} is {value}{groups}."
_NUMBER = r"([-−]?\d+(?:\.\d+)?)"
_BOUNDS = re.compile(rf"[\[(]{_NUMBER}, {_NUMBER}[\])]")


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """Everything that is known about a metric.

    Attributes
    ----------
    name : str
        Public name: the `metric` of estimates, parts and findings.
    title : str
        Name for display; by default the name in words.
    symbol : str
        Symbol in formulas; "" where there is none.
    kinds : tuple of str
        Kinds of audit that report it, the main one first.
    definition : str
        What is computed.
    range : str
        Interval of possible values, with its condition if it has one.
    unit : str
        How values are shown: "share" in per cent, "points" in percentage points, "log ratio" as
        "1.3 times", "degrees" from radians, "number" as it is.
    rate : bool
        Whether it is a number of each group. Findings of it are differences between groups, but
        with the unit "share" only those that have a chance level.
    of_class : bool
        Whether groups have a value per class, so that a finding without a class is a summary.
    of_models : bool
        Whether its findings compare models, and are corrected together.
    of_base_rates : bool
        Whether the groups' base rates decide it where each group holds one true class only.
    harm : "higher", "lower", "either" or None
        Which side of the chance level is worse; of a rate, which side of the rate. None: neither.
    groups_harm : "lower" or "higher"
        Which side of a group's own value is worse; of a rate, `harm` says it.
    group_label : str
        What a group's own value is, where it is a share: "share of wrong predictions".
    group_metric : str
        Metric that a group's own value is of, where it is no share.
    clause : str
        Template of the sentence about groups that have shares, with the fields {model}, {subject}
        (“…”), {about} (" about “…”"), {of} (" of “…”") and {groups}; "" where `sentence` says it.
    part : str
        Template of each of {groups} in `clause`, with the fields {share} and {group}.
    direction : str
        `harm` in words.
    neutral : float or None
        Population value without disparity, which the interval's end is compared with; None: the
        mean of the chance level.
    fold : str
        Metric that states the same fact of the same class, with the same p-value.
    mirror : str
        With two classes, metric that states the same fact of the other class.
    within_class : "", "always" or "two classes"
        Whether it compares groups within each true class alone, at least where there are two.
    rest : str
        Number whose difference between each group and all others is a finding of its own, where
        three groups or more are compared; "" where there is none.
    threshold : float or None
        Default of the practical threshold on the excess over chance; None: no verdict.
    threshold_reason : str
        Why that threshold.
    most : "disparity" or "detected"
        The gravest verdict of its findings: `detected` where any trained model has some.
    bands : mapping of Band to float
        Names of sizes, with their lower limits in ascending order.
    chance, interval, null : str
        The value when groups are exchangeable, how the interval is made, and what is exchangeable
        under the null hypothesis; "none" where there is none.
    sentence : str
        Template that states a value, with the fields {title}, {model} (" of …"), {subject} (" for
        “…”"), {value}, {size} (without its sign), {k} (how many are at the top), {groups} (in
        brackets) and {direction}; nothing stands for those that a finding lacks. Without
        {direction} it follows as a sentence; one that needs it gives way to the default where a
        finding has none.
    reference, errata : str
        Where the definition comes from, and what the source prints otherwise.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.SPECS["accuracy_gap"].title
    'Accuracy gap'
    """

    name: str
    kinds: Strings
    definition: str
    direction: str
    reference: str
    title: str = ""
    neutral: float | None = 0.0
    fold: str = ""
    mirror: str = ""
    within_class: Literal["", "always", "two classes"] = ""
    rest: str = ""
    symbol: str = ""
    range: str = "[0, 1]"
    unit: Unit = "number"
    rate: bool = False
    of_class: bool = False
    of_models: bool = False
    of_base_rates: bool = False
    harm: Harm | None = "higher"
    groups_harm: Literal["lower", "higher"] = "lower"
    group_label: str = ""
    group_metric: str = ""
    clause: str = ""
    part: str = "{share} of {group}"
    threshold: float | None = None
    threshold_reason: str = ""
    most: Literal["disparity", "detected"] = "disparity"
    bands: Mapping[Band, float] = field(default_factory=lambda: MappingProxyType({}))
    chance: str = "none"
    interval: str = "none"
    null: str = "none"
    sentence: str = SENTENCE
    errata: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("_", " ").capitalize())

    @property
    def bounds(self) -> Span | None:
        """Smallest and largest value; None where a condition or no number limits them."""
        ends = _BOUNDS.fullmatch(self.range)
        if ends is None:
            return None
        low, high = (float(end.replace("−", "-")) for end in ends.groups())
        return low, high

    @property
    def value_harm(self) -> Harm:
        """Which side of a finding's value is worse; of a difference between groups, higher."""
        return "higher" if self.rate and self.unit != "share" else self.harm or "either"

    @cached_property
    def change(self) -> "MetricSpec":
        """The record of changes of the metric."""
        return replace(
            self, name=f"{self.name}{CHANGE}", title=f"Change of {self.label}", unit="number",
            rate=False, harm="higher", bands={}, sentence=SENTENCE, clause="",
        )  # fmt: skip

    @cached_property
    def against_rest(self) -> "MetricSpec":
        """The record of differences of a group to all others."""
        return replace(
            self, name=f"{self.name}{AGAINST_REST}", title=f"{self.title} against all others",
            rate=False, unit="points" if self.unit == "share" else self.unit, harm="either",
            groups_harm="higher" if self.harm == "higher" else "lower",
            fold="", mirror="", rest="", neutral=0.0,
        )  # fmt: skip

    @property
    def label(self) -> str:
        """The title within a sentence: abbreviations and proper names keep their capitals."""
        proper = self.title[1:] != self.title[1:].lower()
        return self.title if proper else self.title[0].lower() + self.title[1:]


_REGISTERED: dict[str, MetricSpec] = {}
SPECS: Mapping[str, MetricSpec] = MappingProxyType(_REGISTERED)
"""Every registered metric by name."""


def register(*specs: MetricSpec) -> None:
    """Add metrics to `SPECS`.

    Raises
    ------
    InputError
        When a name is taken.
    """
    for spec in specs:
        if spec.name in _REGISTERED:
            raise InputError(
                f"metric {spec.name!r} is registered already. To do: choose another name"
            )
        _REGISTERED[spec.name] = spec
    spec_of.cache_clear()


def unregister(name: str) -> None:
    """Remove a metric from `SPECS`, to define it again; nothing happens for an unknown name."""
    _REGISTERED.pop(name, None)
    spec_of.cache_clear()


class Tested(TypedDict, total=False):
    """Fields of an estimate that a test against chance gives."""

    chance: Chance | None
    no_chance: str
    p_value: float | None
    null: str


class EstimateFields(Tested, total=False):
    """Fields of an estimate that its record does not hold."""

    params: Facts
    by: Parts | Callable[[], Parts]
    excluded: Mapping[str, int]
    unit: str
    reason: str
    ends: Ends
    corrected: float


def make_estimate(
    metric: str,
    value: float,
    n: Mapping[str, int],
    method: str,
    *,
    harm: Harm | None = None,
    **fields: Unpack[EstimateFields],
) -> Estimate:
    """Return an estimate with the reference of its metric, and its harm unless `harm` is set.

    Counts of 0 are left out of `excluded`.
    """
    spec, value = SPECS[metric], float(value)
    excluded = fields.get("excluded", {})
    fields["excluded"] = {why: int(n) for why, n in excluded.items() if n}
    return Estimate(
        metric, value, n, method, spec.reference, harm=harm or spec.harm or "either", **fields
    )


_DERIVED: Mapping[str, Callable[[MetricSpec], MetricSpec]] = {
    CHANGE: lambda base: base.change,
    AGAINST_REST: lambda base: base.against_rest,
}


@lru_cache(maxsize=1024)
def spec_of(metric: str) -> MetricSpec:
    """Return the record of a finding's metric, or of what it is the gap or change of."""
    for ending, derive in _DERIVED.items():
        if metric.endswith(ending):
            return derive(spec_of(metric.removesuffix(ending)))
    known = SPECS.get(metric) or SPECS.get(metric.removesuffix("_gap"))
    return known or MetricSpec(name=metric, kinds=(), definition="", direction="", reference="")


# Audits that compare models, or one model before and after.
_COMPARING = frozenset({"comparison", "mitigation"})


def corrected_with(finding: Finding) -> str | None:
    """Return the model whose tests a p-value is corrected with; None where models are compared.

    "" is what is said of no model, such as what people say of images.
    """
    compares = finding.audit in _COMPARING or spec_of(finding.metric).of_models
    return None if compares else finding.model
