"""The configuration of an audit: shared sections, and reading one strict schema a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from equipoise.audits.config_groups import GroupSourceConfig
from equipoise.config.fields import (
    CsvConfig,
    ExtractionConfig,
    Filters,
    Group,
    Label,
    Labels,
    Level,
    Listed,
    Name,
    RunConfig,
    Section,
    Seed,
    Share,
    Some,
    Table,
    TableFile,
    Text,
    among,
    class_map,
    columns_of,
    given_keys,
    located,
    one_state_each,
    same_table,
    where_of,
)
from equipoise.config.files import as_yaml, keys, line_of, nearest, parse_yaml
from equipoise.config.images import PicturesConfig
from equipoise.config.metric_names import check_measured, find_metric, kind_of, refused
from equipoise.config.problems import explain
from equipoise.config.switches import MetricSwitches
from equipoise.core import MIN_SIZE, ConfigError
from equipoise.core.files import read_regular
from equipoise.core.types import Json
from equipoise.data import (
    Coded,
    ItemSource,
    LabelSource,
    Normalization,
    PredictionSource,
    Reading,
    read_table,
)
from equipoise.data.resolver import NO_CLASS
from equipoise.discovery import KINDS
from equipoise.metrics.naming import comparison_of
from equipoise.metrics.spec import MetricSpec
from equipoise.report import GateRule
from equipoise.report.gate_rules import GateVerdict, Of, On
from equipoise.stats import Bootstrap, Resampling
from equipoise.studies.names import StudyName

_MAX_NAME = 200
SchemaT = TypeVar("SchemaT", bound=BaseModel)


class ResamplingConfig(Section):
    """How intervals and chance levels are made.

    Attributes
    ----------
    method : str
        `bootstrap`, or `none` for values alone.
    replicates : int
        Bootstrap replicates.
    permutations : int, optional
        Per test; chosen from the number of tests and alpha unless given.
    seed : int
    level : float
        Confidence level of the intervals.
    """

    method: Literal["bootstrap", "none"] = "bootstrap"
    replicates: Annotated[int, Field(ge=10, le=1_000_000)] = 1000
    permutations: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    seed: Seed = 0
    level: Level = 0.95


class GateConfig(Section):
    """One requirement that `equipoise check` enforces.

    Attributes
    ----------
    metric : str, optional
        Name of the metric, as in the findings; bounds need it.
    of : str, optional
        What is compared: the metric's own `value`, the `difference` or `ratio` of groups, the
        `worst_group`, or each group `against_rest`. By default the value; of a metric that is a
        difference by definition, the difference.
    change_from : str, optional
        The model or run that a change is from; without it levels, no changes.
    min, max : float, optional
        Bounds, both allowed values themselves.
    on : str
        What is compared: the value, or the `lower` or `upper` end of its interval; or whether the
        `whole` interval or `any` of it is beyond a bound.
    verdict : str, optional
        The gravest verdict that is refused, with graver ones: of the metric's findings, or without
        a metric of conclusions.
    worse_than : str, optional
        Folder of a run that no model may be worse than, by a paired test.
    model, groups, subject, version : optional
        Restrict the rule to one model, one entry of `data.groups`, one class, one version of the
        design choices; every finding of the metric otherwise.
    """

    metric: str = ""
    of: Of | None = None
    change_from: str | None = None
    min: float | None = None
    max: float | None = None
    on: On = "value"
    verdict: GateVerdict | None = None
    worse_than: Text | None = None
    model: Label | None = None
    groups: Group | None = None
    subject: Label | None = None
    version: Label | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_metric(cls, values: Any, info: ValidationInfo) -> Any:
        name = values.get("metric") if isinstance(values, Mapping) else None
        if not isinstance(name, str) or not name:
            return values
        record = find_metric(name, "metric", kind_of(info))
        of, comparison = values.get("of"), comparison_of(record)
        if comparison is not None and of not in (None, comparison):
            raise refused("of", f"given {as_yaml(of)}, and {name} is a {comparison}; leave it out")
        check_measured(record.name, of, "of")
        named = {} if comparison is None else {"of": comparison.value}
        return {**values, "metric": record.name, **named}

    @model_validator(mode="after")
    def _bounded(self) -> GateConfig:
        try:
            _ = self.as_rule
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def as_rule(self) -> GateRule:
        """The rule as the gate of the report takes it."""
        return GateRule(**dict(self) | {"groups": group_name(self.groups or ()) or None})


class ReportConfig(Section):
    """Title of the report, and the pictures that it shows.

    Attributes
    ----------
    title : str
        Of the page.
    images : int
        Most pictures of each group that a leading finding names, where the data have pictures.
    blur : "faces" or "all", optional
        What is blurred in them. A picture in which no face is found is blurred as a whole.
    """

    title: str = ""
    images: Annotated[int, Field(ge=0, le=12)] = 6
    blur: Literal["faces", "all"] | None = None


class TestingConfig(Section):
    """When a difference counts.

    Attributes
    ----------
    alpha : float
        Level of significance of the corrected p-values.
    correction : str
        Benjamini-Hochberg (false discovery rate) or Holm (family-wise error).
    thresholds : mapping of str to float
        Practical threshold on the excess over chance, per metric, in place of the default, or
        where the metric has none.
    """

    alpha: Level = 0.05
    correction: Literal["benjamini-hochberg", "holm"] = "benjamini-hochberg"
    thresholds: Mapping[str, NonNegativeFloat] = {}

    @field_validator("thresholds", mode="before")
    @classmethod
    def _known(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, Mapping):
            return value
        thresholds: dict[str, Any] = {}
        for name, least in value.items():
            metric = find_metric(name, str(name), kind_of(info)).name
            if metric in thresholds:
                raise refused(str(name), f"{name!r} is {metric}, which is given already")
            thresholds[metric] = least
        return thresholds

    def threshold(self, spec: MetricSpec) -> float | None:
        """Return a metric's practical threshold; None without a threshold."""
        return self.thresholds.get(spec.name, spec.threshold)


