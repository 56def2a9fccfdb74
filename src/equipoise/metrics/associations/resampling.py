"""Bootstrap replicates of sets of embeddings, the same for any number of threads.

Members count whole numbers of times, and vectors are rounded so that weighted sums are exact in
float64 whatever their order; what is lost is below 1e-9 of a replicate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, Harm
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.kernels import count_drawn
from equipoise.metrics.associations.members import Members
from equipoise.metrics.associations.partitions import Exchanged
from equipoise.metrics.associations.space import Sets, Similarity, dropped_of, shared_members
from equipoise.metrics.building import NOTHING, Against, ends_of, replicates_text
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.spec import make_estimate
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import stream, unit_counts, unit_keys
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]


def replicates(
    sets: Sets,
    fixed: Collection[str],
    resampling: Resampling | None,
    seed: int,
    statistic: Callable[[Mapping[str, Floats]], Floats],
) -> Floats | None:
    """Return the statistic (replicates, s) on resampled sets, None where nothing is resampled."""
    if not isinstance(resampling, Bootstrap) or not resampled(sets, fixed):
        return None
    blocks = replicate_blocks(sets, fixed, resampling.replicates, seed)
    return np.concatenate([statistic(weights) for weights in blocks])


def method_of(
    sets: Sets, fixed: Collection[str], boot: Floats | None, resampling: Resampling | None
) -> str:
    """Say how the interval was made: what was resampled, and what was held fixed."""
    if resampling is None:
        return NO_INTERVAL
    if not isinstance(resampling, Bootstrap):
        return "none: use Bootstrap()"
    if boot is None:
        return "none: every set is fixed or has one member"
    moved = resampled(sets, fixed)
    still = [name for name in sets if name not in moved]
    text = replicates_text(boot, ", ".join(moved))
    return f"{text}; {', '.join(still)} fixed" if still else text


def check_fixed(sets: Sets, fixed: Collection[str]) -> None:
    """Raise where a set to be held fixed does not exist."""
    if unknown := sorted({*fixed} - {*sets}):
        raise InputError(f"fixed: no set is called {unknown[0]!r}; expected some of {[*sets]}")


def against_exchanged(
    tested: Exchanged | None, value: float, harm: Harm, factor: float, null: str
) -> Against:
    """Hold a value against exchanged members; draws times `factor` are in its unit."""
    if tested is None or np.isnan(value):
        return NOTHING
    text = f"{null}; {tested.text}"
    p = tested.p_value(harm)
    return Against(tested.chance(factor, text), p.value, f"{text}; {p.method}")


def set_values(
    sets: Sequence[Members],
    values: Sequence[float],
    boots: Sequence[Floats | None],
    level: float,
) -> tuple[GroupValue, ...]:
    """Return a number of each set with its percentile interval."""
    found = []
    for one, value, boot in zip(sets, values, boots, strict=True):
        low, high = ends_of(boot)(level)
        found.append(GroupValue(one.name, (one.name,), len(one), value, low, high))
    return tuple(found)


def compared(similarity: Similarity | None) -> dict[str, Any]:
    """Say what similarity is, as a parameter."""
    return {"similarity": "cosine" if similarity is None else "scores of pairs"}


def overlap(sets: Sets, *pairs: tuple[str, str]) -> dict[str, Any]:
    """Note members that stand in both sets of a pair: kept, and told."""
    found = {f"{a} and {b}": shared_members(sets[a], sets[b]) for a, b in pairs}
    shared = {names: count for names, count in found.items() if count}
    return {"in_both": shared} if shared else {}


def assembled(  # noqa: PLR0913 - one keyword for each field
    metric: str,
    value: float,
    sets: Sets,
    *,
    held: Against,
    parts: Sequence[Part] | Callable[[], Sequence[Part]],
    method: str,
    ends: Ends,
    params: Mapping[str, Any],
    reason: str = "",
    harm: Harm | None = None,
    no_chance: str = "no resampling was asked for, or there is no value",
) -> Estimate:
    """Return the estimate of a number of sets; parts may be made when they are first read."""
    return make_estimate(
        metric=metric,
        value=value,
        n={name: len(one) for name, one in sets.items()},
        method=method,
        params=params,
        **held.fields(no_chance),
        harm=harm,
        by=lambda: parts_to_table(parts() if callable(parts) else parts),
        excluded=dropped_of(sets),
        unit="row" if all(one.units is None for one in sets.values()) else "unit",
        reason=reason,
        ends=ends,
    )


def pair_units(first: Members, second: Members) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Units of two sets that exchange members: of both or of neither.

    Raises
    ------
    InputError
        When only one of them has units.
    """
    if first.units is None and second.units is None:
        return None
    if first.units is None or second.units is None:
        missing = first.name if first.units is None else second.name
        raise InputError(
            f"units: {missing!r} has none; {first.name} and {second.name} exchange members, "
            "so name the units of both"
        )
    return first.units, second.units


Weights = npt.NDArray[Any]

# Replicates that are drawn together: part of the key of their stream, so never to be changed.
_BLOCK, _BLOCK_CELLS = 256, 4_000_000
# Replicates that at least share a pass over the vectors, so that time grows as these do; and
# members from which weights are held in a byte each, which no replicate comes near to filling.
_TOGETHER, _MANY = 32, 1 << 14
# Members drawn at once.
_DRAWN = 1 << 18
_EXACT_BITS = 52
# Numbers of vectors that are made whole together.
_AT_ONCE = 1 << 18


