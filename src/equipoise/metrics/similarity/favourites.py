"""Whether the groups that were declared as favourites beforehand are preferred, over concepts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations as orderings

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.building import against, bootstrap_method, ends_of, known_mean
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.pools import Floats, Indices
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Exact, Resampling, null_draws, resolution_of
from equipoise.stats.streams import stream

_NULL = "which group is the favourite is exchangeable over concepts"
_ENUMERATED = 50_000


def favourite_gap(
    effects: Mapping[str, Mapping[str, float]],
    favourites: Mapping[str, str],
    *,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Mean over concepts of how far the declared favourite group lies above the other groups.

    Parameters
    ----------
    effects : mapping of concept to mapping of group to number
        Mean similarities, or effects of groups; NaN: not compared.
    favourites : mapping of concept to group
        Declared before: a stereotype, labour statistics, what was planted.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In units of the effects; above 0: favourites are preferred. Interval: percentile bootstrap
        over concepts. Chance and p (one-sided): favourites permuted over concepts, enumerated
        where there are up to 50,000 orders; a model that prefers one group everywhere follows no
        favourites. Concepts of one mapping only, and those whose favourite or all others were not
        compared, are counted in `.excluded`.

    Raises
    ------
    InputError
        When no concept is left, or with Exact there are too many orders.
    """
    table, excluded = _Table.of(effects, favourites)
    value = float(table.preference(table.own[None])[0])
    null, exact = _null(table, resampling, rng)
    boot = _bootstrap(table, resampling, rng)
    why = "the favourite is the same for all concepts: permuting it changes nothing"
    constant = len(set(table.own.tolist())) == 1
    orders = 0 if null is None else len(null)
    how = f"all {orders} orders" if exact else f"{orders} permutations"
    held = against(
        null,
        value,
        "higher",
        _NULL,
        weights=1.0 if exact else None,
        resolution=0.0 if exact else resolution_of(resampling),
    )
    held = replace(held, null=held.null.replace(_NULL, f"{_NULL}; {how}"))
    return make_estimate(
        metric="favourite_gap",
        value=value,
        n={"concepts": len(table.own)},
        method=bootstrap_method(
            boot, resampling, "concepts", "none: use Bootstrap() and two concepts or more"
        ),
        **held.fields("no resampling was asked for"),
        excluded=excluded,
        unit="concept",
        reason=why if constant else "",
        ends=ends_of(boot),
    )


def preferences(
    effects: Mapping[str, Mapping[str, float]], favourites: Mapping[str, str]
) -> dict[str, float]:
    """Return by concept the favourite's effect less the mean of the others'; NaN without one."""
    found = {}
    for concept, group in favourites.items():
        own = effects.get(concept, {})
        others = [v for name, v in own.items() if name != group and not math.isnan(v)]
        found[concept] = own.get(group, math.nan) - _mean(others)
    return found


@dataclass(frozen=True, eq=False)
class _Table:
    """How far each group lies above the others, (concepts, groups), and the favourites."""

    above: Floats
    own: Indices

    @classmethod
    def of(
        cls, effects: Mapping[str, Mapping[str, float]], favourites: Mapping[str, str]
    ) -> tuple[_Table, dict[str, int]]:
        both = [name for name in sorted(favourites) if name in effects]
        above = preferences(effects, {name: favourites[name] for name in both})
        known = [name for name in both if not math.isnan(above[name])]
        excluded = {
            "in one of effects and favourites only": len({*effects} ^ {*favourites}),
            "favourite or all others not compared": len(both) - len(known),
        }
        if not known:
            raise InputError(
                "favourites: no concept has effects of its favourite and of another group; "
                "expected at least one"
            )
        groups = sorted({favourites[name] for name in known})
        columns = [preferences(effects, dict.fromkeys(known, group)) for group in groups]
        rows = np.array([[column[name] for column in columns] for name in known])
        own = np.array([groups.index(favourites[name]) for name in known])
        # In one order, so that neither the value nor the draws depend on names.
        order = np.lexsort((own, rows[np.arange(len(own)), own]))
        return cls(rows[order], own[order]), {k: n for k, n in excluded.items() if n}

    def preference(self, favourites: Indices) -> Floats:
        """Return the mean preference for given favourites, (draws, concepts) to (draws,).

        A favourite that a concept does not compare is left out of the mean.
        """
        drawn = self.above[np.arange(len(self.own)), favourites]
        return known_mean(drawn)


def _null(table: _Table, resampling: Resampling | None, rng: int) -> tuple[Floats | None, bool]:
    if resampling is None:
        return None, False
    many = math.factorial(len(table.own))
    limit = resampling.limit if isinstance(resampling, Exact) else _ENUMERATED
    if many <= limit:
        return table.preference(np.array([*orderings(table.own)])), True
    if isinstance(resampling, Exact):
        raise InputError(
            f"resampling=Exact: {len(table.own)} concepts have {many} orders, more than {limit}; "
            "use Permutation()"
        )
    draws = null_draws(resampling, 8_000_000 // len(table.own))
    shuffled = stream(rng, "permutation", "favourites").permuted(
        np.tile(table.own, (draws, 1)), axis=1
    )
    return table.preference(shuffled), False


def _bootstrap(table: _Table, resampling: Resampling | None, rng: int) -> Floats | None:
    many = len(table.own)
    if not isinstance(resampling, Bootstrap) or many < 2:
        return None
    chosen = stream(rng, "bootstrap", "favourites").integers(
        many, size=(resampling.replicates, many)
    )
    return np.asarray(table.above[np.arange(many), table.own][chosen].mean(axis=1))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


register(
    MetricSpec(
        name="favourite_gap",
        title="Gap in favour of declared groups",
        kinds=("similarity",),
        range="that of the effects",
        definition=(
            "Effect of the group declared as a concept's favourite, minus the mean effect of the "
            "others; mean over concepts."
        ),
        direction="Higher: preferences follow the declaration.",
        chance="near 0, and no lower for a model that prefers one group everywhere",
        interval="percentile bootstrap over concepts",
        null="favourites are exchangeable over concepts",
        reference="Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses",
    )
)
