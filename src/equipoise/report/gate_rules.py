"""Rules of the gate, and the checks that come of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from equipoise.core import Aggregate, ConfigError, Finding
from equipoise.core.estimate import name_with
from equipoise.metrics.naming import comparison_of, find_records
from equipoise.metrics.spec import ANY_NUMBER, MetricSpec, own_aggregate, spec_for
from equipoise.report.text import enclose, visible

On = Literal["value", "lower", "upper", "whole", "any"]
Of = Literal["value", "difference", "ratio", "worst_group", "against_rest"]
GateVerdict = Literal["disparity", "detected", "inconclusive"]
Outcome = Literal["passed", "breached", "not estimable", "not judged", "not measured", "no match"]
ON: Mapping[str, str] = MappingProxyType({
    "value": "", "lower": "lower end of ", "upper": "upper end of ",
    "whole": "whole interval of ", "any": "any of the interval of ",
})  # fmt: skip
"""What may be held against bounds, in words."""
ROUNDING = 1e-9
"""How far beyond a bound a number may be by rounding: 8/20 - 6/20 isn't above 0.1."""
VERDICTS: tuple[GateVerdict, ...] = ("disparity", "detected", "inconclusive")
"""Verdicts that a rule can forbid, the gravest first."""
EXTREMES = (Aggregate.DIFFERENCE, Aggregate.RATIO, Aggregate.WORST_GROUP)
"""Comparisons whose changes have no verdict, as they are largest or smallest numbers."""


@dataclass(frozen=True)
class GateRule:
    """A requirement on a run: bounds of a metric, a verdict, or a comparison with another run.

    Attributes
    ----------
    metric : str
        The metric, by its name or one that the field has for it; "" of a rule about all
        conclusions, or all changes.
    of : str or None
        What is held against the bounds: the "value", the "difference" or "ratio" of groups, the
        "worst_group", or each group "against_rest". None: the value; of a metric that is a
        difference by definition, the difference. A rule on verdicts is then about all of them.
    min, max : float or None
        Smallest and largest number that passes.
    on : "value", "lower", "upper", "whole" or "any"
        Whether the value or an end of its interval is held against the bounds; or whether the rule
        is breached where the whole interval is beyond a bound, or where any of it is.
    verdict : str or None
        The rule is breached by this verdict and by graver ones, in the order "disparity",
        "detected", "inconclusive". Without a metric it is about conclusions.
    worse_than : str or None
        A run whose models must not be better. Breached where a paired test finds a model of the
        same name worse: for a group, a class, or over all rows.
    model, groups, subject, version : str or None
        Which findings the rule is about; None: all models, groups and versions, save variants
        that stand beside under another null hypothesis. Without a
        subject a rule with bounds is about the findings for the whole and, where the metric has
        none of these, about every subject.
    change_from : str or None
        The model or run that a change is from; None: levels, no changes.

    Raises
    ------
    ConfigError
        When no requirement is given or two that exclude each other, the bounds cross or are
        outside the metric's range, a word is unknown, or `of` isn't the comparison that the name of
        the metric says.
    """

    metric: str = ""
    min: float | None = None
    max: float | None = None
    on: On = "value"
    model: str | None = None
    groups: str | None = None
    subject: str | None = None
    version: str | None = None
    of: Of | None = None
    change_from: str | None = None
    verdict: GateVerdict | None = None
    worse_than: str | None = None

    @property
    def aggregate(self) -> Aggregate:
        """The comparison of groups that the bounds limit."""
        if self.of is None:
            return own_aggregate(self.metric)
        return Aggregate(self.of)

    @property
    def bounds(self) -> list[float]:
        """The bounds, the smaller one first."""
        return [bound for bound in (self.min, self.max) if bound is not None]

    @property
    def about(self) -> str:
        """The rule's metric, or the subject of a rule without one."""
        if self.worse_than is not None:
            return self.metric or f"worse than {self.worse_than}"
        return self.metric or ("verdict" if self.verdict is not None else "no metric")

    def __post_init__(self) -> None:
        for record in find_records(self.metric)[:1]:
            self._take(record)
        if self.of not in (None, *Aggregate):
            self._refuse("of", f"of {self.of!r}", f"write one of {', '.join(Aggregate)}")
        if self.on not in ON:
            self._refuse("on", f"on {self.on!r}", f"write one of {', '.join(ON)}")
        if self.verdict not in (None, *VERDICTS):
            self._refuse(
                "verdict", f"verdict {self.verdict!r}", f"write one of {', '.join(VERDICTS)}"
            )
        if self.verdict is None and self.worse_than is None:
            self._check_bounds()
        else:
            self._check_without_bounds()

    def _take(self, record: MetricSpec) -> None:
        """Take the name of a metric, and how groups compare in it, from its record."""
        metric, of = self.metric, comparison_of(record)
        if of is not None and self.of not in (None, of):
            self._refuse("of", f"{metric} of {self.of}", f"leave out `of`: {metric} is a {of}")
        vars(self).update(metric=record.name, of=of or self.of)

    def _check_bounds(self) -> None:
        """Refuse bounds that say nothing."""
        if not self.bounds:
            self._refuse("min", "no requirement", "add min or max, verdict, or worse_than")
        if not self.metric:
            self._refuse("metric", "bounds without a metric", "name the metric that they limit")
        if self.bounds[0] > self.bounds[-1]:
            self._refuse(
                "min", f"min {self.min}, max {self.max}", "write a min that is not above max"
            )
        self._check_range()

    def _check_range(self) -> None:
        """Refuse bounds that no number of the metric can reach."""
        spec = spec_for(self.metric, self.aggregate)
        spec = spec.change if self.change_from else spec
        low, high = spec.bounds or ANY_NUMBER
        for key in ("min", "max"):
            bound = getattr(self, key)
            if bound is None or low <= bound <= high:
                continue
            fix = f"write a number from {low:g} to {high:g}"
            if spec.unit in ("share", "points") and low <= bound / 100.0 <= high:
                unit = "points are" if spec.unit == "points" else "% is"
                fix = f"write {bound / 100.0:g}: {bound:g} {unit} {bound / 100.0:g}"
            self._refuse(key, f"{key} {bound:g} is outside its range {spec.range_text}", fix)

    def _check_without_bounds(self) -> None:
        """Refuse keys that a rule on a verdict or a comparison doesn't read."""
        name = "verdict" if self.worse_than is None else "worse_than"
        present_keys = {
            "min": self.min is not None, "max": self.max is not None, "on": self.on != "value",
            "change_from": self.worse_than is not None and self.change_from is not None,
        }  # fmt: skip
        for key, present in present_keys.items():
            if present:
                self._refuse(key, f"{key} beside {name}", f"make two rules, or leave {key} out")
        if self.verdict is not None and self.of is not None and not self.metric:
            self._refuse("of", "of without a metric", "name the metric")
        if self.worse_than is not None and self.of is not None and Aggregate(self.of) in EXTREMES:
            self._refuse(
                "of",
                f"of {self.of} and worse_than: a change of an extreme has no verdict",
                "leave of out, so that the rule is about the change of each group",
            )

    def _refuse(self, key: str, problem: str, fix: str, expected: str | None = None) -> None:
        raise ConfigError(
            f"gate rule on {self.about}: {problem}. To do: {fix}", key=key, expected=expected or fix
        )

    def __str__(self) -> str:
        places = filter(None, (self.model, self.subject, self.groups, self.version))
        scope = enclose(" (", ", ".join(map(visible, places)), ")")
        change = enclose(", change from ", visible(self.change_from or ""), ",")
        metric = visible(self.metric)
        if metric and (self.of is not None or not (self.verdict or self.worse_than)):
            metric = name_with(metric, self.aggregate)
        if self.worse_than is not None:
            least = enclose(" (", self.verdict or "", ")")
            return (
                f"{enclose('', metric, ' ')}not worse than {visible(self.worse_than)}{least}{scope}"
            )
        if self.verdict is not None:
            return f"{enclose('', metric, ' ')}no verdict {self.verdict}{change}{scope}"
        texts = []
        if self.min is not None:
            texts.append(f"≥ {self.min:g}")
        if self.max is not None:
            texts.append(f"≤ {self.max:g}")
        return f"{ON[self.on]}{metric}{change} {' and '.join(texts)}{scope}"


