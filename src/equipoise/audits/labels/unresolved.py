"""What verdicts on free text are worth when some texts name no class for sure.

A verdict on content needs at most a tenth of such texts in every group, and must hold whatever
classes they name. So each finding is judged at the assignment of these texts that suits it least: a
disparity where the groups are as alike as possible, a difference too small to matter where they are
as different as possible.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa
from scipy import special

from equipoise.audits.findings import UncorrectedFinding, without_verdict
from equipoise.audits.labels.designs import LabelDesign
from equipoise.core import Family, Finding, Floats, record, table_of
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.result import WORKSHEET
from equipoise.core.wording import percent
from equipoise.data.resolver import NO_CLASS, UNRESOLVED, Recipe
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.rate import Cells, Rate
from equipoise.metrics.labels.rates import SELECTION_RATE, rate_named, rates_of_classes
from equipoise.metrics.labels.table import sum_by
from equipoise.metrics.spec import spec_of
from equipoise.stats import Association
from equipoise.stats.intervals import divide

MOST_UNRESOLVED = 0.1
"""Largest share of unresolved texts in a group that a verdict on content stands with."""
_BEYOND = 0.05
_LINES = 1000
_COLUMNS = {
    "model": TEXT,
    "groups": TEXT,
    "version": TEXT,
    "text": TEXT,
    "class": TEXT,
    "count": INTEGER,
    "most": TEXT,
    "share": NUMBER,
}
Range = tuple[float, float]


def with_unresolved(
    drafts: Iterable[UncorrectedFinding], counts: Counts
) -> Iterator[UncorrectedFinding]:
    """Judge findings on content at the worst assignment of unresolved texts.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design.
    counts : Counts
        Of the design: `UNRESOLVED` is a label like others.
    """
    if UNRESOLVED not in counts.classes:
        yield from map(_without_class_verdict, drafts)
        return
    texts = Unresolved(counts)
    worst = max(np.flatnonzero(counts.groups.usable).tolist(), key=texts.shares.__getitem__)
    share = float(texts.shares[worst])
    reason = (
        f"{percent(share)} of the texts about {counts.groups.names[worst]} name no class for "
        f"sure; a verdict needs at most {percent(MOST_UNRESOLVED)} in every group. To do: fill in "
        "the worksheet"
    )
    for draft in map(_without_class_verdict, drafts):
        if draft.finding.family is Family.DESCRIPTIVE or (
            # Whether a row has an answer doesn't depend on what the others say.
            spec_of(draft.finding.metric).of_exclusion
        ):
            yield draft
        elif share > MOST_UNRESOLVED:
            yield without_verdict(draft, reason)
        else:
            yield texts.doubted(draft)


def worksheet_of(design: LabelDesign) -> dict[str, pa.Table]:
    """Return the unresolved texts of a design, with an empty column for their classes.

    Texts with the largest share of the groups' differences come first. A filled-in copy reads
    back as `synonyms`.
    """
    version, raw = design.predictions, next(iter(design.labels.versions.values()))
    if UNRESOLVED not in version.vocabulary or not isinstance(version.resolve, Recipe):
        return {}
    unresolved_rows = design.rows & (version.codes == version.vocabulary.index(UNRESOLVED))
    unresolved_texts = raw.coded.take(unresolved_rows)
    used = zip(raw.vocabulary, unresolved_texts.counts.tolist(), strict=True)
    texts = unresolved_texts.relabel(
        [version.resolve.form(text) if n else None for text, n in used]
    )
    groups = design.groups.codes[unresolved_rows[design.rows]]
    usable = np.flatnonzero(design.groups.usable)
    table = np.zeros((len(texts.vocabulary), len(design.groups)))
    countable = (groups >= 0) & (texts.codes >= 0)
    np.add.at(table, (texts.codes[countable], groups[countable]), 1)
    shares = table[:, usable] / design.groups.counts[usable]
    spreads = np.ptp(shares, axis=1)
    order = np.lexsort((-table.sum(axis=1), -spreads))
    rows = [
        {
            "model": design.model, "groups": design.groups.name, "version": design.version,
            "text": texts.vocabulary[place], "class": "", "count": round(table[place].sum()),
            "most": design.groups.names[usable[int(shares[place].argmax())]],
            "share": float(spreads[place] / max(spreads.sum(), 1e-300)),
        }
        for place in order[:_LINES].tolist()
        if table[place].any()
    ]  # fmt: skip
    return {WORKSHEET: table_of(rows, _COLUMNS)} if rows else {}


def _without_class_verdict(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Take the verdict from a finding about texts that name no class, or several."""
    if draft.finding.subject not in NO_CLASS:
        return draft
    return without_verdict(draft, "a text with an uncertain class doesn't count as one")


