"""What becomes of the baseline's disparities, in words for its findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_WORDS = {
    "explains": "is explained by",
    "lost power": "is not significant, for lack of power, in",
    "switches": "switches direction in",
    "magnifies": "is larger in",
    "shrinks": "is smaller in",
    "surfaces": "becomes significant in",
    "stays": "stays in",
    "absent": "is absent in",
    "not estimable": "cannot be estimated in",
}

_UNKNOWN = "not estimable"
_MOST_REASONS = 3

Place = tuple[str, str, str]


def effects_of(tables: Mapping[str, pa.Table]) -> dict[Place, dict[str, str]]:
    """Return a sentence by (model, groups, metric) and concept, of the widest pair of groups.

    Versions that cannot be estimated are named with the reason, as they confirm nothing.
    """
    table = tables.get("choices")
    widest: dict[tuple[Place, str], tuple[float, Any]] = {}
    by_pair: dict[Any, dict[str, list[str]]] = {}
    reasons: dict[Any, list[str]] = {}
    means: dict[Any, list[str]] = {}
    for row in [] if table is None else table.to_pylist():
        place = (row["model"], row["groups"], row["metric"])
        pair = (place, row["concept"], row["group_a"], row["group_b"])
        size = abs(row["baseline_value"])
        # NaN is never larger.
        if size > widest.get((place, row["concept"]), (-1.0, None))[0]:
            widest[place, row["concept"]] = (size, pair)
        by_pair.setdefault(pair, {}).setdefault(row["effect"], []).append(row["version"])
        if row["effect"] == _UNKNOWN:
            reasons.setdefault(pair, []).append(row["reason"])
        elif row["reason"]:
            means.setdefault(pair, []).append(f"in {row['version']} the mean is {row['reason']}")
    found: dict[Place, dict[str, str]] = {}
    for (place, concept), (_, pair) in widest.items():
        effects = by_pair[pair]
        told = [f"{_WORDS[one]} {', '.join(effects[one])}" for one in _WORDS if one in effects]
        if pair in reasons:
            # What is unknown comes last.
            told[-1] += f" ({_some(reasons[pair])})"
        told += means.get(pair, [])[:_MOST_REASONS]
        found.setdefault(place, {})[concept] = f"other choices: the difference {'; '.join(told)}"
    return found


def _some(reasons: list[str]) -> str:
    distinct = [*dict.fromkeys(reasons)]
    more = len(distinct) - _MOST_REASONS
    return " / ".join(distinct[:_MOST_REASONS]) + (f" and {more} more reasons" if more > 0 else "")
