"""A conclusion: what a person would state once about a model, and the findings that say it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from equipoise.core.finding import REAL, Aggregate, ComparedTo, Finding, Ratio, Verdict
from equipoise.core.plain_json import number_from_json
from equipoise.core.types import Facts


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cell of a model's rows that explains disparities, with the findings it explains.

    Attributes
    ----------
    model : str
    groups : str
        Attributes, joined as in findings.
    group : str
        The group that is worse off.
    subject : str
        The true class of the rows; "" for all rows of the group.
    n : int
        Rows of the cell.
    findings : tuple of int
        Places of the findings that are no disparities once the cell has the level of the other
        groups.
    """

    model: str
    groups: str
    group: str
    subject: str
    n: int
    findings: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Adjustment:
    """A difference of two groups at equal shares of classes, or of another attribute's values.

    Attributes
    ----------
    by : str
        The attribute; "" for the true class.
    size, low, high : float
        The difference at equal shares and its interval. It is positive where it has the direction
        of the difference over all rows.
    group_value, other_value : float
        Values of both groups at equal shares.
    moved, moved_low, moved_high : float
        The difference over all rows minus `size`, with its interval, which is paired.
    n, left_out : int
        Rows of both groups that are compared, and those in classes with too few rows of a group.
    verdict : Verdict
        On the difference at equal shares.
    leads : bool
        Whether a conclusion states the difference at equal shares first.
    """

    by: str
    size: float
    low: float
    high: float
    group_value: float
    other_value: float
    moved: float
    moved_low: float
    moved_high: float
    n: int
    left_out: int
    verdict: Verdict
    leads: bool = False

    @property
    def turns(self) -> bool:
        """Whether the difference has the other direction at equal shares, beyond chance."""
        return self.high < 0.0

    @property
    def moves(self) -> bool:
        """Whether equal shares change the difference beyond chance, and by a point or more."""
        certain = self.moved_low > 0.0 or self.moved_high < 0.0
        return certain and abs(self.moved) >= LEAST_MOVE

    @classmethod
    def from_json(cls, item: Facts) -> Adjustment:
        """Rebuild an adjustment from a file, see `plain` for its numbers."""
        numbers = {name: number_from_json(item[name]) for name in _ADJUSTED}
        return cls(**{**item, **numbers, "verdict": Verdict(item["verdict"])})


