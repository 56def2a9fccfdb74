"""What an audit of associations reads: items, embeddings or scores of pairs, named sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from equipoise.audits.config_arrays import ArrayConfig, located
from equipoise.audits.config_fields import Delimiter, Encoding, Labels, Name, Section, Share, Table
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.audits.running.config import AS_IT_IS, RunConfig, Templates
from equipoise.data import ArraySource


class TableConfig(PicturesConfig):
    """Items, with what they are: a table; of images also a folder, or a data set in its format.

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
    def _images_have_no_text(self) -> TableConfig:
        for key, given in (("text", self.text), ("templates", self.templates != AS_IT_IS)):
            if self.kind == "image" and given:
                raise ValueError(f"{key!r} is about texts, and 'kind' is image")
        return self

    @model_validator(mode="after")
    def _texts_are_a_table(self) -> TableConfig:
        of_images = (self.is_plain, self.path is None, self.root is None, self.crop is None)
        if self.kind == "text" and not all(of_images):
            raise ValueError(
                "texts are a table with 'table' and 'id'; the other keys are of images"
            )
        return self


class PairsConfig(ArrayConfig):
    """Scores that a model gave to pairs of items of two tables.

    Attributes
    ----------
    between : list of str
        Two tables of `data`: rows are items of the first, columns, named by id, of the second.
        Columns of an array without names are in the order of the second table.
    """

    between: Annotated[tuple[Name, Name], Field(strict=False)]


class ModelConfig(RunConfig):
    """One model: how to run it, or what it gave.

    A model that is run embeds the items of every table, or scores the pairs of images and texts.

    Attributes
    ----------
    embeddings : mapping of str to ArrayConfig
        By table of `data`; all of one length, in one space.
    pairs : list of PairsConfig
        Of a model that scores pairs and has no embeddings.
    """

    embeddings: Mapping[Name, ArrayConfig] = Field(default_factory=dict)
    pairs: Annotated[tuple[PairsConfig, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _compares_in_one_way(self) -> ModelConfig:
        self.excludes({"embeddings": self.embeddings, "pairs": self.pairs})
        if self.model is None and bool(self.embeddings) == bool(self.pairs):
            given = "both are" if self.embeddings else "neither is"
            raise ValueError(
                f"'embeddings' or 'pairs': {given} given; expected one of them, for a model "
                "compares in one way; or 'model', to run it"
            )
        seen = [frozenset(one.between) for one in self.pairs]
        for index, between in enumerate(seen):
            if between in seen[:index]:
                raise ValueError(
                    f"pairs[{index}]: scores between {sorted(between)} are given twice"
                )
        return self


class OutsideConfig(Section):
    """A column of numbers from outside: salaries, shares, an index of nations, a hypothesis.

    Attributes
    ----------
    table : path or data frame
        CSV or Parquet.
    subject : str
        Column with the names of targets or regions.
    value : str
        Column of numbers.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    subject: Name
    value: Name
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path) -> ArraySource:
        """Return what to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.table, base),
            id=self.subject,
            columns=(self.value,),
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


def _selection(value: object) -> object:
    """Take ids, or the values wanted by column, in their plain form."""
    if isinstance(value, Mapping) and value:
        return {_text(column): _texts(wanted) for column, wanted in value.items()}
    if isinstance(value, str | int | list | tuple) and value != []:
        return _texts(value)
    raise ValueError("expected ids, or a mapping of columns to the values wanted")


def _texts(value: object) -> tuple[str, ...]:
    given = [*value] if isinstance(value, list | tuple) else [value]
    if not given:
        raise ValueError("expected at least one value")
    found = tuple(_text(one) for one in given)
    if twice := sorted({one for one in found if found.count(one) > 1}):
        raise ValueError(f"{twice[0]!r} appears more than once")
    return found


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(
            f"expected text (in quotes where it looks like true, false or null), not {value!r}"
        )
    return str(value)


def _plain(value: Any) -> Any:
    return {key: [*one] for key, one in value.items()} if isinstance(value, dict) else [*value]


Selection = Annotated[Any, BeforeValidator(_selection), PlainSerializer(_plain)]
"""Items of one table: a tuple of ids, or a dict of columns to the values wanted."""
