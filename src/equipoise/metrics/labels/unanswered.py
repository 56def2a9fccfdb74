"""How often models give no answer, as a measure of counts of answered and unanswered rows."""

from dataclasses import dataclass

import numpy as np

from equipoise.core import Aggregate, Fact, Floats
from equipoise.metrics.building import gaps
from equipoise.metrics.labels import Counts, Null
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rates import SELECTION_RATE
from equipoise.metrics.measure import ExtremeRate, Measure
from equipoise.metrics.spec import spec_of

UNANSWERED = "unanswered"


def counts_unanswered(metric: str) -> bool:
    """Return whether a metric is a share of images without an answer, whatever the reason."""
    return spec_of(metric).state not in ("", "right", "wrong")


@dataclass(frozen=True)
class Unanswered(Measure):
    """The share of rows without an answer; of several groups, the gap between them."""

    null: Null | None = None
    name = "unanswered_rate"
    extreme = ExtremeRate(("selection_rate",), "gap", label=UNANSWERED, group_metric=name)

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, (r, 1)."""
        position = counts.classes.index(UNANSWERED)
        shares = SELECTION_RATE.shares(Cells.of(counts, tables))[:, position]
        gap = shares[:, 0] if len(counts.groups) == 1 else gaps(shares, counts.groups.usable)
        return np.asarray(gap[:, None])

    def facts(self, counts: Counts) -> list[Fact]:
        """Return the share of all rows, or the gap between groups."""
        has_gap = len(counts.groups) > 1
        return [Fact(self.name, Aggregate.DIFFERENCE if has_gap else Aggregate.VALUE)]