class AuditConfig(Section):
    """The config keys that all audits share.

    Attributes
    ----------
    study : str, optional
        Published study whose tables the report shows beside the findings.
    metrics : MetricSwitches
        Which metrics are measured, with what options.
    group_sources : mapping
        Attribute to where its values are from: people, or a model with its errors.
    """

    models_key: ClassVar[str] = "models"
    """Section whose keys name the models."""

    audit: str
    study: StudyName | None = None
    metrics: MetricSwitches = MetricSwitches()
    extraction: ExtractionConfig = ExtractionConfig()
    resampling: ResamplingConfig = ResamplingConfig()
    testing: TestingConfig = TestingConfig()
    gate: Listed[GateConfig] = ()
    report: ReportConfig = ReportConfig()
    group_sources: Mapping[Name, GroupSourceConfig] = {}

    def model_key(self, name: str) -> str:
        """Return the key that names a model."""
        return f"{self.models_key}.{name}.model"

    @model_validator(mode="after")
    def _check_audit(self) -> Self:
        count, alpha = self.resampling.permutations, self.testing.alpha
        if count is not None and 1 / (1 + count) > alpha:
            raise ValueError(
                f"resampling.permutations: with {count} no p-value is below {1 / (1 + count):.3g}, "
                f"and testing.alpha is {alpha}; expected at least {ceil(1 / alpha - 1e-9) - 1}"
            )
        file_names(getattr(self, "models", {}))
        for index, rule in enumerate(self.gate if self.group_names else ()):
            among(f"gate[{index}].model", rule.model, self.model_names)
            groups = group_name(rule.groups or ()) or None
            among(f"gate[{index}].groups", groups, self.group_names)
        return self

    @property
    def model_names(self) -> Sequence[str]:
        """Names of the models that findings are about."""
        return (*getattr(self, "models", {}),)

    @property
    def group_columns(self) -> Sequence[str]:
        """Columns whose values are groups and nothing else, such as the target."""
        data = getattr(self, "data", None)
        columns = columns_of(getattr(data, "groups", ()))
        return [name for name in columns if name != getattr(data, "target", None)]

    @property
    def declared_levels(self) -> Sequence[str]:
        """Groups that the config names, which are no missing values whatever they look like."""
        return ()

    @property
    def group_names(self) -> Sequence[str]:
        """Names of the choices of groups; none of a kind that checks gates itself."""
        return [
            group_name(attributes)
            for attributes in getattr(getattr(self, "data", None), "groups", ())
        ]

    @property
    def resolved(self) -> dict[str, Json]:
        """The configuration with every default filled in, as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def record(self) -> dict[str, Any]:
        """The record of the configuration in a manifest."""
        passed = self.model_dump(mode="json", exclude_unset=True)
        return {"config": passed, "resolved": self.resolved, "seed": self.resampling.seed}


def group_name(attributes: tuple[str, ...]) -> str:
    """Return how findings call one attribute or an intersection: names joined by " × "."""
    return " × ".join(attributes)


def file_names(models: Iterable[str]) -> None:
    """Refuse model names that would collide as file names."""
    names = [*models]
    folded = {name.casefold() for name in names}
    if len(folded) < len(names) or any(len(quote(name, safe="")) > _MAX_NAME for name in names):
        raise ValueError(
            f"models: expected names that differ in more than case, of up to {_MAX_NAME} characters"
        )


# Keys of the table of labels that `images` has itself.
_OF_TABLE = ("table", "id", "where", "missing", "encoding", "delimiter")

Mapped = Annotated[Mapping[Label, Label], Field(min_length=1), class_map("by_label")]
"""True class in the table to class."""


class LabelledImagesConfig(CsvConfig):
    """The images, and the groups that they are in.

    Attributes
    ----------
    table : path or data frame
        One row per image: CSV, Parquet or JSON lines.
    id : str
        Column that names the image.
    images : mapping, in place of `table` and `id`
        The images themselves: a table with their files, a folder, or a data set in its own
        format; see docs/images.md.
    where : mapping
        Column to the rows that take part; all unless given.
    target : str, optional
        Column of the true class.
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    unit : str, optional
        Column of the unit that repeats (person, scene); resampled as a whole.
    map : mapping, optional
        True class in the table to class.
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of rows without a partner in the other table.
    """

    table: Table | None = None
    id: Name | None = None
    images: PicturesConfig | None = None
    where: Filters = Field(default_factory=dict)
    target: Name | None = None
    groups: Some[Group]
    unit: Name | None = None
    map: Mapped | None = None
    min_group_size: PositiveInt = MIN_SIZE
    max_unmatched: Share = 0.01

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every column that a group is made of, each once."""
        return columns_of(self.groups)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the images, each once."""
        return columns_of([], self.target, *self.attributes, self.unit)

    @property
    def pictures(self) -> PicturesConfig:
        """The section `images`, or the same of a table alone."""
        return self.images or PicturesConfig.model_construct(
            table=self.table, id=self.id, where=self.where, **self.csv
        )

    def labels(self, images: ItemSource) -> LabelSource:
        """Return how to read the labels of images, whose attributes have sentinels."""
        return LabelSource(
            table=images.table,
            id=images.id,
            target=self.target,
            attributes=self.attributes,
            unit=self.unit,
            map=self.map,
            where=images.where,
            derived=tuple(name for name in self.attributes if name not in images.attributes),
            levels=images.levels,
            missing=images.missing,
            encoding=images.encoding,
            delimiter=images.delimiter,
        )

    @model_validator(mode="after")
    def _check_labelled_images(self) -> Self:
        table_keys = given_keys(self, _OF_TABLE)
        if self.images is not None and table_keys:
            raise ValueError(f"{table_keys[0]!r} is outside 'images'; expected it within 'images'")
        if self.images is None and "table" not in table_keys:
            raise ValueError("expected 'table', or 'images'")
        return self


_STEPS = Normalization()


# Columns of a table of synonyms.
_WORKSHEET = ("text", "class")


class NormalizeConfig(Section):
    """Settings that turn free text into classes; the wording is kept.

    Attributes
    ----------
    case_fold, whitespace : bool
        Compare without case; take any run of white space as one space.
    punctuation : str
        Characters taken off both ends.
    articles, leading_phrases : list of str
        Words and phrases taken off the start.
    synonyms : mapping or table
        Phrase to class; or a table with the columns `text` and `class`, such as a worksheet that
        is filled in. Rows without a class count for nothing.
    classes : list of str
        Classes beside those of the target.
    masked : list of str
        Words that name a subject's group, beside words of gender and the groups' names.
    refusals : list of str
        Regular expressions of refusals, beside the usual ones.
    """

    case_fold: bool = _STEPS.case_fold
    whitespace: bool = _STEPS.whitespace
    punctuation: str = _STEPS.punctuation
    articles: Labels = _STEPS.articles
    leading_phrases: Labels = _STEPS.leading_phrases
    synonyms: Mapping[Label, Label] | TableFile = Field(default_factory=dict)
    classes: Labels = ()
    masked: Labels = ()
    refusals: Labels = ()

    @field_validator("refusals")
    @classmethod
    def _patterns(cls, value: Labels) -> Labels:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ValueError(f"{pattern!r} isn't a regular expression: {problem}") from None
        return value

    def steps(self, base: Path) -> Normalization:
        """Return the steps, with a table of synonyms read from a path relative to `base`."""
        synonyms = self.synonyms
        if not isinstance(synonyms, Mapping):
            filled = read_table(located(synonyms, base), texts=_WORKSHEET, role="synonyms").texts
            pairs = zip(*(filled[name].to_list() for name in _WORKSHEET), strict=True)
            synonyms = {text: name for text, name in pairs if text and name}
        return Normalization(**{**self.model_dump(), "synonyms": synonyms})


class FrequentOptions(Section):
    """Which labels or answers are compared by themselves.

    Attributes
    ----------
    least : int
        Rarer ones, all groups together, are pooled.
    most : int
        Most of them, the most frequent first.
    """

    least: PositiveInt = 10
    most: Annotated[int, Field(ge=1, le=1000)] = 50

    def frequent(self, label: Coded) -> list[str]:
        """Return the labels that are compared by themselves, the most frequent first."""
        counts, names = label.counts, label.vocabulary
        order = sorted(range(len(counts)), key=lambda code: (-counts[code], names[code]))
        named = [
            code for code in order if counts[code] >= self.least and names[code] not in NO_CLASS
        ]
        return [names[code] for code in named[: self.most]]


class AssociationOptions(Section):
    """Options of Cramér's V of groups by labels: the smallest expected count kept, 0 for all."""

    min_expected: NonNegativeFloat = 5.0


