"""From units that were found to a change of the model."""

from __future__ import annotations

import numpy as np

from equipoise.core.errors import InputError
from equipoise.mitigate.neurons.searching import Found
from equipoise.models.edits import MODES, LayerEdit, Mode, UnitEdit
from equipoise.stats.streams import stream

_LEAST = 1e-6


def choose_units(
    found: Found, units: int, *, mode: Mode = "balance", alpha: float | None = 0.05
) -> UnitEdit:
    """Choose the most selective units, to be changed while the model runs.

    Parameters
    ----------
    found : Found
        What `find_units` found.
    units : int
        At most so many.
    mode : "balance" or "clamp"
        See `equipoise.models.edits.UnitEdit`.
    alpha : float, optional
        Only units with q at most this; None takes them whatever q.

    Returns
    -------
    UnitEdit
        Means are those of the groups' means, so that a unit's own does not depend on how many
        images of each group it was looked for in.

    Raises
    ------
    InputError
        When no unit is left, or there is no such mode.
    """
    q = found.selectivity.q_value
    best = np.where(np.isnan(q), 2.0, q).min(axis=0)
    kept = [(u, g) for u, g in found.ranked if alpha is None or best[u] <= alpha][:units]
    if not kept:
        raise InputError(
            f"no unit responds to a group with q at most {alpha}; there is nothing to change"
        )
    return _edit(found, kept, mode)


def random_units(found: Found, units: int, *, mode: Mode = "balance", seed: int = 0) -> UnitEdit:
    """Choose units at random, each with the group it leans to: what any change would do.

    Parameters
    ----------
    found, mode
        As in `choose_units`.
    units : int
        At most all there are.
    seed : int
    """
    ranked = sorted(found.ranked)
    order = stream(seed, "neurons", "random").permutation(len(ranked))[:units]
    return _edit(found, [ranked[place] for place in sorted(order.tolist())], mode)


def _edit(found: Found, units: list[tuple[int, int]], mode: Mode) -> UnitEdit:
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}; expected one of {', '.join(MODES)}")
    record, info = found.recording, found.model.info
    layers = []
    for place, name in enumerate(record.layers):
        here = sorted((u, g) for u, g in units if record.layer[u] == place)
        if here:
            columns = [unit for unit, _ in here]
            means, spreads = _moments(found, columns)
            layers.append(
                LayerEdit(
                    name,
                    record.axes[name],
                    tuple(int(record.unit[unit]) for unit in columns),
                    tuple(group for _, group in here),
                    means,
                    spreads,
                )
            )
    return UnitEdit(info.name, info.revision, info.weights_sha256, mode, tuple(layers))


def _moments(found: Found, columns: list[int]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of units, in which every group counts the same."""
    values = found.recording.values[:, columns].astype(np.float64)
    groups = [values[found.codes == code] for code in range(len(found.selectivity.names))]
    mean = np.mean([group.mean(axis=0) for group in groups], axis=0)
    spread = np.sqrt(np.mean([((group - mean) ** 2).mean(axis=0) for group in groups], axis=0))
    return tuple(mean.tolist()), tuple(np.maximum(spread, _LEAST).tolist())
