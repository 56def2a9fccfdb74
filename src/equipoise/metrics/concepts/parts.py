"""From measured concepts to parts: aggregate, pairs, concepts and their prevalence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, group_values
from equipoise.metrics.building import excluded_of as with_groups
from equipoise.metrics.concepts.cells import Floats
from equipoise.metrics.concepts.results import CENTRED, ConceptResults, centred
from equipoise.metrics.pairs import Folded
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile

_SHOWS = "the metric of each group"


@dataclass(frozen=True, eq=False)
class PairwiseEnds:
    """Ends of the largest |difference|: folded percentiles of each pair, simultaneous.

    Attributes
    ----------
    replicates : ndarray, shape (replicates, pairs)
    """

    replicates: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        known = self.replicates[:, ~np.isnan(self.replicates).all(axis=0)]
        if known.shape[1] == 0:
            return math.nan, math.nan
        each = 1.0 - (1.0 - level) / known.shape[1]
        ends = [Folded(column)(each) for column in known.T]
        return max(low for low, _ in ends), max(high for _, high in ends)


@dataclass(frozen=True)
class Largest:
    """The largest |difference| over pairs of groups, held against chance."""

    value: float
    against: Against


def largest(differences: Floats, null: Floats | None, text: str, resolution: float) -> Largest:
    """Return the largest |difference|, NaN where no pair has one, with its chance level."""
    known = ~np.isnan(differences)
    if not known.any():
        return Largest(math.nan, NOTHING)
    value = float(np.abs(differences[known]).max())
    if null is None:
        return Largest(value, NOTHING)
    # A replicate without a value for some pair has no largest difference.
    return Largest(value, _against(np.abs(null[:, known]).max(axis=1), value, text, resolution))


def _against(null: Floats, value: float, text: str, resolution: float) -> Against:
    # Metrics lie in [0, 1]: their differences tie to 1e-12.
    found = p_value(null, value, "higher", resolution=resolution, scale=1.0)
    method = found.method if text != CENTRED else found.method.replace("permutation", "share")
    if math.isnan(found.value):
        return NOTHING
    return Against(band(null, method=text), found.value, f"{text}; {method}")


def aggregate(results: ConceptResults) -> Largest:
    """Return the largest difference of means over concepts."""
    null = None if results.hall else centred(results.mean_replicates())
    return largest(results.mean_differences(), null, CENTRED, results.resolution)


def concept_parts(results: ConceptResults) -> pa.Table:
    """Return the parts of a disparity of concepts as a table."""
    parts = [*_aggregate_pairs(results)]
    for index in range(len(results.names)):
        parts += [_concept(results, index), _prevalence(results, index)]
        parts += _pairs(results, index)
    return parts_to_table(parts)


def excluded_of(results: ConceptResults) -> dict[str, int]:
    """Count the rows, groups and concepts that did not enter."""
    found = with_groups(results.groups, dict(results.excluded))
    usable = results.groups.usable
    missing = np.isnan(results.observed[:, usable])
    empty = missing.all(axis=1)
    left = int(missing[~empty].sum())
    if empty.any():
        found["concepts without two groups"] = int(empty.sum())
    if left:
        found["groups left out of a concept"] = left
    return found


def _aggregate_pairs(results: ConceptResults) -> Iterator[Part]:
    boot = results.mean_replicates()
    null = None if results.hall else centred(boot)
    for index, (g, h) in enumerate(results.pairs):
        shared = results.shared(g, h)
        values = [
            _group_value(results, one, shared, f"mean over {int(shared.sum())} concepts")
            for one in (g, h)
        ]
        yield _difference(
            results,
            "",
            results.mean_differences()[index],
            (g, h),
            None if boot is None else boot[:, index],
            (None if null is None else null[:, index], CENTRED),
            tuple(values),
        )


def _pairs(results: ConceptResults, concept: int) -> Iterator[Part]:
    boot = results.replicates(concept)
    null, text = results.null_differences(concept)
    for index, (g, h) in enumerate(results.pairs):
        value = float(results.differences(concept)[index])
        shown = tuple(_in_concept(results, concept, one) for one in (g, h))
        yield _difference(
            results,
            results.names[concept],
            value,
            (g, h),
            None if boot is None else boot[:, index],
            (None if null is None else null[:, index], text),
            shown,
        )


def _difference(
    results: ConceptResults,
    subject: str,
    value: float,
    pair: tuple[int, int],
    boot: Floats | None,
    null: tuple[Floats | None, str],
    shown: tuple[GroupValue, ...],
) -> Part:
    low, high = (math.nan, math.nan) if boot is None else percentile(boot, results.level)[:2]
    draws, text = null
    names = " − ".join(results.groups.names[one] for one in pair)
    none = math.isnan(value)
    against = (
        NOTHING if draws is None or none else _two_sided(draws, value, text, results.resolution)
    )
    return _part(
        "concept_difference",
        f"{subject}: {names}" if subject else names,
        value,
        (math.nan, math.nan) if none else (float(low), float(high)),
        against,
        shown,
        "a group takes no part" if none else "",
    )


def _two_sided(null: Floats, value: float, text: str, resolution: float) -> Against:
    found = _against(np.abs(null), abs(value), text, resolution)
    return Against(band(null, method=text), found.p_value, found.null)


def _concept(results: ConceptResults, concept: int) -> Part:
    null, text = results.null_differences(concept)
    found = largest(results.differences(concept), null, text, results.resolution)
    boot = results.replicates(concept)
    none = math.isnan(found.value)
    ends = (math.nan, math.nan)
    if boot is not None and not none:
        ends = PairwiseEnds(boot)(results.level)
    left = Counter(one for one in results.reasons[concept] if one)
    return _part(
        results.choices.metric,
        results.names[concept],
        found.value,
        ends,
        found.against,
        tuple(_in_concept(results, concept, g) for g in range(len(results.groups))),
        "fewer than two groups take part" if none else "",
        tuple(Excluded(reason, count) for reason, count in sorted(left.items())),
    )


def _prevalence(results: ConceptResults, concept: int) -> Part:
    positives, sizes = results.positives[concept], results.sizes[concept]
    shown = group_values(
        results.groups, positives.astype(np.float64), sizes.astype(np.float64), results.level
    )
    known = [one.value for one, use in zip(shown, results.groups.usable, strict=True) if use]
    value = max(known) - min(known) if len(known) > 1 else math.nan
    reason = "fewer than two groups have rows enough" if math.isnan(value) else ""
    none = (math.nan, math.nan)
    return _part("prevalence", results.names[concept], value, none, NOTHING, shown, reason)


def _part(
    metric: str,
    subject: str,
    value: float,
    ends: tuple[float, float],
    against: Against,
    shown: tuple[GroupValue, ...],
    reason: str,
    excluded: tuple[Excluded, ...] = (),
) -> Part:
    chance = against.chance
    levels = (chance.mean, chance.low, chance.high) if chance else (math.nan,) * 3
    return Part(
        metric,
        subject,
        float(value),
        *ends,
        *levels,
        math.nan if against.p_value is None else against.p_value,
        sum(one.n for one in shown),
        shown,
        excluded,
        reason,
        _SHOWS if metric == "concept_difference" else "",
    )


def _in_concept(results: ConceptResults, concept: int, g: int) -> GroupValue:
    only = np.zeros(len(results.names), dtype=np.bool_)
    only[concept] = True
    positives, rows = int(results.positives[concept, g]), int(results.sizes[concept, g])
    note = results.reasons[concept][g] or f"{positives} of {rows} positive"
    return _group_value(results, g, only, note)


def _group_value(
    results: ConceptResults,
    g: int,
    concepts: np.ndarray[tuple[int], np.dtype[np.bool_]],
    note: str,
) -> GroupValue:
    """Return a group's mean over some concepts, with its interval."""
    value = float(results.observed[concepts, g].mean()) if concepts.any() else math.nan
    low, high = math.nan, math.nan
    if results.boot is not None and not math.isnan(value):
        ends = percentile(results.boot[:, concepts, g].mean(axis=1), results.level)
        low, high = float(ends[0]), float(ends[1])
    groups = results.groups
    return GroupValue(
        groups.names[g], groups.levels[g], int(groups.counts[g]), value, low, high, note
    )
