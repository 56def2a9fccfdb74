"""Unreadable files of a data set, and copies of one picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import numpy as np

from equipoise.audits.group_sizes import Row
from equipoise.core.columns import INTEGER, TEXT
from equipoise.data import Coded
from equipoise.evidence.pictures import PictureFacts, Pictures

FILES = "image_files"
"""The table of unreadable files and of copies."""
PROBLEMS = {
    "image": TEXT,
    "problem": TEXT,
    "set": INTEGER,
    "labels": TEXT,
    "contradicts": TEXT,
}
"""Its columns; copies of one picture have the same `set`."""
UNREADABLE, COPY = "unreadable", "copy"


def file_rows(
    pictures: Pictures, facts: PictureFacts, columns: Mapping[str, Mapping[str, str]]
) -> Iterator[Row]:
    """Yield a row for each unreadable file, then for each copy and its original.

    Parameters
    ----------
    pictures : Pictures
    facts : PictureFacts
        Of these pictures.
    columns : mapping of str to mapping of str to str
        Of each column of groups or labels, the value of each image; without missing values.
    """
    ids = pictures.ids.tolist()
    for place in np.flatnonzero(np.isnan(facts.sizes[:, 0])).tolist():
        yield _row(ids[place], UNREADABLE, columns)
    for number, copies in enumerate(_sets_of_copies(pictures, facts), 1):
        values = {name: {cells[i] for i in copies if i in cells} for name, cells in columns.items()}
        different = ", ".join(name for name, cells in values.items() if len(cells) > 1)
        for image in copies:
            yield _row(image, COPY, columns) | {"set": number, "contradicts": different}


def _row(image: str, problem: str, columns: Mapping[str, Mapping[str, str]]) -> Row:
    labels = [f"{name}: {cells[image]}" for name, cells in columns.items() if image in cells]
    return {
        "image": image, "problem": problem, "set": None, "labels": ", ".join(labels),
        "contradicts": "",
    }  # fmt: skip


def _sets_of_copies(pictures: Pictures, facts: PictureFacts) -> Sequence[Sequence[str]]:
    """Return the ids of pictures with the same bytes and crop, each with its original."""
    sets: dict[tuple[str, str], list[str]] = {}
    for place in np.flatnonzero(facts.repeated).tolist():
        key = sha256(pictures.read(place)).hexdigest(), str(pictures.crop(place))
        sets.setdefault(key, []).append(str(pictures.ids[place]))
    return [*sets.values()]


def values_of(ids: Sequence[str], column: Coded) -> dict[str, str]:
    """Return the value of each image that has one."""
    codes = column.codes.tolist()
    return {
        name: column.vocabulary[code] for name, code in zip(ids, codes, strict=True) if code >= 0
    }
