"""Read the images, their labels and every model's scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.concepts.labelling import Labelled, meant, read_labels
from equipoise.audits.concepts.rows import Rows, read_rows
from equipoise.audits.concepts.sources import columns_of, matrix_of
from equipoise.core.errors import DataError
from equipoise.data import Matrix
from equipoise.data.problems import listed

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.config_inputs import MatrixConfig

Flags = npt.NDArray[np.bool_]
_LISTED = 5


@dataclass(frozen=True, eq=False)
class Scored:
    """One model's scores.

    Attributes
    ----------
    config : MatrixConfig
    matrix : Matrix
        By image.
    concepts : tuple of str
        The concepts that are measured for the model.
    """

    config: MatrixConfig
    matrix: Matrix = field(repr=False)
    concepts: tuple[str, ...]

    @property
    def without(self) -> Flags:
        """Images that have no scores."""
        return np.asarray(self.matrix.rows < 0)

    def by_image(self, name: str | None) -> npt.NDArray[Any]:
        """Return the scores under a mapping, shape (images, concepts), in their stored type."""
        values = np.empty((len(self.matrix.rows), len(self.concepts)), self.matrix.dtype, order="F")
        for place, columns in enumerate(columns_of(self.config, self.concepts, name)):
            taken = self.matrix.take(columns)
            values[:, place] = taken[:, 0] if len(columns) == 1 else taken.max(axis=1)
        return values


@dataclass(frozen=True, eq=False)
class ConceptData:
    """Everything an audit of concepts reads.

    Attributes
    ----------
    rows : Rows
        The rows of the table of images.
    labels : Labelled
    models : mapping of str to Scored
    inputs, counts : mapping
    """

    rows: Rows
    labels: Labelled
    models: Mapping[str, Scored]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


def load(config: Config, *, base: Path) -> ConceptData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        When a table cannot be read or joined, a score is missing or infinite, a label is not 0
        or 1, a concept has no column, or a model has fewer concepts than `hit_rate`; it names the
        file, column and row.
    """
    rows = read_rows(config, base)
    matrices = {
        name: matrix_of(model, rows.images, base, f"scores of {name}", config.data.max_unmatched)
        for name, model in config.models.items()
    }
    scored = frozenset(
        name
        for one, model in config.models.items()
        for name in (*matrices[one].names, *_mapped(model))
    )
    labels = read_labels(config, rows.images, base, scored)
    models = {name: _scored(config, name, matrices[name], labels) for name in config.models}
    unscored = {
        concept: [name for name, one in models.items() if concept not in one.concepts]
        for concept in labels.concepts
    }
    inputs: dict[str, Mapping[str, Any]] = {**rows.items.inputs, **labels.inputs}
    for matrix in matrices.values():
        inputs |= matrix.inputs
    counts = {
        "images": {**rows.items.counts, "images": len(rows.images)},
        "labels": labels.counts,
        "models": {
            name: {
                **matrix.counts,
                "concepts": len(models[name].concepts),
                "columns_without_concept": _unused(models[name]),
            }
            for name, matrix in matrices.items()
        },
        "concepts_without_scores": {one: names for one, names in unscored.items() if names},
    }
    return ConceptData(rows, labels, models, inputs, counts)


def _scored(config: Config, name: str, matrix: Matrix, labels: Labelled) -> Scored:
    model = config.models[name]
    mapped = _mapped(model)
    unlabelled = sorted(mapped - {*labels.concepts} - {*labels.known})
    if unlabelled:
        key = next((one for one, mapping in model.maps.items() if {*unlabelled} & {*mapping}), None)
        place = f"models.{name}.map" if key is None else f"models.{name}.maps.{key}"
        raise DataError(
            f"{place} names {listed(unlabelled, _LISTED)}, of which there are no labels",
            file=labels.name,
            expected=f"some of {listed(sorted(labels.known))}",
            fix=f"{meant(unlabelled, labels.known)}correct the names, or remove them from there",
        )
    scored = tuple(one for one in labels.concepts if one in mapped or one in matrix.names)
    lacking = [one for one in config.concepts if one not in scored]
    if lacking or not scored:
        what = lacking or sorted(labels.known)
        raise DataError(
            f"no scores for the concepts {listed(what, _LISTED)}",
            file=matrix.name,
            expected="scores by the names of concepts; there are scores of "
            f"{listed(matrix.names, _LISTED)}",
            fix=f"say under models.{name}.map which of these stand for them, or leave them out of "
            "'concepts'",
        )
    if config.hit_rate is not None and config.hit_rate > len(scored):
        raise DataError(
            f"hit_rate {config.hit_rate} is above the number of concepts measured for models."
            f"{name}, {len(scored)}",
            file=matrix.name,
            expected=f"a hit_rate of 1 to {len(scored)}",
            fix="lower hit_rate, or remove it",
        )
    _check_finite(matrix, _used(model, scored), model.id or str(config.data.images.id))
    return Scored(model, matrix, scored)


def _mapped(model: MatrixConfig) -> set[str]:
    return {*model.map, *(concept for one in model.maps.values() for concept in one)}


def _used(model: MatrixConfig, concepts: tuple[str, ...]) -> dict[str, None]:
    """Return the columns of every mapping, in order."""
    every = [columns_of(model, concepts, name) for name in (None, *model.maps)]
    return dict.fromkeys(column for one in every for columns in one for column in columns)


def _unused(one: Scored) -> int:
    return len({*one.matrix.names} - {*_used(one.config, one.concepts)})


def _check_finite(matrix: Matrix, columns: Iterable[str], id_column: str) -> None:
    """Refuse scores that are missing or infinite in images that have scores."""
    wrong = {**matrix.counts["missing"], **matrix.counts["infinite"]}
    for column in columns:
        # Reading a column that there is not says so.
        if column in matrix.names and column not in wrong:
            continue
        bad = ~np.isfinite(matrix.take([column])[:, 0]) & (matrix.rows >= 0)
        image = int(np.argmax(bad))
        raise DataError(
            f"{int(bad.sum())} scores are missing or infinite, the first of {id_column} "
            f"{matrix.ids[image]!r}",
            file=matrix.name,
            column=column,
            row=int(matrix.rows[image]) + 1,
            expected="a finite number for every image that has a row",
            fix="score the image, or remove its row: images without scores are counted",
        )
