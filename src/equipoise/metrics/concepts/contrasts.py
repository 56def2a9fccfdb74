"""Differences between groups of each version, judged by the version's own rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.core.errors import InputError
from equipoise.metrics.concepts.cells import Floats
from equipoise.metrics.concepts.results import ConceptResults, centred
from equipoise.stats.chance import p_value
from equipoise.stats.intervals import percentile
from equipoise.stats.multiplicity import benjamini_hochberg

Versions = Mapping[str, ConceptResults]
Key = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Contrast:
    """One concept's difference between two groups in one version ("" for the mean over concepts).

    Attributes
    ----------
    value, low, high : float
        Difference of the first and the second group, with its percentile interval.
    significant : bool
    replicates : ndarray, shape (replicates,)
    """

    value: float
    low: float
    high: float
    significant: bool
    replicates: Floats

    @property
    def sign(self) -> float:
        """1 where the first group has the larger value, -1 where the second has."""
        return math.copysign(1.0, self.value)

    def reversed(self) -> Contrast:
        """Return the contrast of the groups in the other order."""
        # 0 - x, not -x: a difference of 0 stays 0 and does not become -0.
        return Contrast(
            0.0 - self.value, 0.0 - self.high, 0.0 - self.low, self.significant,
            0.0 - self.replicates,
        )  # fmt: skip


def contrasts_of(versions: Versions, baseline: str, alpha: float) -> dict[str, dict[Key, Contrast]]:
    """Judge every version; raise an InputError when they cannot be compared."""
    if baseline not in versions:
        raise InputError(f"baseline={baseline!r}: expected one of the versions {list(versions)}")
    counts = {name: 0 if one.boot is None else len(one.boot) for name, one in versions.items()}
    if 0 in counts.values() or len(set(counts.values())) > 1:
        raise InputError(
            f"versions: replicates {counts}; expected equally many bootstrap replicates in all"
        )
    return {name: _of_version(one, alpha) for name, one in versions.items()}


def _of_version(results: ConceptResults, alpha: float) -> dict[Key, Contrast]:
    boot = results.mean_replicates()
    whole = _contrast_row(results, "", results.mean_differences(), boot, centred(boot), alpha)
    found = dict(_judged(results, [whole], alpha))
    rows = [
        _contrast_row(
            results,
            name,
            results.differences(index),
            results.replicates(index),
            results.null_differences(index)[0],
            alpha,
        )
        for index, name in enumerate(results.names)
    ]
    return found | _judged(results, rows, alpha)


_Row = list[tuple[Key, float, float, float, float, Floats]]


def _contrast_row(
    results: ConceptResults,
    concept: str,
    values: Floats,
    boot: Floats | None,
    null: Floats | None,
    alpha: float,
) -> _Row:
    """Return key, value, interval, p-value and replicates of each pair of groups."""
    found: _Row = []
    for index, (g, h) in enumerate(results.pairs):
        key = (concept, results.groups.names[g], results.groups.names[h])
        value = float(values[index])
        draws = np.full(1, np.nan) if boot is None else boot[:, index]
        low, high = percentile(draws, 1.0 - alpha)[:2]
        p = math.nan
        if null is not None and not math.isnan(value) and not results.hall:
            drawn = np.abs(null[:, index])
            found_p = p_value(drawn, abs(value), "higher", resolution=results.resolution, scale=1.0)
            p = found_p.value
        found.append((key, value, float(low), float(high), p, draws))
    return found


def _judged(results: ConceptResults, rows: list[_Row], alpha: float) -> dict[Key, Contrast]:
    flat = [one for row in rows for one in row]
    q = benjamini_hochberg(np.array([one[4] for one in flat]))
    found = {}
    for (key, value, low, high, _, draws), adjusted in zip(flat, q.tolist(), strict=True):
        significant = low > 0 or high < 0 if results.hall else adjusted <= alpha
        found[key] = Contrast(value, low, high, bool(significant), draws)
    return found


def matched(found: Mapping[Key, Contrast], key: Key) -> Contrast | None:
    """Find a contrast by its names, with the groups in either order."""
    concept, a, b = key
    if key in found:
        return found[key]
    other = found.get((concept, b, a))
    return None if other is None else other.reversed()


def rule_of(results: ConceptResults, alpha: float) -> str:
    """Say when a difference of a version counts as significant."""
    if results.hall:
        return f"[Hall]: {1.0 - alpha:.0%} interval against 0"
    return f"q <= {alpha:g} (Benjamini-Hochberg over concepts and pairs)"