@record
class Unresolved:
    """Counts of texts, with the range of values that unresolved texts allow.

    Attributes
    ----------
    counts : Counts
    """

    counts: Counts

    @cached_property
    def code(self) -> int:
        """Place of the unresolved among the classes."""
        return self.counts.classes.index(UNRESOLVED)

    @cached_property
    def by_truth(self) -> Floats:
        """Unresolved texts by true class and group."""
        is_unresolved = self.counts.prediction == self.code
        table = self.counts.table[None, is_unresolved]
        unresolved_table: Floats = sum_by(
            self.counts.truth[is_unresolved], len(self.counts.classes), table
        )[0]
        return unresolved_table

    @cached_property
    def shares(self) -> Floats:
        """Share of unresolved texts in each group; 0 of a group without texts."""
        return np.asarray(
            self.by_truth.sum(axis=0) / np.maximum(self.counts.table.sum(axis=0), 1.0)
        )

    def doubted(self, draft: UncorrectedFinding) -> UncorrectedFinding:
        """Return a finding with how far its number may fall and rise, and its p-value there."""
        finding, df = draft.finding, 1
        value = abs(finding.value - (finding.chance if draft.harm == "either" else 0.0))
        if finding.parameters.get("formulation"):
            low, high, df = self._effects(finding)
        elif finding.group:
            low, high = self._against_rest(finding)
        else:
            low, high = self._gap(finding)
        if draft.harm == "lower":
            value, low, high = -finding.value, -high, -low
        if math.isnan(low) or math.isnan(value):
            return draft
        decrease, increase = max(value - low, 0.0), max(high - value, 0.0)
        p = max(finding.p_value, _p_after_decrease(draft, decrease, df))
        at_most = finding.p_at_most and p == finding.p_value
        return replace(draft.changed(p_value=p, p_at_most=at_most), doubt=(decrease, increase))

    def _gap(self, finding: Finding) -> Range:
        """Return the smallest and largest gap of a finding's groups."""
        spec, subject = spec_of(finding.metric), finding.subject
        rates = [rate for name in spec.combines or (spec.name,) if (rate := _rate_of(name))]
        if not rates or not (subject or spec.of_class or spec.combines):
            return self._other(finding)
        rate_ranges = np.stack([_gaps(*self.ranges[rate.name][:2]) for rate in rates])
        mean = finding.parameters.get("aggregate") == "mean"
        metric_ranges = rate_ranges.mean(axis=0) if mean else rate_ranges.max(axis=0)
        if subject:
            low, high = metric_ranges[:, self.counts.classes.index(subject)].tolist()
        else:
            is_class = [name not in NO_CLASS for name in self.counts.classes]
            low, high = np.fmax.reduce(metric_ranges[:, is_class], axis=1).tolist()
        return low, high

    def _other(self, finding: Finding) -> Range:
        """Return the range of a difference when shares shift by the unresolved share."""
        # Unresolved texts count as wrong: accuracies can only rise, by the unresolved share.
        factor = 1.0 if spec_of(finding.metric).errors == "rest" else 2.0
        doubt = factor * float(self.shares[self.counts.groups.usable].max())
        return _fold_range(finding.value - doubt, finding.value + doubt)

    def _against_rest(self, finding: Finding) -> Range:
        """Return how close to 0 and how far from it a group's difference to all others may be."""
        names, classes = self.counts.groups.names, self.counts.classes
        rate = _rate_of(finding.metric)
        if rate is None or not finding.subject:
            return self._other(finding)
        low, high, n = (bounds[classes.index(finding.subject)] for bounds in self.ranges[rate.name])
        is_group = np.array([name == finding.group for name in names])
        is_rest = ~is_group & ~np.isnan(low)
        if np.isnan(low[is_group]).any() or not n[is_rest].sum():
            return math.nan, math.nan
        n_rest = n[is_rest].sum()
        rest_low = (low[is_rest] * n[is_rest]).sum() / n_rest
        rest_high = (high[is_rest] * n[is_rest]).sum() / n_rest
        return _fold_range(float(low[is_group][0] - rest_high), float(high[is_group][0] - rest_low))

    def _effects(self, finding: Finding) -> tuple[float, float, int]:
        """Return the range of an effect size, and the degrees of freedom of its table."""
        if finding.parameters.get("formulation") == "sufficiency":
            return math.nan, math.nan, 1
        class_effects = np.array([_effects(table, self.code) for table in self._tables(finding)])
        observed, lowest, highest, df = (
            class_effects.sum(axis=0).tolist() if len(class_effects) else (0.0,) * 4
        )
        if not observed > 0.0:
            return math.nan, math.nan, 1
        low = finding.value * min(lowest, observed) / observed
        high = finding.value * max(highest, observed) / observed
        return low, high, max(round(df), 1)

    def _tables(self, finding: Finding) -> Iterator[Floats]:
        """Yield the tables (labels, groups compared) that an effect size is of."""
        counts = self.counts
        subjects: list[int | None] = [None]
        if finding.subject:
            subjects = [counts.classes.index(finding.subject)]
        elif finding.parameters["formulation"] == "separation":
            subjects = [*counts.targets.tolist()]
        for subject in subjects:
            rows = (counts.truth == subject) | (subject is None)
            cells = counts.table[None, rows][:, :, counts.groups.usable]
            yield sum_by(counts.prediction[rows], len(counts.classes), cells)[0]

    @cached_property
    def ranges(self) -> Mapping[str, tuple[Floats, Floats, Floats]]:
        """Lowest and highest rate, and rows, of every class and group; NaN where too small."""
        observed = Cells.of(self.counts, self.counts.observed)
        unresolved = self.by_truth[None]
        other_unresolved = unresolved.sum(axis=1, keepdims=True) - unresolved
        corners = list[Cells]()
        for i, j in product((0, 1), repeat=2):
            cells = Cells(
                observed.compared,
                observed.whole,
                both=observed["both"] + i * unresolved,
                prediction=observed["prediction"] + i * unresolved + j * other_unresolved,
                truth=observed["truth"],
                total=observed["total"],
            )
            corners.append(cells)
        ranges = {}
        for name, rate in rates_of_classes().items():
            shares = np.stack([rate.shares(cells)[0] for cells in corners])
            large_enough = rate.large(self.counts) & self.counts.groups.usable
            low = np.where(large_enough, np.fmin.reduce(shares, axis=0), np.nan)
            high = np.where(large_enough, np.fmax.reduce(shares, axis=0), np.nan)
            ranges[name] = low, high, rate.totals(corners[0])[0]
        return ranges


