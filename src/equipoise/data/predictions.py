"""Predictions of models: read from files and joined to labels by id."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.core import (
    AnyArray,
    DataError,
    Facts,
    Fields,
    Floats,
    InputError,
    Integers,
    Integers32,
    Objects,
    Strings,
    floats,
    record,
    tally,
)
from equipoise.core.types import FileFacts
from equipoise.data.labels import (
    Coded,
    CsvOptions,
    LabelRows,
    LabelSource,
    Outputs,
    Where,
    part_of,
    read_labels,
    unused_entries,
)
from equipoise.data.problems import check_matches, listed, match, nearest, show
from equipoise.data.quantities import check_predicted
from equipoise.data.resolver import (
    ANSWERED,
    MISSING,
    MISSPELT,
    REFUSED,
    STATES,
    UNKNOWN,
    UNMATCHED,
    Reading,
    Recipe,
    build_recipes,
    text_states,
)
from equipoise.data.results import FAILED, STATE
from equipoise.data.tables import Table, TableRecipe, read_table
from equipoise.stats.threads import each


@dataclass(frozen=True)
class PredictionSource(Reading, CsvOptions):
    """A table of a model's predictions, and its options; see also `CsvOptions`.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    prediction : str or None
        Column of the predicted label; None when `top` or `probabilities` say it.
    top : tuple of str
        Columns of the labels of rank 1, 2, ..., k.
    probabilities : mapping of str to str, or None
        Class to the column of its probability. Every class of the target needs one.
    id : str or None
        Column of the id; None: named as in the labels.
    where : mapping of str to Where
        By column the rows that are the model's; all unless given.

    Raises
    ------
    InputError
        When nothing says what was predicted, or two options contradict each other.
    """

    table: Path | Any
    prediction: str | None = None
    top: Strings = ()
    probabilities: Mapping[str, str] | None = None
    id: str | None = None
    where: Mapping[str, Where] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        twice = bool(self.top) and self.prediction not in (None, self.top[0])
        if twice or not (self.top or self.probabilities or self.prediction):
            raise InputError(
                f"prediction is {self.prediction!r}, top {self.top}; expected prediction, top with "
                "the same first column, or probabilities"
            )

    @property
    def texts(self) -> Strings:
        """The columns of predicted labels: ranks 1 to k, or the prediction alone."""
        if self.top:
            return self.top
        return () if self.prediction is None else (self.prediction,)


@record
class Predictions:
    """A version of a model's predictions, in the rows of the labels.

    Attributes
    ----------
    coded : Coded, shape (n,)
        First-ranked labels. The vocabulary starts with the target's classes in their order, so
        for those classes the codes are the target's codes.
    coded_top : Coded, shape (n, k), or None
        Labels of rank 1 to k in the same vocabulary; None where there is one rank only.
    probabilities : ndarray (n, classes) or None
        NaN in rows without an answer.
    probability_classes : tuple of str
        What the columns of `probabilities` stand for: the target's classes, then the others.
    scale : str
        How the model's texts became these labels, versioned and in words.
    classes : tuple of str
        Classes that texts were resolved to; none where labels are the texts.
    resolve : callable
        From text to label.
    """

    coded: Coded
    coded_top: Coded | None
    probabilities: Floats | None
    probability_classes: Strings
    scale: str
    classes: Strings = ()
    resolve: Callable[[str], str] = str

    @property
    def codes(self) -> Integers32:
        """Codes of the first-ranked labels, shape (n,); -1 without an answer."""
        return self.coded.codes

    @property
    def vocabulary(self) -> Strings:
        """Labels that the codes stand for."""
        return self.coded.vocabulary

    @property
    def label(self) -> Objects:
        """First-ranked labels, shape (n,); None without an answer."""
        return self.coded.values

    @property
    def top(self) -> Objects | None:
        """Labels of rank 1 to k, shape (n, k), or None; None also for an empty rank."""
        return None if self.coded_top is None else self.coded_top.values


@record
class ModelPredictions:
    """The predictions of a model, in each version, with the state of each row.

    Attributes
    ----------
    versions : mapping of str to Predictions
        "default"; or the names of the mappings; or "raw" and "normalised".
    coded_state : Coded, shape (n,)
        State of each row: "answered", "missing" (an empty cell), "unknown", "refused", or
        "unmatched" (the label's id is not among the predictions).
    without_label : int
        Ids of the predictions that no label has.
    failed : int
        Of the "unmatched" rows those whose image failed when the model was run.
    """

    versions: Mapping[str, Predictions]
    coded_state: Coded
    without_label: int
    failed: int = 0

    @property
    def state(self) -> Objects:
        """State of each row in words, shape (n,)."""
        return self.coded_state.values

    @property
    def versions_with_verdicts(self) -> Mapping[str, Predictions]:
        """Versions with verdicts: resolved ones if there are any, else all."""
        resolved = {name: version for name, version in self.versions.items() if version.classes}
        return resolved or dict(self.versions)

    def rows(self, state: str) -> int:
        """Return the number of rows in a state; failed images don't count as "unmatched"."""
        failed = self.failed if state == "unmatched" else 0
        return self.coded_state.sizes().get(state, 0) - failed


@record
class PredictionData:
    """Labels and every model's predictions by labelled id, sorted by id.

    Attributes
    ----------
    ids : ndarray of str objects, shape (n,)
    coded_target : Coded, shape (n,)
        True classes after the mapping.
    coded_attributes : mapping of str to Coded
    coded_unit : Coded or None
    models : mapping of str to ModelPredictions
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Everything read, matched, changed and left over; see docs/data.md.
    """

    ids: Objects
    coded_target: Coded
    coded_attributes: Mapping[str, Coded]
    coded_unit: Coded | None
    models: Mapping[str, ModelPredictions]
    inputs: Mapping[str, FileFacts]
    counts: Facts

    @property
    def target(self) -> Objects:
        """True classes, shape (n,); None if missing."""
        return self.coded_target.values

    @property
    def classes(self) -> Strings:
        """Classes of the target, sorted."""
        return self.coded_target.vocabulary

    @property
    def attributes(self) -> Mapping[str, Objects]:
        """Group attributes, each of shape (n,); None if missing."""
        return {name: column.values for name, column in self.coded_attributes.items()}

    @property
    def unit(self) -> Objects | None:
        """Unit that repeats, shape (n,), or None."""
        return None if self.coded_unit is None else self.coded_unit.values


MAX_OUTSIDE = 5
# Wide enough for probabilities printed with three decimals, narrow enough to refuse logits.
SUM_TOLERANCE = 0.01
RANGE_TOLERANCE = 1e-6


def check_probabilities(
    values: AnyArray,
    columns: Sequence[str],
    file: str,
    *,
    ids: Sequence[str] | None = None,
    sums: bool = True,
) -> None:
    """Raise on the first row that holds no probabilities.

    Parameters
    ----------
    values : ndarray of float, shape (rows, columns)
    columns : sequence of str
    file : str
        What errors name: a file, or a model.
    ids : sequence of str, optional
        Of images, where the rows are not those of a file.
    sums : bool
        Whether a row sums to 1 within `SUM_TOLERANCE`.

    Raises
    ------
    DataError
        When a number is NaN, infinite or outside [0, 1], or the sum of a row is wrong.
    """
    outside = ~((values >= -RANGE_TOLERANCE) & (values <= 1 + RANGE_TOLERANCE))
    total = values.sum(axis=1, dtype=np.float64)
    off = ~(np.abs(total - 1) <= SUM_TOLERANCE) & sums
    if not (outside.any() or off.any()):
        return
    row = int(np.flatnonzero(outside.any(axis=1) if outside.any() else off)[0])
    column = int(outside[row].argmax()) if outside.any() else None
    problem = (
        f"the probabilities have the sum {total[row]:.4g}"
        if column is None
        else f"{values[row, column]:g} isn't a probability"
    )
    raise DataError(
        problem if ids is None else f"{problem} for image {ids[row]!r}",
        file=file,
        column=None if column is None else columns[column],
        row=row + 1 if ids is None else None,
        expected=f"numbers from 0 to 1 with a sum of 1 within {SUM_TOLERANCE}",
        fix="give the probabilities of all classes, not logits or percentages; leave a whole row "
        "of a table empty where the model gave no answer; set preprocessing "
        "{'probabilities': 'sigmoid'} in the info of a model whose labels can hold together",
    )


def _probabilities(table: Table, columns: Sequence[str]) -> Floats:
    """Return probability columns side by side; a row of empty cells is NaN throughout."""
    cells = [table.numbers[name] for name in columns]
    values: Floats = np.column_stack([column.fill_null(np.nan).to_numpy() for column in cells])
    none = np.logical_and.reduce([column.is_null().to_numpy() for column in cells])
    values[none] = 1 / len(columns)
    check_probabilities(values, columns, table.name)
    values[none] = np.nan
    return floats(np.clip(values, 0.0, 1.0))


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
    if not models:
        raise InputError("models is empty; expected at least one model")
    rows = read_labels(labels)
    read: dict[str, tuple[Outputs, Reading]] = {}
    for name, source in models.items():
        read[name] = read_predictions(source, model=name, id_column=labels.id), source
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
        When too large a share of ids has no partner, no row is answered, a label is no class, or
        the target is a quantity that a model estimates.
    """
    inputs: dict[str, FileFacts] = {rows.file: rows.digest}

    def join(model: tuple[Outputs, Reading]) -> tuple[ModelPredictions, Fields]:
        model_outputs, reading = model
        outputs = model_outputs.without(rows.left_out)
        positions = match(outputs.ids, rows.ids)
        sides = (rows.ids, rows.file), (outputs.ids, outputs.source)
        check_matches(*sides, positions, max_unmatched, outputs.failed)
        return _Join(rows, reading, outputs, positions).predictions()

    joined, counts = {}, {}
    results = each(join, models.values())
    for name, (predictions, model_counts) in zip(models, results, strict=True):
        joined[name], counts[name] = predictions, model_counts
        inputs |= models[name][0].inputs
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
    """Read and check the predictions of a model.

    Raises
    ------
    DataError
        When ids are empty or repeat, or probabilities are not probabilities.
    """
    column = source.id or id_column
    shares = tuple((source.probabilities or {}).values())
    from_tool = isinstance(source.table, TableRecipe) and source.table.results is not None
    table = read_table(
        source.table,
        texts=(column, *source.texts, *source.where, *((STATE,) if from_tool else ())),
        numbers=shares,
        role=f"predictions of {model}",
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    table, _ = part_of(table, column, source.where)
    failed: Strings = ()
    if from_tool:
        has_failed = table.texts[STATE] == FAILED
        failed = tuple(table.texts[column].filter(has_failed))
        table = table.filter(~has_failed)
    ids = table.texts[column]
    return Outputs(
        model=model,
        content="labels",
        source=table.name,
        ids=ids,
        labels=_encode_ranks([table.texts[name] for name in source.texts]),
        values=_probabilities(table, shares) if shares else None,
        names=tuple(source.probabilities or ()),
        column=source.texts[0] if source.texts else None,
        rows=table.rows,
        inputs={table.name: table.digest},
        failed=dict.fromkeys(failed, "model"),
        states=_stated(table.texts[STATE]) if from_tool else None,
    )


def _stated(cells: pl.Series) -> Integers32:
    """Return the place of each state in `STATES`; that of "answered" for others."""
    places = {name: place for place, name in enumerate(STATES)}
    states = cells.replace_strict(places, default=ANSWERED, return_dtype=pl.Int32)
    return states.to_numpy()


def _encode_ranks(columns: list[pl.Series]) -> Coded | None:
    """Encode the columns of ranks with one vocabulary, shape (m, k)."""
    if not columns:
        return None
    encoded = Coded.of(pl.concat([column.alias("label") for column in columns]))
    codes = encoded.codes.reshape(len(columns), -1).T
    return Coded(np.ascontiguousarray(codes), encoded.vocabulary)


@record
class _Join:
    """Outputs of a model, to be arranged in the rows of the labels.

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
    positions: Integers

    def predictions(self) -> tuple[ModelPredictions, Fields]:
        """Return the predictions in the order of the labels, and their counts.

        Raises
        ------
        DataError
            When no row holds an answer, or a label is no class.
        """
        outputs, key = self.outputs, self.reading.key
        state = Coded(self._states.astype(np.int32), STATES)
        expected = (ANSWERED, UNKNOWN, REFUSED) if self.reading.may_decline else (ANSWERED,)
        if not np.isin(self._states, expected).any():
            raise DataError(
                f"no row holds an answer: {state.sizes()}",
                file=outputs.source,
                column=outputs.column,
                expected="a prediction in at least one row that has a label",
                fix="name the column of predictions, or look at "
                f"`{key('missing')}:`, `{key('unknown')}:` and `{key('refused')}:`",
            )
        self._check_classes()
        versions, version_counts = {}, {}
        target = self.rows.target.vocabulary
        for recipe in build_recipes(self.reading, target, outputs.source, self._levels):
            versions[recipe.name], version_counts[recipe.name] = self._version(recipe)
        alone = tally(self.positions < 0)
        counts = {
            "rows": outputs.rows,
            "ids": len(outputs.ids),
            "matched": len(outputs.ids) - alone,
            "without_label": alone,
            "states": state.sizes(),
            "versions": version_counts,
        }
        # Labels without a partner whose image failed when the model was run.
        unmatched = self.rows.ids.gather(np.flatnonzero(self._states == UNMATCHED))
        failed = int(unmatched.is_in([*outputs.failed]).sum())
        return ModelPredictions(versions, state, alone, failed), counts

    def _check_classes(self) -> None:
        labels, rows = self.outputs.labels, self.rows
        if labels is not None and not self.outputs.planned and rows.column is not None:
            predicted = Coded(self._scatter(labels.codes[:, 0], -1), labels.vocabulary)
            check_predicted(rows.target, predicted, rows.column, rows.file)

    def _scatter(self, values: AnyArray, fill: float) -> AnyArray:
        out = np.full((len(self.rows.ids), *values.shape[1:]), fill, dtype=values.dtype)
        matched = self.positions >= 0
        out[self.positions[matched]] = values[matched]
        return out

    @cached_property
    def _levels(self) -> Strings:
        """Values of all attributes."""
        levels: list[str] = []
        for attribute in self.rows.attributes.values():
            levels += attribute.vocabulary
        return tuple(levels)

    @cached_property
    def _text_states(self) -> NDArray[np.int8]:
        vocabulary = self.outputs.labels.vocabulary if self.outputs.labels else ()
        classes = self.rows.target.vocabulary
        return text_states(self.reading, vocabulary, classes, self.outputs.source, self._levels)

    @cached_property
    def _states(self) -> NDArray[np.int8]:
        labels, probabilities = self.outputs.labels, self.outputs.values
        if labels is not None:
            answered = np.append(self._text_states, np.int8(MISSING))[labels.codes[:, 0]]
        else:
            none = np.isnan(np.asarray(probabilities)[:, 0])
            answered = np.where(none, np.int8(MISSING), np.int8(ANSWERED))
        if self.outputs.states is not None:
            stated = self.outputs.states.astype(np.int8)
            answered = np.where(stated == ANSWERED, answered, stated)
        return self._scatter(answered, UNMATCHED)

    def _version(self, recipe: Recipe) -> tuple[Predictions, Fields]:
        values, classes = self._probabilities(recipe)
        if self.outputs.labels is None:
            labels = Coded(_most_probable(values), classes)
            scale = f"most probable class; {recipe.scale}"
            return Predictions(labels, None, values, classes, scale), {}
        codes = self._scatter(self.outputs.labels.codes, -1)
        codes[self._states != ANSWERED] = -1
        raw = Coded(codes, self.outputs.labels.vocabulary)
        labels, counts = self._relabel(raw, recipe, classes or self.rows.target.vocabulary)
        first_rank = Coded(np.ascontiguousarray(labels.codes[:, 0]), labels.vocabulary)
        top = labels if labels.codes.shape[1] > 1 else None
        probabilities = values if classes else None
        resolve = str if recipe.normalize is None else recipe
        return Predictions(
            first_rank, top, probabilities, classes, recipe.scale, recipe.classes, resolve
        ), counts

    def _probabilities(self, recipe: Recipe) -> tuple[Floats, Strings]:
        """Return probabilities in the rows of the labels, and the class of each column."""
        if self.outputs.values is None:
            return np.empty((len(self.rows.ids), 0)), ()
        if recipe.alternatives:
            raise DataError(
                f"columns with several classes: {listed([*recipe.alternatives])}",
                file=self.outputs.source,
                expected="one class for each column",
                fix=f"map each column to one class under `{self.reading.key('map')}:`",
            )
        mapped, target = [recipe(name) for name in self.outputs.names], self.rows.target.vocabulary
        absent = [name for name in target if name not in mapped]
        if absent:
            raise DataError(
                f"no probability column for {listed(absent, 5)}",
                file=self.outputs.source,
                expected=f"a column for every class of the target: {listed(target)}",
                fix="add it to `probabilities:`, or map another column's class to it; for a class "
                "that the model cannot say, add a column of zeros",
            )
        # Columns that map to one class add up; classes of the target come first.
        classes = (*target, *sorted({*mapped} - {*target}))
        arranged = np.zeros((len(self.outputs.values), len(classes)))
        for place, name in enumerate(mapped):
            arranged[:, classes.index(name)] += self.outputs.values[:, place]
        values = self._scatter(arranged, np.nan)
        values[self._states != ANSWERED] = np.nan
        return values, classes

    def _relabel(self, raw: Coded, recipe: Recipe, allowed: Strings) -> tuple[Coded, Fields]:
        used = ((raw.counts > 0) & (self._text_states == ANSWERED)).tolist()
        pairs = zip(raw.vocabulary, used, strict=True)
        labels = raw.relabel([recipe(text) if use else None for text, use in pairs], first=allowed)
        labels = self._resolve_ambiguous(raw, labels, recipe)
        mapping = recipe.mapping if recipe.normalize is None else {}
        counts: Fields = {**unused_entries(mapping, raw.vocabulary)}
        # Free text that names no class is unresolved, and its wording stands beside it.
        if self.reading.open_vocabulary or self.reading.normalize is not None:
            return labels, counts
        outside, choices = [*labels.vocabulary[len(allowed) :]], self.outputs.choices
        if choices is not None:
            target = self.rows.target.vocabulary
            states = text_states(self.reading, choices.labels, target, "").tolist()
            outside = []
            for label, state in sorted(zip(choices.labels, states, strict=True)):
                if state == ANSWERED and recipe(label) not in allowed:
                    outside.append(label)
            counts["choices_outside"] = outside
            # A model that has yet to run may keep to the classes that it shares with the target.
            if not choices.listed and len(choices.labels) - len(outside) >= choices.ranks:
                outside = []
        if outside:
            of = f"the target {self.rows.column!r}"
            of += "" if recipe.name == "default" else f" in the version {recipe.name!r}"
            wrong = labels.codes.max(axis=1) >= len(allowed)
            rows = np.flatnonzero((self.positions >= 0) & wrong[self.positions])
            named = len(rows) > 0 and not self.outputs.live
            row = int(rows[0]) + 1 if named else None
            raise DataError(
                f"its values include labels that aren't classes of {of}: "
                f"{listed(outside, MAX_OUTSIDE)}",
                file=self.outputs.source,
                column=self.outputs.column,
                row=row,
                expected=f"one of {listed(allowed)}",
                fix=self._remedies(outside, allowed),
            )
        return labels, counts

    def _resolve_ambiguous(self, raw: Coded, labels: Coded, recipe: Recipe) -> Coded:
        """Count a text that stands for several classes as the true class among them."""
        codes, target = labels.codes.copy(), self.rows.target
        for text, classes in recipe.alternatives.items():
            has_text = raw.codes == (raw.vocabulary.index(text) if text in raw.vocabulary else -2)
            for name in {*classes} & {*target.vocabulary}:
                true = target.codes == target.vocabulary.index(name)
                codes[has_text & true[:, None]] = labels.vocabulary.index(name)
        return Coded(codes, labels.vocabulary)

    def _remedies(self, outside: Sequence[str], allowed: Sequence[str]) -> str:
        """Return the ways to fix labels that are no classes of the target."""
        key = self.reading.key
        fixes = []
        for label in outside:
            if suggestion := nearest(label, allowed, cutoff=MISSPELT):
                fixes.append(f"{show(label)} may be {show(suggestion)}")
        fixes += [
            f"map them to a class under `{key('map')}:`",
            f"list texts of missing predictions under `{key('missing')}:`",
            f"set `{key('open_vocabulary')}: true`",
        ]
        return "; or ".join(fixes)


def _most_probable(values: Floats) -> Integers32:
    """Return the most probable class per row, the first of ties; -1 without one."""
    empty = np.isnan(values[:, 0])
    best = np.where(empty[:, None], 0.0, values).argmax(axis=1)
    return np.where(empty, -1, best).astype(np.int32)
