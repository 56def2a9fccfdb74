"""Images, queries and the scores of each model: from files, or from models that are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.audits.columns import ImageData, check_one_space, rows_of
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models, average_prompts, prompts_of
from equipoise.audits.rankings.config import (
    DataConfig,
    QueriesConfig,
    QueryAudit,
)
from equipoise.audits.rankings.hypotheses import Hypothesis
from equipoise.core import DataError, Floats, Integers, Integers32, Objects, record
from equipoise.core.types import FileFacts
from equipoise.data import (
    ArraySource,
    Items,
    Outputs,
    Vectors,
    load_items,
    load_matrix,
    load_vectors,
)
from equipoise.data.problems import listed
from equipoise.evidence.zero_shot import Prompts
from equipoise.metrics.rankings.cosines import CosineScores, cosine_scores

Source = ArraySource | Outputs


# Names that an error lists.
_LISTED = 5


@record
class Queries:
    """The table of queries.

    Attributes
    ----------
    items : Items
    subjects : ndarray of str objects, shape (n,)
        Subject of each query; its own id where queries have no subjects. None where it's missing.
    column : str
        Column of the subjects, or of the ids.
    """

    items: Items
    subjects: Objects
    column: str

    @classmethod
    def read(cls, section: QueriesConfig, base: Path) -> Queries:
        """Read the table.

        Raises
        ------
        DataError
            When it can't be read, or no query has a subject.
        """
        column = section.subject
        items = load_items(
            section.source(base, () if column is None else (column,)), subject="queries"
        )
        subjects = items.ids if column is None else items.columns[column]
        if all(subject is None for subject in subjects.tolist()):
            raise DataError(
                "no query has a subject",
                file=items.name,
                column=column,
                expected="the subject of each query",
                fix="fill the column in, or name another under queries.subject",
            )
        return cls(items, subjects, column or section.id)

    def members(self, places: Sequence[int]) -> dict[str, list[int]]:
        """Return which of some queries each subject has, in order of first appearance."""
        orders_by_subject: dict[str, list[int]] = {}
        for order, place in enumerate(places):
            if self.subjects[place] is not None:
                orders_by_subject.setdefault(str(self.subjects[place]), []).append(order)
        return orders_by_subject

    def prompts(self, section: QueriesConfig, base: Path, *, by_subject: bool = False) -> Prompts:
        """Return the texts of each query, or of each subject, in their templates."""
        prompts = prompts_of(section, base, subject="queries")
        if not by_subject:
            return prompts
        members = self.members(prompts.owner.tolist())
        texts = sorted(
            (text, order) for order, orders in enumerate(members.values()) for text in orders
        )
        owners = np.array([order for _, order in texts], dtype=np.int64)
        return Prompts(tuple(prompts.texts[text] for text, _ in texts), owners, tuple(members))


def vectors_by_subject(vectors: Vectors, queries: Queries) -> tuple[tuple[str, ...], Floats]:
    """Average the unit vectors of the queries of each subject.

    Raises
    ------
    DataError
        When no query has a usable vector.
    """
    usable = np.flatnonzero(vectors.usable)
    members = queries.members(usable.tolist())
    if not members:
        raise DataError(
            "no query has a usable embedding",
            file=vectors.name,
            expected="finite vectors that are not zero",
            fix="embed the queries again",
        )
    units = vectors.take(usable).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return tuple(members), np.stack([units[rows].mean(axis=0) for rows in members.values()])


def with_query(
    used: Integers,
    images: Items,
    names: Sequence[str],
    source: tuple[str, str | None],
    data: DataConfig,
) -> tuple[Integers, Counter[str]]:
    """Return the images that match a query's subject, and counts of other subjects.

    Raises
    ------
    DataError
        When more than `max_unmatched` of the images have no query.
    """
    if data.subject is None:
        return used, Counter()
    subjects, queried = images.columns[data.subject][used], {*names}
    matches = np.array([subject in queried for subject in subjects.tolist()], dtype=bool)
    unmatched = Counter(subjects[~matches].tolist())
    if unmatched.total() > data.max_unmatched * len(used):
        unmatched_names = sorted(str(subject or "none") for subject in unmatched)
        raise DataError(
            f"no query asks for the subject of {unmatched.total()} images: "
            f"{listed(unmatched_names, _LISTED)}",
            file=source[0],
            column=source[1],
            expected=f"a query for each value of data.subject, {data.subject}; there are queries "
            f"for {listed(names, _LISTED)}",
            fix="add the queries, or name in queries.subject a column that has the subjects of the "
            "images",
        )
    del unmatched[None]
    return used[matches], unmatched


_NO_VECTOR, _NO_SCORE = "images without an embedding", "images without a score"
_NO_QUERY = "images whose subject no usable query asks for"


@record
class RankingScores:
    """One model's scores.

    Attributes
    ----------
    scores : CosineScores, or ndarray of shape (queries, used) or (used,)
        (used,): the score of each image for the query of its own subject.
    queries : tuple of str
        Subjects, or queries without one.
    used : ndarray of int64
        Places of the images with scores in the table.
    counts : mapping of str to int
        Images and queries that aren't used, by reason.
    unmatched_subjects : tuple of str
        Subjects of images that no usable query asks for.
    inputs, matched : mapping
        Files, and counts of what was matched.
    failed : str
        The reason that stands for failures of a live model: a table lists them already.
    rescaled : bool
        Whether a user's embeddings aren't all of length 1, which a note says.
    scale : float or None
        Scale of the logits of a dual encoder that was run, where it has one.
    """

    scores: CosineScores | Floats
    queries: tuple[str, ...]
    used: Integers
    counts: Mapping[str, int]
    unmatched_subjects: tuple[str, ...]
    inputs: Mapping[str, FileFacts]
    matched: Mapping[str, Any]
    failed: str = ""
    rescaled: bool = False
    scale: float | None = None

    def best(self, codes: Integers32, subjects: Objects | None, k: int) -> pl.DataFrame:
        """Return the k images that each query ranks first, over all and in each group.

        Parameters
        ----------
        codes : ndarray of int32, shape (n,)
            Group of each image.
        subjects : ndarray of str objects, shape (n,), or None
            Where each image is ranked for its own subject alone.
        k : int

        Returns
        -------
        polars.DataFrame
            `place`, `subject`, `outcome`, `score`.
        """
        parts = list[pl.DataFrame]()
        for place, query in enumerate(self.queries):
            rows = np.arange(len(self.used))
            if subjects is not None:
                rows = np.flatnonzero(subjects[self.used] == query)
            if isinstance(self.scores, CosineScores):
                scores = self.scores.of_query(place, rows)
            else:
                scores = (self.scores if self.scores.ndim == 1 else self.scores[place])[rows]
            ranked = pl.DataFrame(
                {"place": self.used[rows], "score": scores, "group": codes[self.used[rows]]}
            ).sort("score", descending=True, maintain_order=True)
            ranked_first = pl.int_range(pl.len()) < k
            parts.append(
                ranked.filter(ranked_first | ranked_first.over("group"))
                .with_columns(
                    subject=pl.lit(query),
                    outcome=pl.when(ranked_first)
                    .then(pl.lit(f"top {k}"))
                    .otherwise(pl.lit(f"top {k} of the group")),
                )
                .drop("group")
            )
        return pl.concat(parts)

    def notes(self, model: str) -> Iterator[Note | str]:
        """Yield notes on normalised embeddings and on unused images and queries."""
        if self.rescaled:
            yield Note(model, "the embeddings are not of length 1; they are normalised.")
        for reason, count in self.counts.items():
            if count and reason != self.failed:
                examples = (
                    f", such as {listed(self.unmatched_subjects, _LISTED)}"
                    if reason == _NO_QUERY
                    else ""
                )
                yield Note(model, f"{reason}{examples} ({count}) are not used.")


@record
class RankingData(ImageData):
    """The images and each model's scores of them.

    Attributes
    ----------
    models : mapping of str to RankingScores
    hypotheses : tuple of Hypothesis
        In the order of the config.
    """

    models: Mapping[str, RankingScores]
    hypotheses: tuple[Hypothesis, ...] = ()


def read_items(config: QueryAudit, models: Models) -> Items:
    """Read the table of the images, or make it of a data set under its rules.

    Raises
    ------
    DataError
        When it can't be read, or a set has images of several units.
    """
    data = config.data
    _, images = models.read_items(data.images, data.columns)
    sets, unit = data.sets, data.unit
    if sets is None or unit is None:
        return images
    # Sets are resampled whole, so units may not split them.
    owners: dict[str, Any] = {}
    pairs = zip(images.columns[sets].tolist(), images.columns[unit].tolist(), strict=True)
    for row, (name, owner) in enumerate(pairs, start=1):
        if name is not None and owners.setdefault(name, owner) != owner:
            raise DataError(
                f"{sets} {name!r} has images of several units",
                file=images.name,
                column=unit,
                row=row,
                expected=f"one {unit} in each {sets}",
                fix="name the unit that holds whole sets, or leave data.unit out",
            )
    return images


def load_scores(
    config: QueryAudit, models: Models, images: Items, section: QueriesConfig | None
) -> RankingData:
    """Read or compute every model's scores of the images, and read the hypotheses.

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
    queries = (
        None
        if section is None
        else models.once("queries", lambda: Queries.read(section, models.base))
    )
    scored: dict[str, RankingScores] = {}
    for name, model in config.models.items():
        if model.model is not None and section is not None and queries is not None:
            pictures = models.read_images(config.data.images, config.data.columns)
            pixels = pictures.need_pictures(name)
            embeds = models.capability(name, model, "encoder", "scorer") == "encoder"
            read = partial(queries.prompts, section, models.base, by_subject=not embeds)
            prompts = models.once("prompts by query" if embeds else "prompts by subject", read)
            if embeds:
                outputs = models.embed_images(name, model, pixels)
                texts = models.embed_texts(name, model, prompts)
                model_scores = _score_from_vectors(
                    name, outputs, texts, images, queries, config.data
                )
            else:
                outputs = models.score_pairs(name, model, pixels, prompts.texts)
                means = average_prompts(outputs, prompts)
                model_scores = _read_scores(name, means, images, queries, config.data)
            scored[name] = replace(model_scores, scale=outputs.info.get("scale"))
        elif model.scores is not None:
            scores = model.scores.source(models.base)
            scored[name] = _read_scores(name, scores, images, queries, config.data)
        elif model.images is not None and model.queries is not None and queries is not None:
            sources = model.images.source(models.base), model.queries.source(models.base)
            scored[name] = _score_from_vectors(name, *sources, images, queries, config.data)
    inputs = {**images.inputs}
    matched = {name: model_scores.matched for name, model_scores in scored.items()}
    counts: dict[str, Any] = {"images": images.counts, "models": matched}
    if queries is not None:
        inputs |= queries.items.inputs
        counts["queries"] = queries.items.counts
    for model_scores in scored.values():
        inputs |= model_scores.inputs
    concepts = {query for model_scores in scored.values() for query in model_scores.queries}
    hypotheses = tuple(
        Hypothesis.read(f"hypotheses[{place}]", options, models.base, concepts)
        for place, options in enumerate(config.hypotheses)
    )
    for hypothesis in hypotheses:
        inputs |= hypothesis.items.inputs
        counts[hypothesis.key] = hypothesis.items.counts
    return RankingData(images, inputs, counts, scored, hypotheses)


