"""Images of a folder, or of a data set in its own format, under declared rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from equipoise.audits.config_fields import located
from equipoise.audits.config_images import CORNERS, CollapseRowsRule, PicturesConfig, RuleSection
from equipoise.audits.config_yaml import nearest
from equipoise.audits.images import ID, Known, check_folder, corners_of, find_all, find_in_folder
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.data import (
    FORMATS,
    ClassMapping,
    DataFormat,
    ImageSet,
    RowPictures,
    Rule,
    find_format,
    read_plain,
)
from equipoise.data.files import hash_file
from equipoise.data.image_set import Gathered, image_set
from equipoise.data.tables import NamedFrame
from equipoise.evidence import pictures_in_folder, pictures_on_disk

if TYPE_CHECKING:
    from equipoise.audits.images import Corners, Find
    from equipoise.data import Step
    from equipoise.evidence import Pictures

T = TypeVar("T")

_LONGEST = 120


def read_set(section: PicturesConfig, base: Path, columns: tuple[str, ...], place: str) -> Known:
    """Read images under every rule; see `known`."""
    rules = {
        index: rule.made(base)
        for index, rule in enumerate(section.rules)
        if isinstance(rule, RuleSection)
    }
    images = _read(section, base, columns, [*rules.values()])
    keys = _with_place(partial(_keys, section, images), f"{place}.path", "name the column of files")
    for index, rule in rules.items():
        where = f"{place}.rules[{index}] ({section.rules[index].rule})"
        images = _with_place(partial(rule, images), where, "correct this rule, or leave it out")
    if section.crop is not None and section.crop.labels:
        cut = partial(section.crop.boxes, images)
        images = _with_place(cut, f"{place}.crop", "correct it, or leave it out")
    _check_columns(images, columns, place)
    id_ = section.id if section.table is not None and section.id else ID
    called = f"{images.name} ({place}{' under its rules' if section.rules else ''})"
    return Known(
        section=section,
        table=NamedFrame(images.image_table().rename({ID: id_}), called),
        id=id_,
        labels=None if images.labels is None else images.label_table(),
        inputs={**images.inputs, **_rule_files(section, rules, base)},
        counts={
            "format": images.format,
            "images": len(images),
            "read": dict(images.counts),
            "steps": [
                {"name": s.name, "description": s.description, "counts": dict(s.counts)}
                for s in images.steps
            ],
        },
        steps=tuple(map(_in_words, images.steps)),
        locate=_locate(section, images, keys, base),
    )


def _with_place(step: Callable[[], T], place: str, fix: str) -> T:
    """Return what a step returns; prefix its error with the place, and say what to do."""
    try:
        return step()
    except InputError as error:
        raise ConfigError(f"{place}: {error}. To do: {fix}") from None


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


def _rule_files(
    section: PicturesConfig, rules: Mapping[int, Rule], base: Path
) -> dict[str, Mapping[str, Any]]:
    """Return the files of rules: "rows" is the number of ids, or of labels and classes."""
    files: dict[str, Mapping[str, Any]] = {}
    for index, rule in rules.items():
        file = getattr(section.rules[index], "file", None)
        if file is not None:
            path = base / file
            members = rule.pairs if isinstance(rule, ClassMapping) else getattr(rule, "ids", ())
            files[str(path)] = {**hash_file(path, path.suffix), "rows": len(members)}
    return files


def _in_words(step: Step) -> str:
    """Return a sentence: the step's name, the rule where that is short, and its counts."""
    rule = f" ({step.description})" if len(step.description) <= _LONGEST else ""
    parts = []
    for name, value in step.counts.items():
        shown = name.replace("_", " ")
        if isinstance(value, Mapping):
            counts = ", ".join(f"{key} {number:,}" for key, number in value.items() if number)
            parts.append(f"{shown}: {counts or 'none'}")
        elif isinstance(value, int) and value:
            parts.append(f"{shown} {value:,}")
    return f"Images, {step.name}{rule}: {'; '.join(parts) or 'left nothing out'}."


def _read(
    section: PicturesConfig, base: Path, columns: tuple[str, ...], rules: list[Rule]
) -> ImageSet:
    if section.folder is not None:
        return _read_folder(base / section.folder, section.levels)
    if section.format is not None:
        return _read_format(section, base)
    # Read of a table what is asked for and no rule makes, what rules read, paths and corners.
    made = {getattr(rule, "name", None) for rule in rules}
    of_rules = (getattr(rule, "column", None) for rule in rules)
    corners = section.crop.columns if section.crop else ()
    wanted = dict.fromkeys([*columns, *of_rules, section.path, *corners])
    return read_plain(
        located(section.table, base),
        id=str(section.id),
        columns=tuple(name for name in wanted if name is not None and name not in made),
        missing=section.missing,
        encoding=section.encoding,
        delimiter=section.delimiter,
    )


def _read_folder(folder: Path, levels: tuple[str, ...]) -> ImageSet:
    """Return every image of a folder; its id is its path inside, and folders make columns.

    Raises
    ------
    DataError
        When there is no such folder, no image in it, or an image lies in fewer folders.
    """
    pictures = pictures_in_folder(folder)
    ids = [str(name) for name in pictures.ids]
    gathered = Gathered(ids, {name: [] for name in levels})
    for path in ids:
        inside = path.split("/")[:-1]
        if len(inside) < len(levels):
            raise DataError(
                f"the image {path!r} lies in {len(inside)} folders",
                file=str(folder),
                expected=f"at least {len(levels)}, for the columns {', '.join(levels)}",
                fix="move it, or name fewer columns under 'levels'",
            )
        for name, value in zip(levels, inside, strict=False):
            gathered.columns[name].append(value)
    counts = {"images": len(ids), "files_left_out": pictures.left_out}
    return image_set(gathered, name=str(folder), format="folder", inputs={}, counts=counts)