LEAST_MOVE = 0.01
"""The smallest move that a sentence mentions: a point, as sentences show tenths of it."""
_ADJUSTED = (
    "size", "low", "high", "group_value", "other_value", "moved", "moved_low", "moved_high",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A model's value among models that are compared.

    Attributes
    ----------
    model : str
    value : float
    better_on : int
        Of two models: groups, classes, subjects or metrics on which it is the better one.
    group : str
        The group that is worse off in the model, where models differ in it; else "".
    """

    model: str
    value: float
    better_on: int = 0
    group: str = ""

    @classmethod
    def from_json(cls, item: Facts) -> Standing:
        """Rebuild a standing from a file."""
        return cls(**{**item, "value": number_from_json(item["value"])})


@dataclass(frozen=True, kw_only=True)
class Step:
    """What other choices do to the conclusions of an audit: a step from one version to another.

    Attributes
    ----------
    baseline, version : str
        The version that is read first, and the other.
    choices : tuple of str
        Names of the choices in which they differ.
    change : str
        What the other version does differently, as a clause: "prevalence is fixed".
    compared : int
        Differences that are estimable in both.
    found : int
        Of these, found in one or both.
    surfaces, explains, magnifies, shrinks, switches : int
        Of those found: by what becomes of them, where the paired change isn't chance.
    unclear : int
        Found in only one of both, perhaps by chance.
    leads : bool
        Whether the conclusion is stated about this step.
    """

    baseline: str
    version: str
    choices: tuple[str, ...]
    change: str
    compared: int
    found: int
    surfaces: int
    explains: int
    magnifies: int
    shrinks: int
    switches: int
    unclear: int
    leads: bool = False

    @property
    def changed(self) -> int:
        """Conclusions that the other version reverses, adds or takes back."""
        return self.surfaces + self.explains + self.switches

    @classmethod
    def from_json(cls, item: Facts) -> Step:
        """Rebuild a step from a file."""
        return cls(**{**item, "choices": tuple(item["choices"])})


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What a person would state once.

    Attributes
    ----------
    model : str
        "" where it is about no model, such as labels.
    verdict : Verdict
        Of the finding that states it, or of the difference at equal classes where that leads.
    groups : str
        Attributes that are compared.
    group, other : str
        The group that is worse off, and the group it is compared with; "" where the metric compares
        no groups. The other is "expected" where shares of groups are declared. Of two models, the
        group whose change it is.
    subject : str
        Class, concept, query or target; "" for all.
    metric : str
    aggregate : Aggregate
    compared_to : "" or "overall"
        As in `Finding`: whether `size` is between groups, or to all rows.
    size, low, high : float
        The value of the finding, and its interval; at equal classes where that leads.
    group_value, other_value : float
        Values of both groups; NaN where there are none.
    ratio : Ratio or None
        Of rare errors of both groups, see `Finding`.
    n : int
        Rows behind the finding.
    finding : int
        Place in the run's findings of the one that states it.
    restated_by : tuple of int
        Places of the others that say the same.
    compared : int
        Groups among which the leading one was picked; 0 where that is unknown.
    group_low, group_high : float
        Interval of `group_value` that holds for all groups compared together.
    group_corrected : float
        `group_value` corrected for the selection of the group and of the verdict.
    corrected, corrected_low, corrected_high : float
        `size` corrected in the same way, in its direction, and an interval for all groups together.
    adjustments : tuple of Adjustment
        The difference at equal shares of classes, then of each other attribute; () where rows have
        none of them, or the metric is no rate over all rows.
    standings : tuple of Standing
        Of a comparison of models: their values, the best model first.
    worse : str
        Of a comparison of models: the worst one; "" where no order was found.
    compared_on : int
        Of two models: groups, classes, subjects or metrics that both have, on which they are
        compared.
    compared_over : str
        What these are: "groups", "classes", "subjects" or "metrics".
    alike_in : tuple of str
        Of two models that differ: metrics whose values over all rows are alike.
    steps : tuple of Step
        Of a model under several choices of measurement: what becomes of its conclusions. Then
        `size` is the share that changes in the leading step, and `n` how many there are.
    effect, change : str
        What becomes of it under other choices, as tables name it: "explains"; and what these
        choices are, as a clause. "" where none were compared.
    """

    model: str
    verdict: Verdict
    groups: str
    group: str = ""
    other: str = ""
    subject: str = ""
    metric: str
    aggregate: Aggregate
    compared_to: ComparedTo = ""
    size: float
    low: float
    high: float
    group_value: float = math.nan
    other_value: float = math.nan
    ratio: Ratio | None = None
    n: int
    finding: int
    restated_by: tuple[int, ...] = ()
    compared: int = 0
    group_low: float = math.nan
    group_high: float = math.nan
    group_corrected: float = math.nan
    corrected: float = math.nan
    corrected_low: float = math.nan
    corrected_high: float = math.nan
    adjustments: tuple[Adjustment, ...] = ()
    standings: tuple[Standing, ...] = ()
    worse: str = ""
    compared_on: int = 0
    compared_over: str = ""
    alike_in: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    effect: str = ""
    change: str = ""

    @classmethod
    def stated_by(
        cls, finding: Finding, place: int, members: Iterable[int], **further: Any
    ) -> Conclusion:
        """Return a conclusion with the record of the finding that states it.

        Parameters
        ----------
        finding : Finding
        place : int
            Of the finding among those of the run.
        members : iterable of int
            Places of all findings that say the same.
        **further
            Other fields.
        """
        return cls(
            model=finding.model,
            verdict=finding.verdict,
            groups=finding.groups,
            subject=finding.subject,
            metric=finding.metric,
            aggregate=finding.aggregate,
            compared_to=finding.compared_to,
            size=finding.value,
            low=finding.ci_low,
            high=finding.ci_high,
            ratio=finding.ratio,
            n=finding.n,
            finding=place,
            restated_by=tuple(member for member in members if member != place),
            **further,
        )

    @classmethod
    def from_json(cls, item: Facts) -> Conclusion:
        """Rebuild a conclusion from a file, see `plain` for its numbers.

        Raises
        ------
        KeyError, TypeError, ValueError
            When it isn't one.
        """
        numbers = [field.name for field in fields(cls) if field.type == "float"]
        return cls(**{
            **item,
            **{name: number_from_json(item[name]) for name in numbers if name in item},
            "verdict": Verdict(item["verdict"]),
            "aggregate": Aggregate(item["aggregate"]),
            "ratio": Ratio.from_json(item["ratio"]),
            "restated_by": tuple(item["restated_by"]),
            "adjustments": tuple(map(Adjustment.from_json, item.get("adjustments", ()))),
            "standings": tuple(map(Standing.from_json, item.get("standings", ()))),
            "alike_in": tuple(item.get("alike_in", ())),
            "steps": tuple(map(Step.from_json, item.get("steps", ()))),
        })  # fmt: skip

    @property
    def at_equal_mix(self) -> Adjustment | None:
        """The difference at equal classes where it leads."""
        return next((adjustment for adjustment in self.adjustments if adjustment.leads), None)

    @property
    def opposite(self) -> tuple[Standing, ...]:
        """Of a comparison of models: two in which different groups are worse off; else ()."""
        return tuple(standing for standing in self.standings if standing.group)

    @property
    def real(self) -> bool:
        """Whether a difference was found."""
        return self.verdict in REAL

    @property
    def leading_step(self) -> Step | None:
        """The step between versions that it is stated about."""
        return next((step for step in self.steps if step.leads), None)

    @property
    def about_groups(self) -> bool:
        """Whether it compares groups, rather than models of a run or choices of measurement."""
        is_ranking = bool(self.standings) and not self.model
        return not is_ranking and not self.steps
