"""Records: what most classes of the package are."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(kind: type[Kind]) -> type[Kind]:
    """Make a class a frozen dataclass that is compared by identity, as its arrays can't be."""
    has_plain_repr = kind.__repr__ is object.__repr__
    return dataclass(frozen=True, eq=False, repr=has_plain_repr)(kind)
