"""Mappings of the labels of a data set to the classes of a model, many to many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import DataError, InputError
from equipoise.data.files import read_whole, unknown_extension
from equipoise.data.formats.rows import read_rows
from equipoise.data.formats.utf8 import utf8_text
from equipoise.data.image_parts import Step, pairs
from equipoise.data.image_set import ImageSet
from equipoise.data.json_text import RepeatedKeyError, parse_json
from equipoise.data.mapping_yaml import parse_mapping_yaml
from equipoise.data.problems import show

FORMATS = ".csv, .tsv, .json, .yaml or .yml"
_EXAMPLES = 5


@dataclass(frozen=True)
class ClassMapping:
    """Which classes of a model stand for each label of a data set.

    Attributes
    ----------
    name : str
    pairs : frozenset of (str, str)
        Label and class; either may be in several.
    """

    name: str
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, name: str, classes: Mapping[str, str | Sequence[str]]) -> ClassMapping:
        """Return the mapping of a dictionary of label to class or classes."""
        listed = {k: (v,) if isinstance(v, str) else v for k, v in classes.items()}
        return cls(name, frozenset((label, one) for label, ones in listed.items() for one in ones))

    @property
    def by_label(self) -> dict[str, tuple[str, ...]]:
        """Label to its classes, sorted: the `map:` of a model in an audit of concepts."""
        return _grouped(self.pairs)

    @property
    def by_class(self) -> dict[str, tuple[str, ...]]:
        """Class to its labels, sorted: the `map:` of the labels in an audit of concepts."""
        return _grouped({(one, label) for label, one in self.pairs})

    @property
    def description(self) -> str:
        """The mapping in words."""
        said = "; ".join(f"{label}: {', '.join(ones)}" for label, ones in self.by_label.items())
        return f"labels are the classes of the mapping {self.name!r} ({said})"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the set with the classes of each image as its labels.

        An image has a class when any of its labels has it. Labels without a class are counted, and
        so are classes whose labels no image has.

        Raises
        ------
        InputError
            When the set has no labels, or none of them is in the mapping.
        """
        old = images.need_labels()
        classes = self.by_label
        vocabulary = [old.label.vocabulary[code] for code in np.unique(old.label.codes)]
        unmapped = sorted(label for label in vocabulary if label not in classes)
        if len(unmapped) == len(vocabulary):
            raise InputError(
                f"the mapping {self.name!r} has none of the labels of {images.name}, such as "
                f"{', '.join(map(show, unmapped[:_EXAMPLES]))}"
            )
        labels = zip(old.image.tolist(), old.label.values.tolist(), strict=True)
        new = pairs([(image, one) for image, text in labels for one in classes.get(text, ())])
        counts = {
            "labels": len(vocabulary),
            "labels_without_class": len(unmapped),
            "labels_without_class_examples": unmapped[:_EXAMPLES],
            "classes": len(new.label.vocabulary),
            "classes_without_images": len({*self.by_class} - {*new.label.vocabulary}),
            "images_without_class": int(len(images) - len(np.unique(new.image))),
        }
        step = Step(f"classes of {self.name}", self.description, counts)
        return replace(images, labels=new, steps=(*images.steps, step))


def _grouped(
    found: frozenset[tuple[str, str]] | set[tuple[str, str]],
) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, tuple[str, ...]] = {}
    for key, value in sorted(found):
        grouped[key] = (*grouped.get(key, ()), value)
    return grouped


@dataclass(frozen=True)
class MappingDifference:
    """Where two mappings differ.

    Attributes
    ----------
    first, second : str
        Names of the mappings.
    same : tuple of str
        Labels that have the same classes in both.
    only_first, only_second : tuple of str
        Labels that one mapping alone has.
    changed : mapping of str to (tuple of str, tuple of str)
        Label to the classes that the first alone gives it, and those of the second alone.
    """

    first: str
    second: str
    same: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    changed: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @property
    def counts(self) -> dict[str, int]:
        """Labels by what happened to them."""
        return {
            "same": len(self.same),
            "changed": len(self.changed),
            "only_first": len(self.only_first),
            "only_second": len(self.only_second),
        }


def compare_mappings(first: ClassMapping, second: ClassMapping) -> MappingDifference:
    """Return where two mappings differ.

    Parameters
    ----------
    first, second : ClassMapping
    """
    a, b = first.by_label, second.by_label
    changed = {
        label: (
            tuple(one for one in a[label] if one not in b[label]),
            tuple(one for one in b[label] if one not in a[label]),
        )
        for label in a
        if label in b and a[label] != b[label]
    }
    return MappingDifference(
        first.name,
        second.name,
        tuple(label for label in a if a[label] == b.get(label)),
        tuple(label for label in a if label not in b),
        tuple(label for label in b if label not in a),
        changed,
    )


def read_class_mapping(
    path: Path | str, *, name: str | None = None, columns: tuple[str, str] = ("label", "class")
) -> ClassMapping:
    """Read a mapping.

    Parameters
    ----------
    path : path
        A CSV with a row for each pair of label and class; or JSON or YAML with the labels as keys,
        each with a class or a list of classes.
    name : str, optional
        The name of the file, without its ending, unless given.
    columns : (str, str)
        Columns of a CSV: the label and the class.

    Raises
    ------
    DataError
        When the file cannot be read, a label or class is empty or no text, or a label is there
        twice.
    """
    file = Path(path)
    extension = file.suffix.lower()
    if extension in (".csv", ".tsv"):
        found = _from_table(file, columns)
    elif extension in (".json", ".yaml", ".yml"):
        content = read_whole(file, FORMATS, "labels, each with a class or a list of classes")
        parse = _parse_json if extension == ".json" else parse_mapping_yaml
        found = _from_mapping(parse(utf8_text(content, str(path)), str(path)), str(path))
    else:
        raise unknown_extension(file, FORMATS)
    return ClassMapping(name or file.stem, found)


def _from_table(path: Path, columns: tuple[str, str]) -> frozenset[tuple[str, str]]:
    rows = read_rows(path, columns, role="class mapping")
    label, one = (rows.filled(column, "a text in every row") for column in columns)
    stripped = ((a.strip(), b.strip()) for a, b in zip(label, one, strict=True))
    return frozenset(stripped)


def _parse_json(text: str, file: str) -> Any:
    try:
        return parse_json(text)
    except RepeatedKeyError as error:
        raise error.located(file) from None
    except ValueError as error:
        raise DataError(
            f"this is not JSON ({error})",
            file=file,
            expected='an object such as {"phones": ["cellphone", "telephone"]}',
            fix="correct the file",
        ) from None


def _from_mapping(found: Any, file: str) -> frozenset[tuple[str, str]]:
    if not isinstance(found, dict) or not found:
        raise DataError(
            f"the file holds {show(found)}",
            file=file,
            expected="labels, each with a class or a list of classes",
            fix="write one label a line, as in 'phones: [cellphone, telephone]'",
        )
    return frozenset(
        (label.strip(), one.strip())
        for label, classes in found.items()
        for one in _classes(label, classes, file)
    )


def _classes(label: object, classes: object, file: str) -> list[str]:
    listed: Any = [classes] if isinstance(classes, str) else classes
    good = isinstance(listed, list) and bool(listed) and isinstance(label, str) and label.strip()
    if good and all(isinstance(one, str) and one.strip() for one in listed):
        return [*dict.fromkeys(listed)]
    raise DataError(
        f"the classes of {show(label)} are {show(classes)}",
        file=file,
        expected="a text, or a list of texts",
        fix="correct the line, or remove it if the label has no class",
    )
