"""Images, queries and the scores of each model: from files, or from models that are run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.engines.rankings.queries import (
    WITHOUT_SUBJECT,
    Queries,
    check_unusable,
    scores_by_subject,
    vectors_by_subject,
    with_query,
)
from equipoise.audits.outputs import average_prompts
from equipoise.audits.taking import rows_of
from equipoise.core.errors import DataError
from equipoise.data import load_items, load_matrix, load_vectors
from equipoise.data.coded import LeftOut
from equipoise.data.problems import listed
from equipoise.metrics.rankings.cosines import CosineScores, cosine_scores

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import DataConfig, ModelConfig, QueriesConfig, QueryAudit
    from equipoise.audits.outputs import Models, Outputs
    from equipoise.data import ArraySource, Items

    Source = ArraySource | Outputs

Objects = npt.NDArray[np.object_]

_ONE = {"images": "image", "queries": "query"}
_NO_QUERY = "images whose subject no usable query asks for"
# Subjects that a note names.
_LISTED = 5


@dataclass(frozen=True, eq=False)
class Scored:
    """One model's scores.

    Attributes
    ----------
    scores : CosineScores, or ndarray of shape (queries, used) or (used,)
        (used,): the score of each image for the query of its own subject.
    queries : tuple of str
        Subjects, or queries without one.
    used : ndarray of int64
        Places of the images with scores in the table.
    left : mapping of str to LeftOut
        Images and queries that aren't used, by reason.
    lost : tuple of str
        Subjects of images that no usable query asks for.
    inputs, matched : mapping
        Files, and counts of what was matched.
    rescaled : bool
        Whether a user's embeddings aren't all of length 1, which a note says.
    scale : float or None
        Scale of the logits of a dual encoder that was run, where it has one.
    """

    scores: CosineScores | npt.NDArray[np.float64]
    queries: tuple[str, ...]
    used: npt.NDArray[np.int64]
    left: Mapping[str, LeftOut]
    lost: tuple[str, ...]
    inputs: Mapping[str, Mapping[str, Any]]
    matched: Mapping[str, Any]
    rescaled: bool = False
    scale: float | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many images and queries aren't used, by reason."""
        return {what: left.rows for what, left in self.left.items()}

    def notes(self, model: str) -> Iterator[str]:
        """Yield what was done to the embeddings, and which images and queries aren't used."""
        if self.rescaled:
            yield f"{model}: the embeddings are not of length 1; they are normalised."
        for what, left in self.left.items():
            if count := left.untold:
                noun, _, rest = what.partition(" ")
                rest += f" ({listed(self.lost, _LISTED)})" if what == _NO_QUERY else ""
                yield f"{model}: {count} {_ONE[noun] if count == 1 else noun} {rest}, not used."


@dataclass(frozen=True, eq=False)
class RankingData:
    """The images and each model's scores of them.

    Attributes
    ----------
    images : Items
    models : mapping of str to Scored
    inputs, counts : mapping
        Of every file read.
    """

    images: Items
    models: Mapping[str, Scored]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]

    @property
    def ids(self) -> Objects:
        """Ids of the images."""
        return self.images.ids


def read_items(config: QueryAudit, models: Models) -> Items:
    """Read the table of the images, or make it of a data set under its rules."""
    data = config.data
    images = models.read_images(data.images, data.columns)
    return load_items(images.source(models.base, data.columns), what="images")


def load_scores(
    config: QueryAudit, models: Models, images: Items, section: QueriesConfig | None
) -> RankingData:
    """Read or compute every model's scores of the images.

    Parameters
    ----------
    config : QueryAudit
    models : Models
    images : Items
        See `read_items`.
    section : QueriesConfig or None
        The queries.

    Raises
    ------
    ConfigError
        When the pictures of a model that is run are nowhere, or it has no scores to give.
    DataError
        When a file can't be read or joined, no query is left, or images have no query.
    """
    queries = None if section is None else Queries.read(section, models.base)
    scored: dict[str, Scored] = {}
    for name, model in config.models.items():
        if model.model is not None and section is not None and queries is not None:
            scored[name] = _run(name, model, config.data, models, images, queries, section)
        elif model.scores is not None:
            scores = model.scores.source(models.base)
            scored[name] = _from_scores(name, scores, images, queries, config.data)
        elif model.images is not None and model.queries is not None and queries is not None:
            both = model.images.source(models.base), model.queries.source(models.base)
            scored[name] = _from_vectors(name, *both, images, queries, config.data)
    inputs = {**images.inputs, **({} if queries is None else queries.items.inputs)}
    for each in scored.values():
        inputs |= each.inputs
    counts: dict[str, Any] = {
        "images": images.counts,
        "models": {name: each.matched for name, each in scored.items()},
        **({} if queries is None else {"queries": queries.items.counts}),
    }
    return RankingData(images, scored, inputs, counts)


