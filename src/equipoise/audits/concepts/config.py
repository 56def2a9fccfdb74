"""The configuration of an audit of concepts."""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, Self, cast, get_args

from pydantic import Field, PlainSerializer, PositiveFloat, PositiveInt, model_validator

from equipoise.audits.config import AuditConfig, ResamplingConfig
from equipoise.config.fields import (
    ArrayOrTable,
    CsvConfig,
    Distinct,
    Filters,
    Group,
    Labels,
    Level,
    Models,
    Name,
    OneOrMore,
    RunConfig,
    Section,
    Share,
    Some,
    Templates,
    Text,
    among,
    class_map,
    columns_of,
    ids_at,
    located,
)
from equipoise.config.images import PicturesConfig
from equipoise.config.switches import MetricSwitches
from equipoise.core import MIN_SIZE, Facts, Fields, Strings
from equipoise.data import ArraySource
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.registry import OptionTypes
from equipoise.metrics.spec import spec_of

BASELINE = "baseline"
BY_KEY = ("terms", "columns", "where")
"""Choices that change by attribute or column."""


Columns = OneOrMore[Text]
"""One column, or several of which the largest counts."""
Map = Annotated[Mapping[Text, Columns], class_map("by_label")]
"""Concept to its columns; or a file of labels and the classes of a model."""
LabelMap = Annotated[Mapping[Text, Columns], class_map("by_class")]
"""Class of a model to its labels."""
VersionPair = Annotated[tuple[Text, Text], Field(strict=False)]
"""Names of two versions, the one that is read first first."""
Terms = Mapping[Text, Labels]
"""Group to the values of a column that count as it; empty: the values themselves."""


class ImagesConfig(PicturesConfig):
    """The images: a table, a folder, or a data set in its own format.

    Attributes
    ----------
    unit : str, optional
        Column of what repeats (scene, person); resampled and exchanged as a whole.
    """

    unit: Name | None = None


class MatrixConfig(CsvConfig):
    """Numbers by image and column: labels 0 and 1, or scores.

    Attributes
    ----------
    file : path, array or data frame, optional
        Parquet, CSV, .npy, .npz or .safetensors.
    array : str, optional
        Name of the array in an .npz or .safetensors.
    id : str, optional
        Column of the ids in a table; that of the images by default.
    ids : str, optional
        Ids of the rows of an array: a file, or the name of an array in the same file. By default
        rows follow the images.
    names : list of str
        Names of the columns of an array.
    map : mapping, optional
        Concept to its column, or to several of which the largest counts; other concepts have the
        column of their name.
    maps : mapping, optional
        Other such mappings by name, for versions; they add to `map`.
    missing : list of str
        Cell texts of a CSV that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    file: ArrayOrTable | None = None
    array: Name | None = None
    id: Name | None = None
    ids: Name | None = None
    names: Labels = ()
    map: Map = Field(default_factory=dict)
    maps: Mapping[Name, Map] = {}

    @property
    def mapped(self) -> Strings:
        """Concepts that some mapping names."""
        return tuple(chain(self.map, *self.maps.values()))

    def source(self, base: Path) -> ArraySource:
        """Return the source to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.file, base),
            array=self.array,
            ids=ids_at(self.ids, base),
            id=self.id,
            names=self.names,
            **self.csv,
        )

    def columns(
        self, concepts: Iterable[str], name: str | None, existing: Container[str] | None = None
    ) -> list[Strings]:
        """Return the columns of each concept under a mapping.

        Parameters
        ----------
        concepts : iterable of str
        name : str, optional
            Of the mapping; the plain one unless given.
        existing : container of str, optional
            Columns that there are: a concept that the mapping lacks has the column of its name
            only where there is one.
        """
        mapping = {**self.map, **self.maps.get(name or "", {})}
        plain = {
            concept: (concept,) if existing is None or concept in existing else ()
            for concept in concepts
        }
        return [mapping.get(concept, column) for concept, column in plain.items()]

    def every_column(
        self, concepts: Iterable[str], existing: Container[str] | None = None
    ) -> Strings:
        """Return the columns of concepts under all mappings, each once."""
        names, columns = [*concepts], dict[str, None]()
        for mapping in (None, *self.maps):
            for columns_of_concept in self.columns(names, mapping, existing):
                columns |= dict.fromkeys(columns_of_concept)
        return tuple(columns)


