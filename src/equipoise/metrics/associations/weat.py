"""WEAT: how differently two target sets are associated with two attribute sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part
from equipoise.metrics.associations.partitions import HARM, Alternative, Exchanged, exchange
from equipoise.metrics.associations.resampling import (
    against_exchanged,
    assembled,
    check_fixed,
    compared,
    few_at_once,
    mean_vectors,
    method_of,
    overlap,
    pair_units,
    replicates,
    set_values,
)
from equipoise.metrics.associations.space import Sets, Similarity, embed
from equipoise.metrics.building import Against, ends_of, number
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import COHEN, MetricSpec, register
from equipoise.stats.resampling import Bootstrap, Resampling, level_of

Floats = npt.NDArray[np.float64]

# A standard deviation that is rounding only, relative to the largest score.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TwoSets:
    """Numbers of two sets, and how far apart these are in standard deviations."""

    x: Floats
    y: Floats
    ddof: int

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean of each set."""
        return _mean(self.x), _mean(self.y)

    @cached_property
    def spread(self) -> float:
        """Standard deviation over both sets; 0 where it is rounding only."""
        pooled = np.sort(np.concatenate([self.x, self.y]))
        if len(pooled) <= self.ddof:
            return 0.0
        apart = pooled - pooled.sum() / len(pooled)
        found = math.sqrt((apart * apart).sum() / (len(pooled) - self.ddof))
        return found if found > _ROUNDING * float(max(pooled[-1], -pooled[0])) else 0.0

    @cached_property
    def effect_size(self) -> float:
        """Difference in means in standard deviations; NaN where these are 0."""
        first, second = self.means
        return (first - second) / self.spread if self.spread else float("nan")

    @property
    def reason(self) -> str:
        """Why there is no effect size."""
        return "" if self.spread else "all scores are equal: their standard deviation is 0"


def _mean(values: Floats) -> float:
    # Sorted, so that the last bit does not depend on the order of rows.
    return float(np.sort(values).sum() / len(values))


