"""The configuration of an audit of multiple-choice questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from equipoise.audits.config import (
    AuditConfig,
    LabelledImagesConfig,
    LabelModelConfig,
    check_row_numbers,
)
from equipoise.config.fields import (
    Distinct,
    Models,
    Name,
    Names,
    Text,
    given_keys,
)
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.numbers.paired_outcome_gap import paired_outcome_gap
from equipoise.metrics.numbers.variance_share import variance_share

FEWEST_OPTIONS, MOST_OPTIONS = 2, 10
PROMPT = "{question}\n{options}\nAnswer with the letter of one option."
"""What a model is asked unless `data.prompt` says otherwise."""
_FIELD = re.compile(r"\{([^{}]*)\}")
_PROMPT_FIELDS = {"question", "options"}


def columns_in(*templates: str) -> tuple[str, ...]:
    """Return the columns that templates name in braces, each once."""
    return tuple(dict.fromkeys(name for text in templates for name in _FIELD.findall(text)))


def fill_columns(template: str, cells: Mapping[str, str | None]) -> str | None:
    """Return a template with the cells of columns, or None if one is empty."""
    if any(cells[name] is None for name in columns_in(template)):
        return None
    return _FIELD.sub(lambda match: str(cells[match.group(1)]), template)


def _template(value: str) -> str:
    remainder = _FIELD.sub("", value)
    if "{" in remainder or "}" in remainder or "" in columns_in(value):
        raise ValueError("expected a text with the names of columns in braces, such as '{job}'")
    return value


def _prompt(value: str) -> str:
    if {*columns_in(_template(value))} != _PROMPT_FIELDS:
        raise ValueError("expected a text with '{question}' and '{options}'")
    return value


Template = Annotated[Text, AfterValidator(_template)]
"""A text in which the name of a column in braces stands for an item's cell."""


def _named(value: object) -> object:
    """Name wordings by their number where they have no names."""
    if isinstance(value, str):
        return {"1": value}
    if isinstance(value, list | tuple):
        return {str(place): text for place, text in enumerate(value, 1)}
    return value


Wordings = Annotated[
    Mapping[Text, Template], BeforeValidator(_named), Field(min_length=1, max_length=100)
]
"""Wordings of the question by name: a text, a list of texts, or name to text."""

Options = Annotated[Distinct[Template], Field(min_length=FEWEST_OPTIONS, max_length=MOST_OPTIONS)]


class DataConfig(LabelledImagesConfig):
    """The items: pictures with a question each, options and groups.

    Texts may name columns in braces: `"{job}"` is the cell of the column `job`.

    Attributes
    ----------
    question : str, list of str or mapping of str to str
        The question about each item; several wordings as a list, or by name.
    options : list of str
        Two to ten options. An item has those whose text is not empty.
    outcome : str
        The option whose share groups are compared in, such as `"{stereotype}"`. An item where it
        is empty is in no share of it.
    right : str, optional
        The right option, as its text or as its letter in the order of `options`.
    undecided : str, optional
        The option that says that the picture doesn't tell.
    decidable : str or bool
        Whether the picture tells the answer: of all items, or the column that says so. An item
        whose right option is the undecided one isn't decidable either.
    prompt : str
        How question and options are put together for a model to run.
    """

    question: Wordings
    options: Options
    outcome: Template
    right: Template | None = None
    undecided: Template | None = None
    decidable: Name | bool = True
    prompt: Annotated[Text, AfterValidator(_prompt)] = PROMPT
    target: None = None
    map: None = None

    @property
    def templates(self) -> tuple[str, ...]:
        """Every text that may name columns."""
        texts = (*self.question.values(), *self.options, self.outcome, self.right, self.undecided)
        return tuple(text for text in texts if text is not None)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns of questions and options."""
        decidable = () if isinstance(self.decidable, bool) else (self.decidable,)
        return tuple(dict.fromkeys((*columns_in(*self.templates), *decidable)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the items, each once."""
        return tuple(dict.fromkeys((*super().columns, *self.text_columns)))


class ModelConfig(LabelModelConfig):
    """One model: a table of its responses, or how to ask it.

    Attributes
    ----------
    table : path or data frame
        One row per item, wording and order.
    answer : str
        Column of the answer: a letter as shown, an option's text, or free text that names one.
    probabilities : list of str
        Columns of the options' probabilities in the order of `data.options`, in place of `answer`
        or beside it; empty cells where the model gave none.
    wording : str, optional
        Column that says which wording the row answers; required of several.
    order : str, optional
        Column that says in which order the options were shown: letters of `data.options`, such
        as "BA". Without it, every row showed them in the order of `data.options`.
    letters : bool
        Of a model to run: whether to take the probabilities of the letters where the model gives
        them, or its text alone.
    missing, unknown, refused : list of str
        Answers that are none, "do not know", and a refusal.
    """

    of_run = ("letters",)
    of_files = ("table", "answer", "probabilities", "wording", "order", "id", "where", "encoding",
                "delimiter")  # fmt: skip
    needed = ("table",)
    answer: Name | None = None
    probabilities: Names = ()
    wording: Name | None = None
    order: Name | None = None
    letters: bool = True
    question: None = None
    normalize: None = None

    @model_validator(mode="after")
    def _check_questions_model(self) -> Self:
        if self.model is None and not given_keys(self, ("answer", "probabilities")):
            raise ValueError("expected 'answer', 'probabilities' or both")
        return self


class MetricsConfig(MetricSwitches):
    """`false` switches a metric off."""

    kind = "questions"
    functions = (paired_outcome_gap, variance_share)


class Config(AuditConfig):
    """The configuration of an audit of questions; see docs/audits/questions.md for every key."""

    audit: Literal["questions"]
    data: DataConfig
    models: Models[ModelConfig]
    metrics: MetricsConfig = MetricsConfig()

    @model_validator(mode="after")
    def _check_questions(self) -> Self:
        check_row_numbers(self.data, {name: model.table for name, model in self.models.items()})
        for name, model in self.models.items():
            if model.table is None:
                continue
            if len(self.data.question) > 1 and model.wording is None:
                raise ValueError(
                    f"models.{name}.wording: required, and missing: the question has "
                    f"{len(self.data.question)} wordings. To do: name the column that says which "
                    "one a row answers"
                )
            if model.probabilities and len(model.probabilities) != len(self.data.options):
                raise ValueError(
                    f"models.{name}.probabilities: {len(model.probabilities)} columns; expected "
                    f"one for each of {len(self.data.options)} options"
                )
        return self
