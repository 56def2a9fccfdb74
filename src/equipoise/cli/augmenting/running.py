"""The experiment of `equipoise augment`, on one's own images or on drawn faces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from equipoise.audits.kinds import PERCEIVED, Progress
from equipoise.cli.augmenting.config import AugmentConfig, TrainingConfig
from equipoise.cli.augmenting.images import read_set
from equipoise.cli.mitigating import manifest_of
from equipoise.core.result import AuditResult
from equipoise.mitigate.augmentation import Faces, Regions, Schedule, augmentation_experiment
from equipoise.mitigate.augmentation.findings import findings_of, tables_of
from equipoise.mitigate.augmentation.training import check_networks, digest_of
from equipoise.planted.faces import draw_faces
from equipoise.stats.resampling import Bootstrap

_CLOSE = 0.05
"""Share of the biased images by which the balanced ones may be more or fewer without a note."""
_BIASED, _EVEN = (0.01, 0.01, 0.99, 0.99), (0.5, 0.5, 0.5, 0.5)
_DRAWN = (
    "The faces are drawn. In the biased images 99 of 100 who hold a ring or a cross have short "
    "hair, and 99 of 100 with a bar or a square long hair; in the balanced and the test images "
    "half of each."
)


def run_configured(
    config: AugmentConfig,
    base: Path,
    progress: Progress | None,
    warn: Callable[[str], None] | None = None,
) -> AuditResult:
    """Run the experiment that a configuration describes.

    Parameters
    ----------
    config : AugmentConfig
    base : Path
        Folder of relative paths.
    progress : callable, optional
    warn : callable, optional
        Called with each note about the images, before anything is trained.
    """
    began = perf_counter()
    check_networks(config.networks, config.size)
    sets = {
        name: read_set(name, getattr(config.images, name), config, base, progress)
        for name in ("biased", "balanced", "test")
    }
    faces = {name: read.faces for name, read in sets.items()}
    notes = (*(note for read in sets.values() for note in read.notes), *_sizes(faces))
    if warn is not None:
        for text in notes:
            warn(text)
    inputs = {key: about for read in sets.values() for key, about in read.inputs.items()}
    counts = {name: read.counts for name, read in sets.items()}
    folder = base / config.store / "augmentation"
    record = {"inputs": inputs, "counts": counts, "notes": notes}
    return _experiment(faces, config, folder, record, began, progress)


def _sizes(faces: Mapping[str, Faces]) -> Iterator[str]:
    """Note when one training set has clearly more images: more alone make a network better."""
    biased, balanced = len(faces["biased"]), len(faces["balanced"])
    if abs(balanced - biased) > _CLOSE * biased:
        yield (
            f"balanced: {balanced} images, and {biased} biased ones: a difference between them may "
            "come from their number alone."
        )


def run_drawn(
    folder: Path,
    *,
    images: int,
    repeats: int,
    networks: tuple[str, ...],
    seed: int,
    progress: Progress | None,
) -> AuditResult:
    """Run the experiment on drawn faces, in whose biased images the tool goes with the group."""
    began = perf_counter()
    faces = {}
    shares = {"biased": _BIASED, "balanced": _EVEN, "test": _EVEN}
    for place, (name, own) in enumerate(shares.items()):
        made = draw_faces(images, long_hair=own, seed=seed + place)
        regions = Regions(made.boxes, np.ones(images, dtype=bool))
        faces[name] = Faces(made.images, made.labels, made.groups, regions)
    config = TrainingConfig(
        networks=networks,
        repeats=repeats,
        schedule=Schedule(epochs=8, learning_rate=2e-3),
        schedules={"vit": Schedule(epochs=16)} if "vit" in networks else {},
        seed=seed,
    )
    record = {"inputs": {}, "counts": dict.fromkeys(faces, images), "notes": (_DRAWN,)}
    return _experiment(faces, config, folder, record, began, progress)


def _experiment(
    faces: Mapping[str, Faces],
    config: TrainingConfig,
    folder: Path,
    record: Mapping[str, Any],
    began: float,
    progress: Progress | None,
) -> AuditResult:
    done = augmentation_experiment(
        faces["biased"],
        faces["balanced"],
        faces["test"],
        folder / digest_of(faces["biased"], faces["balanced"], config.seed),
        networks=config.networks,
        repeats=config.repeats,
        schedule=config.schedule,
        schedules=config.schedules,
        resampling=Bootstrap(replicates=config.replicates),
        seed=config.seed,
        progress=progress,
    )
    resolved = config.model_dump(mode="json")
    again = "What is compared is training again, on images like these."
    notes = (PERCEIVED, again, *record["notes"])
    seconds = perf_counter() - began
    manifest = manifest_of(
        **{**record, "notes": notes}, config=resolved, resolved=resolved, seconds=seconds
    )
    findings = findings_of(done, threshold=config.threshold, alpha=config.alpha)
    return AuditResult(
        findings, manifest, tables_of(done, seed=config.seed, replicates=config.replicates)
    )
