"""The keys `format`, `files` and `options`: data sets in formats of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from equipoise.audits.config_fields import Label, Name, Section
from equipoise.data import DollarStreetColumns

Format = Literal[
    "coco",
    "visual_genome",
    "fairface",
    "dollar_street",
    "social_counterfactuals",
    "visogender",
    "pata",
    "celeba",
    "huggingface",
]
FORMATS: tuple[Format, ...] = get_args(Format)
_STREET = DollarStreetColumns()


@dataclass(frozen=True)
class FormatFacts:
    """What the keys of a configuration may say of a format.

    Attributes
    ----------
    files : tuple of str
        Names of its files; one without names where there are none.
    options : tuple of str
    id : bool
        Whether the column of the ids can be named.
    """

    files: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    id: bool = False


FACTS: Mapping[Format, FormatFacts] = {
    "coco": FormatFacts(files=("captions", "instances")),
    "visual_genome": FormatFacts(files=("objects", "image_data"), options=("labels",)),
    "fairface": FormatFacts(id=True),
    "dollar_street": FormatFacts(options=("columns",)),
    "social_counterfactuals": FormatFacts(),
    "visogender": FormatFacts(),
    "pata": FormatFacts(),
    "celeba": FormatFacts(options=("attributes",)),
    "huggingface": FormatFacts(options=("image",), id=True),
}


class DollarStreetColumnsConfig(Section):
    """Names of the columns of a table of Dollar Street."""

    id: Name = _STREET.id
    country: Name = _STREET.country
    region: Name = _STREET.region
    income: Name = _STREET.income
    labels: Name = _STREET.labels
    file: Name = _STREET.file

    def columns(self) -> DollarStreetColumns:
        """Return the names."""
        return DollarStreetColumns(**self.model_dump())


class OptionsConfig(Section):
    """How a format is read, where there is a choice.

    Attributes
    ----------
    columns : mapping, optional
        Of Dollar Street: names of the columns.
    labels : str, optional
        Of Visual Genome: what an object is labelled by, `synsets` or `names`.
    attributes : mapping, optional
        Of CelebA: attributes to group by, each with the text for 1 and that for -1.
    image : str, optional
        Of Hugging Face: the column of the images.
    """

    columns: DollarStreetColumnsConfig | None = None
    labels: Literal["synsets", "names"] | None = None
    attributes: Mapping[
        Name,
        Annotated[tuple[Label, Label], Field(strict=False)],
    ] | None = None  # fmt: skip
    image: Name | None = None

    @property
    def given(self) -> list[str]:
        """The options that are given."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]
