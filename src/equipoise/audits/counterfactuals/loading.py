"""Read the images, the prompts, every model's scores, and what is asked about their quality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.retrieval import loading as retrieval
from equipoise.audits.retrieval.loading import RetrievalData
from equipoise.core.errors import DataError
from equipoise.data import Items, Vectors, load_items, load_matrix, load_vectors

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.config import Config
    from equipoise.audits.counterfactuals.config_quality import PeopleConfig, QualityConfig

Objects = npt.NDArray[np.object_]


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
        Images of which it is known whether it was.
    strangers : int
        Labelled images that the audit does not have.
    """

    rows: npt.NDArray[np.int64]
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
        Of the images that have them.
    rated : ndarray of int64, shape (m,)
        Places of these images in their table.
    people : People or None
    """

    references: Mapping[str, Vectors] = field(default_factory=dict)
    described: Mapping[str, Vectors] = field(default_factory=dict)
    probabilities: npt.NDArray[np.float64] | None = None
    rated: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    people: People | None = None


@dataclass(frozen=True, eq=False)
class CounterfactualData(RetrievalData):
    """What an audit of counterfactual sets measures.

    Attributes
    ----------
    images, models, inputs, counts
        See `RetrievalData`.
    quality : Quality or None
    """

    quality: Quality | None = None


def load(config: Config, *, base: Path) -> CounterfactualData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        See `equipoise.audits.retrieval.loading.load`; or when a table about quality cannot be
        read or joined.
    """
    found = retrieval.load(config, base=base)
    if config.quality is None:
        return CounterfactualData(found.images, found.models, found.inputs, found.counts)
    inputs, counts = dict(found.inputs), dict(found.counts)
    quality = _quality(config, config.quality, found, base, inputs, counts)
    return CounterfactualData(found.images, found.models, inputs, counts, quality)


def notes_of(quality: Quality) -> Iterator[str]:
    """Yield what of the tables about quality is not used."""
    for name, vectors in (*quality.references.items(), *quality.described.items()):
        missing = int((~vectors.usable).sum())
        if missing:
            what = "reference images" if name in quality.references else "images"
            yield f"{name}: {missing} {what} without a usable vector, in no number about quality."
    people = quality.people
    if people is not None and people.strangers:
        yield f"{people.strangers} labelled images are not among the images, and are not used."


def _quality(
    config: Config,
    asked: QualityConfig,
    found: RetrievalData,
    base: Path,
    inputs: dict[str, Any],
    counts: dict[str, Any],
) -> Quality:
    unmatched, told = config.data.max_unmatched, counts.setdefault("quality", {})
    references: dict[str, Vectors] = {}
    if asked.reference is not None:
        items = load_items(asked.reference.source(base, ()), what="reference images")
        inputs |= items.inputs
        told["reference"] = items.counts
        for name, model in config.models.items():
            if model.reference is not None:
                references[name] = load_vectors(
                    model.reference.source(base), items, what=f"{name} reference",
                    max_unmatched=unmatched,
                )  # fmt: skip
    described = {
        name: load_vectors(given.source(base), found.images, what=name, max_unmatched=unmatched)
        for name, given in (("pose", asked.pose), ("background", asked.background))
        if given is not None
    }
    for one in (*references.values(), *described.values()):
        inputs |= one.inputs
    probabilities, rated = _probabilities(asked, found.images, base, unmatched, inputs)
    people = None
    if asked.labels is not None:
        items = load_items(asked.labels.source(base, asked.labels.columns), what="quality.labels")
        inputs |= items.inputs
        told["labels"] = items.counts
        people = _people(asked.labels, items, found.images)
    return Quality(references, described, probabilities, rated, people)


def _probabilities(
    asked: QualityConfig, images: Items, base: Path, unmatched: float, inputs: dict[str, Any]
) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.int64]]:
    """Return a classifier's probabilities, and the places of the images that have them."""
    if asked.probabilities is None:
        return None, np.zeros(0, dtype=np.int64)
    what = "probabilities"
    matrix = load_matrix(
        asked.probabilities.source(base), images, what=what, max_unmatched=unmatched
    )
    inputs |= matrix.inputs
    every = np.asarray(matrix.take([*matrix.names]), dtype=np.float64)
    rated = np.flatnonzero(~np.isnan(every).any(axis=1))
    return every[rated], rated


def _people(asked: PeopleConfig, items: Items, images: Items) -> People:
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
            column=asked.id,
            expected=f"ids such as {images.ids[0]!r}",
            fix="name the images as their table does",
        )
    detected, known = None, np.zeros(int(kept.sum()), dtype=bool)
    if asked.detected is not None:
        said = items.columns[asked.detected][kept]
        known = np.array([one is not None for one in said])
        detected = np.array([one in asked.yes for one in said])
    labels = items.columns[asked.label][kept]
    return People(rows[kept], labels, detected, known, int((~kept).sum()))