def _read_format(section: PicturesConfig, base: Path) -> ImageSet:
    first = next(iter(section.rules), None)
    collapse = {"collapse": first.collapse} if isinstance(first, CollapseRowsRule) else {}
    chosen, options = _format_of(section)
    files = (
        {role: base / path for role, path in section.files.items()}
        if isinstance(section.files, Mapping)
        else base / Path(section.files)
    )
    return chosen.load(files, **options, **collapse)


def _format_of(section: PicturesConfig) -> tuple[DataFormat, dict[str, Any]]:
    """Return the format of a section, and the options to read it with."""
    chosen = find_format(section.format or "")
    named = {} if section.id is None else {"id": section.id}
    return chosen, chosen.checked(section.options or {}) | named


def _keys(section: PicturesConfig, images: ImageSet) -> dict[str, str | None]:
    """Return what names the file of each image that was read, by its id.

    Raises
    ------
    InputError
        When there is no column of that path.
    DataError
        When two addresses would be one file.
    """
    chosen = FORMATS.get(section.format or "")
    column = section.path or (chosen.file_column if chosen else "")
    keys: list[str | None] = images.ids.tolist()
    if section.path or column in images.columns:
        keys = images.column(str(column)).values.tolist()
    if chosen and chosen.file_names == "addresses" and not section.path:
        keys = _last_parts(keys, images.name)
    return dict(zip(images.ids.tolist(), keys, strict=True))


def _last_parts(addresses: Sequence[str | None], name: str) -> list[str | None]:
    """Return the names that addresses give to files."""
    owner: dict[str, str] = {}
    names = [unquote(urlsplit(address or "").path.rsplit("/", 1)[-1]) for address in addresses]
    for address, last in zip(addresses, names, strict=True):
        if owner.setdefault(last, address or "") != address:
            raise DataError(
                f"{owner[last]!r} and {address!r} both end in {last!r}",
                file=name,
                expected="addresses whose last parts name the files",
                fix="make a table with a column of files, and name it under 'path'",
            )
    return [*names]


def _locate(
    section: PicturesConfig, images: ImageSet, keys: Mapping[str, str | None], base: Path
) -> Callable[[], Pictures] | None:
    """Return where the files of a set are; None where the config doesn't say it."""
    find = _finder(section, images.name, base)
    if find is None:
        return None
    corners = None
    if section.crop is not None:
        names = section.crop.columns or CORNERS
        cells = [images.column(name).values.tolist() for name in names]
        corners = corners_of(cells, names, images.name)
    # Ids that images were read with, before rules renamed them or cut them out.
    column = "image" if section.crop is not None and section.crop.labels else None
    if any(rule.rule == "ids_from" for rule in section.rules):
        column = "original_id"
    read_as = images.ids if column is None else images.column(column).values
    paths = [keys[str(name)] for name in read_as]
    return partial(find_all, find, images.ids.tolist(), paths, corners, images.name)


def _finder(section: PicturesConfig, name: str, base: Path) -> Find | None:
    root = None if section.root is None else base / section.root
    if section.folder is not None:
        return find_in_folder(base / section.folder, name)
    if section.table is not None:
        return find_in_folder(root or base, name) if section.path else None
    chosen, options = _format_of(section)
    if chosen.rows is not None:
        path = base / section.files
        rows = chosen.rows(path, **options)
        if rows is not None:
            return partial(_find_in_rows, path, rows)
    if root is None:
        return None
    by_stem = chosen.file_names == "stems" and not section.path
    return partial(_find_by_stem, root, name) if by_stem else find_in_folder(root, name)


def _find_by_stem(
    root: Path, name: str, ids: Sequence[str], keys: Sequence[str], corners: Corners | None
) -> Pictures:
    """Find files by their names without an ending; one that isn't there fails when it is read."""
    check_folder(root)
    files: dict[str, str] = {}
    wanted = {*keys}
    for path in map(str, pictures_in_folder(root).ids):
        stem = Path(path).stem
        if stem in wanted and files.setdefault(stem, path) != path:
            raise DataError(
                f"{files[stem]!r} and {path!r} could both be the image {stem!r}",
                file=str(root),
                expected="one file of that name",
                fix="remove one of them, or name the folder that holds the right ones",
            )
    paths = [files.get(key, f"{key}.jpg") for key in keys]
    return find_in_folder(root, name)(ids, paths, corners)


def _find_in_rows(
    path: Path, rows: RowPictures, ids: Sequence[str], keys: Sequence[str], corners: Corners | None
) -> Pictures:
    """Find pictures that lie in the rows of tables, by the names of the rows."""
    whole = pictures_on_disk(path, image=rows.image, id=rows.id)
    names = whole.ids.tolist()
    if rows.names is not None:
        # Without a column of ids the pictures are called by the numbers of their rows.
        every = rows.names()
        names = [every[int(row)] for row in names]
    place = {name: row for row, name in enumerate(names)}
    chosen = whole.take([place[key] for key in keys])
    return replace(chosen, ids=np.array([*ids, None], dtype=object)[:-1], crops=corners)
