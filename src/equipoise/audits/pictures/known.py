"""From the section `images` of an audit to a table of items, labels, and where the pictures are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from equipoise.audits.config_problems import nearest
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.core.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from equipoise.audits.pictures.places import Located
    from equipoise.data import ImageSet, ItemSource
    from equipoise.evidence import Pictures

ID = "image_id"
"""Column of the ids of a set; its labels have it, too."""

P = TypeVar("P", bound=PicturesConfig)


@dataclass(frozen=True, eq=False)
class Known(Generic[P]):
    """What is known of the images of an audit.

    Attributes
    ----------
    items : PicturesConfig or a section made from it
        What a kind of audit reads: the section as given where it is a table without rules;
        otherwise the same section with a `NamedFrame` as its table.
    name : str
        What errors call the images, and their labels: the files, and the section that names them;
        empty for a table without rules.
    labels : polars.DataFrame or None
        One row per image and label, with the columns `image_id` and `label`.
    inputs : mapping
        Per file of annotations: "sha256", "bytes", "rows"; none for a table without rules, which
        the kind reads itself.
    counts : mapping
        "format", "images", "read", and "steps": what each rule did to how many.
    steps : tuple of str
        The rules and what they left out, in words.
    located : Located or None
        Where the files are, as far as the configuration says.
    """

    items: P
    name: str = ""
    labels: pl.DataFrame | None = field(default=None, repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    located: Located | None = field(default=None, repr=False)

    @cached_property
    def pictures(self) -> Pictures | None:
        """Where the pixels are; None where the configuration does not say it.

        Raises
        ------
        DataError
            When there is no such folder, or a column has no path.
        """
        return None if self.located is None else self.located.pictures()

    def source(self, base: Path, columns: Sequence[str] = ()) -> ItemSource:
        """Return the table of the images, with paths relative to `base`."""
        return self.items.source(base, tuple(columns))

    def need_pictures(self, model: str, *, place: str = "data.images") -> Pictures:
        """Return where the pixels are that a model runs on.

        Raises
        ------
        ConfigError
            When the config does not say where the files are.
        """
        return need_pictures(self, place=place, why=f"models.{model}.model")


def known(
    pictures: P, base: Path, *, columns: Sequence[str] = (), place: str = "data.images"
) -> Known[P]:
    """Read what is known of some images, and apply the rules.

    Parameters
    ----------
    pictures : PicturesConfig
    base : Path
        What relative paths are relative to.
    columns : sequence of str
        Columns that the audit needs; those that neither the data nor a rule has are an error.
    place : str
        The section's place in the configuration, for errors.

    Raises
    ------
    ConfigError
        When a rule does not fit the data, or there is no such column; it names the place.
    DataError
        When a file cannot be read; it names the file, column and row.
    """
    from equipoise.audits.pictures.places import located_of_set, located_of_table

    if pictures.is_plain:
        return Known(pictures, located=located_of_table(pictures, base))
    from equipoise.audits.pictures.reading import read_images
    from equipoise.audits.pictures.words import steps_in_words
    from equipoise.data.tables import NamedFrame

    read = read_images(pictures, base, tuple(columns), place)
    shown = read.images
    _check_columns(shown, columns, place)
    name = pictures.id if pictures.table is not None and pictures.id else ID
    frame = shown.image_table().rename({ID: name})
    called = f"{shown.name} ({place}{' under its rules' if pictures.rules else ''})"
    counts = {
        "format": shown.format,
        "images": len(shown),
        "read": dict(shown.counts),
        "steps": [
            {"name": s.name, "description": s.description, "counts": dict(s.counts)}
            for s in shown.steps
        ],
    }
    return Known(
        items=pictures.tabled(NamedFrame(frame, called), name),
        name=called,
        labels=None if shown.labels is None else shown.label_table(),
        inputs=read.inputs,
        counts=counts,
        steps=steps_in_words(shown.steps),
        located=located_of_set(pictures, shown, read.keys, base),
    )


def _check_columns(images: ImageSet, columns: Sequence[str], place: str) -> None:
    if ID in images.columns:
        raise ConfigError(
            f"{place}: {images.name} has a column {ID!r}, which names the images of a set. To do: "
            "rename the column, or name it as 'id'"
        )
    for name in columns:
        if name not in images.columns:
            have = [*images.columns]
            raise ConfigError(
                f"{place}: {images.name} has no column {name!r}, and no rule makes one. There are: "
                f"{', '.join(have) or 'none'}{nearest(name, have)}. To do: name one of these, or "
                f"add to {place} what makes it: a rule, or of a folder a level"
            )


def need_pictures(found: Known[Any], *, place: str = "data.images", why: str) -> Pictures:
    """Return where the pixels are.

    Parameters
    ----------
    why : str
        The key that needs them, such as "models.clip.model".

    Raises
    ------
    ConfigError
        When the configuration does not say where the files are.
    """
    pictures = found.pictures
    if pictures is None:
        raise ConfigError(
            f"{place}: {why} runs on the pictures, and nothing says where they are. To do: name "
            "the folder of the files under 'root', or for a table the column of files under 'path'"
        )
    return pictures


def labels_of(found: Known[Any], *, place: str = "data.labels") -> pl.DataFrame:
    """Return the labels of a data set, one row per image and label.

    Raises
    ------
    ConfigError
        When the data set has none.
    """
    if found.labels is None:
        raise ConfigError(
            f"{place}: required, and missing: {found.counts.get('format', 'a table')} has no labels"
        )
    return found.labels
