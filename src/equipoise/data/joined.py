"""From one model's own table into the rows of the labels, once per version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.answers import Answers
from equipoise.data.coded import Coded
from equipoise.data.join import EXAMPLES, Positions
from equipoise.data.labels import LabelRows
from equipoise.data.probabilities import arrange
from equipoise.data.results import ModelPredictions, Predictions
from equipoise.data.sources import PredictionSource
from equipoise.data.versions import (
    ANSWERED,
    MISSING,
    REFUSED,
    STATES,
    UNKNOWN,
    UNMATCHED,
    Recipe,
    check_offered,
    check_vocabulary,
    count_version,
    offered_outside,
    recipes,
    text_states,
)

Floats = npt.NDArray[np.float64]
NAME_COLUMN = "name the column of predictions, or "
"""What can be done about a table that holds no answer, and not about a model that was run."""


@dataclass(frozen=True, eq=False)
class Joined:
    """One model's answers, on the way into the rows of the labels.

    Attributes
    ----------
    rows : LabelRows
    source : PredictionSource
    answers : Answers
    positions : ndarray
        Of each answer among the labels, -1 where it has no label.
    """

    rows: LabelRows
    source: PredictionSource
    answers: Answers
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
            "rows": self.answers.rows,
            "ids": len(self.answers.ids),
            "matched": len(self.answers.ids) - len(alone),
            "without_label": len(alone),
            "without_label_examples": alone[:EXAMPLES],
            "states": dict(zip(STATES, state.counts.tolist(), strict=True)),
            "versions": {name: version_counts for name, (_, version_counts) in made.items()},
        }
        return ModelPredictions(versions, state, len(alone), self._failed()), counts

    def _failed(self) -> int:
        """Count the labels without a partner whose image failed when the model was run."""
        alone = np.flatnonzero(self._states == UNMATCHED)
        return int(self.rows.ids.gather(alone).is_in([*self.source.failed]).sum())

    def _alone(self) -> list[str]:
        """Ids without a label, sorted."""
        alone = np.flatnonzero(self.positions < 0)
        return sorted(self.answers.ids.gather(alone).to_list())

    def _recipes(self) -> list[Recipe]:
        return recipes(self.source, self.rows.target.vocabulary, self.answers.file)

    def _scatter(self, values: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        """Put rows of the answers where the labels have them."""
        out = np.full((len(self.rows.ids), *values.shape[1:]), fill, dtype=values.dtype)
        found = self.positions >= 0
        out[self.positions[found]] = values[found]
        return out

    @cached_property
    def _text_states(self) -> npt.NDArray[np.int8]:
        vocabulary = self.answers.labels.vocabulary if self.answers.labels else ()
        classes = self.rows.target.vocabulary
        return text_states(self.source, vocabulary, classes, self.answers.file)

    @cached_property
    def _states(self) -> npt.NDArray[np.int8]:
        """State of each row of the labels."""
        labels, probabilities = self.answers.labels, self.answers.probabilities
        if labels is not None:
            answered = np.append(self._text_states, np.int8(MISSING))[labels.codes[:, 0]]
        else:
            none = np.isnan(np.asarray(probabilities)[:, 0])
            answered = np.where(none, np.int8(MISSING), np.int8(ANSWERED))
        return self._scatter(answered, UNMATCHED)

    @cached_property
    def _raw(self) -> Coded | None:
        """Texts by rank in the rows of the labels; none in rows that are not answered."""
        labels = self.answers.labels
        if labels is None:
            return None
        codes = self._scatter(labels.codes, -1)
        codes[self._states != ANSWERED] = -1
        return Coded(codes, labels.vocabulary)

    def _check_answered(self) -> None:
        expected = (ANSWERED, UNKNOWN, REFUSED) if self.source.may_decline else (ANSWERED,)
        if np.isin(self._states, expected).any():
            return
        counts = np.bincount(self._states, minlength=len(STATES))
        found = [f"{n} {state}" for state, n in zip(STATES, counts, strict=True) if n]
        column = self.source.texts[0] if self.source.texts else None
        raise DataError(
            f"no row holds an answer ({', '.join(found)})",
            file=self.answers.file,
            column=column,
            expected="a prediction in at least one row that has a label",
            fix=f"{NAME_COLUMN}look at `missing:`, `unknown:` and `refused:`",
        )

    def _version(self, recipe: Recipe) -> tuple[Predictions, dict[str, Any]]:
        values, classes = self._probabilities(recipe)
        if self._raw is None:
            return self._most_probable(values, classes, recipe)
        allowed = classes or self.rows.target.vocabulary
        labels = self._relabelled(self._raw, recipe, allowed)
        counts = count_version(self._raw, labels, recipe, len(allowed))
        if self.source.offered is not None and self._must_be_classes(recipe):
            counts["offered_outside"] = self._outside(recipe, allowed)
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
        if self.answers.probabilities is None:
            return np.empty((len(self.rows.ids), 0)), ()
        arranged, classes = arrange(
            self.answers.probabilities,
            [*(self.source.probabilities or {})],
            recipe,
            self.rows.target.vocabulary,
            self.answers.file,
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
        if self.source.offered is not None:
            outside = self._outside(recipe, allowed)
            of = f"the target {self.rows.column!r}"
            of += "" if recipe.name == "default" else f" in the version {recipe.name!r}"
            check_offered(self.source.offered, outside, allowed, self.answers.file, of)
            return labels
        row = self._first_row(names, labels.vocabulary[len(allowed) :])
        column = self.source.texts[0]
        check_vocabulary(labels, len(allowed), self.answers.file, column, row, recipe.name)
        return labels

    def _must_be_classes(self, recipe: Recipe) -> bool:
        """Whether labels of a version may be no others than the classes."""
        # Raw texts beside their normalised form need not be classes.
        free = self.source.normalize is not None and recipe.normalize is None
        return not (self.source.open_vocabulary or free)

    def _outside(self, recipe: Recipe, allowed: tuple[str, ...]) -> list[str]:
        """Return what a model that is yet to run may predict outside the classes."""
        return offered_outside(self.source, recipe, allowed, self.rows.target.vocabulary)

    def _first_row(self, names: list[str | None], outside: tuple[str, ...]) -> int | None:
        """First row of the table that holds one of some labels; None where ranks have rows."""
        if self.answers.labels is None or self.source.rank is not None:
            return None
        codes = [code for code, name in enumerate(names) if name in set(outside)]
        rows = np.isin(self.answers.labels.codes, codes).any(axis=1) & (self.positions >= 0)
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
