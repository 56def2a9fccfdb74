"""The quality of the sets: images against a reference, people's labels, subjects told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.audit import Measured
from equipoise.audits.columns import Row, tables_of
from equipoise.audits.config import resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part
from equipoise.data import Items, Matrix, Vectors, load_items, load_matrix, load_vectors
from equipoise.metrics.rankings.cosines import CosineScores
from equipoise.metrics.values.labels import (
    ANY,
    SHOWS,
    detector_precision,
    detector_recall,
    label_errors,
)
from equipoise.metrics.vectors.quality import (
    confusable_subjects,
    frechet_distance,
    inception_score,
    set_similarity,
    subject_accuracy,
)

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.audit import CounterfactualData
    from equipoise.audits.counterfactuals.config import Config, PeopleConfig, QualityConfig
    from equipoise.audits.outputs import Models


_SETS = "about sets of images, not groups: it stands beside what chance gives, and has no verdict"
_REFERENCE = "quality.reference"
_COLUMNS = {
    "people": "groups metric error group #value #low #high +n",
    "subjects_told_apart": "model subject #accuracy #low #high +n taken_for ?told_apart nearest "
    "#cosine",
}

ON = "reference"
"""What models run on beside the images of the sets."""

Found = tuple[str, str, Estimate]
"""An estimate, with the model and the groups that it is of before it."""


@dataclass(frozen=True, eq=False)
class Quality:
    """What is known of the quality of the sets.

    Attributes
    ----------
    references : mapping of str to Vectors
        By model: embeddings of the reference images.
    described : mapping of str to Vectors
        "pose" and "background": vectors of the images.
    probabilities : Matrix or None
        A classifier's probabilities of the images.
    people : Items or None
        People's labels of images.
    inputs, counts : mapping
        Of every file read.
    """

    references: Mapping[str, Vectors]
    described: Mapping[str, Vectors]
    probabilities: Matrix | None
    people: Items | None
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


def load_quality(config: Config, section: QualityConfig, models: Models, images: Items) -> Quality:
    """Read the tables on quality and embed reference images.

    Raises
    ------
    ConfigError
        When nothing says where pictures are that are needed.
    DataError
        When a table can't be read or joined.
    """
    base, limit = models.base, config.data.max_unmatched
    references, items = _references(config, section, models)
    described = {
        name: load_vectors(each.source(base), images, what=name, max_unmatched=limit)
        for name, each in (("pose", section.pose), ("background", section.background))
        if each is not None
    }
    matrix = people = None
    if section.probabilities is not None:
        source = section.probabilities.source(base)
        matrix = load_matrix(source, images, what="probabilities", max_unmatched=limit)
    if section.labels is not None:
        table = section.labels.source(base, section.labels.columns)
        people = load_items(table, what="quality.labels")
        if not {*people.ids.tolist()} & {*images.ids.tolist()}:
            raise DataError(
                f"none of the {len(people)} labelled images is among the images, such as "
                f"{people.ids[0]!r}",
                file=people.name,
                column=section.labels.id,
                expected=f"ids such as {images.ids[0]!r}",
                fix="name the images as their table does",
            )
    counts = {ON: items, "labels": people}
    inputs: dict[str, Mapping[str, Any]] = {}
    for each in (items, *references.values(), *described.values(), matrix, people):
        inputs |= {} if each is None else each.inputs
    counted = {name: each.counts for name, each in counts.items() if each is not None}
    return Quality(references, described, matrix, people, inputs, counted)


def _references(
    config: Config, section: QualityConfig, models: Models
) -> tuple[dict[str, Vectors], Items | None]:
    """Return each model's embeddings of the reference images."""
    if section.reference is None:
        return {}, None
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


def quality_notes(quality: Quality, images: Items) -> Iterator[str]:
    """Yield which images of the tables on quality aren't used."""
    for name, vectors in (*quality.references.items(), *quality.described.items()):
        if missing := int((~vectors.usable).sum()):
            yield f"{name}: {missing} images without a usable vector, in no number about quality."
    labelled = [] if quality.people is None else quality.people.ids.tolist()
    if strangers := len({*labelled} - {*images.ids.tolist()}):
        yield f"{strangers} labelled images are not among the images, and are not used."


def measure_quality(
    config: Config, section: QualityConfig, data: CounterfactualData, quality: Quality
) -> Measured:
    """Measure everything that the section on quality has data for."""
    found = [
        *_of_models(config, section, data, quality),
        *_of_descriptions(config, data.images, quality),
    ]
    if section.labels is not None and quality.people is not None:
        found += _of_people(config, section.labels, data.images, quality.people)
    findings: list[UncorrectedFinding] = []
    for model, groups, estimate in found:
        place = Place(config.audit, model, groups, "default", config.resampling.level)
        if groups:
            findings += _gaps(estimate, place)
            continue
        findings.append(without_verdict(whole(estimate, place, Family.DESCRIPTIVE), _SETS))
        findings += [
            each
            for each in parts(estimate, place)
            if each.finding.metric == "frechet_distance_extrapolated"
        ]
    tables = {"people": _people_rows(found), "subjects_told_apart": _subject_rows(found)}
    return Measured(
        tuple(
            without_verdict(each, "described: it is not held against chance")
            if math.isnan(each.finding.p_value) and each.finding.family is not Family.DESCRIPTIVE
            else each
            for each in findings
        ),
        tables_of(tables, _COLUMNS),
    )


