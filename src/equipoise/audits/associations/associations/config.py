"""The configuration of an audit of associations."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from equipoise.audits.associations.config import MeasureConfig, Modality
from equipoise.audits.config import AuditConfig
from equipoise.config.fields import (
    AS_IT_IS,
    ArrayConfig,
    Label,
    Listed,
    Models,
    Name,
    OneOrMore,
    RunConfig,
    Share,
    Templates,
    among,
)
from equipoise.config.images import PicturesConfig


class TableConfig(PicturesConfig):
    """Items of one kind: a table, or for images also a folder or a data set.

    Attributes
    ----------
    kind : str
        `image` or `text`: what the items, and so their embeddings, are of.
    unit : str, optional
        Column of the unit that items repeat within, such as a person or a prompt.
    max_unmatched : float
        Largest share of items without an embedding, and of embeddings without an item.
    text : str, optional
        Of texts that a model is to embed: the column of the text; the id unless given.
    templates : str or list of str, optional
        Of texts that a model is to embed: a list of templates by name, or templates such as "a
        photo of a {}."; the unit vectors of a text in all of them are averaged.
    """

    kind: Literal["image", "text"]
    unit: Name | None = None
    max_unmatched: Share = 0.01
    text: Name | None = None
    templates: Templates = AS_IT_IS

    @model_validator(mode="after")
    def _check_associations_table(self) -> Self:
        texts = self.text is not None or self.templates != AS_IT_IS
        images = not self.is_plain or any((self.path, self.root, self.crop))
        if texts if self.kind == "image" else images:
            raise ValueError(
                "'text' and 'templates' are about texts, which are a table with 'table' and 'id'; "
                "the other keys are about images"
            )
        return self


class PairsConfig(ArrayConfig):
    """Scores that a model gave to pairs of items of two tables.

    Attributes
    ----------
    between : list of str
        Two tables of `data`: rows are items of the first, columns, named by id, of the second.
    """

    between: Annotated[tuple[Name, Name], Field(strict=False)]


class ModelConfig(RunConfig):
    """One model: how to run it, or its outputs.

    A live model embeds the items of every table, or scores the pairs of images and texts.

    Attributes
    ----------
    embeddings : mapping of str to ArrayConfig
        By table of `data`; all of one length, in one space.
    pairs : list of PairsConfig
        Of a model that scores pairs and has no embeddings.
    """

    of_files = ("embeddings", "pairs")
    embeddings: Mapping[Name, ArrayConfig] = {}
    pairs: Listed[PairsConfig] = ()

    @model_validator(mode="after")
    def _check_associations_model(self) -> Self:
        if self.model is None and bool(self.embeddings) == bool(self.pairs):
            raise ValueError("expected 'embeddings', 'pairs', or 'model' to run it")
        return self


Members = OneOrMore[Label]
Selection = Annotated[Mapping[Name, Members], Field(min_length=1)] | Members
"""Items of one table: ids, or columns with the values wanted."""


class Config(AuditConfig):
    """The configuration of an audit of associations; see docs/audits/associations.md.

    Attributes
    ----------
    data : mapping of str to TableConfig
        Tables of items, by name.
    models : mapping of str to ModelConfig
    sets : mapping of str to mapping of str to Selection
        Named sets: by table of items, ids or the values wanted by column.
    measure : list of MeasureConfig
    """

    audit: Literal["associations"]
    data: Annotated[Mapping[Name, TableConfig], Field(min_length=1)]
    models: Models[ModelConfig]
    sets: Annotated[
        Mapping[Name, Annotated[Mapping[Name, Selection], Field(min_length=1)]],
        Field(min_length=1),
    ]
    measure: Annotated[Listed[MeasureConfig], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_associations(self) -> Self:
        for model, section in self.models.items():
            among(f"models.{model}.embeddings", section.embeddings, self.data)
            for index, pairs in enumerate(section.pairs):
                among(f"models.{model}.pairs[{index}].between", pairs.between, self.data)
        for name, members in self.sets.items():
            among(f"sets.{name}", members, self.data)
        self._check_measures()
        return self

    def _check_measures(self) -> None:
        images = [name for name, table in self.data.items() if table.kind == "image"]
        first_index = dict[tuple[object, ...], int]()
        for index, options in enumerate(self.measure):
            among(f"measure[{index}].images", options.images, images)
            for role, names in options.set_names.items():
                among(f"measure[{index}].{role}", names, self.sets)
            for key in _finding_keys(options):
                if (before := first_index.setdefault(key, index)) != index:
                    raise ValueError(
                        f"measure[{index}] repeats measure[{before}]; leave it out, or "
                        "give it another 'version'"
                    )

    @property
    def group_names(self) -> list[str]:
        """Names of the sets or groups that are compared, for the gate."""
        return list(dict.fromkeys(options.group_text for options in self.measure))

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table that units, sets and measurements need, each once."""
        columns = [self.data[table].unit]
        for members in self.sets.values():
            values = members.get(table)
            if isinstance(values, Mapping):
                columns += values
        return list(dict.fromkeys(filter(None, (*columns, *self.grouping_columns(table)))))

    def grouping_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table whose values are groups or regions."""
        measured = [options for options in self.measure if options.images == table]
        columns = [column for o in measured for column in (o.groups, o.regions)]
        return tuple(dict.fromkeys(filter(None, columns)))

    def named_levels(self, table: str) -> tuple[str, ...]:
        """Return values of a table's columns that the configuration names."""
        levels = [options.first for options in self.measure if options.images == table]
        for members in self.sets.values():
            selection = members.get(table)
            if isinstance(selection, Mapping):
                levels += [value for values in selection.values() for value in values]
        return tuple(dict.fromkeys(filter(None, levels)))


def _finding_keys(options: MeasureConfig) -> Iterator[tuple[object, ...]]:
    """Yield the key of each finding of a measurement."""
    subjects: tuple[object, ...] = options.target_names or (options.attributes,)
    if options.spec.targets == "two":
        subjects = (options.target_names,)
    elif "of" in options.spec.takes and options.figures is not None:
        subjects = ((options.of, options.figures.value),)
    for modality, subject in product(options.modalities or get_args(Modality), subjects):
        yield options.metric, options.group_text, options.version, modality, subject
