"""Read a table, a folder or a data set in its own format, and apply the declared rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.audits.config_arrays import located
from equipoise.audits.pictures.config_rules import CollapseRowsRule, RuleSection
from equipoise.audits.pictures.folder import read_folder
from equipoise.audits.pictures.places import format_of, keys_of
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import (
    ClassMapping,
    ImageSet,
    Rule,
    read_plain,
)
from equipoise.data.files import hash_file

if TYPE_CHECKING:
    from equipoise.audits.pictures.config import PicturesConfig

Inputs = Mapping[str, Mapping[str, Any]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ReadImages:
    """Images under every rule.

    Attributes
    ----------
    images : ImageSet
    keys : mapping of str to str or None
        What names the file of each image that was read, by the id that it was read with.
    inputs : mapping
        Every file that was read: of the images, and of the rules.
    """

    images: ImageSet
    keys: Mapping[str, str | None]
    inputs: Inputs


def read_images(
    given: PicturesConfig, base: Path, columns: tuple[str, ...], place: str
) -> ReadImages:
    """Return the images under every rule, and what names their files.

    Raises
    ------
    ConfigError
        When a rule does not fit the data; it names the rule's place.
    DataError
        When a file cannot be read.
    """
    rules = {
        index: rule.made(base)
        for index, rule in enumerate(given.rules)
        if isinstance(rule, RuleSection)
    }
    images = _read(given, base, columns, [*rules.values()])
    keys = _named(partial(keys_of, given, images), f"{place}.path", "name the column of files")
    for index, rule in rules.items():
        name = given.rules[index].rule
        told = f"{place}.rules[{index}] ({name})"
        images = _named(partial(rule, images), told, "correct this rule, or leave it out")
    if given.crop is not None and given.crop.labels:
        told = f"{place}.crop"
        images = _named(partial(given.crop.boxes, images), told, "correct it, or leave it out")
    inputs = {**images.inputs, **_rule_files(given, rules, base)}
    return ReadImages(images, keys, inputs)


def _named(step: Callable[[], T], place: str, fix: str) -> T:
    """Return what a step returns; what does not fit is named by its place, with what to do."""
    try:
        return step()
    except InputError as error:
        raise ConfigError(f"{place}: {error}. To do: {fix}") from None


def _rule_files(given: PicturesConfig, rules: Mapping[int, Rule], base: Path) -> Inputs:
    """Return what the rules read: "rows" is the number of ids, or of labels and classes."""
    found = {}
    for index, rule in rules.items():
        named = getattr(given.rules[index], "file", None)
        if named is not None:
            path = base / named
            members = rule.pairs if isinstance(rule, ClassMapping) else getattr(rule, "ids", ())
            found[str(path)] = {**hash_file(path, path.suffix), "rows": len(members)}
    return found


def _read(
    given: PicturesConfig, base: Path, columns: tuple[str, ...], rules: list[Rule]
) -> ImageSet:
    if given.folder is not None:
        return read_folder(base / given.folder, levels=given.levels)
    if given.format is not None:
        return _read_format(given, base)
    assert given.id is not None  # noqa: S101 - the schema sees to it
    return read_plain(
        located(given.table, base),
        id=given.id,
        columns=_needed(given, columns, rules),
        missing=given.missing,
        encoding=given.encoding,
        delimiter=given.delimiter,
    )


def _needed(given: PicturesConfig, columns: tuple[str, ...], rules: list[Rule]) -> tuple[str, ...]:
    """Return the columns to read of a table: those that are asked for and no rule makes, too."""
    made = {name for rule in rules if (name := getattr(rule, "name", None)) is not None}
    asked = [one for one in columns if one not in made]
    of_rules = [name for rule in rules if (name := getattr(rule, "column", None)) is not None]
    corners = given.crop.columns if given.crop else ()
    path = [given.path] if given.path else []
    wanted = dict.fromkeys([*asked, *of_rules, *path, *corners])
    return tuple(name for name in wanted if name not in made)


def _read_format(given: PicturesConfig, base: Path) -> ImageSet:
    first = given.rules[0] if given.rules else None
    collapse = {"collapse": first.collapse} if isinstance(first, CollapseRowsRule) else {}
    chosen, options = format_of(given)
    files = (
        {role: base / path for role, path in given.files.items()}
        if isinstance(given.files, Mapping)
        else base / Path(given.files)
    )
    return chosen.load(files, **options, **collapse)
