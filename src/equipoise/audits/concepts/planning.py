"""What an audit of concepts would do and could find, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.concepts.designs import Design, choices_of, metrics_of
from equipoise.audits.concepts.measuring import resampling_of, tests_of
from equipoise.audits.concepts.notes import without_scores
from equipoise.audits.group_sizes import planned
from equipoise.audits.kinds import estimated_seconds
from equipoise.metrics.concepts.measure import permutations_of
from equipoise.metrics.concepts.participants import reasons_of
from equipoise.stats.power import minimum_difference

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.loading import ConceptData

Row = dict[str, Any]

# Seconds for a row of a concept in one replicate of a metric, and shuffled once: rough guides. The
# first from 300 concepts of 100,000 images in three versions (docs/audits/concepts.md).
_SECONDS_PER_ROW, _SECONDS_PER_SHUFFLED = 1.5e-9, 1e-8
_RATE = 0.8


@dataclass(frozen=True)
class Plan:
    """What an audit would do.

    Attributes
    ----------
    images, rows : int
    models : list of dict
        Per model: concepts that are measured, images without scores.
    groups : list of dict
        Per group of the baseline: rows, and whether it is large enough to be compared; then rows
        that take no part, by reason.
    versions : list of dict
        Per version and groups: what it changes, rows that take part, concepts that can be
        compared and those too rare.
    detectable : list of dict
        Per groups: the positives of the median concept in the two smallest groups, and the
        smallest difference of two true positive rates, from 80 % down, that they would show with
        a power of 80 %. Ranked metrics have no formula.
    tests : int
        About how many tests of concepts there are to correct for: those of the baseline, of the
        model with the most.
    seconds : float
        A rough guide.
    notes : tuple of str
        Per model, the labelled concepts that it does not score.
    """

    images: int
    rows: int
    models: list[Row]
    groups: list[Row]
    versions: list[Row]
    detectable: list[Row]
    tests: int
    seconds: float
    notes: tuple[str, ...] = ()


def plan(config: Config, data: ConceptData, every: Sequence[Design]) -> Plan:
    """Say what the audit would do and could find; nothing is measured."""
    first = [one for one in every if one.model == next(iter(config.models))]
    baseline = [one for one in first if not one.version.changed]
    positives = {id(one): _positives(data, one) for one in first}
    tests = max(
        tests_of(config, len(data.models[one.model].concepts), one)
        for one in every
        if not one.version.changed
    )
    return Plan(
        images=len(data.rows.images),
        rows=len(data.rows),
        models=[
            {
                "model": name,
                "concepts": len(one.concepts),
                "images_without_scores": int(one.without.sum()),
            }
            for name, one in data.models.items()
        ],
        groups=[
            row
            for one in baseline
            for row in planned(one.groups, "rows", one.excluded, config.data.images)
        ],
        versions=[_version(config, one, positives[id(one)]) for one in first],
        detectable=[_detectable(config, one, positives[id(one)], tests) for one in baseline],
        tests=tests,
        seconds=estimated_seconds(sum(_seconds(config, data, one) for one in every)),
        notes=tuple(without_scores(config, data)),
    )


def _positives(data: ConceptData, design: Design) -> npt.NDArray[np.int64]:
    """Count positives by concept and group, shape (concepts, groups)."""
    model = data.models[design.model]
    labels = data.labels.by_image(model.concepts, design.version.choices.map)[data.rows.image]
    codes, width = design.groups.codes, len(design.groups)
    inside = codes >= 0
    return np.stack([np.bincount(codes[inside & column], minlength=width) for column in labels.T])


def _version(config: Config, design: Design, positives: npt.NDArray[np.int64]) -> Row:
    groups, choices = design.groups, choices_of(config, design.version)
    takes = sum("" in reasons_of(groups, one, choices) for one in positives)
    return {
        "version": design.version.name,
        "groups": design.name,
        "changes": design.version.description,
        "rows": int((groups.codes >= 0).sum()),
        "groups_compared": int(groups.usable.sum()),
        "concepts_compared": takes,
        "concepts_too_rare": len(positives) - takes,
    }


def _detectable(
    config: Config, design: Design, positives: npt.NDArray[np.int64], tests: int
) -> Row:
    sizes = np.sort(positives[:, design.groups.usable], axis=1)
    row: Row = {"groups": design.name, "positives": None, "true_positive_rate_difference": None}
    if sizes.shape[1] < 2:
        return row
    middle = sizes[np.argsort(sizes[:, 0], kind="stable")[len(sizes) // 2]]
    smallest = int(middle[0]), int(middle[1])
    if not smallest[0]:
        return row
    share = 1 - design.version.choices.validation
    alpha = config.testing.alpha
    found = minimum_difference(
        smallest[0] * share, smallest[1] * share, _RATE, alpha=alpha, tests=tests
    )
    return row | {"positives": [*smallest], "true_positive_rate_difference": found}


def _seconds(config: Config, data: ConceptData, design: Design) -> float:
    rows, concepts = int((design.groups.codes >= 0).sum()), len(data.models[design.model].concepts)
    passes = 1.0 + 0.2 * (len(metrics_of(config, design.version)) - 1)
    resampling = resampling_of(config, tests_of(config, concepts, design))
    if resampling is None:
        return 0.0
    shuffled = 0
    if design.version.choices.prevalence != "hall":
        shuffled = permutations_of(resampling, rows=rows, concepts=concepts)
    drawn = config.resampling.replicates * _SECONDS_PER_ROW + shuffled * _SECONDS_PER_SHUFFLED
    return rows * concepts * passes * drawn
