"""Ids: checked to be there and different, and matched in any order."""

from __future__ import annotations

import numpy as np
import polars as pl

from equipoise.core import DataError
from equipoise.core.arrays import AnyArray, Integers
from equipoise.data.problems import counted, listed, show

EXAMPLES = 3
REPEATED_IN_TABLE = (
    "remove the repeated rows; for one row per rank give `rank:`; for repeated "
    "measurements give each row its own id and name the repeating column as `unit:`"
)


def check_ids(
    ids: pl.Series, file: str, *, unique: bool = True, fix: str = REPEATED_IN_TABLE
) -> None:
    """Raise on the first empty id, and on the first two rows of one id unless told otherwise."""
    empty = (ids.is_null() | (ids.str.strip_chars() == "")).arg_true()
    if len(empty):
        raise DataError(
            counted(len(empty), "empty id"),
            file=file,
            column=ids.name or None,
            row=int(empty[0]) + 1,
            expected="an id in every row",
            fix="fill the ids in, or remove the rows",
        )
    if unique and ids.n_unique() < len(ids):
        repeats = (~ids.is_first_distinct()).arg_true()
        rows = (ids == ids[int(repeats[0])]).arg_true() + 1
        raise DataError(
            f"the id {show(ids[int(repeats[0])])} is in rows {rows[0]} and {rows[1]} "
            f"({counted(len(repeats), 'row')} too many)",
            file=file,
            column=ids.name or None,
            expected="every id once",
            fix=fix,
        )


def match(ids: pl.Series, among: pl.Series) -> Integers:
    """Return the position of each id among others, all different; -1 where it is not there."""
    if ids.len() == among.len() and ids.equals(among, check_names=False):
        return np.arange(len(ids), dtype=np.int64)
    left = ids.alias("id").to_frame().with_row_index("row")
    right = among.alias("id").to_frame().with_row_index("position")
    joined = left.join(right, on="id", how="inner")
    positions = np.full(len(ids), -1, dtype=np.int64)
    # Scattered by row number, so the order in which a join returns rows does not matter.
    positions[joined["row"].to_numpy()] = joined["position"].to_numpy()
    return positions


def check_matches(
    labels: tuple[pl.Series, str],
    predictions: tuple[pl.Series, str],
    positions: Integers,
    max_unmatched: float,
    *,
    alone: tuple[str, str] = ("have no label in", "have no prediction in"),
    failed: frozenset[str] = frozenset(),
) -> None:
    """Raise when no id matches, or too large a share of either side stays alone.

    Parameters
    ----------
    labels, predictions : (ids, file)
        Ids in sorted order for labels, in any order for predictions.
    positions : ndarray, shape (predictions,)
        Of each prediction among the labels, -1 where it has none.
    max_unmatched : float in [0, 1]
    alone : tuple of str
        What to say of ids of the predictions, and of the labels, without a partner.
    failed : frozenset of str
        Ids of labels that need no prediction.
    """
    found = positions >= 0
    label_ids, label_file = labels
    ids, file = predictions
    if not found.any():
        raise DataError(
            f"no id matches an id in {label_file}: here {_examples(ids)}, "
            f"there {_examples(label_ids)}",
            file=file,
            column=ids.name or None,
            expected="the same ids in both",
            fix="name the columns that hold the same ids, written the same way in both: 1, not 1.0",
        )
    answered = np.zeros(len(label_ids), dtype=bool)
    answered[positions[found]] = True
    check_share(ids, ~found, file, f"{alone[0]} {label_file}", max_unmatched)
    if failed:
        answered |= label_ids.is_in([*failed]).to_numpy()
    check_share(label_ids, ~answered, label_file, f"{alone[1]} {file}", max_unmatched)


def check_share(ids: pl.Series, alone: AnyArray, file: str, problem: str, limit: float) -> None:
    """Raise when too large a share of ids stays alone."""
    count = int(alone.sum())
    if count <= limit * len(ids):
        return
    raise DataError(
        f"{count} of {len(ids)} ids ({count / len(ids):.1%}) {problem}, for example "
        f"{_examples(ids.filter(pl.Series(alone)))}",
        file=file,
        column=ids.name or None,
        expected=f"at most {limit:.1%} without a partner",
        fix="check that both tables are of the same images, or raise `max_unmatched:`",
    )


def _examples(ids: pl.Series) -> str:
    return listed(ids.head(EXAMPLES).to_list())
