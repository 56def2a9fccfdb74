"""Run an experiment with faces, and make the result that the report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from equipoise.audits.kinds import PERCEIVED, Progress
from equipoise.audits.provenance import machine, versions
from equipoise.cli.augmenting.config import AugmentConfig
from equipoise.cli.augmenting.reading import Read, read_set
from equipoise.core.errors import DataError
from equipoise.core.result import AuditResult, Manifest
from equipoise.mitigate.augmentation import Faces, Regions, Schedule, augmentation_experiment
from equipoise.mitigate.augmentation.checks import shared_images
from equipoise.mitigate.augmentation.experiment import Experiment
from equipoise.mitigate.augmentation.findings import findings_of, tables_of
from equipoise.mitigate.augmentation.networks import check_networks
from equipoise.mitigate.augmentation.training import digest_of
from equipoise.stats.resampling import Bootstrap

_NOTES = (
    PERCEIVED,
    "What is compared is training again, on images like these.",
)
_CLOSE = 0.05
"""By which share of the biased images the balanced ones may be more or fewer unmentioned."""
_BIASED, _EVEN = (0.01, 0.01, 0.99, 0.99), (0.5, 0.5, 0.5, 0.5)


def run_configured(
    config: AugmentConfig,
    base: Path,
    progress: Progress | None,
    tell: Callable[[str], None] | None = None,
) -> AuditResult:
    """Run the experiment that a configuration describes.

    Parameters
    ----------
    config : AugmentConfig
    base : Path
        What relative paths are relative to.
    progress : callable, optional
    tell : callable, optional
        Told what is wrong with the images, before anything is trained.
    """
    began = perf_counter()
    check_networks(config.networks, config.size)
    given = config.images
    sets = {
        name: read_set(name, one, config, base, progress)
        for name, one in (
            ("biased", given.biased), ("balanced", given.balanced), ("test", given.test),
        )
    }  # fmt: skip
    told = (*(note for one in sets.values() for note in one.notes), *_sizes(sets))
    if tell is not None:
        for text in told:
            tell(text)
    _refuse_trained_on(sets)
    states = digest_of(sets["biased"].faces, sets["balanced"].faces, config.seed)
    resolved = config.model_dump(mode="json")
    inputs = {key: about for one in sets.values() for key, about in one.inputs.items()}
    done = augmentation_experiment(
        sets["biased"].faces,
        sets["balanced"].faces,
        sets["test"].faces,
        base / config.store / "augmentation" / states,
        networks=config.networks,
        repeats=config.repeats,
        schedule=config.schedule.schedule,
        schedules={name: one.schedule for name, one in config.schedules.items()},
        resampling=Bootstrap(replicates=config.replicates),
        seed=config.seed,
        progress=progress,
    )
    counts = {name: one.counts for name, one in sets.items()}
    manifest = _manifest(resolved, inputs, counts, (*_NOTES, *told), perf_counter() - began)
    return _result(done, manifest, config.threshold, config.alpha, config.replicates)


def _sizes(sets: Mapping[str, Read]) -> Iterator[str]:
    """Say when one training set has clearly more images: more alone make a network better."""
    biased, balanced = (len(sets[name].faces) for name in ("biased", "balanced"))
    if abs(balanced - biased) > _CLOSE * biased:
        yield (
            f"balanced: {balanced} images, and {biased} biased ones: a difference between them may "
            "come from their number alone."
        )


def _refuse_trained_on(sets: Mapping[str, Read]) -> None:
    """Refuse test images that are also trained on: on those a network has seen the answer."""
    test = sets["test"]
    training = {name: sets[name].faces for name in ("biased", "balanced")}
    found = shared_images(test.faces, training)
    if not found:
        return
    place, name, other = found[0]
    raise DataError(
        f"{len(found)} of {len(test.faces)} test images are also trained on; the first is "
        f"{test.where(place)}, the same picture as {sets[name].where(other)}, of the {name} images "
        f"in {sets[name].file}",
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
    """Run the experiment on drawn faces, of whom the group tells the tool apart."""
    began = perf_counter()
    biased, balanced, test = (
        drawn(images, shares, seed + place) for place, shares in enumerate((_BIASED, _EVEN, _EVEN))
    )
    schedule, schedules = Schedule(epochs=8, learning_rate=2e-3), {"vit": Schedule(epochs=16)}
    own = {name: one for name, one in schedules.items() if name in networks}
    done = augmentation_experiment(
        biased,
        balanced,
        test,
        folder / digest_of(biased, balanced, seed),
        networks=networks,
        repeats=repeats,
        schedule=schedule,
        schedules=own,
        seed=seed,
        progress=progress,
    )
    asked = {"augment": "drawn faces", "images": images, "repeats": repeats,
             "networks": [*networks], "seed": seed, "schedule": asdict(schedule),
             "schedules": {name: asdict(one) for name, one in own.items()}}  # fmt: skip
    counts = {"biased": len(biased), "balanced": len(balanced), "test": len(test)}
    planted = (
        "The faces are drawn. In the biased images 99 of 100 who hold a ring or a cross have short "
        "hair, and 99 of 100 with a bar or a square long hair; in the balanced and the test images "
        "half of each."
    )
    manifest = _manifest(asked, {}, counts, (*_NOTES, planted), perf_counter() - began)
    return _result(done, manifest, 0.01, 0.05, 1000)


def drawn(images: int, shares: tuple[float, ...], seed: int) -> Faces:
    """Return drawn faces with the shares of long hair, one for each tool."""
    from equipoise.planted.faces import draw_faces

    made = draw_faces(images, long_hair=shares, seed=seed)
    return Faces(
        made.images, made.labels, made.groups, Regions(made.boxes, np.ones(images, dtype=bool))
    )


def _manifest(
    resolved: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, Any],
    notes: tuple[str, ...],
    seconds: float,
) -> Manifest:
    return Manifest(
        config=resolved, resolved=resolved, versions=versions(), commit="", dirty=False,
        inputs=inputs, counts=counts, seed=int(resolved["seed"]),
        started=datetime.now(UTC).isoformat(timespec="seconds"), seconds=round(seconds, 3),
        machine=machine(), notes=notes,
    )  # fmt: skip


def _result(
    done: Experiment, manifest: Manifest, threshold: float, alpha: float, replicates: int
) -> AuditResult:
    findings = findings_of(done, threshold=threshold, alpha=alpha)
    return AuditResult(
        findings, manifest, tables_of(done, seed=manifest.seed, replicates=replicates)
    )
