"""What a model produced for a set of items: one type for files and for live runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.core import AnyArray, Integers, Objects
from equipoise.core.labels import Encoded, encode


@dataclass(frozen=True, eq=False)
class Coded(Encoded):
    """Labels as integer codes into a vocabulary, with what tables do with them."""

    @classmethod
    def of(cls, texts: pl.Series) -> Coded:
        """Encode a text column; missing and empty cells become -1, the vocabulary is sorted."""
        return cls(*encode(texts))

    def take(self, rows: AnyArray) -> Coded:
        """Return the labels of a selection of rows (indices or a mask)."""
        return Coded(self.codes[rows], self.vocabulary)

    def sizes(self) -> dict[str, int]:
        """Return how often each label occurs."""
        return dict(zip(self.vocabulary, self.counts.tolist(), strict=True))

    def column(self) -> Coded:
        """Return the labels, shape (n,), as those of one rank, shape (n, 1)."""
        return Coded(self.codes[:, None], self.vocabulary)

    @cached_property
    def values(self) -> AnyArray:
        """The labels themselves as objects, of the shape of `codes`; None where there is none."""
        names = np.empty(len(self.vocabulary) + 1, dtype=object)
        names[:-1] = self.vocabulary
        return names[self.codes]

    @cached_property
    def counts(self) -> Integers:
        """How often each label occurs, shape (vocabulary,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.vocabulary))

    def relabel(self, names: Sequence[str | None], *, first: Iterable[str] = ()) -> Coded:
        """Replace each label of the vocabulary by another, or by none.

        Parameters
        ----------
        names : sequence of str or None, one per label of the vocabulary
        first : iterable of str
            Labels that lead the new vocabulary in this order, used or not; the rest is sorted.
        """
        lead = tuple(dict.fromkeys(first))
        rest = {name for name in names if name is not None} - set(lead)
        vocabulary = (*lead, *sorted(rest))
        index = {name: code for code, name in enumerate(vocabulary)} | {None: -1}
        table = np.array([*(index[name] for name in names), -1], dtype=np.int32)
        return Coded(table[self.codes], vocabulary)


Content = Literal["embeddings", "scores", "probabilities", "labels", "answers", "images"]


@dataclass(frozen=True)
class Choices:
    """Labels that a model may predict, known before it runs.

    Attributes
    ----------
    labels : tuple of str
        Before any mapping.
    ranks : int
        How many of them each item gets.
    listed : bool
        Whether the user listed them for the model, so that each should be a class of the target;
        otherwise they are the model's own classes.
    """

    labels: tuple[str, ...]
    ranks: int
    listed: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs:
    """A model's outputs, one entry per item.

    Attributes
    ----------
    model : str
        Its name in the config.
    content : str
    source : str
        How errors name the outputs: the user's file, or the key of the config that the model
        answers to, such as "models.clip.vocabulary".
    ids : polars.Series, shape (m,)
        Of the items with outputs; named after their column in a file, "" otherwise.
    labels : Coded (m, k) or None
        Texts by rank: labels or answers.
    values : ndarray (m, width) or None
        Embeddings, scores or probabilities. NaN in every column where a row is empty.
    names : tuple of str
        Of the columns of `values`: texts or classes; () for embeddings.
    column : str or None
        Column of the texts in the file.
    rows : int
        Rows of the file.
    requested : ndarray of str objects or None
        Ids that the model was run on; None for outputs from a file, and for generated images.
    failed : mapping of str to str
        Ids of the requested items without outputs: "read", "decode" or "model", the stage at
        which they failed. They aren't unmatched.
    on : str
        What the model ran on: "images", "queries", the name of a table.
    info : mapping
        What the model is, as the manifest keeps it; `scale` and `bias` of a dual encoder.
    inputs : mapping
        Per file "sha256", "bytes", "rows".
    identical : tuple of tuples of str
        Ids that share one picture's bytes.
    pending : mapping or None
        In a dry run: what is to do, see `RunPlan.runs`. The entries are stand-ins of the right
        shape, and only `choices` says what they may be.
    choices : Choices or None
    """

    model: str
    content: Content
    source: str
    ids: pl.Series
    labels: Coded | None = None
    values: AnyArray | None = None
    names: tuple[str, ...] = ()
    column: str | None = None
    rows: int = 0
    requested: Objects | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    on: str = "images"
    info: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    identical: tuple[tuple[str, ...], ...] = ()
    pending: Mapping[str, Any] | None = None
    choices: Choices | None = None

    @property
    def live(self) -> bool:
        """Whether the model was run, or will be, for these outputs."""
        return self.requested is not None

    @property
    def planned(self) -> bool:
        """Whether the model has yet to run: the entries are stand-ins."""
        return self.pending is not None

    @property
    def numbers(self) -> AnyArray:
        """The values, of outputs that have them."""
        if self.values is None:
            raise TypeError(f"{self.source}: {self.content} have no numbers")
        return self.values
