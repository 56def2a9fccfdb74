"""One record per metric: what its numbers mean, when they count, how they are shown."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import NormalDist
from types import MappingProxyType
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    Chance,
    ComparedTo,
    Ends,
    Estimate,
    Facts,
    Finding,
    Harm,
    IntervalKind,
    NullHypothesis,
    Part,
    Span,
    Strings,
    Variant,
)
from equipoise.core.errors import PluginError
from equipoise.core.estimate import Parts
from equipoise.discovery import PACKAGE, Registry, refused
from equipoise.metrics.record_checks import check_record, check_types

Unit = Literal["share", "points", "log ratio", "degrees", "number"]

POINTS = "five percentage points: the difference that audits of image models call practical"
COSINE = "0.01 for each difference of two mean cosines: zero-shot decisions begin to change"
COHEN = "the limit between Cohen's bands negligible and small"
Band = Literal["negligible", "small", "medium", "large"]
BANDS: Mapping[Band, float] = MappingProxyType(
    {"negligible": 0.0, "small": 0.1, "medium": 0.3, "large": 0.5}
)


def band_of(value: float) -> Band | Literal[""]:
    """Return the band of an effect size, "" for one that isn't finite."""
    if not math.isfinite(value):
        return ""
    return [name for name, lower in BANDS.items() if value >= lower][-1]


