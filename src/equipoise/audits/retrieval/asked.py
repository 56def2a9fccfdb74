"""What queries ask for: those of one subject are averaged, and images of no query are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_arrays import located
from equipoise.core.errors import DataError
from equipoise.core.wording import percent
from equipoise.data.frames import FRAME
from equipoise.data.left_out import LeftOut
from equipoise.data.problems import listed

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit
    from equipoise.data import Items, Matrix, Vectors

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class AskedScores:
    """Scores of images for what is asked for.

    Attributes
    ----------
    names : list of str
        Queries, or the subjects that they ask for.
    scores : ndarray, shape (images, names)
    source : (str, str or None)
        File and column that say what is asked for.
    left : mapping of str to LeftOut
        Queries that are not used, by reason.
    """

    names: list[str]
    scores: npt.NDArray[Any] = field(repr=False)
    source: tuple[str, str | None]
    left: Mapping[str, LeftOut] = field(default_factory=dict)


def of_queries(config: RankingAudit, name: str) -> tuple[str, str | None]:
    """Return the table of queries and its column that says what each asks for."""
    about = config.queries
    return name, None if about is None else about.subject or about.id


def without_subject(queries: Items, config: RankingAudit) -> int:
    """Return how many queries ask for nothing, where a column says what they ask for."""
    column = config.queries.subject if config.queries else None
    return 0 if column is None else int((queries.coded[column].codes < 0).sum())


def vectors_by_subject(
    vectors: Vectors, queries: Items, config: RankingAudit
) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Average the unit vectors of the queries of one subject, in order of first appearance."""
    usable = np.flatnonzero(vectors.usable)
    if not len(usable):
        raise DataError(
            "no query has a usable embedding",
            file=vectors.name,
            expected="finite vectors that are not zero",
            fix="embed the queries anew",
        )
    taken = vectors.take(usable).astype(np.float64)
    taken /= np.linalg.norm(taken, axis=1, keepdims=True)
    column = config.queries.subject if config.queries else None
    if column is None:
        return queries.ids[usable].tolist(), taken
    subjects = queries.columns[column][usable]
    names = list(dict.fromkeys(str(one) for one in subjects if one is not None))
    means = np.stack([taken[subjects == name].mean(axis=0) for name in names])
    return names, means


def scores_by_subject(
    matrix: Matrix, queries: Items | None, config: RankingAudit, base: Path
) -> AskedScores:
    """Average the scores of the queries of one subject, in order of first appearance.

    Columns that are named after subjects, or that a run made, are of subjects already.

    Raises
    ------
    DataError
        When columns are named after neither, or too many queries or columns have no partner.
    """
    names = [*matrix.names]
    about = config.queries
    if matrix.made and about is not None:
        table = located(about.table, base)
        name = str(table) if isinstance(table, Path) else f"queries{FRAME}"
        return AskedScores(names, matrix.take(names), of_queries(config, name))
    if queries is None or about is None or about.subject is None:
        return AskedScores(names, matrix.take(names), (matrix.name, None))
    subjects = dict(zip(queries.ids.tolist(), queries.columns[about.subject], strict=True))
    if _of_subjects(names, subjects):
        return AskedScores(names, matrix.take(names), (matrix.name, None))
    lacking = _check_partners(matrix, queries, subjects, config)
    members: dict[str, list[str]] = {}
    for query, subject in subjects.items():
        if subject is not None and query not in lacking:
            members.setdefault(subject, []).append(query)
    # The mean of infinities of both signs is no number, as a missing score is none.
    with np.errstate(invalid="ignore"):
        means = [matrix.take(own).mean(axis=1, dtype=np.float64) for own in members.values()]
    left = {
        "queries without a score": LeftOut(len(lacking)),
        "queries without a subject": LeftOut(without_subject(queries, config)),
    }
    source = of_queries(config, queries.name)
    return AskedScores([*members], np.stack(means, axis=1), source, left)


def _of_subjects(names: Sequence[str], subjects: Mapping[str, str | None]) -> bool:
    """Whether columns are named after what queries ask for, and not after the queries."""
    asked = {*subjects.values()}
    of_queries_alone = any(name in subjects and name not in asked for name in names)
    every = subjects.keys() <= {*names}
    return not every and not of_queries_alone and any(name in asked for name in names)


