"""Read the images, the queries, and what each model says of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.retrieval.asked import (
    check_unusable,
    of_queries,
    scores_by_subject,
    unasked,
    vectors_by_subject,
    with_subject,
    without_subject,
)
from equipoise.audits.taking import rows_of
from equipoise.core.errors import DataError
from equipoise.data import Items, load_items, load_matrix, load_vectors
from equipoise.data.left_out import LeftOut
from equipoise.data.problems import listed
from equipoise.metrics.retrieval.cosines import CosineScores, cosine_scores

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import ModelConfig, QueriesConfig, RankingAudit

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Scored:
    """One model's rankings.

    Attributes
    ----------
    scores : CosineScores, or ndarray of shape (queries, used) or (used,)
        (used,): the score of each image for the query of its own subject.
    queries : tuple of str
    used : ndarray of int64
        Places of the images that can be ranked in the table.
    left : mapping of str to LeftOut
        Images and queries that cannot, by reason.
    unasked : tuple of str
        Subjects of images that no usable query asks for.
    rescaled : bool
        Whether embeddings that a user brought are not all of length 1, which a note tells.
    """

    scores: CosineScores | npt.NDArray[np.float64]
    queries: tuple[str, ...]
    used: npt.NDArray[np.int64]
    left: Mapping[str, LeftOut]
    unasked: tuple[str, ...]
    rescaled: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """How many images and queries cannot be ranked, by reason."""
        return {what: one.rows for what, one in self.left.items()}


@dataclass(frozen=True, eq=False)
class RetrievalData:
    """What an audit of retrieval measures.

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


_ONE = {"images": "image", "queries": "query"}
_UNASKED = "images whose subject no usable query asks for"

# Subjects that a note names.
_SHOWN = 5


def notes_of(models: Mapping[str, Scored]) -> Iterator[str]:
    """Yield what was done to each model's embeddings, and what of them is not used."""
    for name, one in models.items():
        if one.rescaled:
            yield f"{name}: the embeddings are not of length 1; they are normalised."
        for what, left in one.left.items():
            if count := left.untold:
                noun, _, rest = what.partition(" ")
                rest += f" ({listed(one.unasked, _SHOWN)})" if what == _UNASKED else ""
                yield f"{name}: {count} {_ONE[noun] if count == 1 else noun} {rest}, not used."


