"""Labels with the predictions of every model, one row per labelled id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.data.coded import Coded

Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """One version of a model's predictions, row by row as the labels.

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
    """

    coded: Coded
    coded_top: Coded | None
    probabilities: Floats | None
    probability_classes: tuple[str, ...]
    scale: str

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Codes of the first-ranked labels, shape (n,); -1 where there is no answer."""
        return self.coded.codes

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Labels that the codes stand for."""
        return self.coded.vocabulary

    @property
    def label(self) -> Objects:
        """First-ranked labels, shape (n,); None where there is no answer."""
        return self.coded.values

    @property
    def top(self) -> Objects | None:
        """Labels of rank 1 to k, shape (n, k), or None; None also where a rank is empty."""
        return None if self.coded_top is None else self.coded_top.values


@dataclass(frozen=True, eq=False)
class ModelPredictions:
    """What one model predicted.

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

    def rows(self, state: str) -> int:
        """Return the number of rows in a state; failed images don't count as "unmatched"."""
        failed = self.failed if state == "unmatched" else 0
        return int((self.state == state).sum()) - failed


@dataclass(frozen=True, eq=False)
class PredictionData:
    """Labels and the predictions of every model, one row per labelled id, sorted by id.

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
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]

    @property
    def target(self) -> Objects:
        """True classes, shape (n,); None where missing."""
        return self.coded_target.values

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of the target, sorted."""
        return self.coded_target.vocabulary

    @property
    def attributes(self) -> Mapping[str, Objects]:
        """Group attributes, each of shape (n,); None where missing."""
        return {name: column.values for name, column in self.coded_attributes.items()}

    @property
    def unit(self) -> Objects | None:
        """Unit that repeats, shape (n,), or None."""
        return None if self.coded_unit is None else self.coded_unit.values
