"""What the rows of one table are of: images, what repeats, and models that share the table."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from equipoise.core import Strings
from equipoise.data.tables import ROW_NUMBER

ID = re.compile(
    r"(.*[_ .-])?(id|image|img|file|filename|path|key|uri|url|hash|md5|sha\d*)", re.IGNORECASE
)
UNIT = re.compile(
    r"(person|people|subject|patient|participant|identity|user|family|album|video|scene)"
    r"([_ .-]?id)?",
    re.IGNORECASE,
)
MODEL = re.compile(r"model([_ .-]?(id|name))?", re.IGNORECASE)
FORMS = (ID, UNIT, MODEL)
"""How columns are called that say what a row is of."""

# An id that repeats is a class or a place rather than an image where it has so few values, or so
# many rows each.
_MOST_CLASSES, _MOST_REPEATS = 12, 20
# A scene that repeats is a label rather than a unit where it has no more values than this, or more
# rows each than an id.
_FEWEST_UNITS = 20
_PLACE = re.compile(r"(album|video|scene)([_ .-]?id)?", re.IGNORECASE)
# More values name something else than models.
_MOST_MODELS = 100


@dataclass(frozen=True)
class RowRoles:
    """Columns that name the unit and the model of a row.

    Attributes
    ----------
    id : str
        Column that names the image; the number of the row where none does.
    unit : str or None
        Column that repeats.
    guessed : bool
        Whether the unit was guessed.
    model : str or None
        Column that names the model of the row, where images have a row for each model.
    models : tuple of str
        Its values, first the one whose rows the labels are read from.
    """

    id: str
    unit: str | None
    guessed: bool = False
    model: str | None = None
    models: Strings = ()

    @property
    def notes(self) -> Iterator[str]:
        """Say each guess in words."""
        yield f"id: {self.id}" + ", as no column names the image" * (self.id == ROW_NUMBER)
        repeats = ", which repeats" * self.guessed
        unit = f"{self.unit}{repeats}" if self.unit else "none; each row is its own"
        yield f"unit: {unit}"
        if self.model is not None:
            yield f"models: the {len(self.models)} of column {self.model}"


def guess_rows(
    columns: Mapping[str, pl.Series],
    names: Sequence[str],
    *,
    id_column: str | None = None,
    unit: str | None = None,
    one_model: bool = False,
) -> RowRoles:
    """Guess what rows are of from the names and values of columns.

    Parameters
    ----------
    columns : mapping of str to polars.Series
        Texts; null is missing.
    names : sequence of str
        Columns that may be guessed.
    id_column, unit : str, optional
        Columns that are known. A unit of "" is none.
    one_model : bool
        Whether rows can't be of several models.
    """
    ids = [id_column] if id_column else [name for name in names if ID.fullmatch(name)]
    image = next((name for name in ids if _differs(columns[name])), None)
    model, models = None, Strings()
    if image is None and not one_model:
        for model_name in (name for name in names if MODEL.fullmatch(name)):
            of_models = (name for name in ids if _differs(columns[name], columns[model_name]))
            values = _by_size(columns[model_name])
            if 1 < len(values) <= _MOST_MODELS and (image := next(of_models, None)):
                model, models = model_name, values
                rows = columns[model] == models[0]
                columns = {name: column.filter(rows) for name, column in columns.items()}
                break
    image = image or id_column or ROW_NUMBER
    repeating = unit
    if unit is None:
        candidates = [name for name in names if name not in (image, model)]
        repeating = next(_repeating(columns, candidates), None)
    return RowRoles(image, repeating or None, unit is None, model, models)


def _differs(*columns: pl.Series) -> bool:
    """Whether no two rows are the same, and none is empty."""
    rows = pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])
    return not any(column.null_count() for column in columns) and rows.n_unique() == len(rows)


def _by_size(column: pl.Series) -> Strings:
    """Return the values of a column, the most frequent first."""
    counts = column.drop_nulls().value_counts(name="rows")
    return tuple(counts.sort("rows", column.name, descending=[True, False])[column.name])


def _repeating(columns: Mapping[str, pl.Series], names: Sequence[str]) -> Iterator[str]:
    """Yield columns of units whose values repeat, then columns of ids."""
    for form in (UNIT, ID):
        for name in filter(form.fullmatch, names):
            values = columns[name].drop_nulls()
            n_rows, n_values = len(columns[name]), values.n_unique()
            is_id = n_values > _MOST_CLASSES and n_rows <= _MOST_REPEATS * n_values
            is_unit = is_id if form is ID else not is_place(name, columns[name])
            if 1 < n_values < n_rows and len(values) > n_values and is_unit:
                yield name


def is_place(name: str, column: pl.Series) -> bool:
    """Whether a column called as a unit has as few values as a label, such as kinds of scene.

    Persons count as units however few they are.
    """
    n_values = column.drop_nulls().n_unique()
    few = n_values <= _FEWEST_UNITS or len(column) > _MOST_REPEATS * n_values
    return _PLACE.fullmatch(name) is not None and few
