"""Find the units of a model that respond to a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.mitigate.neurons.recording import Pool, Recording, record_units
from equipoise.mitigate.neurons.selectivity import Selectivity, selectivity, strongest


@dataclass(frozen=True, eq=False)
class Found:
    """Units of a model, the most selective first where they are listed.

    Attributes
    ----------
    model : object
        The model.
    recording : Recording
        What each unit gave on each image.
    selectivity : Selectivity
        How well each unit tells the groups apart.
    codes : ndarray of int32, shape (n,)
        Group of each image, as a place in `selectivity.names`; -1 without one.
    nuisance : mapping of str to Selectivity
        The same of what images also differ in.
    """

    model: Any = field(repr=False)
    recording: Recording
    selectivity: Selectivity
    codes: npt.NDArray[np.int32] = field(repr=False)
    nuisance: Mapping[str, Selectivity] = field(default_factory=dict)

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """Units (columns of the recording) with the group each responds to (place in names)."""
        return [*strongest(self.selectivity)]

    def table(self, most: int | None = None) -> pa.Table:
        """Return the units, the most selective first.

        Returns
        -------
        pyarrow.Table
            `layer`, `unit`, `group` (the one it responds to), `auroc` of that group, `p_value`,
            `q_value`, and `nuisance` and `nuisance_auroc`: what else it responds to most.
        """
        return pa.Table.from_pylist(
            [self._row(unit, place) for unit, place in self.ranked[:most]], schema=_SCHEMA
        )

    def _row(self, unit: int, place: int) -> dict[str, Any]:
        found, record = self.selectivity, self.recording
        name = found.names[place]
        # Of two groups one row is tested: the other's area is what is left of 1.
        row = found.groups.index(name) if name in found.groups else 0
        auroc = found.auroc[row, unit]
        other, most = self._besides(unit)
        return {
            "layer": record.layers[record.layer[unit]],
            "unit": int(record.unit[unit]),
            "group": name,
            "auroc": float(auroc if name in found.groups else 1.0 - auroc),
            "p_value": float(found.p_value[row, unit]),
            "q_value": float(found.q_value[row, unit]),
            "nuisance": other,
            "nuisance_auroc": most,
        }

    def _besides(self, unit: int) -> tuple[str, float]:
        """Return which other group a unit responds to most, and how well it tells it."""
        best, most = "", float("nan")
        for what, found in self.nuisance.items():
            away = np.abs(np.where(np.isnan(found.auroc[:, unit]), 0.5, found.auroc[:, unit]) - 0.5)
            row = int(away.argmax())
            if not best or away[row] > abs(most - 0.5):
                best, most = f"{what}: {found.groups[row]}", float(found.auroc[row, unit])
        return best, most

    def exemplars(self, unit: int, k: int = 9) -> list[int]:
        """Return the places of the k images that activate a unit most, the strongest first."""
        values = self.recording.values[:, unit]
        return np.argsort(-values, kind="stable")[:k].tolist()  # type: ignore[no-any-return]


_SCHEMA = pa.schema(
    [
        ("layer", pa.string()),
        ("unit", pa.int64()),
        ("group", pa.string()),
        ("auroc", pa.float64()),
        ("p_value", pa.float64()),
        ("q_value", pa.float64()),
        ("nuisance", pa.string()),
        ("nuisance_auroc", pa.float64()),
    ]
)


def find_units(
    model: Any,
    images: Sequence[Any],
    groups: Any,
    *,
    layers: Sequence[str] | None = None,
    pool: Pool = "mean",
    within: Any = None,
    nuisance: Mapping[str, Any] | None = None,
) -> Found:
    """Find the units of an image encoder that respond to a group.

    Parameters
    ----------
    model : DualEncoder or Classifier
        That runs on torch.
    images : sequence of n images
    groups : array-like (n,), mapping of attribute to labels, or Groups
    layers, pool
        See `equipoise.mitigate.neurons.record_units`.
    within
        See `equipoise.mitigate.neurons.selectivity`.
    nuisance : mapping of str to array-like (n,), optional
        What images also differ in, such as their subject: each unit is told with what else it
        responds to. A unit that responds to that no less is no unit of the group.

    Raises
    ------
    ModelError
        When the model cannot be hooked.
    InputError
        When shapes do not fit.
    """
    found = Groups.of(groups)
    if len(found.codes) != len(images):
        raise InputError(f"groups: {len(found.codes)} labels for {len(images)} images")
    record = record_units(model, images, layers=layers, pool=pool)
    chosen = selectivity(record.values, found, within=within)
    others = {name: selectivity(record.values, labels) for name, labels in (nuisance or {}).items()}
    places = {name: place for place, name in enumerate(chosen.names)}
    by_code = np.array([places.get(name, -1) for name in found.names] + [-1], dtype=np.int32)
    return Found(model, record, chosen, by_code[found.codes], others)
