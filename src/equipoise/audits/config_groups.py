"""Where the values of an attribute are from: people, or a model with its errors."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from equipoise.config.fields import CsvConfig, Label, Name, Section, Table


class LabelledGroupsConfig(CsvConfig):
    """Rows whose group people know, beside the prediction.

    Attributes
    ----------
    table : path or data frame
        Such as the table of the images itself; rows without either are left out.
    true : str
        Column of the true group.
    predicted : str, optional
        Column of the prediction; the attribute's own name unless given.
    """

    table: Table
    true: Name
    predicted: Name | None = None


class GroupSourceConfig(Section):
    """Where the values of an attribute are from.

    Attributes
    ----------
    source : "people" or "machine"
    confusion : mapping, optional
        True group to predicted group to labelled rows.
    labelled : mapping, optional
        A table to count the confusion in.
    """

    source: Literal["people", "machine"] = "people"
    confusion: (
        Annotated[Mapping[Label, Mapping[Label, NonNegativeInt]], Field(min_length=2)] | None
    ) = None
    labelled: LabelledGroupsConfig | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.source == "people" and (self.confusion or self.labelled):
            raise ValueError("'confusion' and 'labelled' go with 'source: machine'")
        if self.confusion and self.labelled:
            raise ValueError("'confusion' and 'labelled' are both given; expected one of them")
        return self
