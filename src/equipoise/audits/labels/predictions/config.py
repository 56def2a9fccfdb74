"""The config of an audit of predictions; see docs/audits/predictions.md for every key."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PlainSerializer, PositiveInt, model_validator

from equipoise.audits.config import (
    AuditConfig,
    LabelledImagesConfig,
    LabelModelConfig,
    Vocabulary,
    check_row_numbers,
)
from equipoise.config.fields import (
    Distinct,
    Label,
    Models,
    Name,
    Names,
    OneOrMore,
    Section,
    Switch,
    Templates,
    ThresholdRule,
    class_map,
    given_keys,
    one_or_list,
)
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.labels.effect_sizes import EffectSizes, Formulation, Statistic
from equipoise.metrics.labels.metric import CountMetric
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.metrics.measure import MEASURES
from equipoise.metrics.registry import OptionTypes
from equipoise.metrics.scores import ScoreMetric


class DataConfig(LabelledImagesConfig):
    """The images with their true classes and groups.

    Attributes
    ----------
    target : str
        Column of the true class.
    positive : str, optional
        Of two classes the one whose rates and gaps are reported; both unless given.
    """

    target: Name
    positive: Label | None = None


class RateConfig(Section):
    """The false positive rate of all rows that a threshold keeps to."""

    false_positive_rate: Annotated[float, Field(gt=0, lt=1, strict=False)]


class CostConfig(Section):
    """Costs of a false positive and of a false negative."""

    false_positive: NonNegativeFloat = 1.0
    false_negative: NonNegativeFloat = 1.0


ClassMap = Annotated[
    Mapping[Label, Annotated[OneOrMore[Label], PlainSerializer(one_or_list)]],
    Field(min_length=1),
    class_map("by_class"),
]
"""Predicted label to class, or to several that it may stand for."""


class ModelConfig(LabelModelConfig):
    """One model: a table of its predictions, or how to run it.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    prediction, top, probabilities
        One of: the column of the predicted class; the columns of rank 1, 2, ...; class to the
        column of its probability. Probabilities may stand beside `prediction`.
    score : str
        In their place: the column of a score of `data.positive`, higher for more likely.
    threshold : float, str or mapping
        Scores from it on count as positive; or the rule that chooses it: the largest balanced
        accuracy, as many positive rows as there are (`prevalence`), the smallest `cost`, or the
        `false_positive_rate` of all rows that it keeps to.
    costs : mapping
        What errors cost, for that rule and the curve of the cost.
    id : str, optional
        Column that names the image; `data.id` unless given.
    where : mapping
        Column to the rows of the table that are the model's; all unless given.
    vocabulary : list or mapping
        Of a model to run that has no classes of its own: what it chooses between.
    templates : str or list of str
        What the words of the vocabulary are put into.
    k : int
        Ranks that are kept of a model to run.
    question : str, optional
        What a model to run is asked about each image.
    map, maps : mapping, optional
        Predicted label to class, or a file of pairs; or several such mappings by name, measured
        side by side. A label of several classes is right where the true class is one of them, and
        counts as the first elsewhere.
    missing, unknown, refused : list of str
        Cell texts that mean no prediction, "do not know", and a refusal.
    open_vocabulary : bool
        Predictions may be any text; otherwise a label that is no class is an error. Answers to a
        question always may.
    normalize : mapping, optional
        How free text becomes classes.
    encoding, delimiter : str
        Of a CSV.
    """

    of_run = ("vocabulary", "templates", "k", "question")
    of_files = ("table", "prediction", "top", "probabilities", "score", "id", "where", "encoding")
    needed = ("table",)
    prediction: Name | None = None
    top: Names = ()
    probabilities: Annotated[Mapping[Label, Name], Field(min_length=2)] | None = None
    score: Name | None = None
    threshold: Annotated[float, Field(strict=False)] | ThresholdRule | RateConfig = (
        "balanced_accuracy"
    )
    costs: CostConfig = CostConfig()
    vocabulary: Vocabulary | None = None
    templates: Templates = "plain"
    k: PositiveInt = 5
    map: ClassMap | None = None
    maps: Annotated[Mapping[Name, ClassMap], Field(min_length=1)] | None = None
    open_vocabulary: bool = False

    @model_validator(mode="after")
    def _check_predictions_model(self) -> Self:
        read = self.model is None
        problems = {
            "'question' and 'vocabulary' are both given; expected a question for a model that "
            "answers, or a vocabulary for one that compares images and texts": self.question
            and self.vocabulary,
            "no prediction. To do: name its column under 'prediction', the columns of rank 1, 2, "
            "... under 'top', class to column under 'probabilities', or a 'score'": read
            and not (self.prediction or self.top or self.probabilities or self.score),
            "'score' and predicted labels are given; expected one of them": self.score
            and (self.prediction or self.top or self.probabilities or self.map or self.maps),
            "'threshold' and 'costs' go with 'score'": not self.score
            and given_keys(self, ("threshold", "costs")),
            "'prediction' and 'top' are both given; expected one of them": self.prediction
            and self.top,
            "'map' and 'maps' are both given; expected one of them": self.map and self.maps,
        }
        for problem, violated in problems.items():
            if violated:
                raise ValueError(problem)
        return self

    @property
    def every_map(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """The mappings of predicted labels to classes, by name."""
        return (self.maps or {}) if self.map is None else {"default": self.map}


class EqualizedOddsOptions(Section):
    """Options of equalized odds: `aggregate` over the two true-class conditions."""

    aggregate: Literal["max", "mean"] = "max"


class HitRateOptions(Section):
    """Options of the hit rate: a hit is a true class among the top `k`."""

    k: PositiveInt = 5


class SkewSizeOptions(Section):
    """Options of the effect sizes that SkewSize summarises.

    Attributes
    ----------
    statistic : str
        Measure of association; `_corrected` ones are corrected for the bias of small samples.
    min_expected : float
        Predicted labels whose smallest expected count is below are dropped; 0 drops none.
    yates : bool
        Yates' correction of 2 by 2 tables, as the published SkewSize listing has it.
    formulation : str
        Condition on the true class, on the predicted class, or on nothing.
    """

    statistic: Statistic = EffectSizes.statistic
    min_expected: NonNegativeFloat = EffectSizes.min_expected
    yates: bool = EffectSizes.yates
    formulation: Formulation = EffectSizes.formulation


class EffectVersionOptions(Section):
    """Options of a further version of the effect sizes; the main options by default."""

    statistic: Statistic | None = None
    min_expected: NonNegativeFloat | None = None
    yates: bool | None = None
    formulation: Formulation | None = None


class EffectSizeOptions(Section):
    """Options of the effect sizes per class and their aggregates.

    Attributes
    ----------
    statistic : str or list of str
        Measure of association. The first is averaged and tested; further ones are reported per
        class.
    min_expected, yates, formulation
        As in `SkewSizeOptions`.
    sweep : list of float
        Values of `min_expected` over which the report has the aggregates, and the order of models.
    versions : mapping of str to EffectVersionOptions
        Further versions by name, reported beside without a verdict.
    """

    statistic: Annotated[OneOrMore[Statistic], PlainSerializer(one_or_list)] = (
        EffectSizes.statistic,
    )
    min_expected: NonNegativeFloat = EffectSizes.min_expected
    yates: bool = EffectSizes.yates
    formulation: Formulation = EffectSizes.formulation
    sweep: Distinct[NonNegativeFloat] = ()
    versions: Mapping[Name, EffectVersionOptions] = {}


class MistakeOptions(Section):
    """Options of the rates of wrong labels.

    Attributes
    ----------
    of : list of str
        Classes whose most frequent wrong labels are reported by group; none unless given.
    top : int
        How many of each group.
    """

    of: Distinct[Label] = ()
    top: PositiveInt = 3


class MetricsConfig(MetricSwitches):
    """Options per metric; `false` switches a metric off, everything else the input allows is on."""

    kind = "predictions"
    forms = (CountMetric, ScoreMetric)

    equalized_odds: Switch[EqualizedOddsOptions] = EqualizedOddsOptions()
    hit_rate: Switch[HitRateOptions] = HitRateOptions()
    effect_sizes: Switch[EffectSizeOptions] = EffectSizeOptions()
    skewsize: Switch[SkewSizeOptions] = SkewSizeOptions()
    mistake_rate: Switch[MistakeOptions] = MistakeOptions()

    @classmethod
    def registered(cls) -> dict[str, OptionTypes]:
        """Return the metrics of the forms, and metrics with several comparisons of groups."""
        return {name: {} for name in MEASURES} | super().registered()

    @classmethod
    def parts(cls) -> Mapping[str, str]:
        """Return the rates of classes, which `rates` measures."""
        switched = cls.switched()
        return {name: "rates" for name in rates_of_classes() if name not in switched}


class Config(AuditConfig):
    """The config of an audit of predictions.

    Attributes
    ----------
    parity : str
        Which findings of parity may lead the report: `added`, where the model adds to the
        difference that the labels have, or all: `required`, as for the allocation of a good.
    """

    audit: Literal["predictions"]
    data: DataConfig
    models: Models[ModelConfig]
    metrics: MetricsConfig = MetricsConfig()
    parity: Literal["added", "required"] = "added"

    @model_validator(mode="after")
    def _check_predictions(self) -> Self:
        check_row_numbers(self.data, {name: model.table for name, model in self.models.items()})
        return self
