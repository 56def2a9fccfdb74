"""The audit of similarity in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.group_sizes import odd_labels, planned
from equipoise.audits.kinds import (
    PERCEIVED,
    Measured,
    Progress,
    drafts_of,
    estimated_seconds,
    told,
)
from equipoise.audits.retrieval.loading import notes_of
from equipoise.audits.similarity import loading
from equipoise.audits.similarity.designs import Design, designs
from equipoise.audits.similarity.loading import SimilarityData
from equipoise.audits.similarity.measuring import compared, measure_design, tests_of
from equipoise.audits.similarity.tables import tables_of
from equipoise.core.wording import images as of_images

if TYPE_CHECKING:
    from equipoise.audits.similarity.config import Config

Row = dict[str, Any]

# Seconds for an image of a concept in a permutation or replicate, all measures together, and for
# a design whatever its size: rough guides, from the example.
_SECONDS_PER_ITEM, _SECONDS_PER_DESIGN = 2e-8, 0.2


def load(config: Config, *, base: Path) -> SimilarityData:
    """Read the images, the concepts and every model's similarities, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: SimilarityData, progress: Progress | None) -> Measured:
    """Measure the similarities of every model on every choice of groups.

    Raises
    ------
    DataError
        See `designs.designs`; or when a hypothesis names no concept that is compared.
    """
    every = designs(config, data)
    tests = _tests(every)
    measured = [
        measure_design(design, config, tests[design.model])
        for design in told(every, progress, "measuring")
    ]
    return Measured(
        drafts_of(measured), tables_of(measured), tuple(dict.fromkeys(_notes(every, data)))
    )


def _tests(every: Sequence[Design]) -> Counter[str]:
    return tests_by_model((design.model, tests_of(design)) for design in every)


@dataclass(frozen=True)
class Plan:
    """What an audit of similarity would do.

    Attributes
    ----------
    images : int
    models : list of dict
        Per model: concepts, images that can be compared, and those that cannot, by reason.
    groups : list of dict
        Per group: images, and whether it is large enough to be compared; then images in
        no group, by reason.
    comparisons : list of dict
        Per model and groups: concepts, groups, images of the two smallest groups of the smallest
        concept, and the gap in standard deviations that one test finds there in four of five
        cases.
    tests : int
        About how many there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    """

    images: int
    models: list[Row]
    groups: list[Row]
    comparisons: list[Row]
    tests: int
    seconds: float


def plan(config: Config, data: SimilarityData) -> Plan:
    """Say what the audit would do.

    Raises
    ------
    DataError
        See `designs.designs`.
    """
    every = designs(config, data)
    return Plan(
        images=len(data.images),
        models=[
            {
                "model": name, "concepts": len(one.queries), "scale": config.models[name].scale,
                "compared": len(one.used), **one.counts,
            }
            for name, one in data.models.items()
        ],
        groups=[
            row
            for one in every
            if one.model == every[0].model
            for row in planned(one.groups, "images", one.lacking, config.data.images)
        ],
        comparisons=[_comparison(design) for design in every],
        tests=most_tests(_tests(every)),
        seconds=estimated_seconds(sum(_seconds(design, config) for design in every)),
    )  # fmt: skip


def _comparison(design: Design) -> Row:
    return {
        "model": design.model,
        "groups": design.name,
        "concepts": design.concepts,
        "number_of_groups": compared(design),
        "smallest_groups": [*design.smallest[:2]],
        "detectable_gap_in_sd": design.detectable,
    }


def _seconds(design: Design, config: Config) -> float:
    options = config.resampling
    draws = 2 * (options.permutations or options.replicates) + 2 * options.replicates
    images = len(design.scored.used)
    concepts = 1 if config.data.subject else len(design.scored.queries)
    return _SECONDS_PER_DESIGN + draws * images * concepts * _SECONDS_PER_ITEM


def _notes(every: Sequence[Design], data: SimilarityData) -> Iterator[str]:
    yield PERCEIVED
    yield (
        "A trained model has small preferences of its own, whatever it was trained on: with "
        "images enough any of them has a small p. Read the size of a gap, and whether gaps follow "
        "what was declared before."
    )
    yield from notes_of(data.models)
    yield from _scales(every)
    for name, count in data.images.counts["missing"].items():
        if count:
            yield f"{of_images(count, f'have no {name}', f'has no {name}')}."
    for design in every:
        yield from _of_design(design)


def _scales(every: Sequence[Design]) -> Iterator[str]:
    unknown = list(dict.fromkeys(one.model for one in every if one.scale is None))
    for name in unknown:
        yield (
            f"{name}: what makes a logit of a score is not known, so gaps are in its own scores, "
            f"which differ in meaning from model to model; give models.{name}.scale for logits."
        )


def _of_design(design: Design) -> Iterator[str]:
    yield from odd_labels(design.groups, "images", design.config.data.images)
    for name, n, usable in zip(
        design.groups.names, design.groups.counts.tolist(), design.groups.usable, strict=True
    ):
        if not usable:
            yield (
                f"{design.name}: {name} has {n} images that can be compared, fewer than "
                f"{design.groups.min_size}, and is shown only."
            )
    if design.config.data.sets is None:
        yield (
            f"{design.model}, {design.name}: images differ in more than their group, so a gap may "
            "come from what else they show; counterfactual sets (data.sets) hold it fixed."
        )
