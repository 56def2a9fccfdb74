"""What an audit would do and could find, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.group_sizes import planned
from equipoise.audits.kinds import estimated_seconds
from equipoise.audits.predictions.designs import Design, tests_of
from equipoise.audits.predictions.notes import notes_of_groups
from equipoise.stats.power import (
    minimum_difference,
    minimum_effect_size,
    sample_size_for_difference,
)

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.data import PredictionData

Row = dict[str, Any]

# Seconds for one cell of a resampled table, all metrics together, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_CELL, _SECONDS_PER_DESIGN = 2e-7, 0.1


@dataclass(frozen=True)
class Plan:
    """What an audit would do.

    Attributes
    ----------
    rows, classes : int
    models : list of dict
        Per model: rows with an answer, without one, and without a partner.
    groups : list of dict
        Per group: rows, and whether it is large enough to be compared; then rows in no group, by
        reason.
    detectable : list of dict
        Per model, version and groups: the smallest difference in accuracy and the smallest
        Cramér's V within a class that the two smallest groups, or the smallest class, would show
        with a power of 80 %; and the rows per group that the practical threshold asks for.
    tests : int
        About how many tests there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    notes : tuple of str
        What a reader must know of how groups and classes go together.
    """

    rows: int
    classes: int
    models: list[Row]
    groups: list[Row]
    detectable: list[Row]
    tests: int
    seconds: float
    notes: tuple[str, ...]


def plan(config: Config, data: PredictionData, every: Sequence[Design]) -> Plan:
    """Say what an audit would do and could find; nothing is measured, no model is loaded."""
    tests = tests_by_model((design.model, tests_of(design)) for design in every)
    by_groups = {design.groups.name: design for design in every}
    return Plan(
        rows=len(data.ids),
        classes=len(data.classes),
        models=[_model(name, data) for name in data.models],
        groups=[
            row
            for design in by_groups.values()
            for row in planned(design.groups, "rows", design.lacking, config.data)
        ],
        detectable=[_detectable(design, config, tests[design.model]) for design in every],
        tests=most_tests(tests),
        seconds=estimated_seconds(sum(_seconds(design, config) for design in every)),
        notes=notes_of_groups(every, config.data.target),
    )


def _model(name: str, data: PredictionData) -> Row:
    state = data.models[name].state
    answered, unmatched = int((state == "answered").sum()), int((state == "unmatched").sum())
    return {
        "model": name,
        "answered": answered,
        "unanswered": len(state) - answered - unmatched,
        "without_prediction": unmatched,
        "without_label": data.models[name].without_label,
        "versions": [*data.models[name].versions],
    }


def _detectable(design: Design, config: Config, tests: int) -> Row:
    alpha = config.testing.alpha
    sizes = np.sort(design.groups.counts[design.groups.usable])
    accuracy = _accuracy(design)
    row: Row = {"model": design.model, "version": design.version, "groups": design.groups.name}
    if len(sizes) < 2:
        return row | {"accuracy_difference": None, "cramers_v": None, "rows_per_group_wanted": None}
    threshold = config.testing.threshold("accuracy_gap") or 0.05
    smallest = int(sizes[0]), int(sizes[1])
    return row | {
        "accuracy_difference": minimum_difference(*smallest, accuracy, alpha=alpha, tests=tests),
        "cramers_v": _detectable_v(design, alpha, tests),
        "rows_per_group_wanted": sample_size_for_difference(
            accuracy, threshold, alpha=alpha, tests=tests
        ),
    }


def _accuracy(design: Design) -> float:
    counts = design.overall
    right = counts.table[counts.truth == counts.prediction].sum()
    # Away from 0 and 1, where a difference could go one way only.
    return float(np.clip(right / counts.table.sum(), 0.05, 0.95))


def _detectable_v(design: Design, alpha: float, tests: int) -> float | None:
    counts = design.counts
    by_class = counts.by_truth(counts.table[None])[0][counts.targets]
    n, groups = by_class.sum(axis=1), (by_class > 0).sum(axis=1)
    place = int(n.argmin())
    labels = min(len(counts.targets), len(counts.classes))
    if groups[place] < 2 or labels < 2:
        return None
    df, divisor = (int(groups[place]) - 1) * (labels - 1), min(int(groups[place]), labels) - 1
    return minimum_effect_size(int(n[place]), df, divisor, alpha=alpha, tests=tests)


def _seconds(design: Design, config: Config) -> float:
    draws = 2 * config.resampling.replicates + (config.resampling.permutations or 10_000)
    return _SECONDS_PER_DESIGN + design.counts.table.size * draws * _SECONDS_PER_CELL
