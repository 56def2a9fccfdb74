"""Models of one or several runs on the images that all runs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.data import Coded

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.data import PredictionData

Runs = Mapping[str, "tuple[Config, PredictionData]"]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Merged:
    """What is compared.

    Attributes
    ----------
    config : Config
        Of the first run: groups, metrics and testing follow it.
    data : PredictionData
        Of the first run: labels and attributes follow it.
    rows : ndarray
        Rows of `data` whose images every run has.
    labels : mapping of str to Coded
        Best predictions of each model on those rows.
    """

    config: Config
    data: PredictionData
    rows: Rows
    labels: Mapping[str, Coded]

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """Which of the rows are compared: those with a label and an answer of every model."""
        known: npt.NDArray[np.bool_] = self.data.coded_target.codes[self.rows] >= 0
        for one in self.labels.values():
            known &= one.codes >= 0
        return known


def merged(runs: Runs) -> Merged:
    """Line up the models of runs by image.

    Raises
    ------
    DataError
        When no image is common to all runs, runs disagree about an image's label, there are
        fewer than two models, or no image has an answer of every model.
    """
    (first, (config, data)), *others = runs.items()
    common = data.ids.astype(str)
    for _, (_, other) in others:
        common = np.intersect1d(common, other.ids.astype(str))
    if not len(common):
        raise DataError(
            f"runs {', '.join(runs)} have no image in common",
            expected="runs about the same images",
            fix="audit the models on the same table of labels",
        )
    places = {name: _places(run[1], common) for name, run in runs.items()}
    for name, (_, other) in others:
        _check_labels(first, data, places[first], name, other, places[name])
    labels = dict(_labels(runs, places))
    if len(labels) < 2:
        raise DataError(
            f"{', '.join(labels)}: one model only",
            expected="at least two models to compare",
            fix="name several runs, or audit several models in one",
        )
    found = Merged(config, data, places[first], labels)
    if not found.answered.any():
        raise DataError(
            f"no image has a label and an answer of every model: {', '.join(labels)}",
            expected="models that answered the same images",
            fix="leave out the model whose answers are missing, or audit it on the same images",
        )
    return found


def _places(data: PredictionData, common: npt.NDArray[np.str_]) -> Rows:
    names = data.ids.astype(str)
    order = np.argsort(names)
    return order[np.searchsorted(names[order], common)]


def _check_labels(
    first: str, data: PredictionData, rows: Rows, name: str, other: PredictionData, places: Rows
) -> None:
    ours, theirs = data.target[rows], other.target[places]
    differ = np.flatnonzero(ours != theirs)
    if len(differ):
        image = data.ids[rows[differ[0]]]
        many = "1 image" if len(differ) == 1 else f"{len(differ)} images"
        raise DataError(
            f"runs {first} and {name} label {many} differently, first {image!r}: "
            f"{ours[differ[0]]!r} and {theirs[differ[0]]!r}",
            expected="the same label for the same image",
            fix="audit both models against the same labels and class mapping",
        )


def _labels(runs: Runs, places: Mapping[str, Rows]) -> Iterator[tuple[str, Coded]]:
    models = [model for _, data in runs.values() for model in data.models]
    for run, (_, data) in runs.items():
        for model, predicted in data.models.items():
            name = model if models.count(model) == 1 else f"{run}: {model}"
            for version, made in predicted.versions.items():
                full = name if len(predicted.versions) == 1 else f"{name} ({version})"
                yield full, Coded(made.coded.codes[places[run]], made.coded.vocabulary)