def load(config: RankingAudit, *, base: Path) -> RetrievalData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        When a file cannot be read or joined, no query is left, or images have subjects that no
        query asks for.
    """
    data = config.data
    images = load_items(data.images.source(base, data.columns), what="images")
    queries = _queries(config, base)
    found = {}
    for name, model in config.models.items():
        if model.scores is not None:
            found[name] = _from_scores(name, model, images, queries, config, base)
        elif queries is not None:
            found[name] = _from_vectors(name, model, images, queries, config, base)
    inputs = {**images.inputs, **({} if queries is None else queries.inputs)}
    for one in found.values():
        inputs |= one.inputs
    counts: dict[str, Any] = {
        "images": images.counts,
        "models": {name: one.counts for name, one in found.items()},
        **({} if queries is None else {"queries": queries.counts}),
    }
    models = {name: one.scored for name, one in found.items()}
    return RetrievalData(images, models, inputs, counts)


@dataclass(frozen=True, eq=False)
class _Read:
    """What was read of a model, and what the manifest keeps of it."""

    scored: Scored
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


def _queries(config: RankingAudit, base: Path) -> Items | None:
    about = config.queries
    if about is None or not any(_asks(one, about, base) for one in config.models.values()):
        return None
    columns = () if about.subject is None else (about.subject,)
    return load_items(about.source(base, columns), what="queries")


def _asks(model: ModelConfig, about: QueriesConfig, base: Path) -> bool:
    """Whether what a model said is read by the table of queries."""
    if model.scores is None:
        return True
    # Scores that a run made are of subjects already.
    return about.subject is not None and not model.scores.source(base).made


def _from_vectors(
    name: str,
    model: ModelConfig,
    images: Items,
    queries: Items,
    config: RankingAudit,
    base: Path,
) -> _Read:
    assert model.images is not None  # noqa: S101 - the schema sees to both
    assert model.queries is not None  # noqa: S101
    unmatched = config.data.max_unmatched
    own = load_vectors(
        model.images.source(base), images, what=f"{name} images", max_unmatched=unmatched
    )
    asked = load_vectors(
        model.queries.source(base), queries, what=f"{name} queries", max_unmatched=unmatched
    )
    if own.dimension != asked.dimension:
        raise DataError(
            f"embeddings of {asked.dimension} numbers; those of the images have {own.dimension}",
            file=asked.name,
            expected="images and queries in one space",
            fix="embed both with the same model, after its projection",
        )
    names, vectors = vectors_by_subject(asked, queries, config)
    every = np.flatnonzero(own.usable)
    check_unusable(asked, queries, images, every, config)
    used = with_subject(every, images, names, config, of_queries(config, queries.name))
    lost = unasked(every, images, names, config)
    scores = cosine_scores(rows_of(own, used), vectors, names=names)
    left = {
        "images without an embedding": own.without_vector,
        "images with an embedding of zeros": LeftOut(int(own.zero.sum())),
        "images with an embedding that is not finite": LeftOut(int(own.not_finite.sum())),
        _UNASKED: LeftOut(lost.total()),
        "queries without a usable embedding": LeftOut(int((~asked.usable).sum())),
        "queries without a subject": LeftOut(without_subject(queries, config)),
    }
    rescaled = own.rescaled or asked.rescaled
    scored = Scored(scores, tuple(names), used, left, tuple(lost), rescaled)
    counts = {"images": own.counts, "queries": asked.counts}
    return _Read(scored, {**own.inputs, **asked.inputs}, counts)


def _from_scores(
    name: str,
    model: ModelConfig,
    images: Items,
    queries: Items | None,
    config: RankingAudit,
    base: Path,
) -> _Read:
    assert model.scores is not None  # noqa: S101 - the schema sees to it
    matrix = load_matrix(
        model.scores.source(base), images, what=f"{name} scores",
        max_unmatched=config.data.max_unmatched,
    )  # fmt: skip
    asked = scores_by_subject(matrix, queries, config, base)
    every = np.arange(len(images))
    used = with_subject(every, images, asked.names, config, asked.source)
    lost = unasked(every, images, asked.names, config)
    own = _own(asked.scores[used], images, used, asked.names, config)
    known, missing = (
        np.isfinite(own).reshape(-1, len(used)).all(axis=0),
        np.isnan(own).reshape(-1, len(used)).any(axis=0),
    )
    if not known.any():
        raise DataError(
            "no image has a score for every query that ranks it",
            file=matrix.name,
            expected="finite scores",
            fix="leave out the queries that lack scores with `columns:`",
        )
    left = {
        "images without a score": LeftOut.of(int(missing.sum()), made=matrix.made),
        "images with an infinite score": LeftOut(int((~known & ~missing).sum())),
        _UNASKED: LeftOut(lost.total()),
        **asked.left,
    }
    scored = Scored(own[..., known], tuple(asked.names), used[known], left, tuple(lost))
    return _Read(scored, matrix.inputs, {"scores": matrix.counts})


def _own(
    scores: npt.NDArray[Any],
    images: Items,
    used: npt.NDArray[np.int64],
    names: list[str],
    config: RankingAudit,
) -> npt.NDArray[np.float64]:
    if config.data.subject is None:
        return np.asarray(scores.T, dtype=np.float64)
    places = {name: place for place, name in enumerate(names)}
    subjects = images.columns[config.data.subject][used]
    own = np.array([places[one] for one in subjects], dtype=np.int64)
    return np.asarray(scores[np.arange(len(used)), own], dtype=np.float64)
