"""Groups by the values of a column: merged, by continent, by bands of a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core import InputError
from equipoise.data.coded import Coded
from equipoise.data.groups import FrozenTerms, Terms, column_name, frozen_terms, in_words
from equipoise.data.image_parts import Step
from equipoise.data.image_set import ImageSet
from equipoise.data.lexicons import lexicon

NO_VALUE = "a value of no group"
EMPTY = "the cell is empty"
_EXAMPLES = 5


@dataclass(frozen=True)
class ValueGroups:
    """Groups by the values of a column: races merged, countries by continent.

    Attributes
    ----------
    attribute : str
        What the groups are of.
    column : str
        Where the values are.
    groups : mapping of str to sequence of str
        Group to its values, compared without case and outer spaces.
    source : str
        Where the grouping comes from.
    version : str
        Tells rules of one attribute apart.
    """

    attribute: str
    column: str
    groups: Terms | FrozenTerms
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Freeze the values."""
        object.__setattr__(self, "groups", frozen_terms(self.groups, "values"))

    @property
    def terms(self) -> FrozenTerms:
        """Groups and their values, sorted."""
        return frozen_terms(self.groups, "values")

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return column_name(self.attribute, self.version)

    @property
    def description(self) -> str:
        """The rule in words."""
        source = f" ({self.source})" if self.source else ""
        return f"{self.attribute} by the column {self.column}{source}: {in_words(self.terms)}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images of other values have no group and are counted."""
        owner = {value: group for group, values in self.terms for value in values}
        known = {value: owner.get(value.strip().casefold()) for value in _vocabulary(images, self)}
        groups = _regrouped(images.column(self.column), known.get)
        other = sorted(value for value, group in known.items() if group is None)
        counts = _counted(images.column(self.column), groups) | {
            "values_without_group": len(other),
            "values_without_group_examples": other[:_EXAMPLES],
        }
        return images.with_column(self.name, groups, Step(self.name, self.description, counts))


def _vocabulary(images: ImageSet, rule: ValueGroups | BandGroups) -> tuple[str, ...]:
    return images.column(rule.column).vocabulary


def _regrouped(column: Coded, group: Callable[[str], str | None]) -> Coded:
    return column.relabel([group(value) for value in column.vocabulary])


def _counted(column: Coded, groups: Coded) -> dict[str, Any]:
    known, grouped = column.codes >= 0, groups.codes >= 0
    sizes = dict(zip(groups.vocabulary, groups.counts.tolist(), strict=True))
    left = {EMPTY: int((~known).sum()), NO_VALUE: int((known & ~grouped).sum())}
    return {"groups": sizes, "left_out": left}


@dataclass(frozen=True)
class BandGroups:
    """Groups by bands of a number, such as income.

    Attributes
    ----------
    attribute, column : str
    bounds : tuple of float
        Where a band ends and the next begins, rising; a band holds its lower bound.
    names : tuple of str
        Of the bands, one more than bounds.
    source, version : str
    """

    attribute: str
    column: str
    bounds: tuple[float, ...]
    names: tuple[str, ...]
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises
        ------
        InputError
            When they do not rise, or there is another number of names.
        """
        rising = all(low < high for low, high in zip(self.bounds, self.bounds[1:], strict=False))
        if not self.bounds or not rising or not np.isfinite(self.bounds).all():
            raise InputError(f"bounds are {self.bounds}; expected rising numbers")
        if len({*self.names}) != len(self.names) or len(self.names) != len(self.bounds) + 1:
            raise InputError(
                f"names are {self.names}; expected {len(self.bounds) + 1} different ones, one more "
                "than bounds"
            )

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return column_name(self.attribute, self.version)

    @property
    def description(self) -> str:
        """The rule in words."""
        ends = (*(f"below {one:g}" for one in self.bounds), f"{self.bounds[-1]:g} and above")
        bands = ", ".join(f"{name} {end}" for name, end in zip(self.names, ends, strict=True))
        source = f" ({self.source})" if self.source else ""
        return f"{self.attribute} by the column {self.column}: {bands}{source}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a number have no band and are counted.

        Raises
        ------
        InputError
            When a value of the column is no number.
        """
        bands = {value: self._band(value, images) for value in _vocabulary(images, self)}
        groups = _regrouped(images.column(self.column), bands.get)
        counts = _counted(images.column(self.column), groups)
        return images.with_column(self.name, groups, Step(self.name, self.description, counts))

    def _band(self, value: str, images: ImageSet) -> str:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise InputError(
                f"{images.name}, column {self.column!r}: {value!r} is no number; expected numbers"
            )
        return self.names[int(np.searchsorted(self.bounds, number, side="right"))]


def continents(
    column: str = "country", *, attribute: str = "continent", version: str = ""
) -> ValueGroups:
    """Return the rule that groups countries by continent (United Nations, M49).

    Parameters
    ----------
    column : str
        Names of countries.
    attribute, version : str
    """
    words = lexicon("continents")
    return ValueGroups(attribute, column, words.section("continents"), words.source, version)


def income_bands(
    scheme: str = "levels", column: str = "income", *, attribute: str = "income band",
    version: str = "",
) -> BandGroups:  # fmt: skip
    """Return a rule that groups households by monthly income.

    Parameters
    ----------
    scheme : {"levels", "quartiles"}
        Gapminder's four income levels, or the quartiles over images of Dollar Street.
    column : str
        Dollars a month, of equal purchasing power.
    attribute, version : str

    Raises
    ------
    InputError
        When there is no such scheme.
    """
    schemes = lexicon("income").content
    if scheme not in schemes:
        raise InputError(f"there is no scheme {scheme!r}; expected one of {', '.join(schemes)}")
    bands = schemes[scheme]
    bounds, names = tuple(map(float, bands["bounds"])), tuple(bands["names"])
    return BandGroups(attribute, column, bounds, names, bands["source"], version)
