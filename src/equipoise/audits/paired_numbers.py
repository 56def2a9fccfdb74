"""Two models' numbers of the same rows: changes of means, paired row by row."""

from dataclasses import dataclass, replace

from scipy.special import stdtr

from equipoise.audits.comparison import difference
from equipoise.audits.findings import Place, UncorrectedFinding
from equipoise.core import (
    Aggregate,
    Booleans,
    Family,
    Floats,
    IntervalKind,
    NullHypothesis,
    Objects,
    Part,
    record,
)
from equipoise.metrics.numbers.means import RowValues
from equipoise.metrics.spec import spec_for
from equipoise.report.words import COMPARISON, Pair

_METHOD = "Student's t over paired {unit}s"
_OF_GROUPS = ", simultaneous over {tests} groups (Šidák)"
_NULL = "the mean of paired differences is 0 over {unit}s; Student's t"


@record
class RowPairs:
    """Numbers of two models for the same rows, and their units."""

    first: Floats
    second: Floats
    units: Objects | None

    def of(self, rows: Booleans) -> "RowPairs":
        """Return some rows."""
        units = None if self.units is None else self.units[rows]
        return RowPairs(self.first[rows], self.second[rows], units)


@dataclass(frozen=True)
class Selection:
    """A group, and how many groups are tested together; without a name all rows."""

    groups: str = ""
    group: str = ""
    tests: int = 1


def change(
    metric: str,
    rows: RowPairs,
    names: tuple[str, str],
    level: float,
    selection: Selection = Selection(),
    *,
    aggregate: Aggregate = Aggregate.VALUE,
    threshold: float | None = None,
) -> UncorrectedFinding:
    """Return the second model's mean less the first's, of all rows or of a group."""
    tests, lower = selection.tests, spec_for(metric, aggregate).harm
    paired = RowValues.of(rows.second - rows.first, None, rows.units)
    mean = paired.mean()
    error, freedom = paired.error()
    low, high = paired.ends()(level ** (1.0 / tests))
    p = float(2.0 * stdtr(freedom, -abs(mean) / error)) if error > 0.0 else 1.0
    if error == 0.0 and mean:
        # Equal differences have no spread: all signs are the same.
        p = 0.5**freedom
    means = float(rows.first.mean()), float(rows.second.mean())
    worse = names[(mean < 0.0) == (lower == "lower")] if mean else ""
    pair = Pair(*names, means, worse)
    part = Part(
        metric, "", mean, low, high, 0.0, low - mean, high - mean,
        1.0 - (1.0 - p) ** tests, len(rows.first), aggregate=aggregate,
    )  # fmt: skip
    draft = difference(
        part, pair, Place(COMPARISON, pair.name, selection.groups, "default", level),
        family=Family.COMPOSITE, unit=paired.unit, group=selection.group,
        method=(_METHOD + (_OF_GROUPS if selection.group else "")).format(
            unit=paired.unit, tests=tests
        ),
        null=NullHypothesis.MODELS, null_drawn=_NULL.format(unit=paired.unit),
        interval=IntervalKind.SIMULTANEOUS if selection.group else IntervalKind.CONFIDENCE,
    )  # fmt: skip
    together = (pair.name, selection.groups, metric) if selection.group else None
    return replace(draft, threshold=threshold, together=together)
