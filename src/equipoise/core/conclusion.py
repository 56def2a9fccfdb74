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
        no groups. The other is "expected" where shares of groups are declared.
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
        })  # fmt: skip

    @property
    def real(self) -> bool:
        """Whether a difference was found."""
        return self.verdict in REAL
