"""Metrics of scores by group: findings, and how calibrated each group's scores are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from equipoise.audits.against_rest import leaf
from equipoise.audits.columns import Row
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole
from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.notes import Note
from equipoise.core import Aggregate, Facts, Family, Floats, floats
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, named
from equipoise.core.wording import number
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores.metric import (
    ScoreMetric,
    are_probabilities,
    calibrated_numbers,
    measure_scores,
)
from equipoise.metrics.scores.table import ScoredRows
from equipoise.metrics.spec import spec_for, spec_of
from equipoise.report.text import count
from equipoise.report.words import worst_first
from equipoise.stats import Resampling
from equipoise.stats.intervals import scored

KIND = "predictions"
_BINS = 10


def metrics_of_scores(scores: Floats, options: Mapping[str, Facts]) -> list[ScoreMetric]:
    """Return the metrics that are switched on and can be measured of scores."""
    probabilities = are_probabilities(scores[~np.isnan(scores)])
    return [
        metric
        for name, metric in metrics_of(ScoreMetric, KIND).items()
        if name in options and (probabilities or not metric.probabilities)
    ]


def notes_of_scores(
    name: str, scores: Floats, options: Mapping[str, Facts]
) -> Iterator[Note | str]:
    """Say which metrics are not measured, as they need probabilities."""
    measured = metrics_of_scores(scores, options)
    needed = [
        metric.spec.label
        for metric in metrics_of(ScoreMetric, KIND).values()
        if metric not in measured and metric.spec.name in options
    ]
    if needed:
        low, high = np.nanmin(scores), np.nanmax(scores)
        yield Note(
            name,
            f"Scores from {low:.3g} to {high:.3g} aren't probabilities, so these metrics aren't "
            f"measured: {', '.join(needed)}.",
        )


class ScoredDesign:
    """The scores of one design as rows with outcomes.

    Parameters
    ----------
    design : LabelDesign
    values : ndarray, shape (n,)
        Scores of all labelled rows.
    positive : str
    options : mapping
        Options of the metrics that are on, by name.
    """

    def __init__(
        self, design: LabelDesign, values: Floats, positive: str, options: Mapping[str, Facts]
    ) -> None:
        self.design, self.positive, self.options = design, positive, options
        self.scores = values[design.rows]
        truth = design.target
        outcomes = floats(truth.codes == truth.vocabulary.index(positive))
        self.outcomes = np.where(truth.codes >= 0, outcomes, np.nan)

    @property
    def rows(self) -> ScoredRows:
        """All rows with an outcome and a score, with their groups."""
        design = self.design
        return ScoredRows.of(self.outcomes, self.scores, design.groups, design.units)

    @property
    def everyone(self) -> ScoredRows:
        """The same rows without groups."""
        return ScoredRows.of(self.outcomes, self.scores, None, self.design.units)

    def findings(
        self, place: Place, resampling: Resampling | None, seed: int, *, first: bool
    ) -> Iterator[UncorrectedFinding]:
        """Yield the number of all rows where asked, and how groups differ in each metric."""
        metrics = metrics_of_scores(self.scores, self.options)
        if first:
            yield from self._levels(metrics, replace(place, groups=""), resampling, seed)
        rows = self.rows
        measures = [
            metric.measure(rows, Aggregate.DIFFERENCE, self.options[metric.spec.name])
            for metric in metrics
        ]
        for gap in measure_scores(rows, measures, resampling, seed):
            named = [replace(part, subject=self.positive) for part in gap.parts]
            gap_finding, *leaves = map(_with_direction, parts(replace(gap, by=named), place))
            yield replace(gap_finding, harm=gap.harm)
            spec = spec_for(gap.metric, gap.aggregate)
            yield from (leaf(draft, spec) for draft in leaves)

    def _levels(
        self,
        metrics: Sequence[ScoreMetric],
        place: Place,
        resampling: Resampling | None,
        seed: int,
    ) -> Iterator[UncorrectedFinding]:
        rows = self.everyone
        measures = [
            metric.measure(rows, Aggregate.VALUE, self.options[metric.spec.name])
            for metric in metrics
        ]
        for level in measure_scores(rows, measures, resampling, seed):
            draft = whole(level, place, Family.DESCRIPTIVE)
            yield draft.changed(subject=self.positive)

    def calibration(self, level: float) -> Iterator[Row]:
        """Yield the share of positives among alike probabilities of each group."""
        if not are_probabilities(self.scores[~np.isnan(self.scores)]):
            return
        rows, place = self.rows, self._place
        limits = np.unique(np.quantile(rows.scores, np.linspace(0.0, 1.0, _BINS + 1)))
        bins = np.clip(np.searchsorted(limits, rows.scores, side="right") - 1, 0, len(limits) - 2)
        for code, group in enumerate(rows.groups.names):
            inside = (rows.groups.codes == code) & rows.groups.usable[code]
            for step in range(len(limits) - 1) if inside.any() else ():
                members = inside & (bins == step)
                n = int(members.sum())
                if not n:
                    continue
                positives = float(rows.outcomes[members].sum())
                share, low, high = (float(x) for x in scored(
                    np.array(positives), np.array(float(n)), level
                ).arrays)  # fmt: skip
                yield {
                    **place, "group": group, "least": limits[step], "most": limits[step + 1],
                    "n": n, "mean_score": float(rows.scores[members].mean()), "share": share,
                    "low": low, "high": high,
                }  # fmt: skip

    def calibrated(self) -> Iterator[Row]:
        """Yield each group's numbers of probabilities beside those of a calibrated model."""
        rows = self.rows
        for metric in metrics_of_scores(self.scores, self.options):
            for code in np.flatnonzero(rows.groups.usable).tolist() if metric.probabilities else ():
                members = rows.take(np.flatnonzero(rows.groups.codes == code))
                measured = metric.measure(members, Aggregate.VALUE, self.options[metric.spec.name])
                value = measured(measured.exact, measured.exact.observed)[0, 0]
                chance = calibrated_numbers(measured, measured.exact)
                yield {
                    **self._place, "metric": metric.spec.name, "group": rows.groups.names[code],
                    "n": len(members.scores), "value": float(value),
                    "calibrated": float(chance.mean()),
                    "calibrated_high": float(np.quantile(chance, 0.95)),
                }  # fmt: skip

    @property
    def _place(self) -> Row:
        return {"model": self.design.model, "groups": self.design.groups.name}


def _with_direction(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return a draft that names the group that is worse off, and the one that is best off."""
    finding = draft.finding
    groups = worst_first(finding)
    if not groups or groups[0].value == groups[-1].value:
        return draft
    worst, best = groups[0], groups[-1]
    label = spec_of(finding.metric).label
    direction = Sentence(
        "worse for ", named(worst.group), f": {label} {number(worst.value)} (n = {count(worst.n)}) "
        f"against {number(best.value)} for ", named(best.group),
    )  # fmt: skip
    return draft.changed(direction=direction)


COLUMNS = {
    "calibration": {
        "model": TEXT,
        "groups": TEXT,
        "group": TEXT,
        "least": NUMBER,
        "most": NUMBER,
        "n": INTEGER,
        "mean_score": NUMBER,
        "share": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
    },
    "calibrated": {
        "model": TEXT,
        "groups": TEXT,
        "metric": TEXT,
        "group": TEXT,
        "n": INTEGER,
        "value": NUMBER,
        "calibrated": NUMBER,
        "calibrated_high": NUMBER,
    },
}
