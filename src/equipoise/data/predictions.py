"""Predictions of one or more models: read from files, and joined to labels by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.core import DataError, InputError
from equipoise.data.coded import Coded, Codes, encode
from equipoise.data.join import EXAMPLES, Positions, check_ids, check_matches, match
from equipoise.data.labels import LabelRows, read_labels
from equipoise.data.outputs import Outputs
from equipoise.data.probabilities import arrange, check_probabilities
from equipoise.data.problems import listed, show
from equipoise.data.results import ModelPredictions, PredictionData, Predictions
from equipoise.data.sources import LabelSource, PredictionSource, Reading
from equipoise.data.tables import Table, read_table
from equipoise.data.versions import (
    ANSWERED,
    MISSING,
    REFUSED,
    STATES,
    UNKNOWN,
    UNMATCHED,
    Recipe,
    check_choices,
    check_vocabulary,
    choices_outside,
    count_version,
    recipes,
    text_states,
)

Floats = npt.NDArray[np.float64]


def load_predictions(
    labels: LabelSource, models: Mapping[str, PredictionSource], *, max_unmatched: float = 0.01
) -> PredictionData:
    """Read labels and predictions and join them by id.

    Parameters
    ----------
    labels : LabelSource
    models : mapping of str to PredictionSource
        By the name that findings will give to the model.
    max_unmatched : float in [0, 1]
        Largest share of ids, of labels and of each model's predictions, that may have no
        partner. Up to there they are counted.

    Returns
    -------
    PredictionData
        The same for any order of the rows of any table.

    Raises
    ------
    DataError
        When a table cannot be used as given; the message says where and what to do.
    InputError
        When `max_unmatched` is outside [0, 1] or there is no model.
    """
    if not 0 <= max_unmatched <= 1:
        raise InputError(f"max_unmatched is {max_unmatched}; expected a share from 0 to 1")
    if not models:
        raise InputError("models is empty; expected at least one model")
    rows = read_labels(labels)
    read = {
        name: (read_predictions(source, model=name, id_column=labels.id), source)
        for name, source in models.items()
    }
    return join_predictions(rows, read, max_unmatched=max_unmatched)


def join_predictions(
    rows: LabelRows,
    models: Mapping[str, tuple[Outputs, Reading]],
    *,
    max_unmatched: float,
) -> PredictionData:
    """Join outputs with labels, from files or live models, to labels by id.

    Raises
    ------
    DataError
        When too large a share of ids has no partner, no row is answered, or a label is no class.
    """
    inputs: dict[str, Mapping[str, Any]] = {rows.file: rows.digest}
    joined, counts = {}, {}
    for name, (outputs, reading) in models.items():
        positions = match(outputs.ids, rows.ids)
        check_matches(
            (rows.ids, rows.file), (outputs.ids, outputs.source), positions, max_unmatched,
            failed=frozenset(outputs.failed),
        )  # fmt: skip
        joined[name], counts[name] = _Join(rows, reading, outputs, positions).predictions()
        inputs |= outputs.inputs
    return PredictionData(
        rows.ids.to_numpy(),
        rows.target,
        rows.attributes,
        rows.unit,
        joined,
        inputs,
        {"labels": rows.counts, "models": counts},
    )


def read_predictions(source: PredictionSource, *, model: str, id_column: str) -> Outputs:
    """Read and check one model's predictions.

    Raises
    ------
    DataError
        When ids are empty or repeat, ranks are not 1 to k, or probabilities are not
        probabilities.
    """
    column = source.id or id_column
    rank = () if source.rank is None else (source.rank,)
    shares = tuple((source.probabilities or {}).values())
    table = read_table(
        source.table,
        texts=(column, *source.texts, *rank),
        numbers=shares,
        role=f"predictions of {model}",
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    ids = table.texts[column]
    check_ids(ids, table.name, unique=source.rank is None)
    if source.rank is None:
        labels = _side_by_side([table.texts[name] for name in source.texts])
    else:
        ids, labels = _from_long(table, column, source)
    return Outputs(
        model=model,
        content="labels",
        source=table.name,
        ids=ids,
        labels=labels,
        values=check_probabilities(table, shares) if shares else None,
        names=tuple(source.probabilities or ()),
        column=source.texts[0] if source.texts else None,
        ordered=source.rank is None,
        rows=table.rows,
        inputs={table.name: table.digest},
    )


def _side_by_side(columns: list[pl.Series]) -> Coded | None:
    """Encode the columns of ranks with one vocabulary, shape (m, k)."""
    if not columns:
        return None
    every = Coded.of(pl.concat([column.alias("label") for column in columns]))
    codes = every.codes.reshape(len(columns), -1).T
    return Coded(np.ascontiguousarray(codes), every.vocabulary)


def _from_long(table: Table, id_column: str, source: PredictionSource) -> tuple[pl.Series, Coded]:
    """Turn one row per id and rank into one row per id with a column per rank."""
    rank_column, prediction = str(source.rank), str(source.prediction)
    codes, ids = encode(table.texts[id_column])
    ranks = _ranks(table, rank_column)
    k = int(ranks.max())
    _check_ranks(codes, ids, ranks, table.name, rank_column)
    texts = Coded.of(table.texts[prediction])
    wide = np.full((len(ids), k), -1, dtype=np.int32)
    wide[codes, ranks - 1] = texts.codes
    return ids, Coded(wide, texts.vocabulary)


def _ranks(table: Table, column: str) -> npt.NDArray[np.int64]:
    texts = table.texts[column]
    ranks = texts.str.strip_chars().cast(pl.Int64, strict=False)
    wrong = (ranks.is_null() | (ranks < 1)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{show(texts[row] or '')} is no rank",
            file=table.name,
            column=column,
            row=row + 1,
            expected="a whole number from 1, which is the best",
            fix="write ranks as 1, 2, ..., k",
        )
    return ranks.to_numpy()


def _check_ranks(
    codes: Codes, ids: pl.Series, ranks: npt.NDArray[np.int64], file: str, column: str
) -> None:
    """Raise where an id has a rank twice, or its ranks leave one out."""
    order = np.lexsort((np.arange(len(codes)), ranks, codes))
    sorted_codes, sorted_ranks = codes[order], ranks[order]
    same = np.r_[False, (np.diff(sorted_codes) == 0) & (np.diff(sorted_ranks) == 0)]
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise DataError(
            f"the id {show(ids[int(sorted_codes[at])])} has rank {sorted_ranks[at]} in rows "
            f"{order[at - 1] + 1} and {order[at] + 1}",
            file=file,
            column=column,
            expected="every rank once per id",
            fix="remove the repeated rows",
        )
    counts = np.bincount(codes)
    expected = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    gaps = np.flatnonzero(sorted_ranks != expected)
    if len(gaps):
        code = int(sorted_codes[gaps[0]])
        raise DataError(
            f"the id {show(ids[code])} has the ranks "
            f"{listed(sorted_ranks[sorted_codes == code].tolist(), 5)}",
            file=file,
            column=column,
            expected="ranks 1, 2, ..., k without a gap",
            fix="add the rows that are missing",
        )


@dataclass(frozen=True, eq=False)
class _Join:
    """One model's outputs, on the way into the rows of the labels.

    Attributes
    ----------
    rows : LabelRows
    reading : Reading
    outputs : Outputs
    positions : ndarray
        Of each output among the labels, -1 where it has no label.
    """

    rows: LabelRows
    reading: Reading
    outputs: Outputs
    positions: Positions

    def predictions(self) -> tuple[ModelPredictions, dict[str, Any]]:
        """Return the model's predictions and everything that was counted on the way.

        Raises
        ------
        DataError
            When no row is answered, or a label is no class of the target.
        """
        self._check_answered()
        made = {recipe.name: self._version(recipe) for recipe in self._recipes()}
        versions = {name: version for name, (version, _) in made.items()}
        alone = self._alone()
        state = Coded(self._states.astype(np.int32), STATES)
        counts = {
            "rows": self.outputs.rows,
            "ids": len(self.outputs.ids),
            "matched": len(self.outputs.ids) - len(alone),
            "without_label": len(alone),
            "without_label_examples": alone[:EXAMPLES],
            "states": dict(zip(STATES, state.counts.tolist(), strict=True)),
            "versions": {name: version_counts for name, (_, version_counts) in made.items()},
        }
        return ModelPredictions(versions, state, len(alone), self._failed()), counts

    def _failed(self) -> int:
        """Count the labels without a partner whose image failed when the model was run."""
        alone = np.flatnonzero(self._states == UNMATCHED)
        return int(self.rows.ids.gather(alone).is_in([*self.outputs.failed]).sum())

    def _alone(self) -> list[str]:
        """Ids without a label, sorted."""
        alone = np.flatnonzero(self.positions < 0)
        return sorted(self.outputs.ids.gather(alone).to_list())

    def _recipes(self) -> list[Recipe]:
        return recipes(self.reading, self.rows.target.vocabulary, self.outputs.source)

    def _scatter(self, values: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        """Put rows of the outputs where the labels have them."""
        out = np.full((len(self.rows.ids), *values.shape[1:]), fill, dtype=values.dtype)
        found = self.positions >= 0
        out[self.positions[found]] = values[found]
        return out

    @cached_property
    def _text_states(self) -> npt.NDArray[np.int8]:
        vocabulary = self.outputs.labels.vocabulary if self.outputs.labels else ()
        classes = self.rows.target.vocabulary
        return text_states(self.reading, vocabulary, classes, self.outputs.source)

    @cached_property
    def _states(self) -> npt.NDArray[np.int8]:
        """State of each row of the labels."""
        labels, probabilities = self.outputs.labels, self.outputs.values
        if labels is not None:
            answered = np.append(self._text_states, np.int8(MISSING))[labels.codes[:, 0]]
        else:
            none = np.isnan(np.asarray(probabilities)[:, 0])
            answered = np.where(none, np.int8(MISSING), np.int8(ANSWERED))
        return self._scatter(answered, UNMATCHED)

    @cached_property
    def _raw(self) -> Coded | None:
        """Texts by rank in the rows of the labels; none in rows that are not answered."""
        labels = self.outputs.labels
        if labels is None:
            return None
        codes = self._scatter(labels.codes, -1)
        codes[self._states != ANSWERED] = -1
        return Coded(codes, labels.vocabulary)

    def _check_answered(self) -> None:
        expected = (ANSWERED, UNKNOWN, REFUSED) if self.reading.may_decline else (ANSWERED,)
        if np.isin(self._states, expected).any():
            return
        counts = np.bincount(self._states, minlength=len(STATES))
        found = [f"{n} {state}" for state, n in zip(STATES, counts, strict=True) if n]
        key = self.reading.key
        raise DataError(
            f"no row holds an answer ({', '.join(found)})",
            file=self.outputs.source,
            column=self.outputs.column,
            expected="a prediction in at least one row that has a label",
            fix=("" if self.outputs.live else "name the column of predictions, or ")
            + f"look at `{key('missing')}:`, `{key('unknown')}:` and `{key('refused')}:`",
        )

    def _version(self, recipe: Recipe) -> tuple[Predictions, dict[str, Any]]:
        values, classes = self._probabilities(recipe)
        if self._raw is None:
            return self._most_probable(values, classes, recipe)
        allowed = classes or self.rows.target.vocabulary
        labels = self._relabelled(self._raw, recipe, allowed)
        counts = count_version(self._raw, labels, recipe, len(allowed))
        if self.outputs.choices is not None and self._must_be_classes(recipe):
            counts["choices_outside"] = self._outside(recipe, allowed)
        first = Coded(np.ascontiguousarray(labels.codes[:, 0]), labels.vocabulary)
        top = labels if labels.codes.shape[1] > 1 else None
        if not classes:
            return Predictions(first, top, None, classes, recipe.scale), counts
        best = _best(values)
        counts["best_probability_differs"] = int(((best >= 0) & (best != first.codes)).sum())
        return Predictions(first, top, values, classes, recipe.scale), counts

    def _most_probable(
        self, values: Floats, classes: tuple[str, ...], recipe: Recipe
    ) -> tuple[Predictions, dict[str, Any]]:
        labels = Coded(_best(values), classes)
        scale = f"most probable class; {recipe.scale}"
        return Predictions(labels, None, values, classes, scale), {"ties": _ties(values)}

    def _probabilities(self, recipe: Recipe) -> tuple[Floats, tuple[str, ...]]:
        """Probabilities in the rows of the labels and what each column is of; or no columns."""
        if self.outputs.values is None:
            return np.empty((len(self.rows.ids), 0)), ()
        arranged, classes = arrange(
            self.outputs.values,
            self.outputs.names,
            recipe,
            self.rows.target.vocabulary,
            self.outputs.source,
        )
        values = self._scatter(arranged, np.nan)
        values[self._states != ANSWERED] = np.nan
        return values, classes

    def _relabelled(self, raw: Coded, recipe: Recipe, allowed: tuple[str, ...]) -> Coded:
        """Apply a recipe to every distinct text that is an answer."""
        used = (raw.counts > 0) & (self._text_states == ANSWERED)
        names = [
            recipe(text) if use else None
            for text, use in zip(raw.vocabulary, used.tolist(), strict=True)
        ]
        labels = raw.relabel(names, first=allowed)
        if not self._must_be_classes(recipe):
            return labels
        if self.outputs.choices is not None:
            outside = self._outside(recipe, allowed)
            of = f"the target {self.rows.column!r}"
            of += "" if recipe.name == "default" else f" in the version {recipe.name!r}"
            check_choices(
                self.outputs.choices, outside, allowed, self.outputs.source, of, self.reading
            )
            return labels
        row = self._first_row(names, labels.vocabulary[len(allowed) :])
        check_vocabulary(labels, len(allowed), self.outputs, row, recipe.name, self.reading)
        return labels

    def _must_be_classes(self, recipe: Recipe) -> bool:
        """Whether labels of a version may be no others than the classes."""
        # Raw texts beside their normalised form need not be classes.
        free = self.reading.normalize is not None and recipe.normalize is None
        return not (self.reading.open_vocabulary or free)

    def _outside(self, recipe: Recipe, allowed: tuple[str, ...]) -> list[str]:
        """Return the choices of a model that are no class, once a recipe is applied."""
        choices = self.outputs.choices.labels if self.outputs.choices else ()
        return choices_outside(choices, self.reading, recipe, allowed, self.rows.target.vocabulary)

    def _first_row(self, names: list[str | None], outside: tuple[str, ...]) -> int | None:
        """First row of the table that holds one of some labels; None where ranks have rows."""
        if self.outputs.labels is None or self.outputs.live or not self.outputs.ordered:
            return None
        codes = [code for code, name in enumerate(names) if name in set(outside)]
        rows = np.isin(self.outputs.labels.codes, codes).any(axis=1) & (self.positions >= 0)
        return int(rows.argmax()) + 1 if rows.any() else None


def _best(values: Floats) -> npt.NDArray[np.int32]:
    """Most probable class per row, the first of equals; -1 where there are no probabilities."""
    empty = np.isnan(values[:, 0])
    best = np.where(empty[:, None], 0.0, values).argmax(axis=1)
    return np.where(empty, -1, best).astype(np.int32)


def _ties(values: Floats) -> int:
    """Rows in which two classes share the highest probability."""
    highest = values.max(axis=1, keepdims=True)
    return int(((values == highest).sum(axis=1) > 1).sum())
