"""The images of a config: tables, folders and data sets, under rules; and their pictures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from equipoise.config.fields import ImageTable, located, where_of
from equipoise.config.files import nearest
from equipoise.config.images import CORNERS, PicturesConfig
from equipoise.core import ConfigError, DataError, InputError, Integers, integers, record
from equipoise.core.types import FileFacts
from equipoise.data import (
    FORMATS,
    BandGroups,
    ClassMapping,
    ImageSet,
    Items,
    ItemSource,
    RowPictures,
    Rule,
    Step,
    find_format,
    load_items,
    read_plain,
)
from equipoise.data.files import hash_file
from equipoise.data.image_set import ImageRecords, image_set
from equipoise.data.labels import fitting_rows
from equipoise.data.table_steps import split_labels
from equipoise.data.tables import NamedFrame, TableSource
from equipoise.evidence import Pictures, pictures_in_folder, pictures_of_table, pictures_on_disk
from equipoise.evidence.pictures import ByName, picture_facts, sorted_by_id

Keys = Sequence[str | None]

ID = "image_id"
"""Column of the ids of a set; its labels have it, too."""

_LONGEST = 120


@record
class AuditImages:
    """The images of an audit: their table, labels, captions and boxes.

    Attributes
    ----------
    section : PicturesConfig
    table : NamedFrame or None
        One row per image under the rules; None where the section's own table is read as it is.
    id : str
        Column of the table that names the image.
    labels : polars.DataFrame or None
        One row per image and label, with the columns `image_id` and `label`.
    captions : polars.DataFrame or None
        One row per image and caption, with the columns `image_id` and `caption`.
    boxes : polars.DataFrame or None
        Boxes of labels, see `ImageSet`.
    inputs : mapping
        Per file of annotations: "sha256", "bytes", "rows"; none for a table without rules, which
        the kind reads itself.
    counts : mapping
        "format", "images", "read", and "steps": what each rule did to how many.
    steps : tuple of str
        The rules and what they left out, in words.
    derived : tuple of str
        Columns that rules make, whose values are declared.
    locate : callable
        Returns the pictures; None where the config doesn't say where they are.
    """

    section: PicturesConfig
    table: NamedFrame | None = None
    id: str = ""
    labels: pl.DataFrame | None = None
    captions: pl.DataFrame | None = None
    boxes: pl.DataFrame | None = None
    inputs: Mapping[str, FileFacts] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    locate: Callable[[], Pictures | None] = lambda: None

    @property
    def name(self) -> str:
        """How errors call the images: their files, and the section that names them."""
        return "" if self.table is None else self.table.name

    @cached_property
    def pictures(self) -> Pictures | None:
        """Where the pixels are, or None if the config has no folder.

        Raises
        ------
        DataError
            When there is no such folder, or a column has no path.
        """
        return self.locate()

    def source(
        self,
        base: Path,
        columns: Sequence[str] = (),
        *,
        attributes: Sequence[str] = (),
        levels: Sequence[str] = (),
    ) -> ItemSource:
        """Return the table of the images, with paths relative to `base`.

        Parameters
        ----------
        base : Path
        columns : sequence of str
        attributes : sequence of str
            The columns whose values are groups.
        levels : sequence of str
            Values of attributes that stay groups though they look missing.
        """
        source = ItemSource(self.table, self.id, tuple(columns), missing=self.section.missing)
        if self.table is None:
            source = self.section.source(base, tuple(columns))
        named = tuple(name for name in attributes if name not in self.derived)
        return replace(source, attributes=named, levels=tuple(levels))

    def need_pictures(self, model: str, *, place: str = "data.images") -> Pictures:
        """Return where the pixels are that a model runs on.

        Parameters
        ----------
        model : str
        place : str
            The section's place in the config.

        Raises
        ------
        ConfigError
            When the config does not say where the files are.
        """
        fix = "name the folder of the files under 'root', or for a table the column of files "
        return required(self.pictures, place, model, f"{fix}under 'path'")


def open_images(
    section: PicturesConfig, base: Path, *, columns: Sequence[str] = (), place: str = "data.images"
) -> AuditImages:
    """Read the table, labels and boxes of images, and apply the rules.

    Parameters
    ----------
    section : PicturesConfig
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
    if section.is_plain:
        return AuditImages(
            section,
            labels=_split_labels(section, base),
            locate=partial(_open_pictures_of_table, section, base),
        )
    rules = {
        index: rule.made(base)
        for index, rule in enumerate(section.rules)
        if rule.rule != "collapse_rows"
    }
    needed = [*columns, *section.selecting_columns]
    images = _read(section, base, needed, rules.values())
    with _prefix_errors(f"{place}.path", "name the column of files"):
        keys = dict(zip(images.ids.tolist(), _list_keys(section, images), strict=True))
    for index, rule in rules.items():
        where = f"{place}.rules[{index}] ({section.rules[index].rule})"
        with _prefix_errors(where, "correct this rule, or leave it out"):
            images = rule(images)
    if section.crop is not None and section.crop.labels:
        with _prefix_errors(f"{place}.crop", "correct it, or leave it out"):
            images = section.crop.boxes(images)
    _check_columns(images, needed, place)
    all_ids = images.ids
    if section.where:
        images = _select_fitting(section, images)
    if section.sample is not None:
        with _prefix_errors(f"{place}.sample", "correct it, or leave it out"):
            images = section.sample.step(images)
    id_ = section.row_id if section.table is not None else ID
    selects = bool(section.where or section.sample)
    left_out = tuple({*all_ids.tolist()} - {*images.ids.tolist()}) if selects else ()
    name = f"{images.name} ({place}{' under its rules' if section.rules else ''})"
    return AuditImages(
        section=section,
        table=NamedFrame(images.table.rename({ID: id_}), name, left_out),
        id=id_,
        labels=images.labels,
        captions=images.captions,
        boxes=images.boxes,
        inputs={**images.inputs, **_list_rule_files(section, rules, base)},
        counts={
            "format": images.format,
            "images": len(images),
            "read": dict(images.counts),
            "steps": [*map(asdict, images.steps)],
        },
        steps=tuple(map(_describe_step, images.steps)),
        derived=tuple(filter(None, (getattr(rule, "name", None) for rule in rules.values()))),
        locate=partial(_open_pictures_of_set, section, base, images, keys),
    )


