"""The config of an audit of predictions, guessed from one table."""

import codecs
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
from narwhals.typing import IntoDataFrame

from equipoise.audits.audit import run
from equipoise.audits.config import parse_config
from equipoise.core import DataError, InputError
from equipoise.data import read_table
from equipoise.data.problems import check_columns, listed, looks_missing
from equipoise.data.tables import ROW_NUMBER, TableSource, open_table
from equipoise.report.result import Result

_ID = re.compile(r"(.*[_ .-])?(id|image|img|file|filename|path|key|uri|url)", re.IGNORECASE)
_UNIT = re.compile(
    r"(person|people|subject|patient|participant|identity|user|family|video|scene)([_ .-]?id)?",
    re.IGNORECASE,
)
_YES = {"1", "true", "t", "yes", "y", "positive", "pos", "present"}
_MOST_VALUES = 12
_AGES = (18, 30, 45, 60)


class Predictor(Protocol):
    """A fitted estimator, as scikit-learn has them."""

    def predict(self, features: Any, /) -> npt.ArrayLike:
        """Return a label for each row of a data frame."""
        ...


@dataclass(frozen=True)
class Guess:
    """A config and the guesses in it.

    Attributes
    ----------
    cells : mapping
        How the cells of the table are written.
    images : mapping
        What names an image, and rules that make groups.
    data : mapping
        Target, groups and unit.
    predictions : tuple of str
        A column for each model.
    notes : tuple of str
        Each guess in words.
    """

    cells: Mapping[str, Any]
    images: Mapping[str, Any]
    data: Mapping[str, Any]
    predictions: tuple[str, ...]
    notes: tuple[str, ...]

    def config(self, table: TableSource) -> dict[str, Any]:
        """Return the config that reads `table`: a path relative to it, or a data frame."""
        images = {"table": table, **deepcopy(self.cells), **self.images}
        return {
            "audit": "predictions",
            "data": {**({"images": images} if "rules" in images else images), **self.data},
            "models": {
                name: {"table": table, "prediction": name, **deepcopy(self.cells)}
                for name in self.predictions
            },
        }


def guess_config(
    table: TableSource,
    *,
    target: str,
    predictions: Sequence[str],
    groups: Sequence[str],
    positive: str | None = None,
    id: str | None = None,  # noqa: A002 - the name of the key
    unit: str | None = None,
) -> Guess:
    """Return the config of an audit of the predictions in a table; see `audit`.

    Raises
    ------
    DataError
        When the table can't be read, lacks a column, or predictions are scores.
    """
    encoding = _encoding(table)
    named = [target, *predictions, *groups, *(name for name in (id, unit) if name)]
    known, missing, file = _read(table, encoding, named)
    for name in predictions:
        _check_labels(known[name], known[target], file)
    bands = {name: bounds for name in groups if (bounds := _bounds(known[name]))}
    others = [name for name in known if name not in {target, *predictions, *groups}]
    ids, units = ([known[o] for o in others if form.fullmatch(o)] for form in (_ID, _UNIT))
    unique = (one.name for one in ids if one.drop_nulls().n_unique() == len(one))
    repeats = (one.name for one in units if 1 < one.drop_nulls().n_unique() < len(one))
    id, unit = id or next(unique, ROW_NUMBER), unit or next(repeats, None)  # noqa: A001
    positive = positive or _positive(known[target])
    rules = [
        {"rule": "band_groups", "attribute": f"{name} band", "column": name, "bounds": bounds}
        | {"names": _band_names(bounds)}
        for name, bounds in bands.items()
    ]
    cells: dict[str, Any] = {"missing": ["", *missing]} if missing else {}
    cells |= {"encoding": encoding} if encoding != "utf-8" else {}
    compared = [f"{name} band" if name in bands else name for name in groups]
    pairs = [[*pair] for pair in combinations(compared, 2)]
    optional = {"positive": positive, "unit": unit}
    notes = (
        f"encoding: {encoding}" if encoding != "utf-8" else "",
        f"missing: {listed(missing)}" if missing else "",
        f"positive: {positive or 'none; every class is reported'}",
        f"id: {id}" + (", as no column names the image" if id == ROW_NUMBER else ""),
        f"unit: {unit}, which repeats" if unit else "unit: none; each row is its own",
        *(f"{name}: bands {', '.join(_band_names(bounds))}" for name, bounds in bands.items()),
    )
    return Guess(
        cells,
        {"id": id, **({"rules": rules} if rules else {})},
        {"target": target, "groups": [*compared, *pairs]}
        | {key: value for key, value in optional.items() if value is not None},
        (*predictions,),
        tuple(filter(None, notes)),
    )


