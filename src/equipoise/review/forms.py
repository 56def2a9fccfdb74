"""Forms: a question whose answers say which value of an attribute people see."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from equipoise.config.fields import Label, Name, Section, Some, among
from equipoise.config.problems import explain
from equipoise.core import ConfigError
from equipoise.core.files import read_regular
from equipoise.review.questions import Question, find_question

SAME = "same"
"""Stands for the value that the run has for the image."""


class FormConfig(Section):
    """A question about images, in a file.

    Attributes
    ----------
    question : str
    answers : list of str
        Two to nine.
    counted : str, optional
        Answer whose share by group is estimated; the first unless given.
    sees : mapping of str to mapping of str to str
        By attribute, what an answer says: the value that people see, or `same` for the value that
        the run has for the image. Other answers say nothing of it.
    """

    question: Name
    answers: Annotated[Some[Label], Field(min_length=2)]
    counted: Label | None = None
    sees: Mapping[Name, Annotated[Mapping[Label, Label], Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        among("counted", self.counted, self.answers)
        for attribute, values in self.sees.items():
            among(f"sees.{attribute}", values, self.answers)
        return self


def read_form(path: Path) -> FormConfig:
    """Read a form from a YAML file.

    Raises
    ------
    ConfigError
        When the file can't be read, or isn't a form.
    """
    fix = "To do: write question, answers and, for an attribute, sees; docs/labels.md has a form"
    try:
        values = yaml.safe_load(read_regular(path))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}. {fix}") from None
    try:
        return FormConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{explain(error, values, str(path))}. {fix}") from None


def ask(form: FormConfig, *, counted: str = "", stored: str = "") -> Question:
    """Return the question of a form; see `find_question`."""
    return find_question(
        form.question,
        answers=form.answers,
        counted=counted or form.counted or "",
        stored=stored,
        sees=form.sees,
    )