def _check_partners(
    matrix: Matrix, queries: Items, subjects: Mapping[str, str | None], config: RankingAudit
) -> set[str]:
    """Return the queries without a column; refuse too many, and columns of no query."""
    allowed = config.data.max_unmatched
    lacking = [one for one in subjects if one not in matrix.names]
    strange = [one for one in matrix.names if one not in subjects]
    expected = f"a column for each query of {queries.name}, at most {percent(allowed)} without"
    if len(lacking) > allowed * len(subjects) or len(lacking) == len(subjects):
        raise DataError(
            f"{len(lacking)} of {len(subjects)} queries have no column: {listed(lacking, _SHOWN)}",
            file=matrix.name,
            expected=expected,
            fix=f"name the columns as the queries, such as {queries.ids[0]!r}, or as what they ask "
            "for",
        )
    if len(strange) > allowed * len(matrix.names):
        raise DataError(
            f"{len(strange)} of {len(matrix.names)} columns are of no query: "
            f"{listed(strange, _SHOWN)}",
            file=matrix.name,
            expected=expected,
            fix="add the queries, or leave the columns out with `columns:`",
        )
    return {*lacking}


def check_unusable(
    vectors: Vectors,
    queries: Items,
    images: Items,
    used: npt.NDArray[np.int64],
    config: RankingAudit,
) -> None:
    """Refuse embeddings of queries that no metric can use, where images have no other query.

    Raises
    ------
    DataError
        With the row, when more images than `max_unmatched` allows lose their query.
    """
    column = config.data.subject
    if column is None or vectors.usable.all():
        return
    about = config.queries
    named = (
        queries.ids if about is None or about.subject is None else queries.columns[about.subject]
    )
    bad = ~vectors.usable & (vectors.rows >= 0)
    lost = {*named[bad].tolist()} - {*named[vectors.usable].tolist()} - {None}
    many = sum(one in lost for one in images.columns[column][used].tolist())
    if many > config.data.max_unmatched * len(used):
        first = next(place for place in np.flatnonzero(bad).tolist() if named[place] in lost)
        what = "holds NaN or an infinity" if vectors.not_finite[first] else "is zero"
        raise DataError(
            f"the embedding of query {queries.ids[first]!r} {what}, and no usable one asks for the "
            f"subject of {many} images: {listed(sorted(lost), _SHOWN)}",
            file=vectors.name,
            row=int(vectors.rows[first]) + 1,
            expected="finite vectors that are not zero",
            fix="embed the query again",
        )


def with_subject(
    used: npt.NDArray[np.int64],
    images: Items,
    names: list[str],
    config: RankingAudit,
    source: tuple[str, str | None],
) -> npt.NDArray[np.int64]:
    """Keep images whose subject a query asks for.

    Raises
    ------
    DataError
        When more than `max_unmatched` of the images have none.
    """
    if config.data.subject is None:
        return used
    subjects = images.columns[config.data.subject]
    asked = {*names}
    kept = np.array([place for place in used.tolist() if subjects[place] in asked], dtype=np.int64)
    lost = sorted({str(subjects[p] or "none") for p in used.tolist() if subjects[p] not in asked})
    if len(used) - len(kept) > config.data.max_unmatched * len(used):
        raise DataError(
            f"no query asks for the subject of {len(used) - len(kept)} images: "
            f"{', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}",
            file=source[0],
            column=source[1],
            expected=f"a query for each value of data.subject, {config.data.subject}; those that "
            f"there are ask for {listed(names, _SHOWN)}",
            fix="add the queries, or name in queries.subject a column that has the subjects of the "
            "images",
        )
    return kept


def unasked(
    used: npt.NDArray[np.int64], images: Items, names: Sequence[str], config: RankingAudit
) -> Counter[str]:
    """Count the images of each subject that no query asks for; those without one are of none."""
    if config.data.subject is None:
        return Counter()
    asked = {None, *names}
    subjects = images.columns[config.data.subject][used].tolist()
    return Counter(one for one in subjects if one not in asked)