def replicate_blocks(
    sets: Sets, fixed: Collection[str], replicates: int, seed: int
) -> Iterator[Mapping[str, Weights]]:
    """Yield blocks of weights (replicates, members) of every set.

    Members that repeat within units count a Poisson(1) number of times, a function of the unit's
    name alone; others are drawn with replacement. Sets that are fixed, or have one member, count
    each member once. Weights are float64, and uint8 of sets of more than 16,384 members.
    """
    largest = max(len(one) for one in sets.values())
    size = max(1, min(_BLOCK, _BLOCK_CELLS // largest))
    # The digits that are kept of a block depend on its heaviest replicate, where these differ.
    alike = all(one.units is None for one in sets.values())
    step = size * math.ceil(_TOGETHER / size) if alike else size
    draw = {name: _drawing(one, name in fixed, size, seed) for name, one in sets.items()}
    for start in range(0, replicates, step):
        held = range(start, min(start + step, replicates))
        yield {name: weights(held) for name, weights in draw.items()}


def few_at_once(
    statistic: Callable[[Mapping[str, Weights]], Floats], sets: Sets, *names: str
) -> Callable[[Mapping[str, Weights]], Floats]:
    """Return a statistic that holds a number of every replicate and member for few at a time.

    Parameters
    ----------
    statistic : callable
        From weights (replicates, members) by set to numbers (replicates, s).
    sets : mapping of str to Members
    names : str
        Sets whose members have such numbers: their weights are float64.
    """
    # Never below what is drawn together, by the largest of all sets.
    step = max(1, _BLOCK_CELLS // max(len(sets[name]) for name in names))

    def part(weights: Mapping[str, Weights], start: int) -> Floats:
        held = {name: one[start : start + step] for name, one in weights.items()}
        exact = {name: held[name].astype(np.float64, copy=False) for name in names}
        return statistic({**held, **exact})

    def applied(weights: Mapping[str, Weights]) -> Floats:
        many = len(next(iter(weights.values())))
        return np.concatenate([part(weights, start) for start in range(0, many, step)])

    return applied


def resampled(sets: Sets, fixed: Collection[str]) -> tuple[str, ...]:
    """Names of the sets whose members vary between replicates."""
    return tuple(name for name, one in sets.items() if name not in fixed and _varies(one))


def mean_vectors(weights: Weights, vectors: Members | Floats) -> Floats:
    """Weighted means of vectors, shape (replicates, d); NaN where all weights are 0."""
    if isinstance(vectors, Members):
        largest, blocks = vectors.size, vectors.blocks()
    else:
        largest = max(float(vectors.max(initial=0.0)), -float(vectors.min(initial=0.0)))
        step = max(1, _AT_ONCE // vectors.shape[1])
        cuts = (slice(start, start + step) for start in range(0, len(vectors), step))
        blocks = ((here, vectors[here]) for here in cuts)
    totals = weights.sum(axis=1, dtype=np.float64)
    heaviest = max(float(totals.max(initial=1.0)), 1.0)
    bits = math.floor(_EXACT_BITS - math.log2(heaviest) - math.log2(largest or 1.0))
    # Sums of whole numbers are exact, in blocks or not.
    parts = (
        weights[:, here].astype(np.float64, copy=False) @ np.rint(np.ldexp(rows, bits))
        for here, rows in blocks
    )
    sums = reduce(np.add, parts)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ldexp(sums / totals[:, None], -bits))


def row_dots(first: Floats, second: Floats) -> Floats:
    """Inner product of each row with the same row of the other, shape (replicates,)."""
    return np.asarray(np.einsum("rd,rd->r", first, second))


def _varies(one: Members) -> bool:
    return len(set(one.units)) > 1 if one.units is not None else len(one) > 1


def _drawing(one: Members, fixed: bool, size: int, seed: int) -> Callable[[range], Weights]:
    """Return what gives the weights of a range of replicates, `size` of which share a stream."""
    n, kind = len(one), np.uint8 if len(one) > _MANY else np.float64
    if fixed or not _varies(one):
        return lambda held: np.ones((len(held), n), dtype=kind)
    if one.units is not None:
        names, index = np.unique(one.units, return_inverse=True)
        keys = unit_keys(names.tolist())
        return lambda held: unit_counts(seed, keys, held)[:, index].astype(kind)

    def drawn(held: range) -> Weights:
        starts = range(held.start, held.stop, size)
        streams = [stream(seed, "bootstrap", one.name, start) for start in starts]
        weights = np.zeros((len(held), n), dtype=kind)
        lines = [weights[start - held.start :][:size] for start in starts]
        each(lambda place: _count(streams[place], lines[place]), range(len(starts)))
        return weights

    return drawn


def _count(drawing: np.random.Generator, weights: Weights) -> None:
    """Draw members with replacement for each line of weights (replicates, n), which are 0."""
    flat, n = weights.reshape(-1), weights.shape[1]
    # A line of many members stays in the cache; of few members, some lines are drawn at once.
    step = n * max(1, _DRAWN // n)
    for first in range(0, len(flat), step):
        lines = flat[first : first + step]
        for start in range(0, len(lines), _DRAWN):
            drawn = drawing.integers(n, size=min(_DRAWN, len(lines) - start))
            count_drawn(drawn, n, start, lines)