def _select_fitting(section: PicturesConfig, images: ImageSet) -> ImageSet:
    """Return the images that fit `where`."""
    where = where_of(section.where)
    columns = {name: images.column(name) for name in where}
    fitting = fitting_rows(columns, where, images.name).to_numpy()
    counts = {"rows_left_out": int((~fitting).sum())}
    step = Step("where", f"rows that fit {', '.join(section.where)}", counts)
    return images.take(fitting, step)


def labels_of(images: AuditImages) -> pl.DataFrame:
    """Return the labels of a data set, one row per image and label.

    Raises
    ------
    ConfigError
        When the data set has none.
    """
    if images.labels is None:
        raise ConfigError(
            f"data.labels: required, and missing: {images.counts.get('format', 'a table')} has no "
            "labels"
        )
    return images.labels


def _open_pictures_of_table(section: PicturesConfig, base: Path) -> Pictures | None:
    """Return the pictures of a table, or None if no column names them.

    Raises
    ------
    DataError
        When the table cannot be read.
    """
    if section.path is None:
        return None
    names = section.crop.columns if section.crop else ()
    items = load_items(section.source(base, (section.path, *names)), subject="images")
    corners = _read_corners(pl.DataFrame({n: items.columns[n].tolist() for n in names}), items.name)
    keys = items.columns[section.path].tolist()
    return _open_pictures(section, base, items.ids.tolist(), keys, corners, items.name)


def _read_corners(texts: pl.DataFrame, file: str) -> Integers | None:
    """Return corners in whole pixels, shape (images, 4); None of no columns.

    Raises
    ------
    DataError
        When a cell is no whole number.
    """
    numbers = texts.cast(pl.Int64, strict=False)
    for column in numbers:
        if column.has_nulls():
            row = int(column.is_null().arg_max() or 0)
            raise DataError(
                f"the cell is {texts[column.name][row]!r}",
                file=file,
                column=column.name,
                row=row + 1,
                expected="a whole number of pixels",
                fix="round it, or leave the image out",
            )
    return numbers.to_numpy() if texts.columns else None


