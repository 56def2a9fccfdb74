"""Read a table, a folder or a data set in its own format, and apply the declared rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.audits.config_arrays import located
from equipoise.audits.pictures.config_formats import Format, OptionsConfig
from equipoise.audits.pictures.config_rules import CollapseRowsRule, RuleSection
from equipoise.audits.pictures.folder import read_folder
from equipoise.audits.pictures.places import keys_of
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import (
    ClassMapping,
    CollapseRows,
    ImageSet,
    Rule,
    combine,
    read_celeba,
    read_coco_captions,
    read_coco_instances,
    read_dollar_street,
    read_fairface,
    read_huggingface,
    read_pata,
    read_plain,
    read_social_counterfactuals,
    read_visogender,
    read_visual_genome,
    read_visual_genome_images,
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
        return _READERS[given.format](_Given(given, base))
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


class _Given:
    """What the section says of a format, in the form of the readers."""

    def __init__(self, given: PicturesConfig, base: Path) -> None:
        self._files, self._base = given.files, base
        self.id = given.id
        self.options = given.options or OptionsConfig()
        first = given.rules[0] if given.rules else None
        collapse = first.collapse if isinstance(first, CollapseRowsRule) else CollapseRows()
        self.collapse = collapse

    @property
    def path(self) -> Path:
        """The only file or folder."""
        return self._base / Path(self._files)

    def role(self, name: str) -> Path | None:
        """One of several files."""
        found = self._files.get(name)
        return None if found is None else self._base / found


def _coco(given: _Given) -> ImageSet:
    read = {"captions": read_coco_captions, "instances": read_coco_instances}
    sets = [one(path) for name, one in read.items() if (path := given.role(name)) is not None]
    return sets[0] if len(sets) == 1 else combine(*sets)


def _visual_genome(given: _Given) -> ImageSet:
    objects, data = given.role("objects"), given.role("image_data")
    if objects is not None:
        return read_visual_genome(objects, data, labels=given.options.labels or "synsets")
    assert data is not None  # noqa: S101 - the schema sees to one file at least
    return read_visual_genome_images(data)


def _dollar_street(given: _Given) -> ImageSet:
    columns = given.options.columns
    named = None if columns is None else columns.columns()
    return read_dollar_street(given.path, columns=named, collapse=given.collapse)


def _celeba(given: _Given) -> ImageSet:
    named = given.options.attributes
    return read_celeba(given.path) if named is None else read_celeba(given.path, attributes=named)


def _hugging_face(given: _Given) -> ImageSet:
    image = given.options.image or "image"
    return read_huggingface(given.path, id=given.id, image=image)


_READERS: Mapping[Format, Callable[[_Given], ImageSet]] = {
    "coco": _coco,
    "visual_genome": _visual_genome,
    "fairface": lambda given: read_fairface(given.path, id=given.id or "file"),
    "dollar_street": _dollar_street,
    "social_counterfactuals": lambda given: read_social_counterfactuals(given.path),
    "visogender": lambda given: read_visogender(given.path),
    "pata": lambda given: read_pata(given.path),
    "celeba": _celeba,
    "huggingface": _hugging_face,
}
