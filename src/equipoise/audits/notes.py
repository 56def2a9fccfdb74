"""Notes, kept apart from what they are about until a run is written."""

from collections.abc import Iterable
from typing import NamedTuple

# Names that an error or a note lists.
_LISTED = 10


class Note(NamedTuple):
    """A note and what it is about: a model, groups or a column."""

    about: str
    text: str


def merged(notes: Iterable[Note | str]) -> tuple[str, ...]:
    """Return notes as texts: each once, with the first of what it is about."""
    subjects: dict[str, dict[str, None]] = {}
    for note in notes:
        about, text = note if isinstance(note, Note) else ("", note)
        subjects.setdefault(text, {}).update({about: None} if about else {})
    return tuple(
        f"{first_of(names, '; ')}: {text}" if names else text for text, names in subjects.items()
    )


def first_of(names: Iterable[str], separator: str = ", ") -> str:
    """Return the first names, and "…" where there are more."""
    name_list = [*names]
    return separator.join([*name_list[:_LISTED], *(["…"] if len(name_list) > _LISTED else [])])
