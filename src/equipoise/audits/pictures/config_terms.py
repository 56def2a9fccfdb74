"""What rules are declared with: terms by group, and sizes of boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from equipoise.audits.config_fields import Label, Name, Section, Share, distinct
from equipoise.audits.config_problems import nearest
from equipoise.data import ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES, BoxSize

SIZES: Mapping[str, BoxSize] = {
    size.name: size for size in (ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES)
}


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str | int) and not isinstance(value, bool) else value


def _named_size(value: object) -> object:
    """Take the name of a size for its numbers."""
    if not isinstance(value, str):
        return value
    if value not in SIZES:
        raise ValueError(
            f"no size is called {value!r}. Allowed: {', '.join(SIZES)}, or a mapping with name, "
            f"pixels, ignored and needed{nearest(value, SIZES)}"
        )
    size = SIZES[value]
    return {name: getattr(size, name) for name in ("name", "pixels", "ignored", "needed")}


Several = Annotated[
    tuple[Label, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_listed),
    AfterValidator(distinct),
]
"""Texts, or a single one."""

Terms = Annotated[Mapping[Name, Several], Field(min_length=1)]
"""Group to what makes an image one of it."""

NeutralMeans = Literal["nothing", "no group"]


class BoxSizeConfig(Section):
    """How large a box has to be.

    Attributes
    ----------
    name : str
    pixels : float
        Smaller boxes, in square pixels, are ignored.
    ignored, needed : float
        Shares of the image: smaller boxes are ignored; a group needs a box of at least this.
    """

    name: Name
    pixels: Annotated[float, Field(ge=0)] = 0.0
    ignored: Share = 0.0
    needed: Share = 0.0

    @model_validator(mode="after")
    def _fits(self) -> BoxSizeConfig:
        self.size()
        return self

    def size(self) -> BoxSize:
        """Return the size."""
        return BoxSize(self.name, self.pixels, self.ignored, self.needed)


Size = Annotated[BoxSizeConfig, BeforeValidator(_named_size)]
EVERY_SIZE = BoxSizeConfig(name=ALL_BOXES.name)
