"""The quality of the sets: images against a reference, people's labels, subjects told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.config import resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.outputs import DryRun
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.data import Items, Vectors, load_items, load_matrix, load_vectors
from equipoise.data.outputs import Outputs
from equipoise.metrics.rankings.cosines import CosineScores
from equipoise.metrics.values.labels import (
    ANY,
    SHOWS,
    detector_precision,
    detector_recall,
    label_errors,
)
from equipoise.metrics.vectors.quality import (
    CELLS,
    ORIENTATIONS,
    background_layout,
    confusable_subjects,
    frechet_distance,
    inception_score,
    pose_layout,
    set_similarity,
    subject_accuracy,
)

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.audit import CounterfactualData
    from equipoise.audits.counterfactuals.config import Config, PeopleConfig, QualityConfig
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures


Row = dict[str, Any]

_DETECTOR = ("detector_precision", "detector_recall")
_PEOPLE = pa.schema(
    [(name, pa.string()) for name in ("groups", "metric", "error", "group")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [("n", pa.int64())]
)
_SUBJECTS = pa.schema(
    [(name, pa.string()) for name in ("model", "subject")]
    + [(name, pa.float64()) for name in ("accuracy", "low", "high")]
    + [("n", pa.int64()), ("taken_for", pa.string()), ("told_apart", pa.bool_())]
    + [("nearest", pa.string()), ("cosine", pa.float64())]
)


def quality_tables(estimates: Sequence[tuple[str, str, Estimate]]) -> Mapping[str, pa.Table]:
    """Return what people say of images and how subjects are told apart, where it is known.

    `estimates` have the model and the groups before them.
    """
    people = [row for _, groups, each in estimates for row in _people_rows(groups, each)]
    subjects = [*_subject_rows(estimates)]
    tables = {"people": (people, _PEOPLE), "subjects_told_apart": (subjects, _SUBJECTS)}
    return {
        name: pa.Table.from_pylist(rows, schema) for name, (rows, schema) in tables.items() if rows
    }


def _people_rows(groups: str, estimate: Estimate) -> Iterator[Row]:
    """Yield error rates of all images and of each group, and shares of the detector."""

    def row(metric: str, error: str, group: str, *numbers: Any) -> Row:
        place = {"groups": groups, "metric": metric, "error": error, "group": group}
        return place | dict(zip(("value", "low", "high", "n"), numbers, strict=True))

    if estimate.metric in _DETECTOR:
        n = sum(estimate.n.values())
        yield row(estimate.metric, "", "", estimate.value, *estimate.ends(0.95), n)
        for part in estimate.parts:
            yield row(part.metric, "", part.subject, part.value, part.low, part.high, part.n)
    elif estimate.metric == "label_error_gap":
        rate = "label_error_rate"
        for part in estimate.parts:
            if part.metric == rate:
                yield row(rate, part.subject, "", part.value, part.low, part.high, part.n)
            else:
                for own in part.by_group:
                    yield row(rate, part.subject, own.group, own.value, own.low, own.high, own.n)


def _subject_rows(estimates: Sequence[tuple[str, str, Estimate]]) -> Iterator[Row]:
    """Yield every subject of each model: what its images are taken for, whose text is nearest."""
    nearest_of = {
        model: _nearest(each)
        for model, _, each in estimates
        if each.metric == "confusable_subjects"
    }
    for model, _, each in estimates:
        if each.metric != "subject_accuracy":
            continue
        unclear = {*each.params["not_told_apart"]}
        for part in each.parts:
            nearest, cosine = nearest_of.get(model, {}).get(part.subject, ("", math.nan))
            yield {
                "model": model,
                "subject": part.subject,
                "accuracy": part.value,
                "low": part.low,
                "high": part.high,
                "n": part.n,
                "taken_for": part.shows.removeprefix("taken for ").removesuffix(" most"),
                "told_apart": part.subject not in unclear and not nearest,
                "nearest": nearest,
                "cosine": cosine,
            }


def _nearest(estimate: Estimate) -> dict[str, tuple[str, float]]:
    """Return the nearest other text of each subject with one at the threshold or above."""
    nearest: dict[str, tuple[str, float]] = {}
    for part in estimate.parts:
        first, second = part.subject.split(" | ", 1)
        nearest.setdefault(first, (second, part.value))
        nearest.setdefault(second, (first, part.value))
    return nearest


Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

ON = "reference"
"""What models run on beside the images of the sets."""

_REFERENCE = "quality.reference"
_WIDTHS = {"pose": CELLS * CELLS * ORIENTATIONS, "background": CELLS * CELLS * 3}
_SETS = "about sets of images, not groups: it stands beside what chance gives, and has no verdict"


@dataclass(frozen=True, eq=False)
class People:
    """What people said of images.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Places of the images in their table.
    labels : ndarray of objects, shape (n,)
        None where nothing was said.
    detected : ndarray of bool, shape (n,), or None
        Whether the attribute was detected.
    known : ndarray of bool, shape (n,)
        Images for which that is known.
    strangers : int
        Labelled images that the audit doesn't have.
    """

    rows: Places
    labels: Objects
    detected: npt.NDArray[np.bool_] | None
    known: npt.NDArray[np.bool_]
    strangers: int


@dataclass(frozen=True, eq=False)
class Quality:
    """What is known of the quality of the sets.

    Attributes
    ----------
    references : mapping of str to Vectors
        By model: embeddings of the reference images.
    described : mapping of str to Vectors
        "pose" and "background": vectors of the images.
    probabilities : ndarray of float64, shape (m, classes), or None
        A classifier's probabilities.
    rated : ndarray of int64, shape (m,)
        Places of their images in the table.
    people : People or None
    inputs, counts : mapping
        Of every file read.
    """

    references: Mapping[str, Vectors]
    described: Mapping[str, Vectors]
    probabilities: Floats | None = None
    rated: Places = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    people: People | None = None
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def load_quality(config: Config, section: QualityConfig, models: Models, images: Items) -> Quality:
    """Read the tables on quality, embed reference images and describe pictures.

    Raises
    ------
    ConfigError
        When nothing says where pictures are that are needed.
    DataError
        When a table can't be read or joined.
    """
    inputs: dict[str, Mapping[str, Any]] = {}
    counts: dict[str, Any] = {}
    base, limit = models.base, config.data.max_unmatched
    references: dict[str, Vectors] = {}
    if section.reference is not None:
        references, items = _references(config, section, models)
        inputs |= items.inputs
        counts[ON] = items.counts
    described = {
        name: load_vectors(source, images, what=name, max_unmatched=limit)
        for name, source in _descriptions(config, section, models).items()
    }
    for vectors in (*references.values(), *described.values()):
        inputs |= vectors.inputs
    quality = Quality(references, described)
    if section.probabilities is not None:
        source = section.probabilities.source(base)
        matrix = load_matrix(source, images, what="probabilities", max_unmatched=limit)
        inputs |= matrix.inputs
        every = np.asarray(matrix.take([*matrix.names]), dtype=np.float64)
        rated = np.flatnonzero(~np.isnan(every).any(axis=1))
        quality = replace(quality, probabilities=every[rated], rated=rated)
    if section.labels is not None:
        items = load_items(
            section.labels.source(base, section.labels.columns), what="quality.labels"
        )
        inputs |= items.inputs
        counts["labels"] = items.counts
        quality = replace(quality, people=_people(section.labels, items, images))
    return replace(quality, inputs=inputs, counts=counts)


def _references(
    config: Config, section: QualityConfig, models: Models
) -> tuple[dict[str, Vectors], Items]:
    """Return each model's embeddings of the reference images."""
    assert section.reference is not None  # noqa: S101 - the caller sees to it
    images = models.read_images(section.reference, name=ON, place=_REFERENCE)
    items = models.once(ON, lambda: load_items(images.source(models.base), what="reference images"))
    found = {}
    for name, model in config.models.items():
        if model.reference is not None:
            source: Any = model.reference.source(models.base)
        elif model.model is None or models.capability(name, model, "encoder", "scorer") == "scorer":
            continue
        else:
            pictures = images.need_pictures(name, place=_REFERENCE)
            source = models.embed_images(name, model, pictures, on=ON)
        found[name] = load_vectors(
            source, items, what=f"{name} reference", max_unmatched=config.data.max_unmatched
        )
    return found, items


