"""Notes, kept apart from what they are about until a run is written."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from equipoise.metrics.labels.reference import ReferenceKind, sample_size
from equipoise.report.text import count

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
        f"{_counted(names)}: {text}" if names else text for text, names in subjects.items()
    )


def _counted(names: Collection[str]) -> str:
    """Return the first names, and how many there are where that isn't all."""
    more = f" ({len(names)} in all)" if len(names) > _LISTED else ""
    return first_of(names, "; ") + more


def first_of(names: Iterable[str], separator: str = ", ") -> str:
    """Return the first names, and "…" where there are more."""
    name_list = [*names]
    return separator.join([*name_list[:_LISTED], *(["…"] if len(name_list) > _LISTED else [])])


def note_on_sample(
    about: str, reference: Mapping[str, float], kind: ReferenceKind | None
) -> Iterator[Note]:
    """Yield the note that counts without a `kind` are those of a sample."""
    size = sample_size(reference.values(), kind)
    if kind is None and not math.isinf(size):
        yield Note(
            about,
            f"the reference has counts that sum to {count(size)}. The audit treats them as a "
            "sample, so intervals and tests include their error. Add `kind: sample`, or "
            "`kind: census` if they are exact.",
        )
