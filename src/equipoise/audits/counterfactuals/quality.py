"""What is measured of the quality of the sets: images, what people say, what subjects are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.metrics.quality.alike import set_similarity
from equipoise.metrics.quality.confusable import confusable_subjects, subject_accuracy
from equipoise.metrics.quality.frechet import frechet_distance
from equipoise.metrics.quality.inception import inception_score
from equipoise.metrics.quality.labels import (
    ANY,
    SHOWS,
    detector_precision,
    detector_recall,
    label_errors,
)
from equipoise.metrics.retrieval.cosines import CosineScores

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.config import Config
    from equipoise.audits.counterfactuals.loading import CounterfactualData, People

_SETS = "about sets of images, not groups: it stands beside what chance gives, and has no verdict"


@dataclass(frozen=True, eq=False)
class Found:
    """Numbers about quality.

    Attributes
    ----------
    drafts : tuple of Draft
    estimates : tuple of (model, groups, Estimate)
        What the tables are made of; model "" for what people say.
    """

    drafts: tuple[Draft, ...]
    estimates: tuple[tuple[str, str, Estimate], ...]


def tests_of(config: Config) -> int:
    """Return about how many tests about quality there are."""
    asked = config.quality
    return 0 if asked is None or asked.labels is None else 4 * len(config.data.groups)


def measure_quality(config: Config, data: CounterfactualData, tests: int) -> Found:
    """Measure what the section on quality asks for; nothing without it."""
    if config.quality is None or data.quality is None:
        return Found((), ())
    drafts: list[Draft] = []
    estimates: list[tuple[str, str, Estimate]] = []
    described = (*_of_models(config, data), *_of_descriptors(config, data))
    for model, estimate in described:
        place = Place(config.audit, model, "", "default", config.resampling.level)
        estimates.append((model, "", estimate))
        drafts.append(without_verdict(whole(estimate, place, Family.DESCRIPTIVE), _SETS))
        drafts += [
            draft
            for draft in parts(estimate, place)
            if draft.finding.metric == "frechet_distance_extrapolated"
        ]
    if data.quality.people is not None:
        for groups, estimate in _of_people(config, data, data.quality.people, tests):
            place = Place(config.audit, "", groups, "default", config.resampling.level)
            estimates.append(("", groups, estimate))
            drafts += _seen(estimate, place)
    return Found(tuple(map(_described, drafts)), tuple(estimates))


def _described(draft: Draft) -> Draft:
    """Take the test from parts that have none."""
    if draft.finding.p_value == draft.finding.p_value or draft.finding.family is Family.DESCRIPTIVE:
        return draft
    return without_verdict(draft, "described: it is not held against chance")


def _of_models(config: Config, data: CounterfactualData) -> Iterator[tuple[str, Estimate]]:
    """Yield what each model's embeddings say of the images, and of the subjects."""
    asked, quality = config.quality, data.quality
    assert asked is not None  # noqa: S101 - the caller sees to both
    assert quality is not None  # noqa: S101
    how = _how(config)
    for name, one in data.models.items():
        if not isinstance(one.scores, CosineScores):
            continue
        columns = {key: column[one.used] for key, column in data.images.columns.items()}
        subjects, sets = columns[config.data.subject], columns[config.data.sets]
        yield name, set_similarity(one.scores.items, sets, strata=subjects, **how)
        if name in quality.references:
            vectors = quality.references[name]
            reference = vectors.take(np.flatnonzero(vectors.usable))
            yield name, frechet_distance(one.scores.items, reference, units=sets, **how)
        texts, names = one.scores.queries, one.scores.names
        yield name, confusable_subjects(texts, names, threshold=asked.confusable)
        if len(names) > 1:
            yield (
                name,
                subject_accuracy(
                    one.scores.items, texts, subjects, names=names, margin=asked.margin,
                    units=sets, **how,
                ),
            )  # fmt: skip


def _of_descriptors(config: Config, data: CounterfactualData) -> Iterator[tuple[str, Estimate]]:
    """Yield how alike poses and backgrounds are within sets, and what a classifier says."""
    assert data.quality is not None  # noqa: S101 - the caller sees to it
    if data.quality.probabilities is not None:
        units = data.images.columns[config.data.sets][data.quality.rated]
        yield "", inception_score(data.quality.probabilities, units=units, **_how(config))
    for name, vectors in data.quality.described.items():
        used = np.flatnonzero(vectors.usable)
        columns = data.images.columns
        yield (
            "",
            set_similarity(
                vectors.take(used),
                columns[config.data.sets][used],
                strata=columns[config.data.subject][used],
                centred=name == "background",
                of=name,
                **_how(config),
            ),
        )


def _how(config: Config) -> dict[str, Any]:
    return {"resampling": resampling_of(config, 1), "rng": config.resampling.seed}


def _of_people(
    config: Config, data: CounterfactualData, people: People, tests: int
) -> Iterator[tuple[str, Estimate]]:
    """Yield errors that people see, and how the detector agrees with them, by groups."""
    asked = config.quality and config.quality.labels
    assert asked  # noqa: S101 - there are labels
    columns = {name: column[people.rows] for name, column in data.images.columns.items()}
    units = columns[config.data.sets]
    how: dict[str, Any] = {
        "resampling": resampling_of(config, tests),
        "rng": config.resampling.seed,
    }
    right = {*(asked.discernible or (asked.good,))}
    shown = np.array([one in right for one in people.labels])
    for attributes in config.data.groups:
        found = {name: columns[name] for name in attributes}
        groups = Groups.of(found, min_size=config.data.min_group_size)
        yield groups.name, label_errors(
            people.labels, groups, good=asked.good, units=units, **how
        )  # fmt: skip
        if people.detected is not None:
            kept = people.known & np.array([one is not None for one in people.labels])
            here = {"groups": groups.take(kept), "units": units[kept], **how}
            yield groups.name, detector_precision(people.detected[kept], shown[kept], **here)
            yield groups.name, detector_recall(people.detected[kept], shown[kept], **here)


def _seen(estimate: Estimate, place: Place) -> Iterator[Draft]:
    """Yield the gap of any error and of each kind; rates and shares by group stand in tables."""
    if estimate.metric != "label_error_gap":
        yield whole(estimate, place, Family.DESCRIPTIVE)
        return
    gaps = [one for one in parts(estimate, place) if one.finding.metric == estimate.metric]
    own = next((one.finding.by_group for one in gaps if one.finding.subject == ANY), ())
    yield whole(estimate, place, Family.COMPOSITE, by_group=own, shows=SHOWS)
    kinds = [one for one in gaps if one.finding.subject != ANY]
    for draft in kinds:
        yield (
            replace(draft, harm="higher")
            if len(kinds) > 1
            else without_verdict(draft, "the only kind of error: any error is tested")
        )