def _open_pictures(
    section: PicturesConfig,
    base: Path,
    ids: Sequence[str],
    keys: Keys,
    corners: Integers | None,
    name: str,
) -> Pictures | None:
    """Return the pictures of some ids, or None if the config has no folder.

    Raises
    ------
    DataError
        When an image has no path, or the folder is not there.
    """
    chosen = FORMATS.get(section.format or "")
    rows = (
        chosen.rows(base / section.files, **_list_options(section))
        if chosen and chosen.rows
        else None
    )
    root = base / (section.folder or section.root or "")
    location = section.folder or (section.root if section.table is None else section.path)
    if rows is None and not location:
        return None
    paths = [key for key in keys if key is not None]
    if len(paths) < len(keys):
        raise DataError(
            f"the image {ids[[*keys].index(None)]!r} has no path",
            file=name,
            expected="the path of a file for each image",
            fix="fill it in, or leave the image out",
        )
    if rows is not None:
        return _read_from_rows(base / section.files, rows, ids, paths, corners)
    if not root.is_dir():
        raise DataError(
            "the folder doesn't exist",
            file=str(root),
            expected="the folder of the images (`root`)",
            fix="correct the path; it is relative to the configuration",
        )
    if chosen is not None and chosen.file_names == "stems" and not section.path:
        paths = _find_by_stem(root, paths)
    pictures = pictures_of_table(ids, paths, root=root, name=name, crops=corners)
    margin = section.crop.margin if section.crop and section.crop.columns else 0.0
    return _widen_crops(pictures, margin) if margin else pictures


def _widen_crops(pictures: Pictures, margin: float) -> Pictures:
    """Return pictures with a margin around their crops, up to the border.

    A picture that can't be read keeps its crop: it fails when it is decoded.
    """
    assert pictures.crops is not None  # noqa: S101 - a margin goes with a crop
    sizes = picture_facts(replace(pictures, crops=None)).sizes
    corners = pictures.crops.astype(np.float64)
    added = margin * (corners[:, 2:] - corners[:, :2])
    wider = np.column_stack([np.floor(corners[:, :2] - added), np.ceil(corners[:, 2:] + added)])
    # A crop that doesn't lie inside its picture fails as it would without a margin.
    limits = np.column_stack([corners[:, :2] >= 0, corners[:, 2:] <= sizes])
    inside = np.logical_and.reduce(limits, axis=1)
    wider[:, :2] = np.maximum(wider[:, :2], 0)
    wider[:, 2:] = np.minimum(wider[:, 2:], sizes)
    return replace(pictures, crops=integers(np.where(inside[:, None], wider, corners)))


def _find_by_stem(root: Path, stems: Sequence[str]) -> list[str]:
    """Return files by their names without an ending; one that isn't there fails when it is read."""
    files: dict[str, str] = {}
    wanted_stems = {*stems}
    for path in map(str, pictures_in_folder(root).ids):
        stem = Path(path).stem
        if stem in wanted_stems and files.setdefault(stem, path) != path:
            raise DataError(
                f"{files[stem]!r} and {path!r} could both be the image {stem!r}",
                file=str(root),
                expected="one file of that name",
                fix="remove one of them, or name the folder of the right images",
            )
    return [files.get(stem, f"{stem}.jpg") for stem in stems]


def _read_from_rows(
    path: Path, rows: RowPictures, ids: Sequence[str], keys: Sequence[str], corners: Integers | None
) -> Pictures:
    """Return pictures from the rows of tables, by the names of the rows."""
    if rows.read is not None:
        return sorted_by_id(str(path), [*ids], ByName(rows.read, tuple(keys)), corners)
    all_pictures = pictures_on_disk(path, image=rows.image, id=rows.id)
    names = all_pictures.ids.tolist()
    if rows.names is not None:
        # Without a column of ids the pictures are called by the numbers of their rows.
        row_names = rows.names()
        names = [row_names[int(row)] for row in names]
    place = {name: row for row, name in enumerate(names)}
    chosen = all_pictures.take([place[key] for key in keys])
    return replace(chosen, ids=np.array(ids, dtype=object), crops=corners)


