"""Conditions under which a run confirms a claim of a source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, NonNegativeFloat, Tag, model_validator

from equipoise.config.fields import Listed, Name, Section, keys_of
from equipoise.core import Verdict
from equipoise.core.finding import REAL
from equipoise.studies.quantities import (
    MISSING,
    NESTED,
    AnyQuantity,
    Reading,
    Where,
    exact,
)
from equipoise.studies.repetition import Repetition, Settings, contains


class Mark(StrEnum):
    """Whether a run confirms a claim."""

    HOLDS = "holds"
    FAILS = "doesn't"
    OPEN = "can't tell"


NO_INTERVAL = "no confidence interval"
UNDECIDED = "the interval leaves it open"
OTHER_RUN = "another configuration of the study measures it"


@dataclass(frozen=True)
class Comparison:
    """A number of a run compared with a bound or with another number.

    Attributes
    ----------
    left, right : Reading
    relation : str
        What is required of the left one: "at least", "at most", "above", "opposite to",
        "includes", "excludes" or "within".
    mark : Mark
    reason : str
        Why the mark is open; "" otherwise.
    """

    left: Reading
    relation: str
    right: Reading
    mark: Mark
    reason: str = ""


_Rule = Callable[[Reading, Reading], bool]
"""Whether the intervals of two numbers decide something."""
RELATIONS: Mapping[str, tuple[_Rule, _Rule]] = {
    "at least": (lambda a, b: a.low >= b.high, lambda a, b: a.high < b.low),
    "at most": (lambda a, b: a.high <= b.low, lambda a, b: a.low > b.high),
    "above": (lambda a, b: a.low > b.high, lambda a, b: a.high <= b.low),
    "includes": (
        lambda a, b: a.low <= b.value <= a.high,
        lambda a, b: not a.low <= b.value <= a.high,
    ),
    "excludes": (
        lambda a, b: not a.low <= b.value <= a.high,
        lambda a, b: a.low <= b.value <= a.high,
    ),
    "opposite to": (
        lambda a, b: a.low > 0 > b.high or b.low > 0 > a.high,
        lambda a, b: min(a.low, b.low) > 0 or max(a.high, b.high) < 0,
    ),
    "within": (
        lambda a, b: -b.value <= a.low and a.high <= b.value,
        lambda a, b: a.high < -b.value or a.low > b.value,
    ),
}
"""By relation, when the intervals show that it holds, and when that it doesn't."""


def compare(left: Reading, relation: str, right: Reading) -> Comparison:
    """Return whether the intervals of two numbers show that a relation holds."""
    for reading in (left, right):
        if reading.missing:
            return Comparison(
                left, relation, right, Mark.OPEN, f"{reading.missing}: {reading.name}"
            )
    for reading in (left, right):
        if not reading.has_interval:
            return Comparison(left, relation, right, Mark.OPEN, f"{NO_INTERVAL}: {reading.name}")
    holds, fails = RELATIONS[relation]
    if holds(left, right):
        return Comparison(left, relation, right, Mark.HOLDS)
    if fails(left, right):
        return Comparison(left, relation, right, Mark.FAILS)
    return Comparison(left, relation, right, Mark.OPEN, UNDECIDED)


class Condition(Section):
    """A condition of a claim."""

    @abstractmethod
    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield the comparisons that must all hold."""


class Bounds(Condition):
    """A number has bounds, or is above another number.

    Attributes
    ----------
    finding : quantity
    at_least, at_most : float, optional
        The whole interval lies on this side of the bound.
    above : quantity, optional
        The interval lies above that of this number.
    opposite_to : quantity, optional
        Both intervals exclude 0, and lie on different sides of it.
    includes, excludes : float, optional
        A value that the interval includes, or doesn't.
    """

    finding: AnyQuantity
    at_least: float | None = None
    at_most: float | None = None
    above: AnyQuantity | None = None
    opposite_to: AnyQuantity | None = None
    includes: float | None = None
    excludes: float | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if {*self.model_fields_set} == {"finding"}:
            raise ValueError(f"expected one of {', '.join(map(repr, _RELATIONS))}")
        return self

    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield a comparison for each bound."""
        left = self.finding.read(run)
        bounds = {"at least": self.at_least, "at most": self.at_most, "includes": self.includes,
                  "excludes": self.excludes}  # fmt: skip
        for relation, bound in bounds.items():
            if bound is not None:
                yield compare(left, relation, exact("", bound))
        if self.above is not None:
            yield compare(left, "above", self.above.read(run))
        if self.opposite_to is not None:
            yield compare(left, "opposite to", self.opposite_to.read(run))


