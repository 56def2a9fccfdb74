"""What a model answered, in the rows of its own table: texts by rank, and probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.core import DataError
from equipoise.data.coded import Coded, Codes, encode
from equipoise.data.join import check_ids
from equipoise.data.probabilities import check_probabilities
from equipoise.data.problems import listed, show
from equipoise.data.sources import PredictionSource
from equipoise.data.tables import Table, read_table

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's table, one entry per id.

    Attributes
    ----------
    file : str
    ids : polars.Series (m,)
    labels : Coded (m, k) or None
        Texts as given, by rank; None where probabilities alone say what was predicted.
    probabilities : ndarray (m, columns) or None
        NaN in every column where the row has none.
    rows : int
        Rows of the table; more than m where every rank has its own row.
    digest : mapping
    """

    file: str
    ids: pl.Series
    labels: Coded | None
    probabilities: Floats | None
    rows: int
    digest: Mapping[str, Any]


def read_answers(source: PredictionSource, *, model: str, id_column: str) -> Answers:
    """Read and check one model's predictions.

    Raises
    ------
    DataError
        When ids are empty or repeat, ranks are not 1 to k, or probabilities are not
        probabilities.
    """
    column = source.id or id_column
    rank = () if source.rank is None else (source.rank,)
    shares = tuple((source.probabilities or {}).values())
    table = read_table(
        source.table,
        texts=(column, *source.texts, *rank),
        numbers=shares,
        role=f"predictions of {model}",
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    ids = table.texts[column]
    check_ids(ids, table.name, unique=source.rank is None)
    if source.rank is not None:
        ids, ranked = _from_long(table, column, source)
        return Answers(table.name, ids, ranked, None, table.rows, table.digest)
    probabilities = check_probabilities(table, shares) if shares else None
    labels = _side_by_side([table.texts[name] for name in source.texts])
    return Answers(table.name, ids, labels, probabilities, table.rows, table.digest)


def _side_by_side(columns: list[pl.Series]) -> Coded | None:
    """Encode the columns of ranks with one vocabulary, shape (m, k)."""
    if not columns:
        return None
    every = Coded.of(pl.concat([column.alias("label") for column in columns]))
    codes = every.codes.reshape(len(columns), -1).T
    return Coded(np.ascontiguousarray(codes), every.vocabulary)


def _from_long(table: Table, id_column: str, source: PredictionSource) -> tuple[pl.Series, Coded]:
    """Turn one row per id and rank into one row per id with a column per rank."""
    rank_column, prediction = str(source.rank), str(source.prediction)
    codes, ids = encode(table.texts[id_column])
    ranks = _ranks(table, rank_column)
    k = int(ranks.max())
    _check_ranks(codes, ids, ranks, table.name, rank_column)
    texts = Coded.of(table.texts[prediction])
    wide = np.full((len(ids), k), -1, dtype=np.int32)
    wide[codes, ranks - 1] = texts.codes
    return ids, Coded(wide, texts.vocabulary)


def _ranks(table: Table, column: str) -> npt.NDArray[np.int64]:
    texts = table.texts[column]
    ranks = texts.str.strip_chars().cast(pl.Int64, strict=False)
    wrong = (ranks.is_null() | (ranks < 1)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{show(texts[row] or '')} is no rank",
            file=table.name,
            column=column,
            row=row + 1,
            expected="a whole number from 1, which is the best",
            fix="write ranks as 1, 2, ..., k",
        )
    return ranks.to_numpy()


def _check_ranks(
    codes: Codes, ids: pl.Series, ranks: npt.NDArray[np.int64], file: str, column: str
) -> None:
    """Raise where an id has a rank twice, or its ranks leave one out."""
    order = np.lexsort((np.arange(len(codes)), ranks, codes))
    sorted_codes, sorted_ranks = codes[order], ranks[order]
    same = np.r_[False, (np.diff(sorted_codes) == 0) & (np.diff(sorted_ranks) == 0)]
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise DataError(
            f"the id {show(ids[int(sorted_codes[at])])} has rank {sorted_ranks[at]} in rows "
            f"{order[at - 1] + 1} and {order[at] + 1}",
            file=file,
            column=column,
            expected="every rank once per id",
            fix="remove the repeated rows",
        )
    counts = np.bincount(codes)
    expected = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    gaps = np.flatnonzero(sorted_ranks != expected)
    if len(gaps):
        code = int(sorted_codes[gaps[0]])
        raise DataError(
            f"the id {show(ids[code])} has the ranks "
            f"{listed(sorted_ranks[sorted_codes == code].tolist(), 5)}",
            file=file,
            column=column,
            expected="ranks 1, 2, ..., k without a gap",
            fix="add the rows that are missing",
        )