def _score_from_vectors(
    name: str,
    image_source: Source,
    query_source: Source,
    images: Items,
    queries: Queries,
    data: DataConfig,
) -> RankingScores:
    limit = data.max_unmatched
    vectors = load_vectors(image_source, images, subject=f"{name} images", max_unmatched=limit)
    texts = load_vectors(
        query_source, queries.items, subject=f"{name} queries", max_unmatched=limit
    )
    check_one_space(texts, vectors)
    names, means = vectors_by_subject(texts, queries)
    usable = np.flatnonzero(vectors.usable)
    used, unmatched = with_query(usable, images, names, (queries.items.name, queries.column), data)
    return RankingScores(
        scores=cosine_scores(rows_of(vectors, used), means, names=names),
        queries=names,
        used=used,
        counts={
            _NO_VECTOR: int((vectors.rows < 0).sum()),
            "images with an embedding of zeros": int(vectors.zero.sum()),
            "images with an embedding that is not finite": int(vectors.not_finite.sum()),
            _NO_QUERY: unmatched.total(),
            "queries without a usable embedding": int((~texts.usable).sum()),
            "queries without a subject": queries.subjects.tolist().count(None),
        },
        failed=_NO_VECTOR if vectors.live else "",
        unmatched_subjects=tuple(unmatched),
        inputs={**vectors.inputs, **texts.inputs},
        matched={"images": vectors.counts, "queries": texts.counts},
        rescaled=vectors.rescaled or texts.rescaled,
    )