class Order(Condition):
    """Numbers fall in this order, each clearly above the next.

    Attributes
    ----------
    order : list of quantity
    """

    order: Annotated[Listed[AnyQuantity], Field(min_length=2)]

    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield a comparison for each number and the next."""
        for left, right in pairwise(quantity.read(run) for quantity in self.order):
            yield compare(left, "above", right)


class Alike(Condition):
    """Numbers differ by no more than a bound.

    Attributes
    ----------
    alike : list of quantity
    within : float
        The largest difference. Its interval is that of unpaired numbers, from end to end.
    """

    alike: Annotated[Listed[AnyQuantity], Field(min_length=2)]
    within: NonNegativeFloat

    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield a comparison for each pair."""
        for left, right in combinations([quantity.read(run) for quantity in self.alike], 2):
            yield compare(left.minus(right), "within", exact("", self.within))


_NEEDED: Mapping[str, Callable[[int], int]] = {
    "all": lambda n: n,
    "any": lambda _: 1,
    "most": lambda n: n // 2 + 1,
}


class Verdicts(Condition):
    """All, some or most findings have a verdict.

    Attributes
    ----------
    verdicts : Where
        The findings, of all subjects unless it names some.
    are : "disparity" or "none"
        `disparity` is a real difference, `none` a difference too small to matter. Findings with too
        few data have neither.
    share : "all", "any" or "most"
        Most are more than half.
    """

    verdicts: Where
    are: Literal["disparity", "none"]
    share: Literal["all", "any", "most"] = "all"

    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield the comparison of the findings that have the verdict with the number required."""
        findings = self.verdicts.findings(run)
        name = f"findings with the verdict {self.are!r} of {self.verdicts.name}"
        yes, no = (REAL, (Verdict.BELOW_THRESHOLD,))[:: 1 if self.are == "disparity" else -1]
        n_yes = sum(finding.verdict in yes for finding in findings)
        n_maybe = sum(finding.verdict not in no for finding in findings)
        left = Reading(name, n_yes, n_yes, n_maybe)
        if not findings:
            left = Reading(name, missing=MISSING)
        needed = exact(f"of {len(findings)}", _NEEDED[self.share](len(findings)))
        yield compare(left, "at least", needed)


_RELATIONS = ("at_least", "at_most", "above", "opposite_to", "includes", "excludes")


def _wrapped(value: Any) -> Any:
    """Take a correlation, change, mean or count beside its bounds as their quantity."""
    if not isinstance(value, Mapping) or not {*value} & {*NESTED, "recorded"}:
        return value
    bounds = {key: value[key] for key in value if key in _RELATIONS}
    return {"finding": {key: value[key] for key in value if key not in bounds}, **bounds}


def _kind(value: Any) -> str:
    keys = keys_of(value)
    return next((key for key in ("order", "alike", "verdicts") if key in keys), "finding")


AnyCondition = Annotated[
    Annotated[
        Annotated[Bounds, Tag("finding")]
        | Annotated[Order, Tag("order")]
        | Annotated[Alike, Tag("alike")]
        | Annotated[Verdicts, Tag("verdicts")],
        Discriminator(_kind),
    ],
    BeforeValidator(_wrapped),
]


class StudyClaim(Section):
    """How a study judges a claim of its source.

    Attributes
    ----------
    of : str
        The claim.
    part : str
        The part of the claim that is judged; "" for the whole.
    holds : list of condition
        All must hold.
    why : str
        What the conditions leave out, or why there are none.
    run : mapping, optional
        Settings of the run that measures it.
    """

    of: Name
    part: str = ""
    holds: Listed[AnyCondition] = ()
    why: str = ""
    run: Settings = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_study_claim(self) -> Self:
        if not self.holds and not self.why:
            raise ValueError("expected conditions under 'holds', or under 'why' the reason of none")
        return self

    def comparisons(self, run: Repetition) -> Iterator[Comparison]:
        """Yield what decides the claim in a run; nothing in a run that doesn't measure it."""
        if contains(run.resolved, self.run):
            for condition in self.holds:
                yield from condition.comparisons(run)

    def reason(self, run: Repetition) -> str:
        """Return what the conditions leave out, or why a run doesn't judge the claim."""
        return self.why if contains(run.resolved, self.run) else OTHER_RUN


def mark_of(comparisons: list[Comparison]) -> Mark:
    """Return the mark of a claim: all comparisons must hold, and one is enough to refute it."""
    marks = {comparison.mark for comparison in comparisons}
    if Mark.FAILS in marks:
        return Mark.FAILS
    return Mark.HOLDS if marks == {Mark.HOLDS} else Mark.OPEN