@dataclass(frozen=True)
class GateCheck:
    """The check of one rule for one finding, or for none if nothing matched.

    Attributes
    ----------
    rule : GateRule
    finding : Finding or None
    outcome : "passed", "breached", "not estimable", "not judged", "not measured" or "no match"
    about : str
        The rule, and the model and groups that it is checked for.
    statement : str
        The outcome in words.
    conclusion : str
        What the run concludes from the finding; "" where it says nothing about it.
    alarms : float
        How often the rule would be breached if all groups were alike; NaN where that is unknown,
        and of rules that are about no extreme of groups.
    groups : str
        What a check without a finding compares; "" of one with a finding.
    not_checked : tuple of (str, int)
        Groups that are too small for the check, with their rows.
    """

    rule: GateRule
    finding: Finding | None
    outcome: Outcome
    about: str
    statement: str
    conclusion: str = ""
    alarms: float = math.nan
    groups: str = ""
    not_checked: tuple[tuple[str, int], ...] = ()

    @property
    def sentence(self) -> str:
        """The outcome in words, after the rule."""
        return f"{self.about}: {self.statement}"


@dataclass(frozen=True)
class GateResult:
    """Every check of every rule, in the order of the rules and findings."""

    checks: tuple[GateCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule was checked and held; a gate without rules passes."""
        return not self.breaches and not self.unchecked

    @property
    def breaches(self) -> tuple[GateCheck, ...]:
        """Checks with a number out of bounds."""
        return self._with_outcome("breached")

    @property
    def unchecked(self) -> tuple[GateCheck, ...]:
        """Rules that matched nothing, and numbers that are missing or can't be judged."""
        return self._with_outcome("not estimable", "not judged", "not measured", "no match")

    def _with_outcome(self, *outcomes: Outcome) -> tuple[GateCheck, ...]:
        return tuple(check for check in self.checks if check.outcome in outcomes)

    @property
    def exit_code(self) -> int:
        """1 on a breach, else 2 where something could not be checked, else 0."""
        if self.breaches:
            return 1
        return 2 if self.unchecked else 0