class ModelConfig(RunConfig, MatrixConfig):
    """One model: how to run it, or a file of its scores.

    A dual encoder that is run compares images with the prompts of each column, a model of pairs
    scores them with these, and a classifier has a column for each of its classes.

    Attributes
    ----------
    templates : str or list of str
        What the words of a column are put into: a list by name, or templates.
    words : mapping, optional
        Column to its words, whose prompts are averaged; by default a column is its own word, and
        one named as a synset ("dress.n.01") the synset's.
    all_classes : bool
        The concepts that are measured are all classes of the model, so that `hit_rate` may rank
        them alone.
    """

    templates: Templates = "plain"
    words: Mapping[Text, Columns] = {}
    all_classes: bool = False
    of_run = ("templates", "words")
    of_files = ("file",)
    needed = ("file",)


class LabelsConfig(MatrixConfig):
    """Whether each image shows each concept: 0 or 1.

    Attributes
    ----------
    file : path, array or data frame, optional
        The labels of the data set by default, where the images have a format with labels.
    concept : str, optional
        Column of the concept, where the table has one row for each concept that an image shows,
        and no column per concept.
    """

    concept: Name | None = None
    map: LabelMap = Field(default_factory=dict)
    maps: Mapping[Name, LabelMap] = {}


class DataConfig(Section):
    """Images, their groups and their labels.

    Attributes
    ----------
    images : mapping
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    labels : mapping
        Those of the data set by default, where the images have a format with labels.
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of images without labels or scores.
    """

    images: ImagesConfig
    groups: Some[Group]
    labels: LabelsConfig = LabelsConfig()
    min_group_size: PositiveInt = MIN_SIZE
    max_unmatched: Share = 0.01

    @model_validator(mode="after")
    def _check_concepts_data(self) -> Self:
        labelled = self.images.format is not None or self.images.split_columns
        if self.labels.file is None and not labelled:
            raise ValueError(
                "labels.file: required, and missing: 'table' and 'folder' list the images, "
                "but not their labels"
            )
        return self


class ChoicesConfig(Section):
    """Choices of a measurement, or the changes of a version.

    Attributes
    ----------
    metric : str, optional
        The metric that stands for the version; the first of `metrics` by default.
    prevalence : str
        `weighted`, `hall` or `observed`.
    ratio : float
        Negatives per positive under the first two.
    min_positives : int
        A group with fewer positives leaves the concept.
    validation : float
        Share of rows that thresholds are tuned on.
    incomplete : str
        What leaves when a group has too few positives: the `group`, or the `concept`.
    unlabelled : str
        Images without any of the concepts: `keep` or `leave out`.
    terms : mapping
        Attribute to (group to the values that count as it).
    columns : mapping
        Attribute to another column to read it from.
    where : mapping
        Column to the rows that take part.
    map : str, optional
        Name of other mappings (`maps`) of labels and models.
    """

    metric: Metric | None = None
    prevalence: Literal["weighted", "hall", "observed"] = "weighted"
    ratio: PositiveFloat = 5.0
    min_positives: PositiveInt = 50
    validation: Level = 0.2
    incomplete: Literal["group", "concept"] = "group"
    unlabelled: Literal["keep", "leave out"] = "keep"
    terms: Mapping[Name, Terms] = {}
    columns: Mapping[Name, Name] = {}
    where: Filters = Field(default_factory=dict)
    map: Name | None = None

    @model_validator(mode="after")
    def _check_concepts_choices(self) -> Self:
        for attribute, terms in self.terms.items():
            values = [value for listed in terms.values() for value in listed]
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(
                    f"terms.{attribute}: {', '.join(map(repr, twice))} counts as more than one "
                    "group; expected each value once"
                )
        return self

    @property
    def changes(self) -> Fields:
        """The keys that are set, as the config writes them."""
        dumped = self.model_dump(mode="json", exclude_unset=True)
        return {key: value for key, value in dumped.items() if value != {}}


Changes = Annotated[
    ChoicesConfig,
    PlainSerializer(lambda value: value.model_dump(mode="json", exclude_unset=True)),
]
"""The choices that a version changes."""


class ConceptsResamplingConfig(ResamplingConfig):
    """As everywhere, with the number of replicates of the published protocol."""

    replicates: Annotated[int, Field(ge=10, le=1_000_000)] = 250


@dataclass(frozen=True)
class Version:
    """One version of the choices.

    Attributes
    ----------
    name : str
    choices : ChoicesConfig
        With everything that it does not change taken from the baseline.
    metric : str
        The metric that stands for it.
    changes : mapping of str to object
        What it changes, as the config writes it; nothing of the baseline.
    """

    name: str
    choices: ChoicesConfig
    metric: Metric
    changes: Facts

    @property
    def description(self) -> str:
        """The changes in words."""
        texts = (f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in self.changes.items())
        return "; ".join(texts).replace('"', "")


