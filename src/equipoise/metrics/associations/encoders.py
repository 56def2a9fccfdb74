"""Total absolute association of an encoder, and encoders compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.partitions import Exchanged, exchange, permutations
from equipoise.metrics.associations.resampling import (
    assembled,
    check_fixed,
    compared,
    mean_vectors,
    method_of,
    overlap,
    pair_units,
    replicates,
    row_dots,
)
from equipoise.metrics.associations.space import Sets, Similarity, embed
from equipoise.metrics.building import NOTHING, Against, Percentile, against, ends_of, number
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Exact, Resampling, level_of
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

_REFERENCE = "Mandal 2024, chapter 7"
# Swaps of two encoders that are enumerated: 2^17 of 17 targets.
_MOST_SWAPPED = 17


@dataclass(frozen=True, eq=False)
class Scores:
    """Ends of a total absolute association, with the scores of its targets.

    Attributes
    ----------
    names : tuple of str
    observed : ndarray, shape (targets,)
        Association scores.
    boot : ndarray, shape (replicates, targets), or None
    """

    names: tuple[str, ...]
    observed: Floats
    boot: Floats | None

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends of the sum of absolute scores."""
        return ends_of(None if self.boot is None else np.abs(self.boot).sum(axis=1))(level)


def total_absolute_association(
    targets: Mapping[str, Any],
    a: Any,
    b: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Sum over targets of the absolute association score with two attribute sets.

    Parameters
    ----------
    targets : mapping of str to array-like, shape (n, d)
        Embeddings of each target.
    a, b, similarity, units, fixed, resampling, rng
        As in `association_score`.

    Returns
    -------
    Estimate
        At least 0, higher is worse; never negative, so chance alone makes it positive. Interval:
        percentile bootstrap, which is biased upwards near 0. Chance and p: a and b exchange
        members, the same exchange for all targets. `.by` has each target's score.

    Raises
    ------
    InputError
        As `association_score`; or a target is called "a" or "b", or there is none.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).
    """
    if not targets or {"a", "b"} & {*targets}:
        raise InputError(f"targets: {[*targets]}; expected named sets, none called 'a' or 'b'")
    names = tuple(sorted(targets))
    given = {name: targets[name] for name in names}
    sets = embed(given, {"a": a, "b": b}, similarity=similarity, units=units)
    check_fixed(sets, fixed)
    observed = _scores({name: one.mean[None] for name, one in sets.items()}, names)[0]

    def statistic(weights: Mapping[str, Floats]) -> Floats:
        means = {name: mean_vectors(weights[name], one) for name, one in sets.items()}
        return _scores(means, names)

    boot = replicates(sets, fixed, resampling, rng, statistic)
    tested = _exchanged(sets, names, resampling, rng)
    value = float(np.abs(observed).sum())
    total = None if tested is None else np.abs(tested.null).sum(axis=1)
    found = Scores(names, observed, boot)
    parts = [
        number(
            "association_score",
            float(observed[index]),
            subject=name,
            n=len(sets[name]),
            ends=ends_of(boot, index),
            level=level_of(resampling),
            held=_held(
                tested, None if tested is None else tested.null[:, index], observed[index], "either"
            ),
        )
        for index, name in enumerate(names)
    ]
    return assembled(
        "total_absolute_association",
        value,
        sets,
        held=_held(tested, total, value, "higher"),
        parts=parts,
        method=method_of(sets, fixed, boot, resampling),
        ends=found,
        params=compared(similarity) | overlap(sets, ("a", "b")),
    )


def compare_encoders(
    encoders: Mapping[str, Estimate], *, resampling: Resampling | None = DEFAULT, rng: int = 0
) -> Estimate:
    """Difference between encoders in their total absolute association, target by target.

    Parameters
    ----------
    encoders : mapping of str to Estimate
        What `total_absolute_association` gave for each encoder, with the same targets and seed:
        their replicates then resample the same images, and differences are paired.
    resampling : Bootstrap, Permutation, Exact or None
        None gives values alone. Intervals come from the estimates.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Largest minus smallest total over encoders, at least 0. Chance and p: encoders exchange
        their absolute scores within each target. `.by` has each encoder's total, and
        "difference" of each pair "first - second" with its paired interval and two-sided p.

    Raises
    ------
    InputError
        When there are fewer than two encoders, or their targets differ.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).
    """
    scores = _of_encoders(encoders)
    sizes = np.stack([np.abs(one.observed) for one in scores.values()])
    totals = sizes.sum(axis=1)
    value = float(totals.max() - totals.min())
    level = level_of(resampling)
    held = NOTHING
    if resampling is not None:
        null, weights, text = _swapped(sizes, resampling, rng)
        held = _compare(null.max(axis=1) - null.min(axis=1), weights, text, value, resampling)
    parts = [
        Part("total", name, float(total), *one(level), n=len(one.names))
        for (name, one), total in zip(scores.items(), totals, strict=True)
    ]
    for (first, a), (second, b) in combinations(scores.items(), 2):
        parts.append(_pair(f"{first} - {second}", a, b, level, resampling, rng))
    return make_estimate(
        metric="encoder_difference",
        value=value,
        n=dict.fromkeys(encoders, len(next(iter(scores.values())).names)),
        method=NO_INTERVAL if resampling is None else "none; pairs: paired percentile bootstrap",
        **held.fields("no resampling was asked for"),
        by=parts_to_table(parts),
        unit="target",
    )


def _scores(means: Mapping[str, Floats], names: tuple[str, ...]) -> Floats:
    apart = means["a"] - means["b"]
    return np.stack([row_dots(means[name], apart) for name in names], axis=1)


def _exchanged(
    sets: Sets, names: tuple[str, ...], resampling: Resampling | None, seed: int
) -> Exchanged | None:
    if resampling is None:
        return None
    centres = [sets[name].mean for name in names]
    low, high = (
        np.stack([sets[side].dots(centre) for centre in centres], axis=1) for side in ("a", "b")
    )
    both = pair_units(sets["a"], sets["b"])
    return exchange(low, high, resampling, seed, "members", units=both)


def _held(tested: Exchanged | None, null: Floats | None, value: float, harm: Any) -> Against:
    if tested is None or null is None:
        return NOTHING
    return against(
        null,
        float(value),
        harm,
        f"the members of a and b are exchangeable; {tested.text}",
        weights=1.0 if tested.enumerated else None,
        resolution=tested.resolution,
        scale=tested.scale,
    )


def _of_encoders(encoders: Mapping[str, Estimate]) -> dict[str, Scores]:
    if len(encoders) < 2:
        raise InputError(f"encoders: {[*encoders]}; expected at least two")
    found: dict[str, Scores] = {}
    for name, one in encoders.items():
        if not isinstance(one.ends, Scores):
            raise InputError(f"encoders: {name!r} is not what total_absolute_association returned")
        found[name] = one.ends
    if len({one.names for one in found.values()}) > 1:
        raise InputError("encoders: measured on different targets; measure all on the same")
    return found


def _swapped(sizes: Floats, resampling: Resampling, seed: int) -> tuple[Floats, Floats | None, str]:
    """Totals with encoders exchanged within targets, shape (draws, encoders)."""
    encoders, targets = sizes.shape
    if encoders == 2 and targets <= _MOST_SWAPPED:
        swaps = np.array([*product((False, True), repeat=targets)])
        first = np.where(swaps, sizes[1], sizes[0]).sum(axis=1)
        null = np.stack([first, sizes.sum() - first], axis=1)
        return null, np.ones(len(null)), f"all {len(null)} swaps enumerated"
    if isinstance(resampling, Exact):
        raise InputError(
            f"resampling=Exact: {encoders} encoders and {targets} targets are too many to "
            "enumerate; use Permutation()"
        )
    draws = permutations(sizes.size, resampling)
    tiled = np.broadcast_to(sizes.T, (draws, targets, encoders))
    shuffled = stream(seed, "permutation", "encoders").permuted(tiled, axis=2)
    return shuffled.sum(axis=1), None, f"{draws} random swaps"


def _compare(
    null: Floats, weights: Floats | None, text: str, value: float, resampling: Resampling
) -> Against:
    told = f"encoders are exchangeable within each target; {text}"
    finest = resampling.resolution
    return against(null, value, "higher", told, weights=weights, resolution=finest)


def _pair(
    subject: str, a: Scores, b: Scores, level: float, resampling: Resampling | None, seed: int
) -> Part:
    sizes = np.abs(np.stack([a.observed, b.observed]))
    value = float(sizes[0].sum() - sizes[1].sum())
    low, high = math.nan, math.nan
    if a.boot is not None and b.boot is not None and a.boot.shape == b.boot.shape:
        drawn = np.abs(a.boot).sum(axis=1) - np.abs(b.boot).sum(axis=1)
        low, high = Percentile(drawn)(level)
    p = math.nan
    if resampling is not None:
        null, weights, text = _swapped(sizes, resampling, seed)
        away = np.abs(null[:, 0] - null[:, 1])
        found = _compare(away, weights, text, abs(value), resampling)
        p = math.nan if found.p_value is None else found.p_value
    return Part("difference", subject, value, low, high, p_value=p, n=len(a.names))


register(
    MetricSpec(
        name="total_absolute_association",
        title="Total absolute association",
        kinds=("associations",),
        range="[0, 2 x targets] for cosines",
        definition="Sum over targets of the absolute association score.",
        direction="Higher: targets are associated more with either group.",
        chance="above 0, more so for small sets and many targets",
        interval="percentile bootstrap, biased upwards near 0",
        null="members of a and b are exchangeable, alike for all targets",
        reference=_REFERENCE,
    )
)
register(
    MetricSpec(
        name="encoder_difference",
        of_models=True,
        title="Difference between encoders",
        kinds=("associations",),
        range="[0, infinity)",
        definition="Largest minus smallest total absolute association over encoders.",
        direction="Higher: encoders differ more.",
        chance="above 0",
        interval="paired percentile bootstrap for pairs; none for the largest",
        null="encoders are exchangeable within each target",
        reference=_REFERENCE,
    )
)
