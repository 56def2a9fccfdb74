"""The configuration of an audit of answers."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from equipoise.audits.config import (
    AssociationOptions,
    AuditConfig,
    FrequentOptions,
    LabelledImagesConfig,
    LabelModelConfig,
    NormalizeConfig,
    check_row_numbers,
    group_name,
)
from equipoise.config.fields import (
    Group,
    Label,
    Models,
    Name,
    OutsideConfig,
    Section,
    Switch,
    among,
)
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.spec import SPECS, spec_of

STATES = ("unknown", "refused", "missing")
"""States of a row without an answer."""


def rates_of_states() -> dict[str, str]:
    """Return the metric of each state of a row without an answer."""
    return {spec.state: name for name, spec in SPECS.items() if spec.state in STATES}


class DataConfig(LabelledImagesConfig):
    """The images with their groups, and the true answer where it is known."""

    @model_validator(mode="after")
    def _check_answers_data(self) -> Self:
        if self.map is not None and self.target is None:
            raise ValueError("'map' is about true answers, and no 'target' is given")
        return self


class ModelConfig(LabelModelConfig):
    """One model: a table of its answers, or how to ask it.

    Attributes
    ----------
    table : path or data frame
        One row per image, or with `by_question` per image and question.
    answer : str
        Column of the answer.
    by_question : str, optional
        Column that says which question the row answers.
    question : str
        What a model to run is asked about each image.
    questions : mapping of str to str
        Several questions by name, in its place.
    missing, unknown, refused : list of str
        Answers that are none, "do not know", and a refusal; with `normalize`, in any form that
        it makes the same.
    normalize : mapping
        How answers are brought to one form.
    """

    of_run = ("question", "questions")
    of_files = ("table", "answer", "by_question", "id", "where", "encoding", "delimiter")
    needed = ("table", "answer")
    answer: Name | None = None
    by_question: Name | None = None
    questions: Annotated[Mapping[Name, Name], Field(min_length=1)] | None = None
    normalize: NormalizeConfig | None = NormalizeConfig()

    @model_validator(mode="after")
    def _check_answers_model(self) -> Self:
        if self.model is not None and bool(self.question) == bool(self.questions):
            keys = "both are" if self.question else "neither is"
            raise ValueError(f"'question' or 'questions': {keys} given; expected one of them")
        return self


class FigureConfig(OutsideConfig):
    """Figures from outside by answer, such as the share of women in an occupation.

    Attributes
    ----------
    first : str
        The group that an answer leans to when it rises with the figure.
    groups : str or list of str, optional
        The entry of `data.groups` that is compared; every one that has the group unless given.
    """

    first: Label
    groups: Group | None = None


class ConcentrationOptions(Section):
    """Options of the label concentration: how many of a group's most frequent answers."""

    k: PositiveInt = 10


class MetricsConfig(MetricSwitches):
    """Options per metric; `false` switches one off."""

    kind = "answers"

    answer_gap: Switch[FrequentOptions] = FrequentOptions()
    cramers_v: Switch[AssociationOptions] = AssociationOptions()
    label_concentration: Switch[ConcentrationOptions] = ConcentrationOptions()


class Config(AuditConfig):
    """The configuration of an audit of answers; see docs/audits/answers.md for every key."""

    audit: Literal["answers"]
    data: DataConfig
    models: Models[ModelConfig]
    figures: Mapping[Name, FigureConfig] = {}
    expected: Mapping[Label, PositiveFloat] = {}
    metrics: MetricsConfig = MetricsConfig()

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        check_row_numbers(self.data, {name: model.table for name, model in self.models.items()})
        questioned = [
            name for name, model in self.models.items() if model.by_question or model.questions
        ]
        if self.data.target is not None and questioned:
            raise ValueError(
                f"data.target is the true answer to one question, and models.{questioned[0]} is "
                "asked several. To do: leave it out, or audit one question"
            )
        for name, figure in self.figures.items():
            groups = group_name(figure.groups or ()) or None
            among(f"figures.{name}.groups", groups, self.group_names)
        self._check_gate()
        return self

    def _check_gate(self) -> None:
        """Refuse a gate on the content of free text that has no classes."""
        for index, rule in enumerate(self.gate):
            if spec_of(rule.metric or "").state in ("unanswered", *STATES):
                continue
            for name, model in self.models.items():
                if rule.model in (None, name) and self._lacks_classes(model):
                    named = f".metric: {rule.metric}" if rule.metric else ": the rule"
                    raise ValueError(
                        f"gate[{index}]{named} compares answers, and models.{name} gives "
                        "free text without classes. To do: declare the possible answers in "
                        f"'models.{name}.normalize.classes' or the true ones in 'data.target', or "
                        "set 'normalize: null' for answers from a fixed list"
                    )

    def _lacks_classes(self, model: ModelConfig) -> bool:
        """Whether a model gives free text of which no class is declared."""
        steps = model.normalize
        return self.data.target is None and steps is not None and not steps.classes

    @property
    def answers(self) -> FrequentOptions:
        """Which answers are compared by themselves."""
        return self.metrics.answer_gap or FrequentOptions()
