"""Data that a configuration names: images, texts, the split, and data sets for the price."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.audits.images import ID, open_images
from equipoise.audits.rankings.config import openings
from equipoise.config.fields import located
from equipoise.core import ConfigError, DataError, InputError, Integers, Objects, Progress, record
from equipoise.core.types import FileFacts
from equipoise.counterfactuals import neutral_prompts
from equipoise.data import load_items, read_table
from equipoise.data.problems import match
from equipoise.evidence import ImageError, Pictures, decode, prompts
from equipoise.mitigate.config import Config, ImagesConfig, PairsConfig
from equipoise.mitigate.measuring import RetrievalSet, Test, ZeroShotSet
from equipoise.mitigate.recipe import refuse_occupied
from equipoise.mitigate.sets import (
    ImageSets,
    Split,
    SubjectTexts,
    Training,
    build_training,
    split_subjects,
)
from equipoise.mitigate.trainable import RECORD
from equipoise.models.wrapped import SETTINGS

_AT_ONCE = 256


@record
class Loaded:
    """Data of a configuration.

    Attributes
    ----------
    test : Test
        Images and texts of all subjects, and the data sets for the price.
    split : Split
    training : Training
        Of the subjects that are not withheld.
    inputs, counts : mapping
        For the manifest.
    """

    test: Test
    split: Split
    training: Training
    inputs: Mapping[str, FileFacts]
    counts: Mapping[str, Any]


def load(config: Config, *, base: Path = Path()) -> Loaded:
    """Read the data of a configuration; no model is loaded and no image is opened.

    Raises
    ------
    ConfigError
        When withheld subjects are not in the data.
    DataError
        When a table cannot be used, or a subject has no prompt.
    RunError
        When something lies where a model is to be.
    """
    output = base / config.output
    refuse_occupied(config.report(base))
    for name in config.recipes:
        # A recipe itself tells whether a model that is there is the one it would write.
        if not any((output / name / file).is_file() for file in (RECORD, SETTINGS)):
            refuse_occupied(output / name)
    inputs: dict[str, FileFacts] = {}
    section = config.images
    columns = (section.subject, section.set, section.caption)
    pictures, values = read_images(section, (*columns, *section.attributes), base, "images", inputs)
    name = pictures.pictures.name
    try:
        attributes = dict(zip(section.attributes, values[3:], strict=True))
        images = ImageSets(pictures, values[0], values[1], values[2], attributes)
    except InputError as error:
        raise DataError(str(error), file=name, column=section.set) from error
    for column, cells in attributes.items():
        if len({*cells}) < 2:
            raise DataError(
                f"every image has {cells[0]!r}", file=name, column=column,
                expected="two or more values to compare", fix="name another attribute",
            )  # fmt: skip
    sets = images.by_set()
    if all(len(rows) == 1 for rows in sets.values()):
        raise DataError(
            f"each of {len(images)} sets has one image",
            file=name,
            column=section.set,
            expected="images of one set that differ in their attributes",
        )
    texts = _read_texts(config, images, base, inputs)
    zero_shot = []
    for name, labels in config.zero_shot.items():
        pictures, (label,) = read_images(labels, (labels.label,), base, name, inputs)
        if labels.names is not None:
            class_names = [
                labels.names.get(class_name, class_name) for class_name in label.tolist()
            ]
            label = np.array(class_names, dtype=object)
        class_prompts = prompts(sorted({*label.tolist()}), labels.templates)
        by_class: dict[str, list[str]] = {}
        for text, place in zip(class_prompts.texts, class_prompts.owner, strict=True):
            by_class.setdefault(class_prompts.names[place], []).append(text)
        zero_shot.append(ZeroShotSet(name, pictures, label, by_class))
    retrieval = [read_pairs(name, pairs, base, inputs) for name, pairs in config.retrieval.items()]
    split = _split(config, images)
    counts = {
        "images": len(images),
        "sets": len(sets),
        "subjects": len(images.subjects),
        "withheld": list(split.withheld),
    }
    test = Test(images, texts, tuple(zero_shot), tuple(retrieval))
    training = build_training(
        texts, images, split.training, validation=config.validation, seed=config.seed
    )
    return Loaded(test, split, training, inputs, counts)


def _read_texts(
    config: Config, images: ImageSets, base: Path, inputs: dict[str, FileFacts]
) -> dict[str, SubjectTexts]:
    section, source = config.prompts, located(config.prompts.table, base)
    if source is None:
        generated = neutral_prompts(images.subjects, openings(section.prefixes))
        source = generated.rename_columns([section.prompt, section.subject])
    table = read_table(source, texts=(section.prompt, section.subject), role="prompts")
    inputs[table.name] = table.digest
    neutral: dict[str, dict[str, None]] = {}
    rows = zip(table.texts[section.subject], table.texts[section.prompt], strict=True)
    for number, (subject, prompt) in enumerate(rows, 1):
        if not subject or not prompt:
            raise _missing_cell(table.name, section.prompt if subject else section.subject, number)
        neutral.setdefault(subject, {})[prompt] = None
    if missing := {*images.subjects} - {*neutral}:
        raise DataError(
            f"{len(missing)} subjects of the images have no prompt, such as {min(missing)!r}",
            file=table.name,
            column=section.subject,
            expected="a neutral prompt for each subject",
        )
    # The distinct captions of each subject, with the values of their images.
    captions: dict[str, dict[str, dict[str, str]]] = {name: {} for name in images.subjects}
    for row, caption in enumerate(images.caption.tolist()):
        named = {name: str(column[row]) for name, column in images.attributes.items()}
        captions[images.subject[row]].setdefault(caption, named)
    return {
        name: SubjectTexts(name, tuple(neutral[name]), tuple(values), tuple(values.values()))
        for name, values in captions.items()
    }


def _missing_cell(file: str, column: str, row: int) -> DataError:
    return DataError(
        "a cell is missing", file=file, column=column, row=row, expected="a value in every row",
        fix="fill it in, or take the row out",
    )  # fmt: skip


def read_pairs(
    name: str, config: PairsConfig, base: Path, inputs: dict[str, FileFacts]
) -> RetrievalSet:
    """Read images with captions from a column or a data set.

    Raises
    ------
    ConfigError
        When the configuration doesn't say where the files are.
    DataError
        When the table cannot be read, or a cell is missing.
    """
    captions = None
    if config.format is not None:
        captions = open_images(config.located(), base, place=name).captions
    if not isinstance(captions, pl.DataFrame):
        columns = [column for column in (config.caption, config.neutral_caption) if column]
        pictures, (caption, *neutral) = read_images(config, columns, base, name, inputs)
        return RetrievalSet(name, pictures, caption, neutral=next(iter(neutral), None))
    if config.neutral_caption is not None:
        raise ConfigError(
            f"{name}.neutral_caption: the captions of {config.format} have no second column. "
            "To do: name a table with both columns"
        )
    pictures, _ = read_images(config, (), base, name, inputs)
    rows = match(captions[ID], pl.Series(ID, pictures.pictures.ids, dtype=pl.String))
    return RetrievalSet(name, pictures, captions["caption"].to_numpy(), image=rows)


def _split(config: Config, images: ImageSets) -> Split:
    subjects, withheld = images.subjects, config.withheld
    if isinstance(withheld, float):
        return split_subjects(subjects, withheld=withheld, seed=config.seed)
    if unknown := {*withheld} - {*subjects}:
        raise ConfigError(f"withheld: {min(unknown)!r} isn't a subject of the images")
    return Split(tuple(sorted({*subjects} - {*withheld})), tuple(sorted(withheld)))


@record
class TableImages:
    """Images of a table as a sequence of arrays; each is read on access.

    Attributes
    ----------
    pictures : Pictures
    rows : ndarray of int64, shape (n,)
        Row of each in its table, from 1.
    column : str or None
        Column of the paths.
    """

    pictures: Pictures
    rows: Integers
    column: str | None

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> Any:
        try:
            return decode(self._read(place), crop=self.pictures.crop(place))
        except ImageError as error:
            raise self._image_error(place, f"cannot be decoded: {error.reason}") from error

    def content(self, place: int) -> bytes:
        """Return the bytes of an image's file, and of its crop.

        Raises
        ------
        DataError
            When it cannot be read.
        """
        crop = self.pictures.crop(place)
        return self._read(place) + (b"" if crop is None else crop.tobytes())

    def _read(self, place: int) -> bytes:
        try:
            return self.pictures.read(place)
        except OSError as error:
            raise self._image_error(place, f"cannot be read: {error.strerror or error}") from error

    def _image_error(self, place: int, problem: str) -> DataError:
        return DataError(
            f"the image {self.pictures.where(place)} {problem}",
            file=self.pictures.name,
            column=self.column,
            row=int(self.rows[place]),
            fix="repair it, or take its row out of the table",
        )


def check_images(test: Test, progress: Progress | None = None) -> None:
    """Read and decode every image of some tables once.

    Raises
    ------
    DataError
        When one cannot be read or decoded; names the first row of the first such table.
    """
    sets: tuple[Any, ...] = (test.images, *test.zero_shot, *test.retrieval)
    for table in (data_set.images for data_set in sets):
        for done, place in enumerate(np.argsort(table.rows).tolist()):
            if progress is not None and done % _AT_ONCE == 0:
                progress("checking images", done, len(table))
            table[place]


def read_images(
    config: ImagesConfig,
    columns: Sequence[str],
    base: Path,
    section_name: str,
    inputs: dict[str, FileFacts],
    *,
    optional: Sequence[str] = (),
) -> tuple[TableImages, list[Objects]]:
    """Read images and columns, sorted by id; optional columns may have gaps.

    Raises
    ------
    ConfigError
        When the configuration doesn't say where the files are.
    DataError
        When the table cannot be read, or a cell is missing.
    """
    section = config.located()
    all_columns = (*columns, *optional)
    facts = open_images(section, base, columns=all_columns, place=section_name)
    paths = () if section.table is None else (str(section.path),)
    required_columns = tuple(dict.fromkeys((*paths, *columns)))
    items = load_items(facts.source(base, (*required_columns, *optional)), subject=section_name)
    for name in required_columns:
        # "nan" is how a table of numbers writes nothing.
        missing = [(cell or "").strip().lower() in ("", "nan") for cell in items.columns[name]]
        if any(missing):
            row = int(items.places[missing.index(True)]) + 1
            raise _missing_cell(items.name, name, row)
    if facts.pictures is None:
        raise ConfigError(f"{section_name}.root: required, and missing: the folder of the images")
    order = np.argsort(items.ids.astype(str), kind="stable")
    images = TableImages(facts.pictures, items.places[order] + 1, section.path)
    inputs.update(facts.inputs or items.inputs)
    return images, [items.columns[name][order] for name in all_columns]
