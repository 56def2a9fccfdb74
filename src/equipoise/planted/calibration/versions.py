"""What holding prevalence fixed does to disparities whose cause is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from equipoise.metrics import Choices, concept_results, design_choices
from equipoise.planted.calibration.concepts import ConceptWorld, Planted
from equipoise.planted.calibration.measures import SEED
from equipoise.planted.calibration.runner import RESAMPLING

PLANTED: tuple[Planted, ...] = ("prevalence", "recognition", "switching")
VERSIONS = ("observed", "weighted", "hall")
IMAGES, CONCEPTS = 4000, 8


@dataclass(frozen=True)
class Effects:
    """Conclusions on concepts in one world, at full strength.

    Attributes
    ----------
    planted : str
        What differs between the groups, see `ConceptWorld`.
    concepts : int
        Over all samples.
    significant : dict of version to float
        Share of concepts with a significant disparity of average precision.
    effects : dict of version to dict of effect to float
        What the version does to the disparities of "observed", in shares of concepts.
    """

    planted: str
    concepts: int
    significant: dict[str, float]
    effects: dict[str, dict[str, float]]


def effects(
    planted: Planted, samples: int, *, images: int = IMAGES, concepts: int = CONCEPTS
) -> Effects:
    """Measure what `design_choices` says of the versions of prevalence."""
    significant: dict[str, list[bool]] = {name: [] for name in VERSIONS}
    named: dict[str, list[str]] = {name: [] for name in VERSIONS[1:]}
    for sample in range(samples):
        world = ConceptWorld(1.0, images, planted=planted, concepts=concepts)
        data = world.draw(SEED, sample)
        results = {
            name: concept_results(
                data.scores,
                data.labels,
                data.group,
                Choices(prevalence=name, replicates=199),  # type: ignore[arg-type]  # the names
                resampling=RESAMPLING,
                rng=sample,
            )
            for name in VERSIONS
        }
        for row in design_choices(results, "observed").to_pylist():
            if row["concept"]:
                significant[row["version"]].append(row["significant"])
                named[row["version"]].append(row["effect"])
                if row["version"] == VERSIONS[1]:
                    significant["observed"].append(row["baseline_significant"])
    return Effects(
        planted,
        samples * concepts,
        {name: float(np.mean(some)) for name, some in significant.items()},
        {name: _shares(some) for name, some in named.items()},
    )


def _shares(effects: list[str]) -> dict[str, float]:
    return {name: many / len(effects) for name, many in sorted(Counter(effects).items())}
