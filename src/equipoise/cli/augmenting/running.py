"""The experiment of `equipoise augment`, on one's own images or on drawn faces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from equipoise.audits.kinds import PERCEIVED, Progress
from equipoise.cli.augmenting.config import AugmentConfig
from equipoise.cli.augmenting.images import Read, read_set
from equipoise.cli.mitigating import manifest_of
from equipoise.core.errors import DataError
from equipoise.core.result import AuditResult
from equipoise.mitigate.augmentation import Faces, Regions, Schedule, augmentation_experiment
from equipoise.mitigate.augmentation.experiment import shared_images
from equipoise.mitigate.augmentation.findings import findings_of, tables_of
from equipoise.mitigate.augmentation.training import check_networks, digest_of
from equipoise.stats.resampling import Bootstrap

_NOTES = (PERCEIVED, "What is compared is training again, on images like these.")
_CLOSE = 0.05
"""Share of the biased images by which the balanced ones may be more or fewer without a note."""
_BIASED, _EVEN = (0.01, 0.01, 0.99, 0.99), (0.5, 0.5, 0.5, 0.5)


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
    notes = (*(note for read in sets.values() for note in read.notes), *_sizes(sets))
    if warn is not None:
        for text in notes:
            warn(text)
    faces = {name: read.faces for name, read in sets.items()}
    _refuse_trained_on(sets, faces)
    states = digest_of(faces["biased"], faces["balanced"], config.seed)
    done = augmentation_experiment(
        faces["biased"],
        faces["balanced"],
        faces["test"],
        base / config.store / "augmentation" / states,
        networks=config.networks,
        repeats=config.repeats,
        schedule=config.schedule.schedule,
        schedules={name: own.schedule for name, own in config.schedules.items()},
        resampling=Bootstrap(replicates=config.replicates),
        seed=config.seed,
        progress=progress,
    )
    resolved = config.model_dump(mode="json")
    manifest = manifest_of(
        config=resolved,
        resolved=resolved,
        inputs={key: about for read in sets.values() for key, about in read.inputs.items()},
        counts={name: read.counts for name, read in sets.items()},
        seconds=perf_counter() - began,
        notes=(*_NOTES, *notes),
    )
    return AuditResult(
        findings_of(done, threshold=config.threshold, alpha=config.alpha),
        manifest,
        tables_of(done, seed=config.seed, replicates=config.replicates),
    )


def _sizes(sets: Mapping[str, Read]) -> Iterator[str]:
    """Note when one training set has clearly more images: more alone make a network better."""
    biased, balanced = (len(sets[name].faces) for name in ("biased", "balanced"))
    if abs(balanced - biased) > _CLOSE * biased:
        yield (
            f"balanced: {balanced} images, and {biased} biased ones: a difference between them may "
            "come from their number alone."
        )


def _refuse_trained_on(sets: Mapping[str, Read], faces: Mapping[str, Faces]) -> None:
    """Refuse test images that are also trained on, in terms of rows and files."""
    shared, test = shared_images(faces), sets["test"]
    if shared:
        place, name, other = shared[0]
        raise DataError(
            f"{len(shared)} of {len(test.faces)} test images are also trained on; the first is "
            f"{test.where(place)}, the same picture as {sets[name].where(other)}, of the {name} "
            f"images in {sets[name].file}",
            file=test.file,
            fix="take their rows out of one of the tables, or test on other images",
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
    shares = {"biased": _BIASED, "balanced": _EVEN, "test": _EVEN}
    faces = {
        name: _drawn(images, own, seed + place) for place, (name, own) in enumerate(shares.items())
    }
    schedule = Schedule(epochs=8, learning_rate=2e-3)
    schedules = {"vit": Schedule(epochs=16)} if "vit" in networks else {}
    done = augmentation_experiment(
        faces["biased"],
        faces["balanced"],
        faces["test"],
        folder / digest_of(faces["biased"], faces["balanced"], seed),
        networks=networks,
        repeats=repeats,
        schedule=schedule,
        schedules=schedules,
        seed=seed,
        progress=progress,
    )
    config: dict[str, Any] = {
        "augment": "drawn faces", "images": images, "repeats": repeats, "networks": [*networks],
        "seed": seed, "schedule": asdict(schedule),
        "schedules": {name: asdict(own) for name, own in schedules.items()},
    }  # fmt: skip
    planted = (
        "The faces are drawn. In the biased images 99 of 100 who hold a ring or a cross have short "
        "hair, and 99 of 100 with a bar or a square long hair; in the balanced and the test images "
        "half of each."
    )
    manifest = manifest_of(
        config=config,
        resolved=config,
        inputs={},
        counts={name: len(own) for name, own in faces.items()},
        seconds=perf_counter() - began,
        notes=(*_NOTES, planted),
    )
    return AuditResult(findings_of(done), manifest, tables_of(done, seed=seed))


def _drawn(images: int, shares: tuple[float, ...], seed: int) -> Faces:
    from equipoise.planted.faces import draw_faces

    made = draw_faces(images, long_hair=shares, seed=seed)
    regions = Regions(made.boxes, np.ones(images, dtype=bool))
    return Faces(made.images, made.labels, made.groups, regions)