def check_row_numbers(data: LabelledImagesConfig, tables: Mapping[str, Path | None]) -> None:
    """Refuse to match rows of different tables by their numbers.

    Parameters
    ----------
    data : LabelledImagesConfig
    tables : mapping of str to path or data frame, or None
        Of each model's outputs; None where it is run.

    Raises
    ------
    ValueError
        When images have no ids, and labels of a model are in another table.
    """
    images = data.pictures
    for name, outputs in tables.items() if images.id is None and images.table is not None else ():
        table = images.table
        if outputs is not None and not same_table(outputs, table):
            raise ValueError(
                f"data.id: required, and missing: models.{name}.table is another table, whose "
                "rows are matched by id"
            )


class LabelModelConfig(RunConfig, CsvConfig):
    """One model that labels images or answers: a table of its texts, or how to run it.

    Attributes
    ----------
    table : path or data frame
    id : str, optional
        Column that names the image; `data.id` unless given.
    where : mapping
        Column to the rows of the table that are the model's; all unless given.
    question : str, optional
        What a model to run is asked about each image.
    unknown, refused : list of str
        Cell texts that mean "do not know", and a refusal.
    normalize : mapping, optional
        How texts are brought to one form.
    """

    table: Table | None = None
    id: Name | None = None
    where: Filters = Field(default_factory=dict)
    question: Name | None = None
    unknown: Labels = ()
    refused: Labels = ()
    normalize: NormalizeConfig | None = None

    def source(self, base: Path, **columns: Any) -> PredictionSource:
        """Return the table to read, with paths relative to `base`."""
        return PredictionSource(
            table=located(self.table, base),
            id=self.id,
            where=where_of(self.where),
            encoding=self.encoding,
            delimiter=self.delimiter,
            **columns,
        )

    def reading(self, name: str, base: Path, **options: Any) -> Reading:
        """Return how the texts become labels; tables are relative to `base`."""
        return Reading(
            missing=self.missing,
            unknown=self.unknown,
            refused=self.refused,
            normalize=None if self.normalize is None else self.normalize.steps(base),
            place=f"models.{name}",
            **options,
        )

    @model_validator(mode="after")
    def _check_label_model(self) -> Self:
        one_state_each(self.missing, self.unknown, self.refused)
        return self


