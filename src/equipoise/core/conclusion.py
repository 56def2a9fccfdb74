"""A conclusion: what a person would state once about a model, and the findings that say it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.core.finding import REAL, Aggregate, Verdict


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
class Standing:
    """A model's value among models that are compared.

    Attributes
    ----------
    model : str
    value : float
    better_on : int
        Of two models: classes, subjects or metrics on which it is the better one.
    """

    model: str
    value: float
    better_on: int = 0

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Standing:
        """Rebuild a standing from a file."""
        return cls(**{**item, "value": float(item["value"])})


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What a person would state once.

    Attributes
    ----------
    model : str
        "" where it is about no model, such as labels.
    verdict : Verdict
        Of the finding that states it.
    groups : str
        Attributes that are compared.
    group, other : str
        The group that is worse off, and the group it is compared with; "" where the metric compares
        no groups.
    subject : str
        Class, concept, query or target; "" for all.
    metric : str
    aggregate : Aggregate
    size, low, high : float
        The value of the finding, and its interval.
    group_value, other_value : float
        Values of both groups; NaN where there are none.
    n : int
        Rows behind the finding.
    finding : int
        Place in the run's findings of the one that states it.
    restated_by : tuple of int
        Places of the others that say the same.
    standings : tuple of Standing
        Of a comparison of models: their values, the best model first.
    worse : str
        Of a comparison of models: the worst one; "" where no order was found.
    compared_on : int
        Of two models: classes, subjects or metrics that both have, on which they are compared.
    compared_over : str
        What these are: "classes", "subjects" or "metrics".
    alike_in : tuple of str
        Of two models that differ: metrics whose values over all rows are alike.
    """

    model: str
    verdict: Verdict
    groups: str
    group: str = ""
    other: str = ""
    subject: str = ""
    metric: str
    aggregate: Aggregate
    size: float
    low: float
    high: float
    group_value: float = math.nan
    other_value: float = math.nan
    n: int
    finding: int
    restated_by: tuple[int, ...] = ()
    standings: tuple[Standing, ...] = ()
    worse: str = ""
    compared_on: int = 0
    compared_over: str = ""
    alike_in: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Conclusion:
        """Rebuild a conclusion from a file, where numbers that JSON lacks are text.

        Raises
        ------
        KeyError, TypeError, ValueError
            When it isn't one.
        """
        numbers = ("size", "low", "high", "group_value", "other_value")
        return cls(**{
            **item,
            **{name: float(item[name]) for name in numbers},
            "verdict": Verdict(item["verdict"]),
            "aggregate": Aggregate(item["aggregate"]),
            "restated_by": tuple(item["restated_by"]),
            "standings": tuple(map(Standing.from_json, item.get("standings", ()))),
            "alike_in": tuple(item.get("alike_in", ())),
        })  # fmt: skip

    @property
    def real(self) -> bool:
        """Whether a difference was found."""
        return self.verdict in REAL