PAIRWISE = "pairwise Newcombe, simultaneous over groups, units by their design effect"
WILSON = "Wilson; percentile bootstrap over units of repeated rows"
SHARES = "55 : 45 against 50 : 50"
OVER_QUERIES = "score interval with Student's t by the jackknife over queries; none for one query"
RANDOM_ORDER = "the order is random within each counterfactual set, else within the pool"
LEANING = "{direction} in the embeddings{model} ({title} {value})."
SENTENCE = "{title}{model}{subject} is {value}{groups}."
_Z_OF_ONE, _Z_OF_BOTH = NormalDist().inv_cdf(0.95), NormalDist().inv_cdf(0.975)
# Values that far outside their range, as a share of their size, are rounded.
_ROUNDING = 1e-9
ANY_NUMBER: Span = (-math.inf, math.inf)
SETS: Strings = ("targets", "attributes")
"""Keys of measurements that compare sets."""
OF_TARGETS: Strings = ("declared_sides", "ddof")
"""Keys of measurements whose numbers of single targets are summarised."""


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
    aliases : tuple of str
        Other names in the field, by which the record is found: "tpr", "recall".
    comparison_aliases : mapping of Aggregate to tuple of str
        Names in the field of how groups compare in it: the difference of true positive rates is
        "equal opportunity".
    kinds : tuple of str
        Kinds of audit that report it, the main one first.
    definition : str
        What is computed.
    aggregate, compared_to : Aggregate, str
        What the record is of: the level of the metric, or how groups compare in it. A name may
        have a record for each; those that it lacks are derived from its first, see `spec_for`.
    range : tuple of float
        Smallest and largest possible value: by default 0 and 1. Intervals end there, so a value
        outside is an error.
    range_note : str
        Condition of the range, or what else limits it; "" where the numbers say all. With a note
        the range limits neither values nor intervals.
    unit : str
        How values are shown: "share" in per cent, "points" in percentage points, "log ratio" as
        "1.3 times", "degrees" from radians, "number" as it is.
    rate : bool
        Whether it is a number of each group, so that groups have a difference in it.
    of_class : bool
        Whether groups have a value per class, so that a finding without a class is a summary.
    by_default : tuple of str, optional
        Kinds of audit that measure it where no configuration names it; all of `kinds` unless set.
    of_models : bool
        Whether its findings compare models, and are corrected together.
    of_pair : bool
        Whether each of its findings is about a pair of groups or sets, which the subject names.
    of_base_rates : bool
        Whether the groups' base rates decide it where each group holds one true class only.
    of_one_answer : bool
        Whether it finds models that hardly tell images apart, so that no other number means much.
    of_exclusion : bool
        Whether it counts people who are left out before anything else is measured of them.
    of_state : bool
        Whether it is the share of rows in a state: right, wrong, or without an answer. These sum
        to 1, so more rows without an answer are fewer right ones.
    state : str
        The state of rows that it is the share of, such as "right"; "" where it is none.
    of_answered : bool
        Whether rows without an answer don't count in the share of a state.
    of_labels : bool
        Whether it compares how often labels occur, whatever is true: true labels differ, too.
    combines : tuple of str
        Rates whose differences between groups it combines.
    profile : str
        Column that a model has for it in the table of its numbers; "" where it has none.
    harm : "higher", "lower", "either" or None
        Which side of the chance level is worse; of a rate, which side of the rate. None: neither.
    groups_harm : "lower" or "higher"
        Which side of a group's own value is worse; of a rate, `harm` says it.
    group_label : str
        What a group's own value is, where it is a share: "share of wrong predictions".
    group_metric : str
        Metric that a group's own value is of, where it is no share.
    of_whole : bool
        Whether groups' values are shares of one whole.
    basis : str
        What groups' values are adjusted to, such as "at equal prevalence": it ends the titles, and
        the numbers count no rows. "" where values are as observed.
    observed_in, observed_clause : tuple of str, str
        Kinds of audit that measure it without the basis, and their `clause`.
    general_words : mapping of str to str
        Words of `clause` and `group_label` in whose place a finding's parameter stands, by the
        parameter: of {"outcome": "the outcome"}, the `outcome` of a finding.
    clause : str
        Template of the sentence about groups that have shares, with the fields {model}, {subject}
        (“…”), {about} (" about “…”"), {of} (" of “…”") and {groups}; "" where `sentence` says it.
        With an `expectation`, {group}, {share}, {n}, {k} and {expected} stand for {groups}.
    expectation : str
        Parameter of its findings that has the expected share of each group; "" where shares are
        expected of no group.
    errors : "", "value" or "rest"
        Whether groups' shares are of errors, or of the rows without one, where a target has two
        classes; rare ones are compared by their ratio, too. "" where neither.
    error_clause : str
        Template of the model's error, with the fields of `clause` but {groups}: "{model} misses
        {subject}".
    part : str
        Template of each of {groups} in `clause`, with the fields {share} and {group}.
    pair_clause : str
        Template of how one model is worse than another, with the fields {worse}, {better} (the
        models), {label}, {of} (" of “…”", the subject), {over} (" over " and the groups) and
        {groups}; the values follow. "": which model has the lower or higher value, or differs more
        by groups.
    direction : str
        `harm` in words, with its side first: "Higher: more rows are wrong."
    neutral : float or None
        Population value without disparity, which the interval's end is compared with; None: the
        mean of the chance level, as of the worst group's level.
    fold : str
        Metric whose difference states the same fact of the same class, with the same p-value.
    mirror : str
        With two classes, metric whose difference states the same fact of the other class.
    within_class : "", "always" or "two classes"
        Whether it compares groups within each true class alone, at least where there are two.
    rest_metric : str
        Number whose difference between each group and all others is a finding of its own, where
        three groups or more are compared; "" where there is none.
    threshold : float or None
        Default of the practical threshold on the excess over chance; None: no verdict.
    threshold_reason : str
        Why that threshold.
    gravest : "disparity" or "detected"
        The gravest verdict of its findings: `detected` where any trained model has some, or where
        it is no disparity of groups.
    verdict_title : str
        What people read for the verdict that a finding is real, such as "By position"; "" where
        the title of the verdict fits.
    bands : mapping of Band to float
        Names of sizes, with their lower limits in ascending order.
    chance, interval, null : str
        The value when groups are exchangeable, how the interval is made, and what is exchangeable
        under the null hypothesis; "none" where there is none.
    null_kind : NullHypothesis
        What tests exchange, where an estimate doesn't say so itself.
    sentence : str
        Template that states a value, with the fields {title}, {model} (" of …"), {subject} (" for
        “…”"), {of} (" of “…”"), {value}, {size} (without its sign), {k} (how many are at the top),
        {groups} (in brackets) and {direction}; nothing stands for those that a finding lacks.
        Without {direction} it follows as a sentence; one that needs it gives way to the default
        where a finding has none.
    needs, takes : tuple of str
        Keys that a measurement of the metric needs in a config, and that it takes beside these. A
        metric without needs isn't measured by itself.
    targets : "each", "members", "two" or "all"
        Of a metric of sets: the targets that a number is about. "members": each member of each.
    reference, errata : str
        Where the definition comes from, and what the source prints otherwise.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.SPECS["accuracy"].title
    'Accuracy'
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
    rest_metric: str = ""
    symbol: str = ""
    aliases: Strings = ()
    comparison_aliases: Mapping[Aggregate, Strings] = field(
        default_factory=lambda: MappingProxyType({})
    )
    aggregate: Aggregate = Aggregate.VALUE
    compared_to: ComparedTo = ""
    range: Span = (0.0, 1.0)
    range_note: str = ""
    unit: Unit = "number"
    rate: bool = False
    of_class: bool = False
    by_default: Strings | None = None
    of_models: bool = False
    of_pair: bool = False
    of_base_rates: bool = False
    of_one_answer: bool = False
    of_exclusion: bool = False
    of_state: bool = False
    state: str = ""
    of_answered: bool = False
    of_labels: bool = False
    combines: Strings = ()
    profile: str = ""
    harm: Harm | None = "higher"
    groups_harm: Literal["lower", "higher"] = "lower"
    group_label: str = ""
    group_metric: str = ""
    of_whole: bool = False
    clause: str = ""
    errors: Literal["", "value", "rest"] = ""
    error_clause: str = ""
    expectation: str = ""
    basis: str = ""
    observed_in: Strings = ()
    observed_clause: str = ""
    general_words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    part: str = "{share} of {group}"
    pair_clause: str = ""
    threshold: float | None = None
    threshold_reason: str = ""
    gravest: Literal["disparity", "detected"] = "disparity"
    verdict_title: str = ""
    bands: Mapping[Band, float] = field(default_factory=lambda: MappingProxyType({}))
    chance: str = "none"
    interval: str = "none"
    null: str = "none"
    null_kind: NullHypothesis = NullHypothesis.NONE
    sentence: str = SENTENCE
    needs: Strings = ()
    takes: Strings = ()
    targets: Literal["each", "members", "two", "all"] = "each"
    errata: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            title = _with_basis(self.name.replace("_", " ").capitalize(), self.basis)
            object.__setattr__(self, "title", title)
        check_types(self)

    @property
    def bounds(self) -> Span | None:
        """Smallest and largest value, or None without fixed finite ends."""
        limited = not self.range_note and all(map(math.isfinite, self.range))
        return self.range if limited else None

    @property
    def limits(self) -> Span:
        """The range, or any number where a note makes it another for some values."""
        return ANY_NUMBER if self.range_note else self.range

    def possible(self, low: float, high: float) -> Span:
        """Return the ends of an interval, none outside the limits; NaN stays."""
        least, most = self.limits
        return max(min(low, most), least), max(min(high, most), least)

    def check_values(self, values: ArrayLike) -> None:
        """Refuse values outside the limits, where an interval would be cut off; NaN is none.

        Raises
        ------
        PluginError
            With the value and the range.
        """
        numbers, (least, most) = np.asarray(values, dtype=np.float64), self.limits
        rounding = _ROUNDING * np.maximum(1.0, np.abs(numbers))
        outside = (numbers < least - rounding) | (numbers > most + rounding)
        if outside.any():
            raise PluginError(
                f"gave {numbers[outside].flat[0]:.4g}, and its range is {self.range_text}",
                "declare `range`, the smallest and the largest value, in its MetricSpec",
                noun="metric", name=self.name, packages=("",),
            )  # fmt: skip

    @property
    def range_text(self) -> str:
        """The range for display, with its condition."""
        low, high = self.range
        if self.range == ANY_NUMBER:
            return self.range_note or "any number"
        start = "(−∞" if math.isinf(low) else f"[{low:.3g}".replace("-", "−")
        end = "∞)" if math.isinf(high) else f"{high:.3g}]".replace("-", "−")
        return f"{start}, {end}{f', {self.range_note}' if self.range_note else ''}"

    def titled(self, comparison: str) -> str:
        """Return the title of how groups compare in it, such as "difference"."""
        return _with_basis(f"{_without_basis(self.title, self.basis)} {comparison}", self.basis)

    def in_audit(self, kind: str) -> "MetricSpec":
        """Return the record in the words of a kind of audit."""
        if kind not in self.observed_in:
            return self
        title, label = (_without_basis(text, self.basis) for text in (self.title, self.group_label))
        return replace(
            self, title=title, group_label=label, clause=self.observed_clause, basis="",
            observed_in=(),
        )  # fmt: skip

    def is_default_of(self, kind: str) -> bool:
        """Return whether a kind of audit measures it where no configuration names it."""
        return kind in ("", *(self.kinds if self.by_default is None else self.by_default))

    @property
    def value_harm(self) -> Harm:
        """Which side of a finding's value is worse."""
        return self.harm or "either"

    @cached_property
    def change(self) -> "MetricSpec":
        """The record of changes of the metric."""
        return replace(
            self, title=f"Change of {self.label}", unit="number", rate=False, harm="higher",
            range=(-self._width, self._width),
            bands={}, sentence=SENTENCE, clause="", expectation="", gravest="disparity",
            verdict_title="",
        )  # fmt: skip

    def derived(self, aggregate: Aggregate, compared_to: ComparedTo = "") -> "MetricSpec":
        """Return the record of how groups compare in the metric."""
        if (aggregate, compared_to) == (self.aggregate, self.compared_to):
            return self
        compared = replace(
            self, aggregate=aggregate, compared_to=compared_to, rate=False, profile="",
            groups_harm="higher" if self.harm == "higher" else "lower",
        )  # fmt: skip
        unit: Unit = "points" if self.unit == "share" else self.unit
        width = self._width
        if aggregate is Aggregate.DIFFERENCE:
            title = self.titled("gap to all rows" if compared_to else "difference")
            return replace(
                compared, title=title, unit=unit, harm="higher", neutral=0.0, range=(0.0, width)
            )
        if aggregate is Aggregate.AGAINST_REST:
            return replace(
                compared, title=self.titled("against all others"), unit=unit, harm="either",
                fold="", mirror="", rest_metric="", neutral=0.0, range=(-width, width),
            )  # fmt: skip
        if aggregate is Aggregate.RATIO:
            return replace(
                compared, title=self.titled("ratio"), unit="number", harm="lower", neutral=1.0,
                range=(0.0, math.inf), threshold=None, threshold_reason="",
            )  # fmt: skip
        return replace(compared, title=self.titled("of the worst group"), neutral=None)

    @property
    def _width(self) -> float:
        return self.range[1] - self.range[0]

    @property
    def label(self) -> str:
        """The title within a sentence: abbreviations and proper names keep their capitals."""
        proper = self.title[1:] != self.title[1:].lower()
        return self.title if proper else self.title[0].lower() + self.title[1:]


def _with_basis(text: str, basis: str) -> str:
    return f"{text} {basis}" if basis else text


def _without_basis(text: str, basis: str) -> str:
    return text.removesuffix(f" {basis}") if basis else text


_RECORDS: dict[tuple[str, Aggregate, ComparedTo], MetricSpec] = {}
ALIASES: dict[str, MetricSpec] = {}
"""Records by their aliases, each as `plain_name` spells it."""
SPECS = Registry[MetricSpec](
    "metric", "equipoise.metrics", "equipoise.metrics", Path(__file__).parent
)
"""Every metric by name, also of plugins: of several records of a name, the first."""


def records() -> list[MetricSpec]:
    """Return the records of all metrics, also several of a name."""
    names = {*SPECS}
    return [record for record in _RECORDS.values() if record.name in names]


def register_for(module: str, spec: MetricSpec, qualname: str) -> None:
    """Add a metric, the function of this qualified name in a module, to `SPECS`."""
    key = (spec.name, spec.aggregate, spec.compared_to)
    # All metrics of equipoise are registered together: they may name later ones.
    check_record(spec, module, SPECS.has if module.partition(".")[0] != PACKAGE else bool)
    if key in _RECORDS:
        SPECS.check_free(spec.name, module)
    names = [(alias, spec) for alias in spec.aliases]
    for aggregate, aliases in spec.comparison_aliases.items():
        names += [(alias, spec.derived(aggregate)) for alias in aliases]
    for alias in (spec.name, *(alias for alias, _ in names)):
        _check_alias(alias, spec, module)
    ALIASES.update({plain_name(alias): named for alias, named in names})
    _RECORDS[key] = spec
    if not SPECS.has(spec.name):
        SPECS.add(spec.name, spec, module, qualname)
    spec_of.cache_clear()
    _record_of.cache_clear()


def _check_alias(alias: str, spec: MetricSpec, module: str) -> None:
    """Refuse a name or an alias of a metric that is an alias of another, or its name."""
    holder = ALIASES.get(plain_name(alias))
    name = alias if holder is None and SPECS.has(alias) else getattr(holder, "name", spec.name)
    if name != spec.name:
        problem = f"{alias!r} is a name of the metric {name}, too"
        raise refused(problem, "leave the alias out", SPECS.place(spec.name, module))


def plain_name(name: str) -> str:
    """Return a name as metrics have them: "Equalised Odds" is equalised_odds."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def aliases_of(name: str) -> Strings:
    """Return the aliases of all records of a metric."""
    return tuple(alias for alias, spec in ALIASES.items() if spec.name == name)


def unregister(name: str) -> None:
    """Remove a metric from `SPECS`, to define it again; nothing happens for an unknown name."""
    if SPECS.has(name):
        SPECS.remove(name)
    for key in [key for key in _RECORDS if key[0] == name]:
        del _RECORDS[key]
    for alias in aliases_of(name):
        del ALIASES[alias]
    spec_of.cache_clear()
    _record_of.cache_clear()


class Tested(TypedDict, total=False):
    """Fields of an estimate that a test against chance gives."""

    chance: Chance | None
    no_chance: str
    p_value: float | None
    p_at_most: bool
    null_drawn: str


class EstimateFields(Tested, total=False):
    """Fields of an estimate that its record does not hold."""

    params: Facts
    by: Parts | Callable[[], Parts]
    excluded: Mapping[str, int]
    unit: str
    reason: str
    ends: Ends
    corrected: float
    interval_kind: IntervalKind
    null: NullHypothesis


def make_estimate(
    metric: str,
    value: float,
    n: Mapping[str, int],
    method: str,
    *,
    aggregate: Aggregate | None = None,
    compared_to: ComparedTo = "",
    harm: Harm | None = None,
    **fields: Unpack[EstimateFields],
) -> Estimate:
    """Return an estimate with the reference of its metric, and its harm unless `harm` is set.

    The aggregate is that of the metric's first record, unless set. Counts of 0 are left out of
    `excluded`.

    Raises
    ------
    PluginError
        When the value is outside the range of its record.
    """
    spec, value = spec_for(metric, aggregate, compared_to), float(value)
    if fields.get("null_drawn"):
        fields.setdefault("null", spec.null_kind)
    excluded = fields.get("excluded", {})
    fields["excluded"] = {reason: int(n) for reason, n in excluded.items() if n}
    spec.check_values(value)
    return Estimate(
        metric, value, n, method, spec.reference, harm=harm or spec.harm or "either",
        aggregate=spec.aggregate, compared_to=compared_to, limits=spec.limits, **fields,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def spec_of(metric: str) -> MetricSpec:
    """Return the first record of a metric by its exact name; an empty one where there is none."""
    registered = SPECS.get(metric)
    return registered or MetricSpec(
        name=metric, kinds=(), definition="", direction="", reference="", range=ANY_NUMBER
    )


@lru_cache(maxsize=1024)
def _record_of(
    metric: str,
    aggregate: Aggregate | None,
    compared_to: ComparedTo,
    *,
    changes: bool,
    words: tuple[tuple[str, str], ...] = (),
) -> MetricSpec:
    first = spec_of(metric)
    aggregate = aggregate or first.aggregate
    record = _RECORDS.get((metric, aggregate, compared_to)) or first.derived(aggregate, compared_to)
    record = record.change if changes else record
    for general, text in words:
        # Braces of a text are no fields of a template.
        in_template = text.replace("{", "{{").replace("}", "}}")
        record = replace(
            record,
            group_label=record.group_label.replace(general, text),
            clause=record.clause.replace(general, in_template),
        )
    return record


def spec_for(
    metric: str,
    aggregate: Aggregate | None = None,
    compared_to: ComparedTo = "",
    change_from: str = "",
) -> MetricSpec:
    """Return the record of how groups compare in a metric, or of its change.

    A record that isn't registered is derived from the metric's first. Without an aggregate it is
    that of the first record.
    """
    return _record_of(metric, aggregate, compared_to, changes=bool(change_from))


def spec_of_finding(finding: Finding) -> MetricSpec:
    """Return the metric record of a finding's value, in the words of its parameters."""
    general_words = spec_of(finding.metric).general_words
    words: tuple[tuple[str, str], ...] = ()
    if general_words:
        words = tuple(
            (general, str(finding.parameters[parameter]))
            for parameter, general in general_words.items()
            if parameter in finding.parameters
        )
    record = _record_of(
        finding.metric, finding.aggregate, finding.compared_to, changes=bool(finding.change_from),
        words=words,
    )  # fmt: skip
    return record.in_audit(finding.audit)


def chance_spread(finding: Finding, harm: Harm) -> float:
    """Return the standard deviation of a chance level, as that of a normal one with its band.

    The band ends where a test of the side of harm, or of both, has the p-value 0.05.
    """
    if harm == "either":
        return (finding.chance_high - finding.chance_low) / (2.0 * _Z_OF_BOTH)
    if harm == "lower":
        return (finding.chance - finding.chance_low) / _Z_OF_ONE
    return (finding.chance_high - finding.chance) / _Z_OF_ONE


def is_main(number: Part | Finding, estimate: Estimate) -> bool:
    """Whether a part or finding is its estimate's main measure, not a variant."""
    of_whole = (number.metric, number.aggregate) == (estimate.metric, estimate.aggregate)
    return of_whole and number.variant is Variant.MAIN


def own_aggregate(metric: str) -> Aggregate:
    """Return the aggregate of a metric's first record."""
    return spec_of(metric).aggregate


# Audits that compare models, or one model before and after.
_COMPARING = frozenset({"comparison", "mitigation"})


def corrected_with(finding: Finding) -> str | None:
    """Return the model that a p-value is corrected within, or None in comparisons.

    "" is what is said of no model, such as what people say of images.
    """
    compares = finding.audit in _COMPARING or spec_of(finding.metric).of_models
    return None if compares else finding.model