def _each_by_itself(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    if len({*map(str, value)}) < len(value):
        raise ValueError("expected each class once")
    return {name: (name,) for name in map(str, value)}


Vocabulary = Annotated[
    Mapping[Text, Some[Text]], BeforeValidator(_each_by_itself), Field(min_length=2)
]
"""Classes to choose between: a list, or class to words."""


def parse_config(values: Any, *, source: str = "configuration") -> AuditConfig:
    """Parse a configuration from Python values.

    Parameters
    ----------
    values : mapping
        The keys of docs/config.md. A table may be a path or any data frame.
    source : str
        What to call it in errors.

    Raises
    ------
    ConfigError
        Naming each key that is wrong, what was given there and what is allowed.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> config.audit
    'predictions'
    """
    return _checked(values, source, None)


def load_config(path: str | Path) -> AuditConfig:
    """Read and check a configuration file.

    Parameters
    ----------
    path : str or Path
        A YAML file. Relative paths in it are relative to its folder.

    Raises
    ------
    ConfigError
        When it cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    return _checked(*_read_values(path), Path(path).parent)


def load_as(path: str | Path, schema: type[SchemaT]) -> SchemaT:
    """Read a configuration file and check it against a schema; errors as of `load_config`."""
    values, source, node = _read_values(path)
    return _validated(values, schema, source, node, base=Path(path).parent)


def _read_values(path: str | Path) -> tuple[Any, str, Any]:
    """Read a configuration file without checking its keys: values, source name, YAML node.

    Raises
    ------
    ConfigError
        When it cannot be read or is not YAML. A pipe or a device is not waited for.
    """
    source = str(path)
    try:
        content = read_regular(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{source}: the file doesn't exist. To do: create it with 'equipoise new {source}'",
            file=source,
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{source}: cannot be read: {reason}. To do: name a YAML file", file=source
        ) from None
    values, node = parse_yaml(content, source)
    return values, source, node


def _validated(
    values: Any,
    model: type[SchemaT],
    source: str,
    node: Any,
    audit: str | None = None,
    base: Path = Path(),
) -> SchemaT:
    """Return checked values; of an audit, its metrics alone are allowed."""
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{source}: {'empty' if values is None else 'not a mapping'}; expected the keys "
            f"{', '.join(keys(model))}"
        )
    try:
        return model.model_validate(dict(values), context={"audit": audit, "base": base})
    except ValidationError as error:
        raise explain(error, values, source, node) from None
    except RecursionError:
        raise ConfigError(f"{source}: refers to itself; expected a plain tree of values") from None


def schema(audit: str) -> type[AuditConfig]:
    """Return the config schema of a kind of audit."""
    config: type[AuditConfig] = KINDS[audit].load(type, "config:Config")
    return config


def _checked(values: Any, source: str, node: Any, base: Path = Path()) -> AuditConfig:
    # The schema of predictions says that `audit` is missing.
    audit = values.get("audit", "predictions") if isinstance(values, Mapping) else "predictions"
    if isinstance(audit, str) and audit in KINDS:
        return _validated(values, schema(audit), source, node, audit, base)
    line = line_of(node, ["audit"])
    raise ConfigError(
        f"{source}{f', line {line}' if line else ''}: audit: given {as_yaml(audit)}; "
        f"expected one of {', '.join(KINDS)}{nearest(audit, KINDS)}",
        key="audit", file=source, line=line,
    )  # fmt: skip


def runs_models(config: AuditConfig) -> bool:
    """Return whether a config names a model to run."""
    models: Mapping[str, Any] = getattr(config, "models", {})
    return any(getattr(section, "model", None) is not None for section in models.values())


def resampling_of(config: AuditConfig, tests: int) -> Resampling | None:
    """Return the resampling object that a configuration describes.

    Parameters
    ----------
    config : AuditConfig
    tests : int
        How many tests are corrected together, so that p-values are drawn finely enough.
    """
    options = config.resampling
    if options.method == "none":
        return None
    finest = config.testing.alpha / (10 * max(tests, 1))
    if options.permutations is not None:
        finest = max(finest, 1.0 / options.permutations)
    least = options.permutations or options.replicates
    return Bootstrap(options.replicates, least, options.level, finest)
