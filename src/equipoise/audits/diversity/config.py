"""The configuration of an audit of the diversity of image sets."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from equipoise.audits.config import AuditConfig, group_name
from equipoise.config.fields import (
    ArrayConfig,
    EmbeddingsConfig,
    Group,
    Models,
    Name,
    Section,
    Share,
    Some,
    Switch,
    among,
    columns_of,
)
from equipoise.config.images import PicturesConfig
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.registry import name_of
from equipoise.metrics.vectors.frechet import frechet_distance, inception_score

_REFERENCE = "{} (reference)"


class DataConfig(Section):
    """The images and the sets that they make.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    sets : list of str or list of str
        Attributes whose values make the sets that are compared; a list within the list makes
        them of the intersections.
    within : str, optional
        Attribute, such as the query, for each of whose values the sets are compared by itself.
    min_set_size : int
        Smaller sets are reported with their count, and not measured.
    max_unmatched : float
        Largest share of images without an embedding, and the other way round.
    """

    images: PicturesConfig
    sets: Some[Group]
    within: Name | None = None
    min_set_size: Annotated[int, Field(ge=2)] = 10
    max_unmatched: Share = 0.01

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        return columns_of(self.sets, self.within)

    @model_validator(mode="after")
    def _check_diversity_data(self) -> Self:
        for group in self.sets:
            if self.within in group:
                raise ValueError(f"within: {self.within!r} is one of sets {group_name(group)}")
        return self


class ReferenceConfig(Section):
    """A reference data set for the sets.

    Attributes
    ----------
    images : PicturesConfig
    models : mapping of str to ArrayConfig
        Embeddings by the same models; of those that are run none is needed.
    """

    images: PicturesConfig
    models: Mapping[Name, ArrayConfig] = {}


class ModelConfig(EmbeddingsConfig):
    """A model's embeddings of the images, or how to run it, and its probabilities.

    Attributes
    ----------
    probabilities : ArrayConfig, optional
        Probabilities of the images by class, of a model that isn't run.
    """

    probabilities: ArrayConfig | None = None


class IntraOptions(Section):
    """Options of ISS intra.

    Attributes
    ----------
    include_self : bool
        Count the zero distances of images to themselves, as the source does.
    """

    include_self: bool = False


class MetricsConfig(MetricSwitches):
    """Options per metric; `false` switches one off.

    The distance from references by the unscaled embeddings, and the inception score where a model
    has probabilities, are of all images and of each set.
    """

    kind = "diversity"
    functions = (frechet_distance, inception_score)

    iss_intra: Switch[IntraOptions] = IntraOptions()

    @property
    def quality(self) -> bool:
        """Whether the quality of images is measured."""
        return self.has(frechet_distance) or self.has(inception_score)


class VectorsConfig(Section):
    """Changes to the embeddings before all measurements.

    Attributes
    ----------
    components : int, optional
        Principal components of all images to project on.
    image_pca : int, optional
        Rows that each image's vector is cut into; the principal components of these rows take its
        place.
    """

    components: PositiveInt | None = None
    image_pca: Annotated[int, Field(ge=2)] | None = None


class Config(AuditConfig):
    """The configuration of an audit of diversity; see docs/audits/diversity.md for every key."""

    audit: Literal["diversity"]
    data: DataConfig
    models: Models[ModelConfig]
    references: Mapping[Name, ReferenceConfig] = {}
    metrics: MetricsConfig = MetricsConfig()
    vectors: VectorsConfig = VectorsConfig()

    @model_validator(mode="after")
    def _check_diversity(self) -> Self:
        if "images" in self.references:
            raise ValueError("references.images: the audited images are called so; rename it")
        run = [name for name, model in self.models.items() if model.model is not None]
        for name, reference in self.references.items():
            among(f"references.{name}.models", reference.models, self.models)
            if not reference.models and not run:
                raise ValueError(
                    f"references.{name}.models: required, and missing: the embeddings by the "
                    f"models {', '.join(self.models)}"
                )
        for name, model in self.models.items():
            key = f"models.{name}.probabilities"
            if model.probabilities is not None and not self.metrics.has(inception_score):
                metric = name_of(inception_score)
                raise ValueError(f"{key}: given, and metrics.{metric} is off; set it to true")
            if model.probabilities is not None and model.model is not None:
                raise ValueError(f"{key}: given, and the model is run; leave one of them out")
        return self

    @property
    def group_columns(self) -> Sequence[str]:
        """Columns whose values make sets."""
        return columns_of(self.data.sets)

    @property
    def group_names(self) -> Sequence[str]:
        """Names of the choices of sets."""
        return [group_name(group) for group in self.data.sets]


def reference_name(name: str) -> str:
    """Return how the report calls a reference data set among the sets."""
    return _REFERENCE.format(name)
