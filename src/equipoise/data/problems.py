"""Parts of this room's errors: available names, the nearest name, examples."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np
import polars as pl
import pyarrow.compute as pc

from equipoise.core import AnyArray, DataError, InputError, Integers, tally

NO_COLUMN = "the column doesn't exist"
MAX_LISTED = 20
MAX_SHOWN = 60
_WRITTEN_FOR_MISSING = frozenset(
    ("nan", "none", "null", "na", "n/a", "#n/a", "<na>", "nat", "-nan", "nil")
)


def show(text: object) -> str:
    """Return a cell as quoted text that is short and safe to print."""
    full_text = str(text)
    return repr(full_text if len(full_text) <= MAX_SHOWN else full_text[: MAX_SHOWN - 1] + "…")


def listed(texts: Iterable[object], limit: int = MAX_LISTED) -> str:
    """Return the first few of some texts, quoted, and how many more there are."""
    all_texts = [*texts]
    examples = ", ".join(show(text) for text in all_texts[:limit])
    return examples if len(all_texts) <= limit else f"{examples} and {len(all_texts) - limit} more"


def repeated(texts: Iterable[str]) -> list[str]:
    """Return the texts that are there more than once, each once and sorted."""
    return sorted(text for text, n in Counter(iter(texts)).items() if n > 1)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def looks_missing(text: str) -> bool:
    """Whether a text is a program's mark for a missing value: "nan", "None", "N/A"."""
    return text.strip().casefold() in _WRITTEN_FOR_MISSING


def nearest(text: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar candidate, or None below `cutoff`."""
    folded = {other.casefold(): other for other in reversed([*candidates])}
    close = get_close_matches(text.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "bool_parsing": "true or false",
    "extra_forbidden": "no key of this name",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "missing": "a value",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "path_type": "the path of a file",
    "string_too_short": "a text that is not empty",
    "string_type": "text (in quotes if it looks like a number, true, false or null)",
    "tuple_type": "a list",
}
"""Expected values of each kind of schema error, in the words of a configuration."""
_SCHEMA_TEXT = re.compile(r"Input should be|\w+ should have (.*?) after validation.*")
_AT_LEAST = re.compile(r"(?:a number )?(greater|less) than or equal to ")


def expected_value(kind: str, message: str) -> str:
    """Return which values a key expects, from the kind and message of a schema error."""
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    text = _SCHEMA_TEXT.sub(r"\1", message).strip()
    return _AT_LEAST.sub(lambda match: _BOUNDS[match[1]], text)


_BOUNDS = {"greater": "at least ", "less": "at most "}


def is_whole(text: str) -> bool:
    """Whether a text can be stored: JSON and Python can hold half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_columns(available: Sequence[str], columns: Iterable[str], file: str) -> None:
    """Raise if a column does not exist, or exists twice.

    Two columns of one name that nobody asked for do no harm and pass.
    """
    times = Counter(available)
    for column in columns:
        if times[column] == 1:
            continue
        similar = nearest(column, available) or _with_part(column, available)
        hint = f"; did you mean {show(similar)}?" if similar else ""
        raise DataError(
            f"{times[column]} columns have this name" if times[column] else f"{NO_COLUMN}{hint}",
            file=file or None,
            column=column,
            expected=f"one of {listed(available)}, each once",
            fix="rename all but one of them" if times[column] else "correct the name",
        )


def _with_part(name: str, available: Iterable[str]) -> str | None:
    """Return the first column with a name among its parts: perceived_gender of gender."""
    part = re.compile(rf"(?:.*[_ .:-])?{re.escape(name)}(?:[_ .:-].*)?", re.IGNORECASE)
    return next(filter(part.fullmatch, available), None)


EXAMPLES = 3


def check_ids(
    ids: pl.Series, file: str, *, unique: bool = True, rows: AnyArray | None = None
) -> None:
    """Raise on the first empty id and, if `unique`, on the first repeated id.

    `rows` are their places in the file, of ids of some rows.
    """
    places = np.arange(len(ids)) if rows is None else rows
    empty = (ids.is_null() | (ids.str.strip_chars() == "")).arg_true()
    if len(empty):
        raise DataError(
            counted(len(empty), "empty id"),
            file=file,
            column=ids.name or None,
            row=int(places[int(empty[0])]) + 1,
            expected="an id in every row",
            fix="fill the ids in, or remove the rows",
        )
    if unique and ids.n_unique() < len(ids):
        repeats = (~ids.is_first_distinct()).arg_true()
        equal = places[(ids == ids[int(repeats[0])]).arg_true().to_numpy()] + 1
        raise DataError(
            f"the id {show(ids[int(repeats[0])])} is in rows {equal[0]} and {equal[1]} "
            f"({counted(len(repeats), 'row')} too many)",
            file=file,
            column=ids.name or None,
            expected="every id once",
            fix="remove the repeated rows, or give each row an id of its own and name the column "
            "that repeats, such as `unit:`",
        )


def match(ids: pl.Series, reference_ids: pl.Series) -> Integers:
    """Return the position of each id among distinct reference ids; -1 if absent."""
    if ids.len() == reference_ids.len() and ids.equals(reference_ids, check_names=False):
        return np.arange(len(ids), dtype=np.int64)
    index = pc.index_in(ids.to_arrow(), reference_ids.to_arrow(), skip_nulls=True)
    positions: Integers = index.cast("int64").fill_null(-1).to_numpy()
    return positions


def check_matches(
    items: tuple[pl.Series, str],
    outputs: tuple[pl.Series, str],
    positions: Integers,
    max_unmatched: float,
    failed: Iterable[str],
) -> None:
    """Raise when no id matches, or too large a share of either side stays alone.

    Parameters
    ----------
    items, outputs : (ids, file)
        Items are images with or without labels; outputs are predictions, scores or vectors.
    positions : ndarray, shape (outputs,)
        Of each output among the items, -1 where it has none.
    max_unmatched : float in [0, 1]
    failed : iterable of str
        Ids of items that need no output.
    """
    matched = positions >= 0
    item_ids, item_file = items
    ids, file = outputs
    if not matched.any():
        raise DataError(
            f"no id matches an id in {item_file}: here {_examples(ids)}, "
            f"there {_examples(item_ids)}",
            file=file,
            column=ids.name or None,
            expected="the same ids in both",
            fix="name the columns that hold the same ids, written the same way in both: 1, not 1.0",
        )
    answered = item_ids.is_in([*failed]).to_numpy(writable=True)
    answered[positions[matched]] = True
    check_share(ids, ~matched, file, item_file, max_unmatched)
    check_share(item_ids, ~answered, item_file, file, max_unmatched)


def check_share(ids: pl.Series, unmatched: AnyArray, file: str, other: str, limit: float) -> None:
    """Raise if too large a share of ids has no match in another file."""
    if not 0 <= limit <= 1:
        raise InputError(f"max_unmatched is {limit}; expected a share from 0 to 1")
    count = tally(unmatched)
    if count <= limit * len(ids):
        return
    raise DataError(
        f"{count} of {len(ids)} ids ({count / len(ids):.1%}) have no match in {other}, for example "
        f"{_examples(ids.filter(pl.Series(unmatched)))}",
        file=file,
        column=ids.name or None,
        expected=f"at most {limit:.1%} without a partner",
        fix="check that both tables are of the same images, or raise `max_unmatched:`",
    )


def _examples(ids: pl.Series) -> str:
    return listed(ids.head(EXAMPLES).to_list())
