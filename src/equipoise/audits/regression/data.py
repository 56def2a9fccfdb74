"""The data of an audit of regression: true numbers of images, and those of every model."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.columns import ImageData, numbers_of
from equipoise.audits.group_sizes import groups_by
from equipoise.audits.regression.config import Config, ModelConfig
from equipoise.config.fields import located, where_of
from equipoise.core import DataError, Floats, Groups, RunError, record
from equipoise.core.files import decode_json, read_table, write_table
from equipoise.core.types import FileFacts, Json
from equipoise.data import Coded, Items
from equipoise.data.labels import part_of
from equipoise.data.problems import check_matches, match
from equipoise.data.tables import read_table as read_columns


@record
class RegressionData(ImageData):
    """Images with their true numbers, and every model's predicted ones.

    Attributes
    ----------
    target : ndarray of float64, shape (n,)
        NaN where the number isn't known.
    models : mapping of str to ndarray, shape (n,)
        Predicted numbers; NaN where there is none.
    """

    target: Floats
    models: Mapping[str, Floats]


# Of the standard deviation of the target: half of what Cohen calls small.
_SMALL = 0.1
_MOST = 1e100


def least_difference(data: RegressionData) -> float:
    """Return from when on a difference of mean errors matters, in the unit of the target."""
    return float(f"{_SMALL * float(np.nanstd(data.target)):.2g}")


def groups_of(config: Config, data: RegressionData) -> list[Groups]:
    """Return the groups of all images, for each choice of attributes."""
    section, coded = config.data, data.images.coded
    units = None if section.unit is None else coded[section.unit]
    return groups_by(section.groups, coded, min_size=section.min_group_size, units=units)


def read_regression(config: Config, images: Items, base: Path) -> RegressionData:
    """Read true and predicted numbers, and join them by id.

    Raises
    ------
    DataError
        When a cell is no finite number, the target has one number only, or too large a share of
        ids has no partner.
    """
    column = config.data.target
    target = numbers_of(images, column)
    _check_size(target, images.name, column)
    if len(np.unique(target[~np.isnan(target)])) < 2:
        raise DataError(
            "all true numbers are the same, which leaves nothing to predict",
            file=images.name, column=column, expected="two or more numbers",
            fix="name another column as `target:`",
        )  # fmt: skip
    inputs, counts = dict[str, FileFacts](images.inputs), dict[str, Json]()
    predicted = dict[str, Floats]()
    for name, section in config.models.items():
        table_name, digest, values, unmatched = _read_model(name, section, config, images, base)
        inputs[table_name], predicted[name] = digest, values
        n_missing = int(np.isnan(values).sum())
        counts[name] = {"without_label": unmatched, "missing": n_missing}
    return RegressionData(
        images, inputs, {"images": images.counts, "models": counts}, target, predicted
    )


def _check_size(numbers: Floats, file: str, column: str) -> None:
    """Refuse numbers with infinite squares."""
    large = np.abs(numbers) > _MOST
    if large.any():
        row = int(large.argmax())
        raise DataError(
            f"{numbers[row]:g} isn't a finite number, or too large", file=file, column=column,
            row=row + 1, expected=f"numbers up to {_MOST:g}, or empty cells",
        )  # fmt: skip


def _read_model(
    name: str, section: ModelConfig, config: Config, images: Items, base: Path
) -> tuple[str, FileFacts, Floats, int]:
    """Return file, digest and numbers of a model by image, and its rows without an image."""
    id_column = section.id or images.id
    filters = where_of(section.where)
    table = read_columns(
        located(section.table, base), texts=(id_column, *filters), numbers=(section.prediction,),
        role=f"predictions of {name}", encoding=section.encoding, delimiter=section.delimiter,
    )  # fmt: skip
    part, _ = part_of(table, id_column, filters)
    ids, known_ids = part.texts[id_column], pl.Series(images.id, images.ids, dtype=pl.String)
    others = ~ids.is_in([*images.left_out])
    ids, numbers = ids.filter(others), part.numbers[section.prediction].filter(others)
    cells = numbers.fill_null(np.nan).to_numpy()
    _check_size(cells, table.name, section.prediction)
    positions = match(ids, known_ids)
    sides = (known_ids, images.name), (ids, table.name)
    check_matches(*sides, positions, config.data.max_unmatched, ())
    values = np.full(len(images), np.nan)
    values[positions[positions >= 0]] = cells[positions >= 0]
    if np.isnan(values).all():
        raise DataError(
            "no image has a predicted number", file=table.name, column=section.prediction,
            expected="numbers", fix="name the column of predictions",
        )  # fmt: skip
    return table.name, table.digest, values, int((positions < 0).sum())


_NUMBERS, _NAMES = "numbers.parquet", b"equipoise"


def write_numbers(folder: Path, data: RegressionData) -> None:
    """Write every image with its groups, its true and its predicted numbers."""
    columns = {"image_id": data.ids.astype(str), "target": data.target}
    for place, column in enumerate(data.images.columns.values()):
        columns[f"column_{place}"] = column
    for place, values in enumerate(data.models.values()):
        columns[f"model_{place}"] = values
    names = {"columns": [*data.images.columns], "models": [*data.models]}
    table = pl.DataFrame(columns).to_arrow()
    write_table(
        table.replace_schema_metadata({_NAMES: json.dumps(names).encode()}), folder / _NUMBERS
    )


def read_numbers(folder: Path) -> RegressionData:
    """Read back what `write_numbers` wrote.

    Raises
    ------
    RunError
        When the file is missing or can't be read.
    """
    try:
        stored = read_table(folder / _NUMBERS)
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"{folder / _NUMBERS}: {error}. To do: audit again, or compare with a run that is whole"
        ) from error
    names, table = decode_json(stored.schema.metadata[_NAMES]), pl.DataFrame(stored)
    coded = {
        name: Coded.of(table[f"column_{place}"]) for place, name in enumerate(names["columns"])
    }
    models = {
        name: table[f"model_{place}"].to_numpy() for place, name in enumerate(names["models"])
    }
    images = Items(_NUMBERS, "image_id", table["image_id"].to_numpy(), coded, {}, {})
    return RegressionData(images, {}, {}, table["target"].to_numpy(), models)