def _descriptions(config: Config, section: QualityConfig, models: Models) -> dict[str, Any]:
    """Return the sources of the vectors of pose and background."""
    if section.layout:
        images = models.read_images(config.data.images, config.data.columns)
        pictures = images.need_pictures("", why="quality.layout")
        return _laid_out(pictures, planned=isinstance(models, DryRun))
    sections = {"pose": section.pose, "background": section.background}
    return {name: each.source(models.base) for name, each in sections.items() if each is not None}


def _laid_out(pictures: Pictures, *, planned: bool) -> dict[str, Outputs]:
    """Describe every picture that can be decoded; a plan decodes none."""
    every = {} if planned else {
        str(name): vectors
        for place, name in enumerate(pictures.ids.tolist())
        if (vectors := _layout(pictures, place)) is not None
    }  # fmt: skip
    ids = pictures.ids.tolist() if planned else [*every]
    failed = {name: "decode" for name in pictures.ids.tolist() if name not in {*ids}}
    return {
        name: Outputs(
            model="", content="embeddings", source="quality.layout",
            ids=pl.Series("", ids, dtype=pl.String), requested=pictures.ids, failed=failed,
            values=np.ones((len(ids), width), np.float32) if planned
            else np.array([both[place] for both in every.values()], np.float32).reshape(-1, width),
        )
        for place, (name, width) in enumerate(_WIDTHS.items())
    }  # fmt: skip