def audit(  # noqa: PLR0913 - one keyword for each choice
    table: TableSource,
    *,
    target: str,
    groups: str | Sequence[str],
    pred: str | Sequence[str] | None = None,
    model: Predictor | Mapping[str, Predictor] | None = None,
    features: Sequence[str] | None = None,
    positive: str | None = None,
    id: str | None = None,  # noqa: A002 - the name of the key
    unit: str | None = None,
) -> Result:
    """Audit the predictions in a table, or of a fitted model, as `equipoise quick` does.

    Parameters
    ----------
    table : path or data frame
        One row per image: its label, predictions and groups.
    target : str
        Column of labels.
    groups : str or sequence of str
        Columns of group attributes. Each is compared, and the intersections of each two.
    pred : str or sequence of str, optional
        Columns of predicted labels, a model each.
    model : estimator, or mapping of name to estimator, optional
        Instead of `pred`: fitted estimators of scikit-learn, or others with `predict`, which
        predict the rows of a data frame.
    features : sequence of str, optional
        Columns that `model` takes; those that it was fitted on unless given.
    positive : str, optional
        Of two classes the one whose rates are reported; guessed where it is written as 1, true,
        yes or positive and the other isn't, else both.
    id, unit : str, optional
        Columns that name the image, and what repeats; guessed from names and values.

    Returns
    -------
    Result
        It shows itself in notebooks; its manifest has the config. `equipoise.report.write` writes
        a report.

    Raises
    ------
    EquipoiseError
        When the table can't be read or audited.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> people = pl.DataFrame({
    ...     "gender": ["women", "men"] * 100,
    ...     "label": [1, 1, 0, 0] * 50,
    ...     "pred": [1, 1, 0, 0] * 30 + [0, 1, 0, 0] * 20,
    ... })
    >>> equipoise.audit(people, target="label", pred="pred", groups="gender").plot()
    <Plot: Accuracy by gender, 2 values>
    """
    if (pred is None) == (model is None):
        raise InputError("expected pred, the columns of predictions, or model, a fitted estimator")
    if model is not None:
        models = model if isinstance(model, Mapping) else {type(model).__name__: model}
        table, pred = _predicted(table, models, features), [*models]
    assert pred is not None  # noqa: S101 - checked above
    predictions = [pred] if isinstance(pred, str) else [*pred]
    names = [groups] if isinstance(groups, str) else [*groups]
    guess = guess_config(
        table, target=target, predictions=predictions, groups=names, positive=positive, id=id,
        unit=unit,
    )  # fmt: skip
    return run(parse_config(guess.config(table)))


def _predicted(
    table: Any, models: Mapping[str, Predictor], features: Sequence[str] | None
) -> IntoDataFrame:
    """Return a data frame with a column of predictions for each model."""
    frame: nw.DataFrame[IntoDataFrame] = nw.from_native(table, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise InputError("table: expected a data frame, whose rows the model predicts")
    for name, model in models.items():
        names = features if features is not None else getattr(model, "feature_names_in_", None)
        if names is None:
            raise InputError(f"features: expected the columns that {name} takes, in their order")
        check_columns(frame.columns, [*names], "data")
        found = np.asarray(model.predict(frame.select(*names).to_native())).tolist()
        column = nw.new_series(name, found, backend=frame.implementation)
        frame = frame.with_columns(column)
    return frame.to_native()


def _read(
    table: TableSource, encoding: str, named: Sequence[str]
) -> tuple[dict[str, pl.Series], list[str], str]:
    """Return named columns and those of ids and units, texts for missing values, and the file."""
    opened = open_table(table, role="data", encoding=encoding)
    check_columns(opened.names, named, opened.name)
    likely = (name for name in opened.names if _ID.fullmatch(name) or _UNIT.fullmatch(name))
    columns = dict.fromkeys([*named, *(name for name in likely if name not in opened.lists)])
    texts = read_table(table, texts=columns, role="data", encoding=encoding).texts
    cells = {text for name in named for text in texts[name].unique().drop_nulls()}
    missing = sorted(filter(looks_missing, cells))
    none = ["", *missing]
    return {n: one.set(one.is_in(none), None) for n, one in texts.items()}, missing, opened.name


def _encoding(table: TableSource) -> str:
    """Return the encoding of a text file: UTF-8 where it can be, else what Excel writes."""
    if not isinstance(table, str | os.PathLike) or not Path(table).is_file():
        return "utf-8"
    if Path(table).suffix.lower() in (".parquet", ".pq"):
        return "utf-8"
    content = Path(table).read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _check_labels(predicted: pl.Series, target: pl.Series, file: str) -> None:
    """Refuse a column of scores in place of labels."""
    foreign = predicted.filter(~predicted.is_in(target.unique().to_list())).unique()
    if len(foreign) > _MOST_VALUES and foreign.cast(pl.Float64, strict=False).null_count() == 0:
        raise DataError(
            f"the column holds {len(foreign)} different numbers",
            file=file,
            column=predicted.name,
            expected=f"labels such as {listed(sorted(target.unique().drop_nulls()), 3)}",
            fix="write the label at your threshold to a column, and name that",
        )


def _positive(target: pl.Series) -> str | None:
    """Return the positive one of two classes, where their names say which it is."""
    classes = target.drop_nulls().unique().to_list()
    likely = [name for name in classes if name.strip().casefold() in _YES]
    return likely[0] if len(classes) == 2 and len(likely) == 1 else None


def _bounds(column: pl.Series) -> list[int]:
    """Return where the bands of a column of many numbers begin; none for other columns."""
    numbers = column.cast(pl.Float64, strict=False)
    if column.n_unique() <= _MOST_VALUES or numbers.null_count() > column.null_count():
        return []
    if "age" in column.name.lower():
        return [*_AGES]
    quartiles = (numbers.quantile(share, "nearest") for share in (0.25, 0.5, 0.75))
    return sorted({int(value) for value in quartiles if value is not None and value >= 1})


def _band_names(bounds: Sequence[int]) -> list[str]:
    """Return names that sort as the bands do, such as 00–17, 18–29 and 30+."""
    width = len(str(bounds[-1]))
    starts = [f"{start:0{width}d}" for start in (0, *bounds)]
    ends = [f"–{end - 1:0{width}d}" for end in bounds]
    return [start + end for start, end in zip(starts, [*ends, "+"], strict=True)]
