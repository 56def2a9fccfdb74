"""The chart of the first screen as data: what is measured, in which rows, with which highlights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from equipoise.core.types import Json
from equipoise.core.wording import shortened
from equipoise.report.blocks import Role

Ends = tuple[float, float]
MOST_LETTERS = 16
"""Letters of a group's name beside its mark."""
NO_ENDS: Ends = (math.nan, math.nan)


class Form(Enum):
    """How rows are drawn."""

    DUMBBELL = "dumbbell"
    """A mark for each group, the marks of a row joined by a line."""
    BARS = "bars"
    """A bar from what is expected to the value."""


class Scale(Enum):
    """How numbers are shown."""

    SHARE = "share"
    POINTS = "points"
    NUMBER = "number"
    LOG_RATIO = "log ratio"
    DEGREES = "degrees"


@dataclass(frozen=True, kw_only=True)
class ChartMark:
    """A value of the chart.

    Attributes
    ----------
    label : str
        Its row.
    name : str
        What it is the value of, such as a group.
    panel : str
        The model.
    value : float
    ends : pair of float
        Its interval.
    n : int
    role : Role
        Which group of the conclusion it is of; "" is drawn in grey.
    text : str
        Its value, which stands beside it.
    named : bool
        Whether its name stands there, too.
    expected : float
        Where a bar starts, or what the value is compared with.
    chance, limit : pair of float
        What chance alone gives, and what the limit of the user allows; of a dumbbell the same for
        all marks of a row.
    """

    label: str
    name: str = ""
    panel: str = ""
    value: float
    ends: Ends = NO_ENDS
    n: int = 0
    role: Role = ""
    text: str = ""
    named: bool = False
    expected: float = math.nan
    chance: Ends = NO_ENDS
    limit: Ends = NO_ENDS

    def to_json(self) -> dict[str, Json]:
        """Return the mark as a row of numbers and texts."""
        name = f"{shortened(self.name, MOST_LETTERS)} " if self.named else ""
        return {
            "label": self.label, "series": self.name, "model": self.panel, "value": self.value,
            "low": self.ends[0], "high": self.ends[1], "n": self.n, "expected": self.expected,
            "chance_low": self.chance[0], "chance_high": self.chance[1],
            "limit_low": self.limit[0], "limit_high": self.limit[1], "role": self.role,
            "text": f"{name}{self.text}", "short": self.text,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChartRecord:
    """A chart that was chosen for a conclusion, before it is drawn.

    Attributes
    ----------
    form : Form
    title : str
        What is measured.
    marks : tuple of ChartMark
        Rows in the order in which they are drawn.
    scale : Scale
    panels : tuple of str
        Models; more than one make small multiples.
    names : mapping of str to str
        What rows ("label") and marks ("series") are, for the file of the chart's numbers.
    highlighted : tuple of str
        Groups of the conclusion, in colour.
    sides : pair of str
        What the left and the right of the chart mean.
    zero : bool
        Whether a line marks 0 of a dumbbell.
    note : str
        How to read it.
    """

    form: Form
    title: str
    marks: tuple[ChartMark, ...]
    scale: Scale
    panels: tuple[str, ...] = ()
    names: Mapping[str, str]
    highlighted: tuple[str, ...] = ()
    sides: tuple[str, str] = ("", "")
    zero: bool = False
    note: str = ""
