"""What is measured on which rows: model × groups × version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.concepts.versions import Version
from equipoise.audits.config_sections import group_name
from equipoise.audits.group_sizes import check_two
from equipoise.core.errors import DataError
from equipoise.core.groups import Groups
from equipoise.data import Coded
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.concepts.inputs import Choices

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.config_choices import ChoicesConfig, RowsConfig
    from equipoise.audits.concepts.loading import ConceptData
    from equipoise.audits.concepts.rows import Rows

Flags = npt.NDArray[np.bool_]
Key = tuple[object, ...]

UNSCORED = "no row of scores"

# Metrics that hold for any prevalence: only [Hall]'s samples give other numbers.
ANY_PREVALENCE = ("auroc", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class Design:
    """One model in one version, held against one set of groups.

    Attributes
    ----------
    model : str
    attributes : tuple of str
    version : Version
    groups : Groups
        Of all rows; -1 where a row takes no part.
    excluded : dict of str to int
        Rows that take no part, by the first reason that applies.
    """

    model: str
    attributes: tuple[str, ...]
    version: Version
    groups: Groups = field(repr=False)
    excluded: dict[str, int]

    @property
    def name(self) -> str:
        """The attributes, joined for display."""
        return group_name(self.attributes)

    @property
    def sample(self) -> Key:
        """What decides rows, labels and scores; equal ones are read and resampled once."""
        choices = self.version.choices
        rows = tuple(choices.where.items())
        return (self.model, choices.map, choices.unlabelled, rows, self.terms)

    @property
    def terms(self) -> Key:
        """What decides the groups."""
        choices = self.version.choices
        return tuple(
            (name, choices.columns.get(name, name), tuple(choices.terms.get(name, {}).items()))
            for name in self.attributes
        )


def designs(config: Config, data: ConceptData) -> list[Design]:
    """Return every combination of model, groups and version, in the order of the config.

    Raises
    ------
    DataError
        When fewer than two groups of a baseline can be compared, or a version has no row.
    """
    every = [*_every(config, data)]
    file = data.rows.items.name
    for design in every:
        if design.version.changed:
            _check_rows(design, file)
        else:
            which = f"groups {design.name}: fewer than two groups"
            check_two(design.groups, which, "rows", file=file, others="groups or terms")
    return every


def _check_rows(design: Design, file: str) -> None:
    """Refuse a version in which no row takes part."""
    if (design.groups.codes >= 0).any():
        return
    why = ", ".join(f"{reason}: {count}" for reason, count in design.excluded.items())
    raise DataError(
        f"groups {design.name}, version {design.version.name!r}: no row is left ({why})",
        file=file,
        expected="rows that take part in every version",
        fix=f"change what the version changes ({design.version.description}), or remove it",
    )


def _every(config: Config, data: ConceptData) -> Iterator[Design]:
    for model in config.models:
        unscored = data.models[model].without[data.rows.image]
        for attributes in config.data.groups:
            for version in config.every_version:
                yield _design(config, data, model, attributes, version, unscored)


def _design(
    config: Config,
    data: ConceptData,
    model: str,
    attributes: tuple[str, ...],
    version: Version,
    unscored: Flags,
) -> Design:
    rows, choices = data.rows, version.choices
    labels: dict[str, Any] = {name: _levels(rows, name, choices) for name in attributes}
    whole = Groups.of(labels, min_size=config.data.min_group_size)
    out = {
        "no row of labels": data.labels.without[rows.image],
        UNSCORED: unscored,
        **{
            f"{column} out of the range asked for": ~_inside(rows, column, bounds)
            for column, bounds in choices.where.items()
        },
        "no group": whole.codes < 0,
    }
    codes, counts = whole.codes.copy(), {}
    taken: Flags = np.ones(len(rows), dtype=np.bool_)
    for reason, left in out.items():
        counts[reason] = int((left & taken).sum())
        taken &= ~left
    again = taken & _again(rows, codes, taken)
    counts["the image is in the group already"] = int(again.sum())
    codes[~taken | again] = -1
    groups = Groups(whole.attributes, whole.levels, codes, whole.min_size)
    kept = {reason: count for reason, count in counts.items() if count}
    return Design(model, attributes, version, groups, kept)


def _levels(rows: Rows, attribute: str, choices: ChoicesConfig) -> Coded:
    column = rows.items.coded[choices.columns.get(attribute, attribute)]
    terms = choices.terms.get(attribute)
    if not terms:
        return column
    group = {value: name for name, values in terms.items() for value in values}
    return column.relabel([group.get(value) for value in column.vocabulary])


def _inside(rows: Rows, column: str, bounds: RowsConfig) -> Flags:
    """Return the rows whose cell is inside the bounds; a missing cell is not."""
    coded = rows.items.coded[column]
    if bounds.values:
        allowed = [text in bounds.values for text in coded.vocabulary]
    elif bounds.min is None and bounds.max is None:
        return np.ones(len(rows), dtype=np.bool_)
    else:
        numbers = _numbers(rows, column)
        low = -np.inf if bounds.min is None else bounds.min
        high = np.inf if bounds.max is None else bounds.max
        allowed = [low <= number <= high for number in numbers]
    return np.array([*allowed, False])[coded.codes]


def _numbers(rows: Rows, column: str) -> list[float]:
    coded = rows.items.coded[column]
    found = []
    for code, text in enumerate(coded.vocabulary):
        try:
            found.append(float(text))
        except ValueError:
            raise DataError(
                f"{text!r} is no number",
                file=rows.items.name,
                column=column,
                row=int(np.argmax(coded.codes == code)) + 1,
                expected="a number, because 'where' has a bound on the column",
                fix="correct the cell, list its text under data.images.missing, or name the "
                "texts allowed under 'values'",
            ) from None
    return found


def _again(rows: Rows, codes: npt.NDArray[np.int32], taken: Flags) -> Flags:
    """Return rows of an image that has an earlier row in the same group."""
    repeated: Flags = np.zeros(len(rows), dtype=np.bool_)
    if rows.items is rows.images:
        return repeated
    places = np.flatnonzero(taken)
    pairs = rows.image[places] * (int(codes.max(initial=0)) + 1) + codes[places]
    _, first = np.unique(pairs, return_index=True)
    repeated[places] = True
    repeated[places[first]] = False
    return repeated


def metrics_of(config: Config, version: Version) -> tuple[Metric, ...]:
    """Return the metrics of a version, the one that stands for it first."""
    rest = tuple(one for one in config.metrics if one != config.primary)
    if version.changed == ("metric",):
        # A version that is another metric says nothing about the others.
        rest = ()
    first = version.choices.metric or config.primary
    return (first, *(one for one in rest if one != first))


def choices_of(config: Config, version: Version) -> Choices:
    """Return the choices of a version for the functions that measure."""
    given = version.choices
    return Choices(
        prevalence=given.prevalence,
        prevalence_ratio=given.ratio,
        min_positives=given.min_positives,
        replicates=config.resampling.replicates,
        validation=given.validation,
        incomplete=given.incomplete,
    )


def comparable(config: Config, version: Version, metric: Metric) -> Choices:
    """Return choices that are equal where the numbers of a metric are."""
    choices = replace(choices_of(config, version), metric=metric)
    if choices.prevalence == "weighted" and metric in ANY_PREVALENCE:
        choices = replace(choices, prevalence="observed")
    if choices.prevalence == "observed":
        choices = replace(choices, prevalence_ratio=1)
    return replace(choices, validation=0.5) if choices.ranked else choices
