"""Labels of concepts: 0 or 1 by image, in a column for each concept or a row for each pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.concepts.sources import columns_of, matrix_of
from equipoise.core.errors import DataError
from equipoise.data import Coded, Items, Matrix, read_table
from equipoise.data.problems import listed, nearest, show
from equipoise.data.versions import MISSPELT

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.config_inputs import LabelsConfig

Flags = npt.NDArray[np.bool_]
# Names that an error lists.
_LISTED = 5


@dataclass(frozen=True, eq=False)
class Labelled:
    """Which image shows what.

    Attributes
    ----------
    config : LabelsConfig
    name : str
        Of the file.
    concepts : tuple of str
        Those that are labelled and wanted.
    known : frozenset of str
        Every concept that is labelled.
    columns : mapping of str to ndarray of bool, shape (images,)
        As read, before any mapping.
    without : ndarray of bool, shape (images,)
        Images that have no row of labels.
    inputs, counts : mapping
    """

    config: LabelsConfig
    name: str
    concepts: tuple[str, ...]
    known: frozenset[str]
    columns: Mapping[str, Flags] = field(repr=False)
    without: Flags = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]

    def by_image(self, concepts: tuple[str, ...], name: str | None) -> Flags:
        """Return labels under a mapping, shape (images, concepts)."""
        values = np.empty((len(self.without), len(concepts)), dtype=np.bool_, order="F")
        for place, columns in enumerate(columns_of(self.config, concepts, name)):
            values[:, place] = np.logical_or.reduce([self.columns[one] for one in columns])
        return values


def read_labels(config: Config, images: Items, base: Path, scored: frozenset[str]) -> Labelled:
    """Read the labels of every concept that is asked for, or that some model scores."""
    given = config.data.labels
    if given.concept is not None:
        return _listed(config, images, base, scored)
    matrix = matrix_of(given, images, base, "labels", config.data.max_unmatched)
    concepts, known = _concepts(config, matrix.name, matrix.names, scored)
    every = [columns_of(given, concepts, name) for name in (None, *given.maps)]
    used = dict.fromkeys(column for one in every for columns in one for column in columns)
    columns = {column: _flags(matrix, column, given.id or images.id) for column in used}
    counts = {**matrix.counts, "concepts": len(concepts), **_left(concepts, known)}
    return Labelled(
        given, matrix.name, concepts, known, columns, np.asarray(matrix.rows < 0), matrix.inputs,
        counts,
    )  # fmt: skip


def _concepts(
    config: Config, name: str, columns: tuple[str, ...], scored: frozenset[str]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the concepts that are labelled and wanted, and every one that is labelled."""
    given = config.data.labels
    mapped = [*given.map, *(concept for one in given.maps.values() for concept in one)]
    merged = {column for one in given.map.values() for column in one} - {*given.map}
    plain = [column for column in columns if column not in merged]
    known = [*dict.fromkeys([*plain, *mapped])]
    lacking = [one for one in config.concepts if one not in known]
    if lacking:
        raise DataError(
            f"'concepts' names {listed(lacking, _LISTED)}, of which there are no labels",
            file=name,
            expected=f"some of {listed(sorted(known))}",
            fix=f"{meant(lacking, known)}correct the names, say under data.labels.map which labels "
            "stand for them, or leave them out of 'concepts'",
        )
    if config.concepts:
        return config.concepts, frozenset(known)
    return tuple(one for one in known if one in scored), frozenset(known)


def meant(names: Iterable[str], known: Iterable[str]) -> str:
    """Return what names may be a misspelling of, as the beginning of what to do."""
    there = sorted(known)
    near = {name: nearest(name, there, least=MISSPELT) for name in names}
    return "".join(
        f"write {show(other)} for {show(name)} if that was meant; "
        for name, other in near.items()
        if other is not None
    )


def _flags(matrix: Matrix, column: str, id_column: str) -> Flags:
    values = matrix.take([column])[:, 0]
    wrong = ~np.isin(values, (0, 1)) & (matrix.rows >= 0)
    if not wrong.any():
        return np.asarray(values == 1)
    image = int(np.argmax(wrong))
    found = "an empty cell" if np.isnan(values[image]) else f"{values[image]:g}"
    raise DataError(
        f"{found} in {int(wrong.sum())} rows, the first of {id_column} {matrix.ids[image]!r}"
        if np.isnan(values[image])
        else f"{found} is no label, the first of {int(wrong.sum())} such rows, of {id_column} "
        f"{matrix.ids[image]!r}",
        file=matrix.name,
        column=column,
        row=int(matrix.rows[image]) + 1,
        expected="0 or 1",
        fix="write 0 where the concept is absent and 1 where it is shown, or leave the column "
        "out of 'concepts'",
    )


def _left(concepts: tuple[str, ...], known: frozenset[str]) -> dict[str, Any]:
    left = sorted(known - {*concepts})
    return {"concepts_left_out": len(left), "concepts_left_out_examples": left[:5]}


def _image(texts: Any, images: Items) -> npt.NDArray[np.int64]:
    """Return the image of each row, -1 where there is none of that id."""
    owner = Coded.of(texts)
    place = {one: index for index, one in enumerate(images.ids.tolist())}
    lookup = np.array([*(place.get(one, -1) for one in owner.vocabulary), -1])
    return np.asarray(lookup[owner.codes], dtype=np.int64)


def _check_known(
    file: str, column: str, image: npt.NDArray[np.int64], max_unmatched: float
) -> None:
    unknown = image < 0
    if unknown.mean() > max_unmatched:
        raise DataError(
            f"{int(unknown.sum())} of {len(image)} rows name an image that the table of images "
            "does not have",
            file=file,
            column=column,
            row=int(np.argmax(unknown)) + 1,
            expected=f"at most a share of {max_unmatched:g} (data.max_unmatched)",
            fix="check that both tables name images alike, or raise data.max_unmatched",
        )


def _listed(config: Config, images: Items, base: Path, scored: frozenset[str]) -> Labelled:
    """Read a table with a row for each concept that an image shows."""
    given = config.data.labels
    concept, key = given.concept or "", given.id or images.id
    path = base / given.file if isinstance(given.file, Path) else given.file
    table = read_table(
        path,
        texts=(key, concept),
        role="labels",
        encoding=given.encoding,
        delimiter=given.delimiter,
    )
    shown, image = Coded.of(table.texts[concept]), _image(table.texts[key], images)
    _check_known(table.name, key, image, config.data.max_unmatched)
    missing = [code for code, text in enumerate(shown.vocabulary) if text in given.missing]
    empty = (shown.codes < 0) | np.isin(shown.codes, missing)
    used = (image >= 0) & ~empty
    names = tuple(text for code, text in enumerate(shown.vocabulary) if code not in missing)
    concepts, known = _concepts(config, table.name, names, scored)
    columns = {}
    for code, text in enumerate(shown.vocabulary):
        flags = np.zeros(len(images), dtype=np.bool_)
        flags[image[used & (shown.codes == code)]] = True
        columns[text] = flags
    pairs = len(np.unique(np.stack([image[used], shown.codes[used]]), axis=1).T)
    counts = {
        "rows": table.rows,
        "pairs": pairs,
        "repeated": int(used.sum()) - pairs,
        "empty": int(empty.sum()),
        "rows_without_item": int((image < 0).sum()),
        "images_without_any": int(len(images) - len(np.unique(image[used]))),
        "concepts": len(concepts),
        **_left(concepts, known),
    }
    none = np.zeros(len(images), dtype=np.bool_)
    return Labelled(
        given, table.name, concepts, known, columns, none, {table.name: table.digest}, counts
    )