@contextmanager
def _prefix_errors(place: str, fix: str) -> Iterator[None]:
    """Prefix an error with its config key, and add the fix."""
    try:
        yield
    except InputError as error:
        raise ConfigError(f"{place}: {error}. To do: {fix}") from None


def _check_columns(images: ImageSet, columns: Sequence[str], place: str) -> None:
    for name in columns:
        if name not in images.columns:
            have = ", ".join(images.columns) or "none"
            raise ConfigError(
                f"{place}: {images.name} has no column {name!r}, and no rule makes one. There are: "
                f"{have}{nearest(name, images.columns)}"
            )


def _list_rule_files(
    section: PicturesConfig, rules: Mapping[int, Rule], base: Path
) -> dict[str, FileFacts]:
    """Return the files of rules: "rows" is the number of ids, or of labels and classes."""
    files: dict[str, FileFacts] = {}
    for index, rule in rules.items():
        file = getattr(section.rules[index], "file", None)
        if file is not None:
            path = base / file
            members = rule.pairs if isinstance(rule, ClassMapping) else getattr(rule, "ids", ())
            files[str(path)] = {**hash_file(path, path.suffix), "rows": len(members)}
    return files


def _describe_step(step: Step) -> str:
    """Return a sentence: the step's name, the rule where that is short, and its counts."""
    rule = f" ({step.description})" if len(step.description) <= _LONGEST else ""
    parts = []
    for name, value in step.counts.items():
        label = name.replace("_", " ")
        if isinstance(value, Mapping):
            counts = ", ".join(f"{key} {number:,}" for key, number in value.items() if number)
            parts.append(f"{label}: {counts or 'none'}")
        elif isinstance(value, int) and value:
            parts.append(f"{label} {value:,}")
    return f"Images, {step.name}{rule}: {'; '.join(parts) or 'left nothing out'}."


def _read(
    section: PicturesConfig, base: Path, columns: Sequence[str], rules: Iterable[Rule]
) -> ImageSet:
    if section.folder is not None:
        return _read_folder(base / section.folder, section.levels)
    if section.format is not None:
        options = _list_options(section)
        if section.rules and section.rules[0].rule == "collapse_rows":
            options["collapse"] = section.rules[0].made(base)
        places = _locate_files(section.files, base)
        return find_format(section.format).load(places, **options)
    # Read of a table what is asked for and no rule makes, what rules read, paths and corners.
    rules = [*rules]
    rule_columns = {getattr(rule, "name", None) for rule in rules}
    of_rules = (getattr(rule, "column", None) for rule in rules)
    corners = section.crop.columns if section.crop else ()
    wanted_columns = dict.fromkeys([*columns, *of_rules, section.path, *corners])
    images = read_plain(
        located(cast("TableSource", section.table), base),
        id=section.row_id,
        columns=tuple(
            name
            for name in wanted_columns
            # The ids may be the paths, too.
            if name is not None and name != section.row_id and name not in rule_columns
        ),
        attributes=[rule.column for rule in rules if isinstance(rule, BandGroups)],
        **section.csv,
    )
    return replace(images, labels=_split_labels(section, base))


def _split_labels(section: PicturesConfig, base: Path) -> pl.DataFrame | None:
    """Return the labels in a table's columns of several values, if it has any."""
    if not section.split_columns:
        return None
    return split_labels(
        located(cast("TableSource", section.table), base),
        section.row_id,
        encoding=section.encoding,
        delimiter=section.delimiter,
    )


def _locate_files(files: Any, base: Path) -> Any:
    """Return files, alone, in lists or by role, relative to `base`."""
    if isinstance(files, Mapping):
        return {role: _locate_files(path, base) for role, path in files.items()}
    return [base / path for path in files] if isinstance(files, tuple) else base / files