def _layout(pictures: Pictures, place: int) -> tuple[Floats, Floats] | None:
    """Return the pose and the background of a picture; None where it can't be decoded."""
    from equipoise.evidence.decoding import Decoding, ImageError, decode

    crop = None if pictures.crops is None else pictures.crops[place]
    try:
        image = decode(pictures.read(place), Decoding(), crop)
    except (OSError, ImageError):
        return None
    if min(image.shape[:2]) < CELLS:
        return None
    return pose_layout([image])[0], background_layout([image])[0]


def _people(section: PeopleConfig, items: Items, images: Items) -> People:
    """Join labels to images by id.

    Raises
    ------
    DataError
        When no labelled image is one of the images.
    """
    places = {name: place for place, name in enumerate(images.ids.tolist())}
    rows = np.array([places.get(name, -1) for name in items.ids.tolist()], dtype=np.int64)
    kept = rows >= 0
    if not kept.any():
        raise DataError(
            f"none of the {len(rows)} labelled images is among the images, such as "
            f"{items.ids[0]!r}",
            file=items.name,
            column=section.id,
            expected=f"ids such as {images.ids[0]!r}",
            fix="name the images as their table does",
        )
    detected, known = None, np.zeros(int(kept.sum()), dtype=bool)
    if section.detected is not None:
        cells = items.columns[section.detected][kept].tolist()
        known = np.array([cell is not None for cell in cells])
        detected = np.array([cell in section.yes for cell in cells])
    labels = items.columns[section.label][kept]
    return People(rows[kept], labels, detected, known, int((~kept).sum()))


def quality_notes(quality: Quality) -> Iterator[str]:
    """Yield which images of the tables on quality aren't used."""
    for name, vectors in (*quality.references.items(), *quality.described.items()):
        missing = int((~vectors.usable).sum())
        if missing:
            what = "reference images" if name in quality.references else "images"
            yield f"{name}: {missing} {what} without a usable vector, in no number about quality."
    people = quality.people
    if people is not None and people.strangers:
        yield f"{people.strangers} labelled images are not among the images, and are not used."


def measure_quality(
    config: Config, section: QualityConfig, data: CounterfactualData, quality: Quality
) -> Measured:
    """Measure everything that the section on quality has data for."""
    findings: list[UncorrectedFinding] = []
    estimates: list[tuple[str, str, Estimate]] = []
    place = Place(config.audit, "", "", "default", config.resampling.level)
    of_images = (
        *_of_models(config, section, data, quality),
        *_of_descriptions(config, data.images, quality),
    )
    for model, estimate in of_images:
        estimates.append((model, "", estimate))
        here = replace(place, model=model)
        findings.append(without_verdict(whole(estimate, here, Family.DESCRIPTIVE), _SETS))
        findings += [
            each
            for each in parts(estimate, here)
            if each.finding.metric == "frechet_distance_extrapolated"
        ]
    if section.labels is not None and quality.people is not None:
        people = _of_people(config, section.labels, data.images, quality.people)
        for groups, estimate in people:
            estimates.append(("", groups, estimate))
            findings += _seen(estimate, replace(place, groups=groups))
    return Measured(tuple(map(_described, findings)), quality_tables(estimates))


