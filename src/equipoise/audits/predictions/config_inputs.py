"""The sections `data` and `models`: which tables to read and what their cells mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from equipoise.audits.config_arrays import located
from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    Group,
    Label,
    Labels,
    Name,
    Section,
    Share,
    Table,
    distinct,
    one_state_each,
)
from equipoise.audits.config_normalize import NormalizeConfig
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.audits.predictions.config_vocabulary import Vocabulary
from equipoise.audits.running.config import RunConfig, Templates
from equipoise.data import LabelSource
from equipoise.data.sources import Offered

# Keys of the table of labels that `images` has itself.
_OF_TABLE = ("table", "id", "missing", "encoding", "delimiter")
# Keys that are about a table of predictions, and about a model to run.
_OF_PREDICTIONS = ("table", "prediction", "top", "probabilities", "rank", "id", "encoding")
_OF_MODEL = ("vocabulary", "templates", "k", "question")

Mapped = Annotated[Mapping[Label, Label], Field(min_length=1)]


def given_keys(section: Section, keys: Iterable[str]) -> dict[str, bool]:
    """Say of each key whether it has another value than its default."""
    every = type(section).model_fields
    values = {key: getattr(section, key) for key in keys}
    # A data frame compares cell by cell.
    return {
        key: value is not None and (key == "table" or value != every[key].get_default())
        for key, value in values.items()
    }


class ImagesConfig(Section):
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
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    unit : str, optional
        Column of the unit that repeats (person, scene); resampled as a whole.
    map : mapping, optional
        True class in the table to class.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of rows without a partner in the other table.
    """

    table: Table | None = None
    id: Name | None = None
    images: PicturesConfig | None = None
    groups: Annotated[
        tuple[Group, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ]
    unit: Name | None = None
    map: Mapped | None = None
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    min_group_size: Annotated[int, Field(ge=1)] = 30
    max_unmatched: Share = 0.01
    # The section that `table` was made of; no key itself.
    _read_from: PicturesConfig | None = PrivateAttr(default=None)

    @property
    def truth(self) -> str | None:
        """The column of the true class, where there is one."""
        return None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every column that a group is made of, each once."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the images, each once."""
        named = (self.truth, *self.attributes, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def has_missing(self) -> bool:
        """Whether `missing` goes with the images, also once they were read and made a table."""
        images = self.images or self._read_from
        return images is None or images.has_missing

    def tabled(self, images: PicturesConfig) -> Self:
        """Return the section with the table of the images, as these are known, in their place."""
        made = self.model_copy(
            update={"images": None, **{key: getattr(images, key) for key in _OF_TABLE}}
        )
        made._read_from = images
        return made

    def labels(self, base: Path) -> LabelSource:
        """Return what to read, with paths relative to `base`."""
        return LabelSource(
            table=located(self.table, base),
            id=str(self.id),
            target=self.truth,
            attributes=self.attributes,
            unit=self.unit,
            map=self.map,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.images is None:
            if self.table is None or self.id is None:
                lacks = "table" if self.table is None else "id"
                raise ValueError(f"{lacks!r} is missing. To do: give 'table' and 'id', or 'images'")
            return self
        own = [key for key, given in given_keys(self, _OF_TABLE).items() if given]
        if own:
            raise ValueError(
                f"'images' and {own[0]!r} are given; expected {own[0]!r} within 'images'"
            )
        return self


class DataConfig(ImagesConfig):
    """The images with their true classes and groups.

    Attributes
    ----------
    target : str
        Column of the true class.
    """

    target: Name

    @property
    def truth(self) -> str:
        """The column of the true class."""
        return self.target


class TabledConfig(RunConfig):
    """A model whose outputs stand in a table, also those of one that was run."""

    # By question, ids of images that failed; no key, since only a run can tell.
    _failed: Mapping[str, frozenset[str]] = PrivateAttr(default_factory=dict)
    _offered: Offered | None = PrivateAttr(default=None)

    def failed(self, question: str = "") -> frozenset[str]:
        """Return the ids of the images of which the model, when it was run, said nothing."""
        return self._failed.get(question, frozenset())

    @property
    def offered(self) -> Offered | None:
        """What the model may predict, where it is yet to run and that is known."""
        return self._offered

    def tabled(
        self,
        failed: Mapping[str, frozenset[str]],
        offered: Offered | None = None,
        **read: object,
    ) -> Self:
        """Return the section of a table in place of the model."""
        made = self.model_copy(update={"model": None, **read})
        made._failed, made._offered = failed, offered
        return made


class ModelConfig(TabledConfig):
    """One model: a table of its predictions, or how to run it.

    Attributes
    ----------
    table : path or data frame
        One row per image, or with `rank` one row per image and rank.
    prediction, top, probabilities
        One of: the column of the predicted class; the columns of rank 1, 2, ...; class to the
        column of its probability. Probabilities may stand beside `prediction`.
    rank : str, optional
        Column of the rank, from 1, where each image has several rows.
    id : str, optional
        Column that names the image; `data.id` unless given.
    vocabulary : list or mapping
        Of a model to run that has no classes of its own: what it chooses between.
    templates : str or list of str
        What the words of the vocabulary are put into.
    k : int
        Ranks that are kept of a model to run.
    question : str, optional
        What a model to run is asked about each image.
    map, maps : mapping, optional
        Predicted label to class; or several such mappings by name, measured side by side.
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

    table: Table | None = None
    prediction: Name | None = None
    top: Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(distinct)] = ()
    probabilities: Annotated[Mapping[Label, Name], Field(min_length=2)] | None = None
    rank: Name | None = None
    id: Name | None = None
    vocabulary: Vocabulary | None = None
    templates: Templates = "plain"
    k: Annotated[int, Field(ge=1)] = 5
    question: Name | None = None
    map: Mapped | None = None
    maps: Annotated[Mapping[Name, Mapping[Label, Label]], Field(min_length=1)] | None = None
    missing: Labels = ("",)
    unknown: Labels = ()
    refused: Labels = ()
    open_vocabulary: bool = False
    normalize: NormalizeConfig | None = None
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _one_source(self) -> ModelConfig:
        self.excludes(given_keys(self, _OF_PREDICTIONS))
        self.needs_model(_OF_MODEL)
        if self.model is None and self.table is None:
            raise ValueError(
                "'table' is missing. To do: name the table of its predictions, or under 'model' "
                "what to run"
            )
        if self.question is not None and self.vocabulary is not None:
            raise ValueError(
                "'question' and 'vocabulary' are both given; expected a question for a model that "
                "answers, or a vocabulary for one that compares images and texts"
            )
        return self

    @model_validator(mode="after")
    def _one_reading(self) -> ModelConfig:
        if self.model is None and not (self.prediction or self.top or self.probabilities):
            raise ValueError(
                "no prediction. To do: name its column under 'prediction', the columns of rank "
                "1, 2, ... under 'top', or class to column under 'probabilities'"
            )
        if self.prediction and self.top:
            raise ValueError("'prediction' and 'top' are both given; expected one of them")
        if self.rank and (not self.prediction or self.probabilities):
            raise ValueError("'rank' goes with 'prediction' alone: one row per image and rank")
        if self.map and self.maps:
            raise ValueError("'map' and 'maps' are both given; expected one of them")
        return self

    @model_validator(mode="after")
    def _one_state(self) -> ModelConfig:
        one_state_each(self.missing, self.unknown, self.refused)
        return self