def weighted_effects(x: Floats, y: Floats, wx: Floats, wy: Floats, ddof: int) -> Floats:
    """Effect size, both means and the difference of sums, shape (replicates, 4)."""
    nx, ny = wx.sum(axis=1), wy.sum(axis=1)
    sums = (wx * x).sum(axis=1), (wy * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[0] / nx, sums[1] / ny
        centre = ((sums[0] + sums[1]) / (nx + ny))[:, None]
        squares = (wx * (x - centre) ** 2).sum(axis=1) + (wy * (y - centre) ** 2).sum(axis=1)
        spread = np.sqrt(squares / np.maximum(nx + ny - ddof, 0))
        flat = spread <= _ROUNDING * max(np.abs(x).max(), np.abs(y).max())
        effect = (means[0] - means[1]) / np.where(flat, np.nan, spread)
    return np.stack([effect, *means, sums[0] - sums[1]], axis=1)


def weat(  # noqa: PLR0913 - one keyword for each choice
    x: Any,
    y: Any,
    a: Any,
    b: Any,
    *,
    alternative: Alternative = "greater",
    ddof: int = 1,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Effect size of the association of targets x with a, and y with b (WEAT, iEAT).

    d = (mean over x of s - mean over y of s) / standard deviation of s over x and y, where
    s(w, A, B) = mean over a of sim(w, a) - mean over b of sim(w, b).

    Parameters
    ----------
    x, y, a, b : array-like, shape (n, d)
        Embeddings of targets and attributes, images or texts; see `association_score`. Sets may
        have unequal sizes; members of both x and y, or a and b, stay and are told in `.params`.
    alternative : "greater", "less" or "two-sided"
        "greater": x goes with a. Two-sided doubles the smaller p.
    ddof : int
        1: divide by n - 1, as iEAT's code does; 0: by n.
    similarity, units, fixed, resampling, rng
        As in `association_score`.

    Returns
    -------
    Estimate
        d; with equal sizes in [-2, 2] for ddof 0. Bands 0.2, 0.5, 0.8. NaN when all scores are
        equal. Interval: percentile bootstrap over all sets not `fixed`. Chance and p: x and y
        exchange members, keeping their sizes; exact up to 200,000 partitions or 44 targets.
        `.by` has d with the mean score of x and y, and "differential_association", their sum
        over x minus that over y: the same test on another scale.

    Raises
    ------
    InputError
        As `association_score`; or `alternative` or `ddof` is unknown.

    References
    ----------
    Caliskan et al. 2017, Science 356, 183-186 (its strict > is >= here: the observed partition
    counts); Steed & Caliskan 2021.
    """
    _check(alternative, ddof)
    sets = embed({"x": x, "y": y}, {"a": a, "b": b}, similarity=similarity, units=units)
    check_fixed(sets, fixed)
    direction = sets["a"].mean - sets["b"].mean
    scores = TwoSets(*_columns(sets, ("x", "y"), direction), ddof)
    boot = None
    if isinstance(resampling, Bootstrap):
        effects = few_at_once(_resampled(sets, ddof), sets, "x", "y")
        boot = replicates(sets, fixed, resampling, rng, effects)
    tested = None
    if resampling is not None:
        columns = scores.x[:, None], scores.y[:, None]
        both = pair_units(sets["x"], sets["y"])
        tested = exchange(*columns, resampling, rng, "targets", units=both)
    held = against_exchanged(
        tested,
        scores.effect_size,
        HARM[alternative],
        1.0 / (scores.spread or 1.0),
        "the members of x and y are exchangeable",
    )
    return assembled(
        "weat",
        scores.effect_size,
        sets,
        held=held,
        harm=HARM[alternative],
        parts=partial(_parts, sets, scores, boot, held, level_of(resampling)),
        method=method_of(sets, fixed, boot, resampling),
        ends=ends_of(boot, 0),
        params={"alternative": alternative, "ddof": ddof}
        | compared(similarity)
        | overlap(sets, ("x", "y"), ("a", "b")),
        reason=scores.reason,
    )


def sc_weat(  # noqa: PLR0913 - one keyword for each choice
    w: Any,
    a: Any,
    b: Any,
    *,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Effect size of one target's association with a rather than b (SC-WEAT).

    d = (mean over a of sim(w, a) - mean over b of sim(w, b)) / standard deviation of sim(w, .)
    over a and b.

    Parameters
    ----------
    w : array-like, shape (d,) or (1, d)
        Embedding of the target.
    a, b : array-like, shape (n, d)
        Embeddings of the attributes.
    alternative, ddof, similarity, units, fixed, resampling, rng
        As in `weat`; "greater": w goes with a.

    Returns
    -------
    Estimate
        d, NaN when all similarities are equal. Interval: percentile bootstrap over attributes.
        Chance and p: a and b exchange members. `.by` has d with both mean similarities.

    Raises
    ------
    InputError
        As `weat`; or `w` is more than one target.

    References
    ----------
    Caliskan et al. 2017 (WEFAT); Caliskan et al. 2022 (SC-WEAT).
    """
    _check(alternative, ddof)
    target = _one_target(w, similarity)
    sets = embed({"w": target}, {"a": a, "b": b}, similarity=similarity, units=units)
    check_fixed(sets, fixed)
    scores = TwoSets(*_columns(sets, ("a", "b"), sets["w"].vectors[0]), ddof)
    moments = few_at_once(partial(_moments, scores), sets, "a", "b")
    boot = replicates(sets, fixed, resampling, rng, moments)
    held = against_exchanged(
        _exchanged(sets, scores, resampling, rng),
        scores.effect_size,
        HARM[alternative],
        1.0 / (scores.spread or 1.0),
        "the members of a and b are exchangeable",
    )
    level = level_of(resampling)
    boots = [None if boot is None else boot[:, index] for index in (1, 2)]
    groups = set_values([sets["a"], sets["b"]], scores.means, boots, level)
    part = number(
        "sc_weat",
        scores.effect_size,
        n=len(sets["a"]) + len(sets["b"]),
        ends=ends_of(boot, 0),
        level=level,
        held=held,
        by_group=groups,
        reason=scores.reason,
        shows="mean similarity of the target to the set",
    )
    return assembled(
        "sc_weat",
        scores.effect_size,
        sets,
        held=held,
        harm=HARM[alternative],
        parts=[part],
        method=method_of(sets, fixed, boot, resampling),
        ends=ends_of(boot, 0),
        params={"alternative": alternative, "ddof": ddof}
        | compared(similarity)
        | overlap(sets, ("a", "b")),
        reason=scores.reason,
    )


def _exchanged(
    sets: Sets, scores: TwoSets, resampling: Resampling | None, rng: int
) -> Exchanged | None:
    """Exchange the members of both attribute sets."""
    if resampling is None:
        return None
    columns = scores.x[:, None], scores.y[:, None]
    both = pair_units(sets["a"], sets["b"])
    return exchange(*columns, resampling, rng, "attributes", units=both)


def _one_target(w: Any, similarity: Similarity | None) -> Any:
    """Return the one target as a set of one."""
    target = np.asarray(w)
    target = target[None] if target.ndim == 1 and similarity is None else w
    if np.ndim(target) > 0 and len(target) != 1:
        raise InputError(f"w: {len(target)} targets; expected one, call sc_weat for each")
    return target


def _columns(sets: Sets, names: tuple[str, str], direction: Floats) -> tuple[Floats, Floats]:
    first, second = (sets[name].dots(direction) for name in names)
    return first, second


def _resampled(sets: Sets, ddof: int) -> Callable[[Mapping[str, Floats]], Floats]:
    """Return what gives effect size, means and differential association of resampled sets.

    Means of similarities to all targets, not of vectors, are taken anew: these are fewer numbers.
    """
    targets = np.concatenate([sets["x"].vectors, sets["y"].vectors])
    near = {name: sets[name].similarities(targets) for name in ("a", "b")}
    many = len(sets["x"])

    def effects(weights: Mapping[str, Floats]) -> Floats:
        first, second = (mean_vectors(weights[name], near[name]) for name in ("a", "b"))
        s = first - second
        return weighted_effects(s[:, :many], s[:, many:], weights["x"], weights["y"], ddof)

    return effects


def _moments(scores: TwoSets, weights: Mapping[str, Floats]) -> Floats:
    columns = scores.x[None], scores.y[None]
    return weighted_effects(*columns, weights["a"], weights["b"], scores.ddof)


def _parts(
    sets: Sets, scores: TwoSets, boot: Floats | None, held: Against, level: float
) -> list[Part]:
    n = len(sets["x"]) + len(sets["y"])
    boots = [None if boot is None else boot[:, index] for index in (1, 2)]
    groups = set_values([sets["x"], sets["y"]], scores.means, boots, level)
    difference = float(np.sort(scores.x).sum() - np.sort(scores.y).sum())
    return [
        number(
            "weat",
            scores.effect_size,
            n=n,
            ends=ends_of(boot, 0),
            level=level,
            held=held,
            by_group=groups,
            reason=scores.reason,
            shows="mean association score of the set",
        ),
        number("differential_association", difference, n=n, ends=ends_of(boot, 3), level=level),
    ]


def _check(alternative: str, ddof: int) -> None:
    if alternative not in HARM:
        raise InputError(f"alternative={alternative!r}: expected one of {[*HARM]}")
    if ddof not in (0, 1):
        raise InputError(f"ddof={ddof!r}: expected 0 or 1")


_effect = partial(
    MetricSpec,
    kinds=("associations",),
    range="[-2, 2] for equal sizes and ddof 0, slightly wider otherwise",
    harm="either",
    threshold=0.2,
    threshold_reason=COHEN,
    chance="0, with a wide band for few members",
    parameters={"alternative": "two-sided, greater or less", "ddof": "1 (iEAT's code) or 0"},
)
register(
    _effect(
        name="weat",
        title="WEAT effect size",
        symbol="d",
        definition=(
            "Mean association score of targets x minus that of targets y, over the standard "
            "deviation of both together."
        ),
        direction="Either: positive means x goes with a and y with b.",
        interval="percentile bootstrap over every set of two members or more that is not fixed",
        null="members of x and y are exchangeable; exact up to 200,000 partitions or 44 targets",
        reference="Caliskan et al. 2017; Steed & Caliskan 2021 (iEAT)",
        errata=(
            "The source counts partitions with a strictly larger statistic and so leaves out the "
            "observed one, which is not valid. Here it counts."
        ),
    )
)
register(
    _effect(
        name="sc_weat",
        title="SC-WEAT effect size",
        symbol="d",
        definition=(
            "Mean similarity of a target to set a minus that to set b, over the standard deviation "
            "of its similarities to both."
        ),
        direction="Either: positive goes with a, negative with b.",
        interval="percentile bootstrap over attributes",
        null="members of a and b are exchangeable",
        reference="Caliskan et al. 2017; Caliskan et al. 2022 (SC-WEAT)",
    )
)
