"""Images with what a data set says of them, whatever format it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import polars as pl

from equipoise.core import InputError
from equipoise.data.arrays import ArraySource
from equipoise.data.coded import Coded
from equipoise.data.image_parts import Boxes, Captions, Flags, Objects, Pairs, Step
from equipoise.data.items import Items, ItemSource, load_items
from equipoise.data.matrices import Matrix, load_matrix

ID = "image_id"
LABEL = "label"


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in the order of their ids, with columns, labels, captions and boxes.

    Attributes
    ----------
    name : str
        The files as given.
    format : str
    ids : ndarray of str objects, shape (n,)
        Each once, sorted as text.
    columns : mapping of str to Coded, shape (n,)
        Attributes and other facts as text; -1 where missing.
    labels : Pairs or None
    captions : Captions or None
    boxes : Boxes or None
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Of reading: what was read, and what was left out.
    steps : tuple of Step
        The rules applied since, in order, with their counts.
    """

    name: str
    format: str
    ids: Objects = field(repr=False)
    columns: Mapping[str, Coded] = field(repr=False)
    labels: Pairs | None = field(repr=False)
    captions: Captions | None = field(repr=False)
    boxes: Boxes | None = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    steps: tuple[Step, ...] = ()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.ids)

    def column(self, name: str) -> Coded:
        """Return a column.

        Raises
        ------
        InputError
            When there is no such column.
        """
        if name not in self.columns:
            raise InputError(
                f"{self.name} has no column {name!r}; expected one of "
                f"{', '.join(map(repr, self.columns)) or 'none, since there are no columns'}"
            )
        return self.columns[name]

    def with_column(self, name: str, values: Coded, step: Step) -> ImageSet:
        """Return the set with one more column, made by a rule.

        Raises
        ------
        InputError
            When there is such a column.
        """
        if name in self.columns or name == ID:
            raise InputError(
                f"{self.name} has a column {name!r} already; expected another name: give the rule "
                "a 'version'"
            )
        columns = {**self.columns, name: values}
        return replace(self, columns=columns, steps=(*self.steps, step))

    def take(self, kept: Flags, step: Step) -> ImageSet:
        """Return the images that a rule keeps, with what belongs to them."""
        return replace(
            self,
            ids=self.ids[kept],
            columns={n: Coded(c.codes[kept], c.vocabulary) for n, c in self.columns.items()},
            labels=self.labels.take(kept) if self.labels else None,
            captions=self.captions.take(kept) if self.captions else None,
            boxes=self.boxes.take(kept) if self.boxes else None,
            steps=(*self.steps, step),
        )

    def apply(self, *rules: Rule) -> ImageSet:
        """Return the set after some rules, one after the other."""
        images = self
        for rule in rules:
            images = rule(images)
        return images

    def image_table(self) -> pl.DataFrame:
        """Return one row per image: its id and every column as text."""
        columns = {name: column.values.tolist() for name, column in self.columns.items()}
        data = {ID: self.ids.tolist(), **columns}
        return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))

    def label_table(self, *, wide: bool = False) -> pl.DataFrame:
        """Return the labels as a table.

        Parameters
        ----------
        wide : bool
            One row per image with a column of 0 and 1 for each label, instead of one row per
            image and label.

        Raises
        ------
        InputError
            When there are no labels, or wide and a label is named like the column of ids.
        """
        pairs = self.need_labels()
        if not wide:
            data = {ID: self.ids[pairs.image].tolist(), LABEL: pairs.label.values.tolist()}
            return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))
        if ID in pairs.label.vocabulary:
            raise InputError(f"a label is named {ID!r}, as the column of ids; write the long table")
        used = np.unique(pairs.label.codes)
        shown = np.zeros((len(used), len(self)), dtype=np.uint8)
        shown[np.searchsorted(used, pairs.label.codes), pairs.image] = 1
        names = [pairs.label.vocabulary[code] for code in used]
        ids = pl.Series(ID, self.ids.tolist(), dtype=pl.String)
        return pl.DataFrame([ids, *(pl.Series(n, shown[i]) for i, n in enumerate(names))])

    def need_labels(self) -> Pairs:
        """Return the labels.

        Raises
        ------
        InputError
            When there are none.
        """
        if self.labels is None:
            raise InputError(f"{self.name} has no labels; combine it with a set that has some")
        return self.labels

    def items(self) -> Items:
        """Return the images as items with every column that has a value."""
        named = tuple(name for name, column in self.columns.items() if (column.codes >= 0).any())
        items = load_items(ItemSource(self.image_table(), ID, named), what="images")
        return replace(items, name=self.name, inputs=self.inputs)

    def label_matrix(self) -> Matrix:
        """Return the labels as a matrix of 0 and 1 with a row per image."""
        source = ArraySource(self.label_table(wide=True), id=ID)
        return replace(load_matrix(source, self.items(), what="labels"), inputs=self.inputs)


class Rule(Protocol):
    """A declared choice: a frozen object that makes a set from a set, and says how."""

    @property
    def description(self) -> str:
        """The rule in words, the same for the same rule."""
        ...

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the set under the rule, with one more step."""
        ...