def _run(
    name: str,
    model: ModelConfig,
    data: DataConfig,
    models: Models,
    images: Items,
    queries: Queries,
    section: QueriesConfig,
) -> Scored:
    """Run a model: a dual encoder embeds images and queries, others score pairs."""
    pictures = models.read_images(data.images, data.columns).need_pictures(name)
    embeds = models.capability(name, model, "encoder", "scorer") == "encoder"
    prompts = queries.prompts(section, models.base, by_subject=not embeds)
    if not embeds:
        pairs = models.score_pairs(name, model, pictures, prompts.texts)
        return _from_scores(name, average_prompts(pairs, prompts), images, queries, data)
    own = models.embed_images(name, model, pictures)
    texts = models.embed_texts(name, model, prompts)
    scored = _from_vectors(name, own, texts, images, queries, data)
    return replace(scored, scale=own.info.get("scale"))


def _from_vectors(
    name: str, own: Source, asked: Source, images: Items, queries: Queries, data: DataConfig
) -> Scored:
    limit = data.max_unmatched
    vectors = load_vectors(own, images, what=f"{name} images", max_unmatched=limit)
    texts = load_vectors(asked, queries.items, what=f"{name} queries", max_unmatched=limit)
    if vectors.dimension != texts.dimension:
        raise DataError(
            f"embeddings of {texts.dimension} numbers; those of the images have "
            f"{vectors.dimension}",
            file=texts.name,
            expected="images and queries in one space",
            fix="embed both with the same model, after its projection",
        )
    names, means = vectors_by_subject(texts, queries)
    every = np.flatnonzero(vectors.usable)
    check_unusable(texts, queries, images, every, data)
    used, lost = with_query(every, images, names, queries.source, data)
    return Scored(
        scores=cosine_scores(rows_of(vectors, used), means, names=names),
        queries=names,
        used=used,
        left={
            "images without an embedding": vectors.without_vector,
            "images with an embedding of zeros": LeftOut(int(vectors.zero.sum())),
            "images with an embedding that is not finite": LeftOut(int(vectors.not_finite.sum())),
            _NO_QUERY: LeftOut(lost.total()),
            "queries without a usable embedding": LeftOut(int((~texts.usable).sum())),
            WITHOUT_SUBJECT: queries.without_subject,
        },
        lost=tuple(lost),
        inputs={**vectors.inputs, **texts.inputs},
        matched={"images": vectors.counts, "queries": texts.counts},
        rescaled=vectors.rescaled or texts.rescaled,
    )


def _from_scores(
    name: str, source: Source, images: Items, queries: Queries | None, data: DataConfig
) -> Scored:
    limit = data.max_unmatched
    matrix = load_matrix(source, images, what=f"{name} scores", max_unmatched=limit)
    by_subject = scores_by_subject(matrix, queries, limit)
    names = by_subject.names
    used, lost = with_query(np.arange(len(images)), images, names, by_subject.source, data)
    scores = _for_own_query(by_subject.scores[used], images, used, names, data)
    known = np.isfinite(scores).reshape(-1, len(used)).all(axis=0)
    missing = np.isnan(scores).reshape(-1, len(used)).any(axis=0)
    if not known.any():
        raise DataError(
            "no image has a score for every query that ranks it",
            file=matrix.name,
            expected="finite scores",
            fix="leave out the queries that lack scores with `columns:`",
        )
    return Scored(
        scores=scores[..., known],
        queries=names,
        used=used[known],
        left={
            "images without a score": LeftOut.of(int(missing.sum()), made=matrix.made),
            "images with an infinite score": LeftOut(int((~known & ~missing).sum())),
            _NO_QUERY: LeftOut(lost.total()),
            **by_subject.left,
        },
        lost=tuple(lost),
        inputs=matrix.inputs,
        matched={"scores": matrix.counts},
    )


def _for_own_query(
    scores: npt.NDArray[Any],
    images: Items,
    used: npt.NDArray[np.int64],
    names: tuple[str, ...],
    data: DataConfig,
) -> npt.NDArray[np.float64]:
    """Return each image's score for the query of its own subject, where images have subjects."""
    if data.subject is None:
        return np.asarray(scores.T, dtype=np.float64)
    places = {name: place for place, name in enumerate(names)}
    own = [places[subject] for subject in images.columns[data.subject][used].tolist()]
    return np.asarray(scores[np.arange(len(used)), np.array(own, np.int64)], dtype=np.float64)
