"""The configuration of an audit of a data set."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from equipoise.audits.config import AssociationOptions, AuditConfig, FrequentOptions
from equipoise.config.fields import (
    CsvConfig,
    EmbeddingsConfig,
    Group,
    Label,
    Name,
    Names,
    Section,
    Share,
    Some,
    Switch,
    Table,
    Text,
    among,
    columns_of,
    given_keys,
    levels_of,
    only_one,
)
from equipoise.config.images import PicturesConfig
from equipoise.config.switches import MetricSwitches
from equipoise.core import MIN_SIZE
from equipoise.metrics.labels.reference import ReferenceKind
from equipoise.metrics.vectors.diversity import iss_difference


class DataConfig(Section):
    """The images, their groups and their labels.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    labels : list of str
        Columns of labels. The labels of a data set in its own format are compared without them.
    unit : str, optional
        Column of the unit that repeats, such as a person; counted as one.
    min_group_size : int
        Smaller groups have shares, and are left out of comparisons of labels.
    max_unmatched : float
        Largest share of images without an embedding, and the other way round.
    """

    images: PicturesConfig
    groups: Some[Group]
    labels: Names = ()
    unit: Name | None = None
    min_group_size: PositiveInt = MIN_SIZE
    max_unmatched: Share = 0.01

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        return columns_of(self.groups, *self.plain_labels, self.unit)

    @property
    def plain_labels(self) -> tuple[str, ...]:
        """Columns of labels with one value a cell."""
        return tuple(name for name in self.labels if name not in self.images.split_columns)


class ReferenceConfig(CsvConfig):
    """The reference population: one of `shares`, `table` and `images`.

    Attributes
    ----------
    shares : mapping of str to mapping of str to float
        By attribute, or attributes joined by " × ": share or count of each group.
    table : path or data frame
        One row per group, or combination of groups, with the columns of the attributes.
    count : str
        Its column of shares or counts.
    kind : "census" or "sample", optional
        Whether the numbers are exact, or counts of a sample. Without it, shares, percentages and
        ratios below 10 are exact, and other whole numbers are counts of a sample.
    images : PicturesConfig
        Another data set with the same columns, which is a sample.
    """

    shares: Mapping[Name, Mapping[Label, NonNegativeFloat]] | None = None
    table: Table | None = None
    count: Name | None = None
    kind: ReferenceKind | None = None
    images: PicturesConfig | None = None

    @model_validator(mode="after")
    def _check_dataset_reference(self) -> Self:
        if (only_one(self, "shares", "table", "images") == "table") != bool(self.count):
            raise ValueError("'count' goes with 'table': the column of shares or counts of groups")
        if self.images and self.kind:
            raise ValueError("'kind' goes with 'shares' and 'table': images are a sample")
        return self


class DefectOptions(Section):
    """Which images count as defective.

    Attributes
    ----------
    pixels : int
        Images of fewer pixels are small. The default is what most classifiers see.
    ratio : float
        Images whose longer side is more than so many times the shorter are elongated: a crop of
        the middle loses more than half of them.
    """

    pixels: PositiveInt = 224 * 224
    ratio: Annotated[float, Field(ge=1, strict=False)] = 2.0


class MetricsConfig(MetricSwitches):
    """Options per metric; `false` switches one off."""

    kind = "dataset"
    functions = (iss_difference,)

    label_gap: Switch[FrequentOptions] = FrequentOptions()
    cramers_v: Switch[AssociationOptions] = AssociationOptions()
    image_defect_rate: Switch[DefectOptions] = DefectOptions()


class Config(AuditConfig):
    """The configuration of an audit of a data set; see docs/audits/dataset.md for every key."""

    audit: Literal["dataset"]
    data: DataConfig
    reference: ReferenceConfig | None = None
    models: Mapping[Text, EmbeddingsConfig] = {}
    metrics: MetricsConfig = MetricsConfig()

    @property
    def group_columns(self) -> Sequence[str]:
        """Columns whose values are groups, and no labels."""
        return [name for name in columns_of(self.data.groups) if name not in self.data.labels]

    @property
    def declared_levels(self) -> Sequence[str]:
        """Groups that the reference names."""
        shares = self.reference.shares if self.reference else None
        return levels_of(chain.from_iterable((shares or {}).values()))

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names that findings give as model: of the data set, and of embeddings."""
        return (DATA_SET, *self.models)

    @model_validator(mode="after")
    def _check_dataset(self) -> Self:
        if DATA_SET in self.models:
            raise ValueError(f"models: {DATA_SET!r} is the name of the data in findings; rename it")
        if self.reference and given_keys(self.reference, ("shares",)):
            among("reference.shares", self.reference.shares, self.group_names)
        return self


DATA_SET = "the data set"
"""The model of findings about the data alone."""