def _described(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Take the verdict from parts without a test."""
    if draft.finding.p_value == draft.finding.p_value or draft.finding.family is Family.DESCRIPTIVE:
        return draft
    return without_verdict(draft, "described: it is not held against chance")


def _of_models(
    config: Config, section: QualityConfig, data: CounterfactualData, quality: Quality
) -> Iterator[tuple[str, Estimate]]:
    """Yield what each model's embeddings say of the images, and of the subjects."""
    how = _how(config, 1)
    for name, scored in data.models.items():
        if not isinstance(scored.scores, CosineScores):
            continue
        items, texts, names = scored.scores.items, scored.scores.queries, scored.scores.names
        subjects = data.images.columns[config.data.subject][scored.used]
        sets = data.images.columns[config.data.sets][scored.used]
        yield name, set_similarity(items, sets, strata=subjects, **how)
        if name in quality.references:
            vectors = quality.references[name]
            reference = vectors.take(np.flatnonzero(vectors.usable))
            yield name, frechet_distance(items, reference, units=sets, **how)
        yield name, confusable_subjects(texts, names, threshold=section.confusable)
        if len(names) > 1:
            accuracy = partial(subject_accuracy, names=names, margin=section.margin, units=sets)
            yield name, accuracy(items, texts, subjects, **how)


def _of_descriptions(
    config: Config, images: Items, quality: Quality
) -> Iterator[tuple[str, Estimate]]:
    """Yield how alike poses and backgrounds are within sets, and what a classifier says."""
    subjects, sets = images.columns[config.data.subject], images.columns[config.data.sets]
    how = _how(config, 1)
    if quality.probabilities is not None:
        yield "", inception_score(quality.probabilities, units=sets[quality.rated], **how)
    for name, vectors in quality.described.items():
        used = np.flatnonzero(vectors.usable)
        similarity = partial(set_similarity, centred=name == "background", of=name)
        yield "", similarity(vectors.take(used), sets[used], strata=subjects[used], **how)


def _how(config: Config, tests: int) -> dict[str, Any]:
    return {"resampling": resampling_of(config, tests), "rng": config.resampling.seed}


def _of_people(
    config: Config, section: PeopleConfig, images: Items, people: People
) -> Iterator[tuple[str, Estimate]]:
    """Yield errors that people see, and how the detector agrees with them, by groups."""
    columns = {name: column[people.rows] for name, column in images.columns.items()}
    units = columns[config.data.sets]
    how = _how(config, 4 * len(config.data.groups))
    right = {*(section.discernible or (section.good,))}
    shown = np.array([label in right for label in people.labels])
    for attributes in config.data.groups:
        levels = {name: columns[name] for name in attributes}
        groups = Groups.of(levels, min_size=config.data.min_group_size)
        errors = label_errors(people.labels, groups, good=section.good, units=units, **how)
        yield groups.name, errors
        if people.detected is not None:
            kept = people.known & np.array([label is not None for label in people.labels])
            here = {"groups": groups.take(kept), "units": units[kept], **how}
            yield groups.name, detector_precision(people.detected[kept], shown[kept], **here)
            yield groups.name, detector_recall(people.detected[kept], shown[kept], **here)


def _seen(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the gap of any error and of each kind; rates and shares by group stand in tables."""
    if estimate.metric != "label_error_gap":
        yield whole(estimate, place, Family.DESCRIPTIVE)
        return
    gaps = [each for each in parts(estimate, place) if each.finding.metric == estimate.metric]
    own = next((each.finding.by_group for each in gaps if each.finding.subject == ANY), ())
    yield whole(estimate, place, Family.COMPOSITE, by_group=own, shows=SHOWS)
    kinds = [each for each in gaps if each.finding.subject != ANY]
    for draft in kinds:
        yield (
            replace(draft, harm="higher")
            if len(kinds) > 1
            else without_verdict(draft, "the only kind of error: any error is tested")
        )
