"""How much changing more and more units does, beside as many units drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.mitigate.neurons.choosing import choose_units, random_units
from equipoise.mitigate.neurons.measures import Trial, _row
from equipoise.mitigate.neurons.searching import Found
from equipoise.models.edits import Mode, UnitEdit, edited


def sweep_units(  # noqa: PLR0913 - one keyword for each choice
    found: Found,
    trial: Trial,
    counts: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    mode: Mode = "balance",
    alpha: float | None = None,
    random: int = 3,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> pa.Table:
    """Change more and more units, and measure what becomes of the model.

    Parameters
    ----------
    found : Found
        Units of a dual encoder.
    trial : Trial
        Measured on these images: others than units were looked for in, or what is found is fitted
        to them.
    counts : sequence of int
        How many units.
    mode, alpha
        See `choose_units`.
    random : int
        How often as many units are drawn at random, to be held against.
    replicates, seed, level
        Of the paired bootstrap over images or units.

    Returns
    -------
    pyarrow.Table
        Per number of units, choice ("selected", "random 1", …) and measure: `units`, `chosen`, and
        the columns of `compare_models`.

    Raises
    ------
    InputError
        When counts are not above 0, or no unit responds to a group.
    ModelError
        When the model cannot be hooked.
    """
    if not counts or min(counts) < 1:
        raise InputError(f"counts={list(counts)}: expected numbers of units from 1")
    before = trial.draws(found.model, replicates, seed)
    rows: list[dict[str, Any]] = []
    for chosen, edit in _edits(found, counts, mode, alpha, random, seed):
        after = trial.draws(edited(found.model, edit), replicates, seed)
        rows += [
            {"units": len(edit), "chosen": chosen} | _row(name, before[name], after[name], level)
            for name in before
        ]
    return pa.Table.from_pylist(rows)


def _edits(
    found: Found, counts: Sequence[int], mode: Mode, alpha: float | None, random: int, seed: int
) -> Iterator[tuple[str, UnitEdit]]:
    most = found.recording.values.shape[1]
    for units in dict.fromkeys(min(one, most) for one in counts):
        yield "selected", choose_units(found, units, mode=mode, alpha=alpha)
        for number in range(random):
            chosen = random_units(found, units, mode=mode, seed=seed + number)
            yield f"random {number + 1}", chosen