def _how(config: Config, tests: int) -> dict[str, Any]:
    return {"resampling": resampling_of(config, tests), "rng": config.resampling.seed}


def _of_models(
    config: Config, section: QualityConfig, data: CounterfactualData, quality: Quality
) -> Iterator[Found]:
    """Yield what each model's embeddings say of the images, and of the subjects."""
    how = _how(config, 1)
    for name, scored in data.models.items():
        if not isinstance(scored.scores, CosineScores):
            continue
        items, texts, names = scored.scores.items, scored.scores.queries, scored.scores.names
        subjects = data.images.columns[config.data.subject][scored.used]
        sets = data.images.columns[config.data.sets][scored.used]
        yield name, "", set_similarity(items, sets, strata=subjects, **how)
        if name in quality.references:
            vectors = quality.references[name]
            reference = vectors.take(np.flatnonzero(vectors.usable))
            yield name, "", frechet_distance(items, reference, units=sets, **how)
        yield name, "", confusable_subjects(texts, names, threshold=section.confusable)
        if len(names) > 1:
            accuracy = partial(subject_accuracy, names=names, margin=section.margin, units=sets)
            yield name, "", accuracy(items, texts, subjects, **how)


def _of_descriptions(config: Config, images: Items, quality: Quality) -> Iterator[Found]:
    """Yield how alike poses and backgrounds are within sets, and what a classifier says."""
    subjects, sets = images.columns[config.data.subject], images.columns[config.data.sets]
    how, matrix = _how(config, 1), quality.probabilities
    if matrix is not None:
        every = np.asarray(matrix.take([*matrix.names]), dtype=np.float64)
        rated = np.flatnonzero(~np.isnan(every).any(axis=1))
        yield "", "", inception_score(every[rated], units=sets[rated], **how)
    for name, vectors in quality.described.items():
        used = np.flatnonzero(vectors.usable)
        similarity = partial(set_similarity, centred=name == "background", of=name)
        yield "", "", similarity(vectors.take(used), sets[used], strata=subjects[used], **how)


def _of_people(
    config: Config, section: PeopleConfig, images: Items, people: Items
) -> Iterator[Found]:
    """Yield errors that people see, and how the detector agrees with them, by groups."""
    places = {name: place for place, name in enumerate(images.ids.tolist())}
    kept = np.array([name in places for name in people.ids.tolist()])
    rows = [places[name] for name in people.ids[kept].tolist()]
    units = images.columns[config.data.sets][rows]
    labels = people.columns[section.label][kept]
    how = _how(config, 4 * len(config.data.groups))
    right = {*(section.discernible or (section.good,))}
    shown = np.array([label in right for label in labels])
    for attributes in config.data.groups:
        levels = {name: images.columns[name][rows] for name in attributes}
        groups = Groups.of(levels, min_size=config.data.min_group_size)
        yield "", groups.name, label_errors(labels, groups, good=section.good, units=units, **how)
        if section.detected is not None:
            cells = people.columns[section.detected][kept]
            known = np.array([None not in both for both in zip(cells, labels, strict=True)])
            detected = np.array([cell in section.yes for cell in cells[known].tolist()])
            here = {"groups": groups.take(known), "units": units[known], **how}
            for agreement in (detector_precision, detector_recall):
                yield "", groups.name, agreement(detected, shown[known], **here)


def _gaps(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
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


def _people_rows(found: Sequence[Found]) -> Iterator[Row]:
    """Yield error rates of all images and of each group, and shares of the detector."""
    for _, groups, estimate in found:
        at = {"groups": groups, "metric": estimate.metric, "error": "", "group": ""}
        if estimate.metric == "label_error_gap":
            at["metric"] = "label_error_rate"
            for part in estimate.parts:
                at["error"] = part.subject
                if part.metric == at["metric"]:
                    yield {**at, **_numbers(part)}
                for own in part.by_group if part.metric != at["metric"] else ():
                    yield {**at, "group": own.group, **_numbers(own)}
        elif groups:
            low, high = estimate.ends(0.95)
            n = sum(estimate.n.values())
            yield {**at, "value": estimate.value, "low": low, "high": high, "n": n}
            for part in estimate.parts:
                yield {**at, "group": part.subject, **_numbers(part)}


def _numbers(part: Part | GroupValue) -> Row:
    return {"value": part.value, "low": part.low, "high": part.high, "n": part.n}


def _subject_rows(found: Sequence[Found]) -> Iterator[Row]:
    """Yield every subject of each model: what its images are taken for, whose text is nearest."""
    nearest: dict[tuple[str, str], tuple[str, float]] = {}
    for model, _, each in found:
        for part in each.parts if each.metric == "confusable_subjects" else ():
            first, second = part.subject.split(" | ", 1)
            nearest.setdefault((model, first), (second, part.value))
            nearest.setdefault((model, second), (first, part.value))
    for model, _, each in found:
        for part in each.parts if each.metric == "subject_accuracy" else ():
            other, cosine = nearest.get((model, part.subject), ("", math.nan))
            unclear = part.subject in each.params["not_told_apart"]
            yield {
                "model": model, "subject": part.subject, "accuracy": part.value, "low": part.low,
                "high": part.high, "n": part.n,
                "taken_for": part.shows.removeprefix("taken for ").removesuffix(" most"),
                "told_apart": not (unclear or other), "nearest": other, "cosine": cosine,
            }  # fmt: skip