def _read_folder(folder: Path, levels: tuple[str, ...]) -> ImageSet:
    """Return every image of a folder; its id is its path inside, and folders make columns.

    Raises
    ------
    DataError
        When there is no such folder, no image in it, or an image lies in fewer folders.
    """
    pictures = pictures_in_folder(folder)
    ids = [str(name) for name in pictures.ids]
    image_records = ImageRecords(ids, {name: [] for name in levels})
    for path in ids:
        inside = path.split("/")[:-1]
        if len(inside) < len(levels):
            raise DataError(
                f"the image {path!r} is in {len(inside)} folders",
                file=str(folder),
                expected=f"at least {len(levels)}, for the columns {', '.join(levels)}",
                fix="move it, or name fewer columns under 'levels'",
            )
        for name, value in zip(levels, inside, strict=False):
            image_records.columns[name].append(value)
    counts = {"images": len(ids), "files_left_out": pictures.left_out}
    return image_set(image_records, name=str(folder), format="folder", inputs={}, counts=counts)


def _list_options(section: PicturesConfig) -> dict[str, Any]:
    """Return the options to read a format with."""
    id_option = {} if section.id is None else {"id": section.id}
    return find_format(section.format or "").check_options(section.options or {}) | id_option


def _list_keys(section: PicturesConfig, images: ImageSet) -> Keys:
    """Return the file key of each image that was read.

    Raises
    ------
    InputError
        When there is no column of that path.
    """
    chosen = FORMATS.get(section.format or "")
    column = section.path or (chosen.file_column if chosen else "")
    keys: list[str | None] = images.ids.tolist()
    if section.table is not None and column == section.row_id:
        return keys
    if section.path or column in images.columns:
        keys = images.column(str(column)).to_list()
    return keys


def _open_pictures_of_set(
    section: PicturesConfig, base: Path, images: ImageSet, keys: Mapping[str, str | None]
) -> Pictures | None:
    """Return the pictures of a set, or None if the config has no folder."""
    # Ids that images were read with, before rules renamed them or cut them out.
    column = "image" if section.crop is not None and section.crop.labels else None
    if any(rule.rule == "ids_from" for rule in section.rules):
        column = "original_id"
    read_as = images.ids if column is None else images.column(column).to_numpy()
    names = section.crop.columns or CORNERS if section.crop else ()
    corners = _read_corners(pl.DataFrame([images.column(name) for name in names]), images.name)
    paths = [keys[str(name)] for name in read_as]
    return _open_pictures(section, base, images.ids.tolist(), paths, corners, images.name)


def required(
    pictures: Pictures | None,
    place: str,
    model: str,
    fix: str = "name the column of files under 'path'",
) -> Pictures:
    """Return the pictures that a model runs on; refuse to run it without them.

    Parameters
    ----------
    pictures : Pictures or None
    place : str
        The section's place in the config.
    model : str
        Entry of `models`.
    fix : str
        What to do.

    Raises
    ------
    ConfigError
        When there are none.
    """
    if pictures is None:
        raise ConfigError(
            f"{place}: models.{model}.model runs on pictures, and the config names no pictures. "
            f"To do: {fix}"
        )
    return pictures


def pictures_of(
    section: ImageTable, items: Items, base: Path, is_generated: Iterable[bool] | None = None
) -> Pictures | None:
    """Return the pictures of items or of generated items; None without a file column.

    Raises
    ------
    DataError
        When an image that was made has no file.
    """
    if section.path is None:
        return None
    item_rows: Integers = np.arange(len(items))
    if is_generated is not None:
        item_rows = np.flatnonzero([*is_generated])
    paths = items.columns[section.path][item_rows]
    if empty := [row for row, path in zip(item_rows.tolist(), paths, strict=True) if not path]:
        raise DataError(
            "the image has no file",
            file=items.name,
            column=section.path,
            row=empty[0] + 1,
            expected="a path, or a state that says why there is no image",
        )
    return pictures_of_table(
        items.ids[item_rows].tolist(), paths.tolist(), root=base / (section.root or ""),
        name=items.name, column=section.path,
    )  # fmt: skip
