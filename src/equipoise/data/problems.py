"""Words that the errors of this room share: what there is, what is nearest, a few examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from equipoise.core import DataError

NO_COLUMN = "there is no such column"
MAX_LISTED = 20
MAX_SHOWN = 60
_WRITTEN_FOR_MISSING = frozenset(
    ("nan", "none", "null", "na", "n/a", "#n/a", "<na>", "nat", "-nan", "nil")
)


def show(text: object) -> str:
    """Return a cell as quoted text that is short and safe to print."""
    whole = str(text)
    return repr(whole if len(whole) <= MAX_SHOWN else whole[: MAX_SHOWN - 1] + "…")


def listed(texts: Iterable[object], limit: int = MAX_LISTED) -> str:
    """Return the first few of some texts, quoted, and how many more there are."""
    every = [*texts]
    shown = ", ".join(show(text) for text in every[:limit])
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def looks_missing(text: str) -> bool:
    """Whether a text is what programs write for a missing value: "nan", "None", "N/A", ..."""
    return text.strip().casefold() in _WRITTEN_FOR_MISSING


def nearest(text: str, among: Iterable[str], *, least: float = 0.6) -> str | None:
    """Return the most similar of some texts, or None when nothing is as similar as `least`."""
    folded = {other.casefold(): other for other in reversed([*among])}
    close = get_close_matches(text.casefold(), folded, n=1, cutoff=least)
    return folded[close[0]] if close else None


def is_whole(text: str) -> bool:
    """Whether a text can be stored: JSON and Python can hold half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_columns(
    available: Sequence[str], wanted: Iterable[str], file: str, hint: str = ""
) -> None:
    """Raise where a wanted column does not exist, or exists twice.

    Two columns of one name that nobody asked for do no harm and pass.
    """
    times = Counter(available)
    for column in wanted:
        if times[column] == 1:
            continue
        similar = nearest(column, available)
        meant = f"write {show(similar)} if that was meant" if similar else "name one of these"
        raise DataError(
            f"{times[column]} columns have this name" if times[column] else NO_COLUMN,
            file=file or None,
            column=column,
            expected=f"one of {listed(available)}, each once",
            fix="rename all but one of them" if times[column] else hint or meant,
        )
