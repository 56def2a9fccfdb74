"""Values as JSON has them: a missing number is null, and an infinite one is text."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
_PLAIN = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Make a value of JSON's types; NaN becomes null, and infinities become text."""
    # Most values are of these types, and asking for others takes longer.
    if type(value) in _PLAIN or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _INFINITE.get(value)
    if isinstance(value, list | tuple):
        return [*map(plain, value)]
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {
            str(key): item if type(item) in _PLAIN else plain(item) for key, item in value.items()
        }
    return str(value)


def number_from_json(value: float | str | None) -> float:
    """Return a number that `plain` wrote; null is NaN."""
    return math.nan if value is None else float(value)
