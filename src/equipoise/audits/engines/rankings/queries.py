"""Queries of an audit: their subjects, and vectors and scores by subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.prompts import prompts_of
from equipoise.core.errors import DataError
from equipoise.core.wording import percent
from equipoise.data import load_items
from equipoise.data.coded import LeftOut
from equipoise.data.problems import listed
from equipoise.evidence.prompts import Prompts

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.audits.config_rankings import DataConfig, QueriesConfig
    from equipoise.data import Items, Matrix, Vectors

Objects = npt.NDArray[np.object_]
Places = npt.NDArray[np.int64]

# Names that an error lists.
_LISTED = 5
WITHOUT_SUBJECT = "queries without a subject"


@dataclass(frozen=True, eq=False)
class Queries:
    """The table of queries.

    Attributes
    ----------
    items : Items
    subjects : ndarray of str objects, shape (n,)
        Subject of each query; its own id where queries have no subjects. None where it's missing.
    column : str
        Column of the subjects, or of the ids.
    shared : bool
        Whether the table names subjects, which several queries may share.
    """

    items: Items
    subjects: Objects
    column: str
    shared: bool

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
            section.source(base, () if column is None else (column,)), what="queries"
        )
        subjects = items.ids if column is None else items.columns[column]
        if all(subject is None for subject in subjects.tolist()):
            raise DataError(
                "no query has a subject",
                file=items.name,
                column=column,
                expected="what each query asks for",
                fix="fill the column in, or name another under queries.subject",
            )
        return cls(items, subjects, column or section.id, shared=column is not None)

    @property
    def source(self) -> tuple[str, str | None]:
        """File and column of the subjects."""
        return self.items.name, self.column

    @property
    def without_subject(self) -> LeftOut:
        """Queries without a subject."""
        return LeftOut(self.subjects.tolist().count(None))

    def members(self, places: Sequence[int]) -> dict[str, list[int]]:
        """Return which of some queries each subject has, in order of first appearance."""
        found: dict[str, list[int]] = {}
        for order, place in enumerate(places):
            if self.subjects[place] is not None:
                found.setdefault(str(self.subjects[place]), []).append(order)
        return found

    def prompts(self, section: QueriesConfig, base: Path, *, by_subject: bool = False) -> Prompts:
        """Return the texts of each query, or of each subject, in their templates."""
        prompts = prompts_of(section, base, what="queries")
        if not by_subject:
            return prompts
        members = self.members(prompts.owner.tolist())
        texts = sorted((text, order) for order, own in enumerate(members.values()) for text in own)
        owners = np.array([order for _, order in texts], dtype=np.int64)
        return Prompts(tuple(prompts.texts[text] for text, _ in texts), owners, tuple(members))


@dataclass(frozen=True, eq=False)
class SubjectScores:
    """Scores of images by subject.

    Attributes
    ----------
    names : tuple of str
        Subjects, or queries without one.
    scores : ndarray, shape (images, names)
    source : (str, str or None)
        File and column that say what they are.
    left : mapping of str to LeftOut
        Queries that aren't used, by reason.
    """

    names: tuple[str, ...]
    scores: npt.NDArray[Any] = field(repr=False)
    source: tuple[str, str | None]
    left: Mapping[str, LeftOut] = field(default_factory=dict)


def vectors_by_subject(
    vectors: Vectors, queries: Queries
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
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
            fix="embed the queries anew",
        )
    units = vectors.take(usable).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return tuple(members), np.stack([units[own].mean(axis=0) for own in members.values()])


def scores_by_subject(matrix: Matrix, queries: Queries | None, limit: float) -> SubjectScores:
    """Average the scores of the queries of each subject.

    Columns of a live model are of subjects already, and so are those that are named after them.

    Raises
    ------
    DataError
        When columns are named after neither, or more queries or columns than `limit`, a share,
        have no partner.
    """
    names = matrix.names
    if queries is None or matrix.made:
        source = (matrix.name, None) if queries is None else queries.source
        return SubjectScores(names, matrix.take(names), source)
    subjects = dict(zip(queries.items.ids.tolist(), queries.subjects.tolist(), strict=True))
    if not queries.shared or _are_subjects(names, subjects):
        return SubjectScores(names, matrix.take(names), (matrix.name, None))
    lacking = _check_partners(matrix, queries, subjects, limit)
    ids = queries.items.ids
    known = [place for place, query in enumerate(ids.tolist()) if query not in lacking]
    members = queries.members(known)
    # The mean of infinities of both signs is no number, as a missing score is none.
    with np.errstate(invalid="ignore"):
        means = [
            matrix.take(ids[known][own].tolist()).mean(axis=1, dtype=np.float64)
            for own in members.values()
        ]
    left = {
        "queries without a score": LeftOut(len(lacking)),
        WITHOUT_SUBJECT: queries.without_subject,
    }
    return SubjectScores(tuple(members), np.stack(means, axis=1), queries.source, left)


def _are_subjects(names: Sequence[str], subjects: Mapping[str, str | None]) -> bool:
    """Whether columns are named after subjects, and not after queries."""
    known = {*subjects.values()}
    of_queries = any(name in subjects and name not in known for name in names)
    every = subjects.keys() <= {*names}
    return not every and not of_queries and any(name in known for name in names)


def _check_partners(
    matrix: Matrix, queries: Queries, subjects: Mapping[str, str | None], limit: float
) -> set[str]:
    """Return the queries without a column; refuse too many, and columns of no query."""
    lacking = [query for query in subjects if query not in matrix.names]
    strange = [name for name in matrix.names if name not in subjects]
    expected = f"a column for each query of {queries.items.name}, at most {percent(limit)} without"
    if len(lacking) > limit * len(subjects) or len(lacking) == len(subjects):
        raise DataError(
            f"{len(lacking)} of {len(subjects)} queries have no column: {listed(lacking, _LISTED)}",
            file=matrix.name,
            expected=expected,
            fix=f"name the columns as the queries, such as {queries.items.ids[0]!r}, or as their "
            "subjects",
        )
    if len(strange) > limit * len(matrix.names):
        raise DataError(
            f"{len(strange)} of {len(matrix.names)} columns are of no query: "
            f"{listed(strange, _LISTED)}",
            file=matrix.name,
            expected=expected,
            fix="add the queries, or leave the columns out with `columns:`",
        )
    return {*lacking}


def check_unusable(
    vectors: Vectors, queries: Queries, images: Items, used: Places, data: DataConfig
) -> None:
    """Refuse unusable embeddings of queries where images have no other query.

    Raises
    ------
    DataError
        With the row, when more images than `max_unmatched` allows lose their query.
    """
    if data.subject is None or vectors.usable.all():
        return
    named = queries.subjects
    bad = ~vectors.usable & (vectors.rows >= 0)
    lost = {*named[bad].tolist()} - {*named[vectors.usable].tolist()} - {None}
    many = sum(subject in lost for subject in images.columns[data.subject][used].tolist())
    if many > data.max_unmatched * len(used):
        first = next(place for place in np.flatnonzero(bad).tolist() if named[place] in lost)
        what = "holds NaN or an infinity" if vectors.not_finite[first] else "is zero"
        raise DataError(
            f"the embedding of query {queries.items.ids[first]!r} {what}, and no other query asks "
            f"for the subject of {many} images: {listed(sorted(lost), _LISTED)}",
            file=vectors.name,
            row=int(vectors.rows[first]) + 1,
            expected="finite vectors that are not zero",
            fix="embed the query again",
        )


def with_query(
    used: Places,
    images: Items,
    names: Sequence[str],
    source: tuple[str, str | None],
    data: DataConfig,
) -> tuple[Places, Counter[str]]:
    """Return the images whose subject a query asks for, and how many have which other subject.

    Raises
    ------
    DataError
        When more than `max_unmatched` of the images have no query.
    """
    if data.subject is None:
        return used, Counter()
    subjects, known = images.columns[data.subject][used], {*names}
    kept = np.array([subject in known for subject in subjects.tolist()], dtype=bool)
    lost = Counter(subjects[~kept].tolist())
    if lost.total() > data.max_unmatched * len(used):
        every = sorted(str(subject or "none") for subject in lost)
        raise DataError(
            f"no query asks for the subject of {lost.total()} images: {listed(every, _LISTED)}",
            file=source[0],
            column=source[1],
            expected=f"a query for each value of data.subject, {data.subject}; there are queries "
            f"for {listed(names, _LISTED)}",
            fix="add the queries, or name in queries.subject a column that has the subjects of the "
            "images",
        )
    del lost[None]
    return used[kept], lost
