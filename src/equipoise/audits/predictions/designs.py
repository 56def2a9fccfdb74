"""Which counts an audit of predictions looks at: model × version × groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.group_sizes import check_two, lacking
from equipoise.core.groups import Groups
from equipoise.data import Coded
from equipoise.metrics.counts import Counts, count

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.audits.predictions.config_inputs import ImagesConfig
    from equipoise.data import PredictionData, Predictions

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Design:
    """One model's predictions in one version, held against one set of groups.

    Attributes
    ----------
    model, version : str
    groups : Groups
        Of the rows that were predicted on.
    data : PredictionData
    rows : ndarray of bool, shape (n,)
        Labelled rows for which the model has a row at all, answered or not.
    """

    model: str
    version: str
    groups: Groups
    data: PredictionData
    rows: Rows

    @property
    def predictions(self) -> Predictions:
        """The predictions of this version."""
        return self.data.models[self.model].versions[self.version]

    @property
    def target(self) -> Coded:
        """True classes of the rows."""
        return chosen(self.data.coded_target, self.rows)

    @property
    def label(self) -> Coded:
        """Best predictions of the rows."""
        return chosen(self.predictions.coded, self.rows)

    @property
    def units(self) -> Coded | None:
        """Unit of each of the rows, where the data name one."""
        unit = self.data.coded_unit
        return None if unit is None else chosen(unit, self.rows)

    @property
    def lacking(self) -> dict[str, int]:
        """Rows in no group, by the attributes that they lack."""
        known = self.data.coded_attributes
        return lacking({name: known[name].codes[self.rows] for name in self.groups.attributes})

    @cached_property
    def counts(self) -> Counts:
        """Counts of the best prediction of each row."""
        return count(self.target, self.label, self.groups, units=self.units)

    @cached_property
    def overall(self) -> Counts:
        """Counts without groups: every row with a label and an answer."""
        everything = Groups(("all",), (("all",),), np.zeros(int(self.rows.sum()), np.int32))
        return count(self.target, self.label, everything, units=self.units)

    @cached_property
    def states(self) -> Counts:
        """Counts of rows with and without an answer, as if that were the prediction."""
        state = chosen(self.data.models[self.model].coded_state, self.rows).values
        answer = np.where(state == "answered", "answered", "unanswered")
        return count(np.full(len(answer), "any"), answer, self.groups, units=self.units)

    def spread(self) -> Iterator[tuple[str, Counts]]:
        """Yield further counts, of the top k labels and of probabilities, where given."""
        made, target, units = self.predictions, self.target, self.units
        if made.coded_top is not None:
            top = chosen(made.coded_top, self.rows)
            name = f"{self.version}, top {top.codes.shape[1]}"
            yield name, count(target, top, self.groups, units=units)
        if made.probabilities is not None:
            scores = made.probabilities[self.rows]
            codes = np.broadcast_to(np.arange(scores.shape[1], dtype=np.int32), scores.shape)
            answered: Rows = np.asarray(np.isfinite(scores).all(axis=1))
            labels = Coded(np.where(answered[:, None], codes, -1), made.probability_classes)
            weights = np.where(answered[:, None], scores, 0.0)
            name = f"{self.version}, probabilities"
            yield name, count(target, labels, self.groups, weights=weights, units=units)


def chosen(coded: Coded, rows: Rows) -> Coded:
    """Return some rows of coded labels; the vocabulary is kept."""
    return Coded(coded.codes[rows], coded.vocabulary)


def designs(config: Config, data: PredictionData) -> list[Design]:
    """Return every combination of model, version and groups, in the order of the config.

    Raises
    ------
    DataError
        When fewer than two groups can be compared.
    """
    every = [*_every(config, data)]
    check_groups((design.groups for design in every), data)
    return every


def check_groups(every: Iterable[Groups], data: PredictionData) -> None:
    """Refuse groups of rows of which fewer than two can be compared.

    Raises
    ------
    DataError
        With the sizes of the groups.
    """
    for groups in every:
        which = f"groups {groups.name}: fewer than two groups"
        check_two(groups, which, "rows", file=next(iter(data.inputs)))


def _every(config: Config, data: PredictionData) -> Iterator[Design]:
    for model in config.models:
        rows = data.models[model].state != "unmatched"
        for version in data.models[model].versions:
            for attributes in config.data.groups:
                yield Design(
                    model, version, groups_of(config.data, data, attributes, rows), data, rows
                )


def groups_of(
    images: ImagesConfig, data: PredictionData, attributes: tuple[str, ...], rows: Rows
) -> Groups:
    """Return the groups of some rows by one or several attributes."""
    labels: dict[str, Any] = {
        name: chosen(data.coded_attributes[name], rows) for name in attributes
    }
    return Groups.of(labels, min_size=images.min_group_size)


def tests_of(design: Design) -> int:
    """Return about how many tests a design makes, those told once only not counted."""
    classes = len(design.data.classes)
    if design.counts.determines_target:
        return (1 if classes == 2 else classes) + 2
    return (10 if classes == 2 else 9 * classes) + 7