def in_version(groups: str, version: str) -> str:
    """Return the name of groups as a version makes them."""
    return f"{groups} in {version}"


class MetricsConfig(MetricSwitches):
    """Which metrics are measured; a list of their names has the first stand for a version."""

    kind = "concepts"

    @classmethod
    def registered(cls) -> dict[str, OptionTypes]:
        """Return the metrics of one concept."""
        return {name: {} for name in get_args(Metric)}

    @property
    def names(self) -> tuple[Metric, ...]:
        """The metrics that are on."""
        return cast("tuple[Metric, ...]", (*self.measured,))

    @model_validator(mode="after")
    def _check_concepts_metrics(self) -> Self:
        if not self.names:
            raise ValueError("all metrics are off; expected at least one")
        return self


class Config(AuditConfig):
    """The configuration of an audit of concepts; see docs/audits/concepts.md for every key."""

    audit: Literal["concepts"]
    data: DataConfig
    models: Models[ModelConfig]
    concepts: Distinct[Text] = ()
    metrics: MetricsConfig = MetricsConfig()
    hit_rate: PositiveInt | None = None
    choices: ChoicesConfig = ChoicesConfig()
    versions: Mapping[Text, Changes] = {}
    steps: Distinct[VersionPair] = ()
    resampling: ConceptsResamplingConfig = ConceptsResamplingConfig()

    @property
    def every_version(self) -> tuple[Version, ...]:
        """The baseline, and the versions as declared."""
        versions = [Version(BASELINE, self.choices, self.primary, {})]
        for name, version in self.versions.items():
            if name == BASELINE:
                raise ValueError(f"versions: {name!r} names the choices; expected another name")
            if not version.changes:
                raise ValueError(f"versions.{name}: changes nothing; expected at least one choice")
            values = {key: getattr(version, key) for key in version.model_fields_set}
            for key in values.keys() & {*BY_KEY}:
                values[key] = {**getattr(self.choices, key), **values[key]}
            choices = self.choices.model_copy(update=values)
            versions.append(Version(name, choices, choices.metric or self.primary, version.changes))
        return tuple(versions)

    @property
    def primary(self) -> Metric:
        """The metric of the baseline."""
        return self.choices.metric or self.metrics.names[0]

    @property
    def group_columns(self) -> Strings:
        """Columns of the images whose values are groups of any version."""
        maps = [version.choices.columns for version in self.every_version]
        groups = [[names.get(name, name) for group in self.data.groups for name in group]
                  for names in maps]  # fmt: skip
        return columns_of(groups)

    @property
    def declared_levels(self) -> list[str]:
        """Values that any version takes as a term of a group."""
        terms = (
            terms for version in self.every_version for terms in version.choices.terms.values()
        )
        return [value for groups in terms for values in groups.values() for value in values]

    @property
    def columns(self) -> Strings:
        """Columns of the images that any version uses, each once."""
        names: list[str] = []
        for version in self.every_version:
            columns = version.choices.columns
            names += [columns.get(name, name) for group in self.data.groups for name in group]
            names += version.choices.where
        return columns_of([names], self.data.images.unit)

    @model_validator(mode="after")
    def _check_concepts(self) -> Self:
        attributes = columns_of(self.data.groups)
        sections = (self.data.labels, *self.models.values())
        maps = [*dict.fromkeys(name for section in sections for name in section.maps)]
        places = {"choices": self.choices, **{f"versions.{k}": v for k, v in self.versions.items()}}
        for place, choices in places.items():
            for key in ("terms", "columns"):
                among(f"{place}.{key}", getattr(choices, key), attributes)
            among(f"{place}.map", choices.map, maps)
        self._check_versions()
        return self

    def _check_versions(self) -> None:
        names = [version.name for version in self.every_version]
        for first, last in self.steps:
            among("steps", (first, last), names)
            if first == last:
                raise ValueError(f"steps: {first!r} beside itself; expected two versions")
        for version in self.every_version:
            choices = version.choices
            place = f"versions.{version.name}" if version.changes else "choices"
            if choices.prevalence == "hall" and choices.ratio != int(choices.ratio):
                raise ValueError(
                    f"{place}: ratio {choices.ratio} under prevalence 'hall'; expected a whole "
                    "number of negatives to draw for each positive"
                )
            if spec_of(version.metric).harm != spec_of(self.primary).harm:
                raise ValueError(
                    f"{place}: metric {version.metric!r} beside {self.primary!r} in the baseline; "
                    "of false_positive_rate higher is worse, of the others lower, so that "
                    "directions cannot be compared. To do: list it under 'metrics'"
                )
