"""What a configuration of recipes names: images, texts, the split, and data for the price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.data import read_table
from equipoise.evidence import prompts
from equipoise.mitigate.config import Config, SetsConfig
from equipoise.mitigate.measuring import RetrievalSet, Test, ZeroShotSet
from equipoise.mitigate.pictures import Decoded, listed
from equipoise.mitigate.recipe import refuse_occupied
from equipoise.mitigate.record import RECORD
from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts
from equipoise.mitigate.split import Split, split_subjects
from equipoise.models.wrapped import SETTINGS

REPORT = "report"


@dataclass(frozen=True, eq=False)
class Loaded:
    """Everything that a configuration names but the models.

    Attributes
    ----------
    images : ImageSets
    texts : mapping of str to SubjectTexts
    split : Split
    pairs : Pairs or None
    test : Test
        All data sets that the price is measured on; `images` of all subjects.
    tables : tuple of Decoded
        The images of every table, for `check_images`.
    inputs, counts : mapping
        For the manifest.
    """

    images: ImageSets
    texts: Mapping[str, SubjectTexts]
    split: Split
    pairs: Pairs | None
    test: Test
    tables: tuple[Decoded, ...] = ()
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def load(config: Config, *, base: Path = Path()) -> Loaded:
    """Read what a configuration names; no model is loaded and no image is opened.

    Raises
    ------
    ConfigError
        When withheld subjects are not in the data, or something lies where a model is to be.
    DataError
        When a table cannot be used, or a subject has no prompt.
    """
    refuse_occupied(base / config.output / REPORT)
    for name in config.recipes:
        # Of a model that a recipe wrote the recipe says whether it is the one it would write.
        folder = base / config.output / name
        if not any((folder / one).is_file() for one in (RECORD, SETTINGS)):
            refuse_occupied(folder)
    inputs: dict[str, Mapping[str, Any]] = {}
    images = _sets(config.images, base, inputs)
    texts = _texts(config, images, base, inputs)
    zero_shot = tuple(_zero_shot(name, config, base, inputs) for name in config.zero_shot)
    retrieval = []
    for name, one in config.retrieval.items():
        table = listed(one, [one.caption], base, what=name)
        inputs |= table.items.inputs
        places = np.arange(len(table.images), dtype=np.int64)
        retrieval.append(RetrievalSet(name, table.images, table.columns[one.caption], places))
    pairs = None
    if config.pairs is not None:
        table = listed(config.pairs, [config.pairs.caption], base, what="pairs")
        inputs |= table.items.inputs
        pairs = Pairs(table.images, table.columns[config.pairs.caption])
    split = _split(config, images)
    counts = {
        "images": len(images),
        "sets": len({*images.set.tolist()}),
        "subjects": len(images.subjects),
        "withheld": list(split.withheld),
        "pairs": 0 if pairs is None else len(pairs),
    }
    test = Test(images, texts, zero_shot, tuple(retrieval))
    shown = (images, *zero_shot, *retrieval, *(() if pairs is None else (pairs,)))
    tables = tuple(one.images for one in shown)
    return Loaded(images, texts, split, pairs, test, tables, inputs, counts)


def _sets(config: SetsConfig, base: Path, inputs: dict[str, Any]) -> ImageSets:
    columns = (config.subject, config.set, config.caption, *config.attributes)
    table = listed(config, columns, base, what="images")
    inputs |= table.items.inputs
    try:
        images = ImageSets(
            table.images,
            table.columns[config.subject],
            table.columns[config.set],
            table.columns[config.caption],
            {name: table.columns[name] for name in config.attributes},
        )
    except InputError as error:
        raise DataError(str(error), file=table.items.name, column=config.set) from error
    if all(len(rows) == 1 for rows in images.by_set().values()):
        raise DataError(
            f"each of {len(images)} sets has one image, so that nothing can be compared in a set",
            file=table.items.name,
            column=config.set,
            expected="images of one set that differ in their attributes",
            fix="give the counterfactuals of one another the same value",
        )
    return images


def _texts(
    config: Config, images: ImageSets, base: Path, inputs: dict[str, Any]
) -> dict[str, SubjectTexts]:
    about = config.prompts
    source = base / about.table if isinstance(about.table, Path) else about.table
    table = read_table(source, texts=(about.prompt, about.subject), role="prompts")
    inputs[table.name] = table.digest
    neutral: dict[str, dict[str, None]] = {}
    rows = zip(table.texts[about.subject], table.texts[about.prompt], strict=True)
    for number, (subject, prompt) in enumerate(rows, 1):
        if not subject or not prompt:
            raise DataError("a cell is missing", file=table.name, row=number)
        neutral.setdefault(subject, {})[prompt] = None
    without = [subject for subject in images.subjects if subject not in neutral]
    if without:
        raise DataError(
            f"{len(without)} subjects of the images have no prompt, such as {without[0]!r}",
            file=table.name,
            column=about.subject,
            expected="a neutral prompt for each subject",
        )
    return {subject: _said(subject, images, tuple(neutral[subject])) for subject in images.subjects}


def _said(subject: str, images: ImageSets, neutral: tuple[str, ...]) -> SubjectTexts:
    """Gather the distinct captions of a subject, with the values that their images have."""
    values: dict[str, dict[str, str]] = {}
    for row in np.flatnonzero(images.subject == subject).tolist():
        named = {name: str(column[row]) for name, column in images.attributes.items()}
        values.setdefault(str(images.caption[row]), named)
    return SubjectTexts(subject, neutral, tuple(values), tuple(values.values()))


def _zero_shot(name: str, config: Config, base: Path, inputs: dict[str, Any]) -> ZeroShotSet:
    one = config.zero_shot[name]
    table = listed(one, [one.label], base, what=name)
    inputs |= table.items.inputs
    labels = table.columns[one.label]
    made = prompts(sorted({*labels.tolist()}), one.templates)
    by_class = {
        label: tuple(made.texts[row] for row in np.flatnonzero(made.owner == place))
        for place, label in enumerate(made.names)
    }
    return ZeroShotSet(name, table.images, labels, by_class)


def _split(config: Config, images: ImageSets) -> Split:
    if isinstance(config.withheld, float):
        return split_subjects(images.subjects, withheld=config.withheld, seed=config.seed)
    unknown = [name for name in config.withheld if name not in images.subjects]
    if unknown:
        raise ConfigError(
            f"withheld: {unknown[0]!r} is no subject of the images. There are "
            f"{', '.join(map(repr, images.subjects[:10]))}"
            f"{' …' if len(images.subjects) > 10 else ''}"
        )
    withheld = tuple(sorted(config.withheld))
    return Split(tuple(name for name in images.subjects if name not in withheld), withheld)
