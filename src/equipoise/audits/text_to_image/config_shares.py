"""Whom images of neutral prompts show: who says so, and what it is held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_arrays import ItemsConfig
from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    FilePath,
    Label,
    Labels,
    Name,
    Section,
    Share,
    Table,
    one_state_each,
)
from equipoise.audits.running.config import AS_IT_IS, Templates
from equipoise.audits.text_to_image.config_prompts import _sets


class SaidConfig(ItemsConfig):
    """What was said of images before.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    id, said : str
        Columns that name the image, and of what was said of it.
    missing, encoding, delimiter
        As of other tables.
    """

    id: Name = "image_id"
    said: Name = "said"


class LabelledConfig(ItemsConfig):
    """Images whose class is known, on which the errors of a classifier are counted.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    id, label : str
        Columns that name the image, and of its class.
    said : str, optional
        Column of what was said of it, where nobody is to be asked.
    path : str, optional
        Column of the image's file, where a model is to look at it.
    root : path, optional
        Folder that files are relative to.
    missing, encoding, delimiter
        As of other tables.
    """

    id: Name = "image_id"
    label: Name = "label"
    said: Name | None = None
    path: Name | None = None
    root: FilePath | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed beside the id."""
        found = (self.label, self.said, self.path)
        return tuple(dict.fromkeys(one for one in found if one is not None))


class OutsideSharesConfig(Section):
    """Shares of the world outside, such as labour statistics.

    Attributes
    ----------
    table : path or data frame
        One row per target and class.
    target, group, value : str
        Columns of the target's name, the class and its share or count.
    name : str
        What the shares are, for the report.
    missing, encoding, delimiter
        As of other tables.
    """

    table: Table
    target: Name = "target"
    group: Name = "group"
    value: Name = "value"
    name: str = "outside shares"
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed."""
        return self.target, self.group, self.value


class SharesConfig(Section):
    """One question about images of neutral prompts: whom they show.

    Attributes
    ----------
    of : str
        What the classes are of, such as "perceived gender".
    classes : mapping of str to list of str
        The classes. Of each, the texts of a zero-shot classifier, or the answers that mean it.
    model : str, optional
        Entry of `models` that is asked: a dual encoder, or a model that answers `question`.
    question : str, optional
        What a model that answers is asked about each image.
    templates : str or list of str
        What the texts of a zero-shot classifier are put into.
    least : float
        Images whose likeliest class has a smaller probability are "unknown".
    said : mapping of str to mapping
        By generator, what was said of its images, in place of `model`.
    no_person : list of str
        Classes of images without anybody: they are no part of the shares, and counted.
    unknown, refused : list of str
        Answers that are none, and refusals of the model that is asked.
    labelled : mapping, optional
        Images whose class is known; nothing is corrected without them.
    outside : mapping or "uniform", optional
        Shares to hold those found against.
    max_condition : float
        Condition number of the confusion matrix above which nothing is estimated.
    min_labelled : int
        Labelled images that each class needs.
    """

    of: Name
    classes: Annotated[Any, BeforeValidator(_sets)]
    model: Label | None = None
    question: Name | None = None
    templates: Templates = AS_IT_IS
    least: Share = 0.0
    said: Mapping[Label, SaidConfig] = Field(default_factory=dict)
    no_person: Labels = ()
    unknown: Labels = ("unknown",)
    refused: Labels = ()
    labelled: LabelledConfig | None = None
    outside: OutsideSharesConfig | Literal["uniform"] | None = None
    max_condition: Annotated[float, Field(gt=1, strict=False)] = 20.0
    min_labelled: Annotated[int, Field(ge=1)] = 10

    @model_validator(mode="after")
    def _somebody_says_it(self) -> SharesConfig:
        if (self.model is None) == (not self.said):
            given = "neither is" if self.model is None else "both are"
            raise ValueError(
                f"'model' or 'said': {given} given; expected 'model' to ask it, or 'said' to read "
                "what was said before"
            )
        if self.model is None and self.question is not None:
            raise ValueError("'question' is about a model to ask, and no 'model' is given")
        if self.said and self.labelled is not None and self.labelled.said is None:
            raise ValueError("labelled.said: required, and missing: what was said of these images")
        return self

    @model_validator(mode="after")
    def _classes_can_be_told(self) -> SharesConfig:
        names = [*self.classes]
        for one in self.no_person:
            if one not in names:
                raise ValueError(f"no_person: {one!r} is none of the classes {names}")
        if len(names) - len(self.no_person) < 2:
            raise ValueError(f"classes: {names}; expected at least two beside 'no_person'")
        one_state_each((), self.unknown, self.refused)
        if self.templates != AS_IT_IS and (self.said or self.question):
            raise ValueError("'templates' is about a zero-shot classifier, and answers are read")
        return self

    @property
    def classifier(self) -> str:
        """How versions of findings call what the classes come from."""
        return self.model if self.model is not None and self.question is None else "answers"

    @property
    def compared(self) -> tuple[str, ...]:
        """Classes whose shares are compared."""
        return tuple(one for one in self.classes if one not in self.no_person)
