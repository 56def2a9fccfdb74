"""Notes on models, kept apart from their subject until a run is written."""

from collections.abc import Iterable
from typing import NamedTuple

from equipoise.report.text import listed


class Note(NamedTuple):
    """A note and the model that it is about."""

    about: str
    text: str


def merged(notes: Iterable[Note | str]) -> tuple[str, ...]:
    """Return notes as texts: each once, with all models that it is about."""
    subjects: dict[str, dict[str, None]] = {}
    for note in notes:
        about, text = note if isinstance(note, Note) else ("", note)
        subjects.setdefault(text, {}).update({about: None} if about else {})
    return tuple(
        f"{listed([*names])}: {text}" if names else text for text, names in subjects.items()
    )