def _read_scores(
    name: str, source: Source, images: Items, queries: Queries | None, data: DataConfig
) -> RankingScores:
    limit = data.max_unmatched
    matrix = load_matrix(source, images, subject=f"{name} scores", max_unmatched=limit)
    names, all_scores = matrix.names, matrix.take(matrix.names)
    place: tuple[str, str | None] = matrix.name, None
    if queries is not None and matrix.live:
        place = queries.items.name, queries.column
    used, unmatched = with_query(np.arange(len(images)), images, names, place, data)
    if data.subject is None:
        scores = np.asarray(all_scores[used].T, dtype=np.float64)
    else:
        places = {name: place for place, name in enumerate(names)}
        query_columns = [places[subject] for subject in images.columns[data.subject][used].tolist()]
        scores = np.asarray(all_scores[used, query_columns], dtype=np.float64)
    finite = np.isfinite(scores).reshape(-1, len(used)).all(axis=0)
    missing = np.isnan(scores).reshape(-1, len(used)).any(axis=0)
    if not finite.any():
        raise DataError(
            "no image has a score for every query that ranks it",
            file=matrix.name,
            expected="finite scores",
            fix="leave out the queries that lack scores with `columns:`",
        )
    return RankingScores(
        scores=scores[..., finite],
        queries=names,
        used=used[finite],
        counts={
            _NO_SCORE: int(missing.sum()),
            "images with an infinite score": int((~finite & ~missing).sum()),
            _NO_QUERY: unmatched.total(),
        },
        failed=_NO_SCORE if matrix.live else "",
        unmatched_subjects=tuple(unmatched),
        inputs=matrix.inputs,
        matched={"scores": matrix.counts},
    )
