"""Rates over all rows, shown with the tested differences."""

from collections.abc import Iterator

from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.core import Family, no_ends
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rates import MOST_FOLDED, rates_of_classes
from equipoise.metrics.spec import make_estimate, spec_of
from equipoise.stats.intervals import ClosedForm, wilson

_NO_CHANCE = "the rate of all rows compares no groups; its difference between groups is tested"


def pooled_rates(
    counts: Counts, place: Place, positive: str | None
) -> Iterator[UncorrectedFinding]:
    """Yield each rate of each class over all rows, described and not tested.

    Parameters
    ----------
    counts : Counts
        Of all labelled rows, without groups.
    place : Place
    positive : str, optional
        The only class whose rates are wanted. Of very many classes there are none.
    """
    if len(counts.classes) > MOST_FOLDED:
        return
    cells = Cells.of(counts, counts.observed)
    method = "Wilson interval" if counts.independent else "none: rows are not independent"
    for rate in rates_of_classes().values():
        if not (rate.is_share and spec_of(rate.name).of_class):
            continue
        for code, name in enumerate(counts.classes):
            hits, rows = (float(cell[0, code].sum()) for cell in rate.pooled(cells))
            if positive not in (None, name) or not rows:
                continue
            estimate = make_estimate(
                rate.name, hits / rows, {"rows": round(rows)}, method, no_chance=_NO_CHANCE,
                unit=counts.unit,
                ends=ClosedForm(wilson, (hits, rows)) if counts.independent else no_ends,
            )  # fmt: skip
            level = whole(estimate, place, Family.DESCRIPTIVE)
            yield level.changed(subject=name)
