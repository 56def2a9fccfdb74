"""Quality of images: distance from references by features, inception score by probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.config import resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.core import Estimate, Family, Integers, record
from equipoise.metrics.vectors.frechet import frechet_distance, inception_score

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig
    from equipoise.core import Labels
    from equipoise.data import Vectors

ALL_IMAGES = "all images"
# Fewer images have no covariance.
_FEWEST = 2


@record
class Quality:
    """What one model makes of images and of reference images.

    Attributes
    ----------
    features : Vectors
        Of the images, in the model's own lengths.
    scores : Vectors or None
        Probabilities of the images, a number for each class.
    references : mapping of str to Vectors
        Features of reference images by name; "" where there is only one.
    """

    features: Vectors
    scores: Vectors | None
    references: Mapping[str, Vectors]


def measure_quality(
    config: AuditConfig,
    place: Place,
    quality: Quality,
    rows: Integers,
    subject: str,
    units: Labels | None = None,
) -> Iterator[UncorrectedFinding]:
    """Yield the distance of some images from each reference, and their inception score.

    Parameters
    ----------
    config : AuditConfig
    place : Place
    quality : Quality
    rows : ndarray of int, shape (n,)
        Places of the images in the table of features.
    subject : str
        What these images are called.
    units : array-like, shape (n,), optional
        Images that are resampled together.
    """
    options: dict[str, Any] = {
        "resampling": resampling_of(config, 1),
        "rng": config.resampling.seed,
    }
    labels = np.full(len(rows), None) if units is None else np.asarray(units)
    usable = quality.features.usable[rows]
    judged, judged_units = rows[usable], None if units is None else labels[usable]
    estimates = list[tuple[str, Estimate]]()
    for name, reference in quality.references.items():
        places = np.flatnonzero(reference.usable)
        if config.metrics.has(frechet_distance) and min(len(judged), len(places)) >= _FEWEST:
            estimate = frechet_distance(
                quality.features.take(judged), reference.take(places), units=judged_units, **options
            )
            estimates.append((f"{subject} × {name}" if name else subject, estimate))
    if config.metrics.has(inception_score) and quality.scores is not None:
        scored = quality.scores.usable[rows]
        score_units = None if units is None else labels[scored]
        if scored.sum() >= _FEWEST:
            scores = quality.scores.take(rows[scored])
            estimates.append((subject, inception_score(scores, units=score_units, **options)))
    for name, estimate in estimates:
        yield whole(estimate, place, Family.DESCRIPTIVE).changed(subject=name)