def _rate_of(metric: str) -> Rate | None:
    """Return the rate that groups are compared in; None of no rate."""
    return rate_named(metric) or (SELECTION_RATE if spec_of(metric).of_labels else None)


def _gaps(low: Floats, high: Floats) -> Floats:
    """Return the smallest and largest gap between groups of ranges (classes, groups)."""
    smallest = np.maximum(np.fmax.reduce(low, axis=1) - np.fmin.reduce(high, axis=1), 0.0)
    pairs = high[:, :, None] - low[:, None, :]
    different = ~np.eye(low.shape[1], dtype=np.bool_)
    largest = np.fmax.reduce(np.where(different, pairs, np.nan).reshape(len(low), -1), axis=1)
    return np.stack([smallest, largest])


def _fold_range(low: float, high: float) -> Range:
    """Return the smallest and largest distance from 0 within a range."""
    return max(low, -high, 0.0), max(abs(low), abs(high))


def _effects(table: Floats, code: int) -> tuple[float, float, float, float]:
    """Return Cramér's V of labels by groups, its least and largest value, and its freedom.

    Parameters
    ----------
    table : ndarray, shape (labels, groups)
    code : int
        Row of the unresolved: groups are alike where these fill up what each lacks of the pooled
        shares, and far apart where they add to what each has too much of.
    """
    doubt, resolved = table[code], table.copy()
    resolved[code] = 0.0
    if not resolved.sum():
        return 0.0, 0.0, 0.0, 0.0
    n, pooled = table.sum(axis=0), resolved.sum(axis=1, keepdims=True) / resolved.sum()
    lacking = np.maximum(pooled * n - resolved, 0.0)
    filled = lacking / np.maximum(lacking.sum(axis=0), 1e-300) * doubt
    excess, separated = resolved / np.maximum(n, 1.0) - pooled, resolved.copy()
    excess[code] = -np.inf
    separated[np.argmax(excess, axis=0), np.arange(len(n))] += doubt
    associations = Association.of(np.stack([table, resolved + filled, separated]))
    squares = divide(associations.chi2, associations.n * associations.smaller)
    observed, lowest, highest = np.nan_to_num(np.sqrt(squares)).tolist()
    return observed, lowest, highest, float(associations.df[0])


def _p_after_decrease(draft: UncorrectedFinding, decrease: float, df: int) -> float:
    """Return the p-value of a number that has fallen, from the band of its chance level.

    Its square is taken to be a multiple of a chi-squared variable, whose scale the end of the
    band gives.
    """
    finding = draft.finding
    centre = 0.0 if draft.harm == "higher" else finding.chance
    end = finding.chance_low if draft.harm == "lower" else finding.chance_high
    remaining, band = max(abs(finding.value - centre) - decrease, 0.0), abs(end - centre)
    if math.isnan(finding.p_value) or math.isnan(band):
        return math.nan
    if band == 0.0:
        return float(remaining == 0.0)
    quantile = special.chdtri(df, 2.0 * _BEYOND if draft.harm == "lower" else _BEYOND)
    return float(special.chdtrc(df, quantile * (remaining / band) ** 2))
