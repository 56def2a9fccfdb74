"""Columns of text as codes into a sorted vocabulary, and counts of items left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.core.arrays import AnyArray, Booleans, Floats, Integers, Integers32


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels as integer codes into a vocabulary.

    Attributes
    ----------
    codes : ndarray of int32, any shape
        Index into `vocabulary`; -1 where there is no label.
    vocabulary : tuple of str
        Distinct labels.
    """

    codes: Integers32
    vocabulary: tuple[str, ...]

    @classmethod
    def of(cls, texts: pl.Series) -> Coded:
        """Encode a text column; missing cells become -1 and the vocabulary is sorted."""
        codes, vocabulary = encode(texts)
        return cls(codes, tuple(vocabulary.to_list()))

    def take(self, rows: AnyArray) -> Coded:
        """Return the labels of a selection of rows (indices or a mask)."""
        return Coded(self.codes[rows], self.vocabulary)

    def among(self, labels: Collection[str]) -> Booleans:
        """Return which entries have one of some labels, of the shape of `codes`."""
        known = [code for code, label in enumerate(self.vocabulary) if label in labels]
        return np.isin(self.codes, known)

    def numbers(self) -> Floats:
        """Return labels that spell numbers as such, of the shape of `codes`; NaN where none."""
        return np.array([*map(float, self.vocabulary), np.nan])[self.codes]

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


def encode(texts: pl.Series) -> tuple[Integers32, pl.Series]:
    """Return codes (-1 where missing) and the sorted distinct texts of a text column."""
    vocabulary = texts.drop_nulls().unique().sort()
    codes = texts.cast(pl.Enum(vocabulary)).to_physical().cast(pl.Int32).fill_null(-1)
    return codes.to_numpy().copy(), vocabulary
