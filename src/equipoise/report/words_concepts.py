"""What design choices do to the disparity of a concept, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.metrics.spec import spec_of
from equipoise.report.tables import Row
from equipoise.report.text import interval, number

_CONTROL = {
    "weighted": "with {ratio:g} negatives for each positive in every group",
    "hall": "in samples with {ratio:g} negatives for each positive in every group",
    "observed": "with prevalence as the data have it",
}


@dataclass(frozen=True)
class Version:
    """A version as the page speaks of it.

    Attributes
    ----------
    name : str
    changes : str
        What it changes, in words.
    prevalence : str
        "" unless prevalence is all that it changes; else how, in words.
    """

    name: str
    changes: str
    prevalence: str

    @property
    def where(self) -> str:
        """Where its numbers hold, to follow a comma or begin a clause."""
        return self.prevalence or f"under “{self.name}” ({self.changes})"


def versions_of(rows: Sequence[Row]) -> dict[str, Version]:
    """Read the table of versions."""
    found = {}
    for row in rows:
        only = bool(row["keys"]) and {*row["keys"]} <= {"prevalence", "ratio"}
        control = _CONTROL[row["prevalence"]].format(ratio=row["ratio"]) if only else ""
        found[row["version"]] = Version(row["version"], row["changes"], control)
    return found


def name_of(concept: str) -> str:
    """Return how the page calls a concept, or the mean over all."""
    return concept or "mean over concepts"


def worse(row: Row, value: float) -> str:
    """Return the group that is worse off where `value` is the first minus the second."""
    first_is_worse = (value > 0) == (spec_of(row["metric"]).harm == "higher")
    return str(row["group_a"] if first_is_worse else row["group_b"])


def size(row: Row, sign: float) -> str:
    """Return a version's difference with its interval, in the direction of `sign`."""
    low, high = (row["low"], row["high"]) if sign > 0 else (-row["high"], -row["low"])
    return f"{number(sign * row['value'], 2)} {interval(low, high, 2)}"


def sentence(rows: Sequence[Row], versions: Mapping[str, Version]) -> str:
    """Say what versions of one effect do to one disparity.

    Parameters
    ----------
    rows : sequence of rows of the table "choices"
        Of one concept, pair of groups and effect; the first is told, the rest are added.
    versions : mapping of str to Version
    """
    first, *rest = rows
    text = _TOLD[first["effect"]](first, versions[first["version"]])
    sign = _sign(first)
    more = [f"“{row['version']}” ({size(row, sign)})" for row in rest]
    told = f"{text}; so too under {', '.join(more)}." if more else f"{text}."
    return " ".join([told, *(_over(row) for row in rows if row.get("reason"))])


def _over(row: Row) -> str:
    """Say that a mean is over other concepts than the baseline's."""
    return f"Under “{row['version']}” the mean is {row['reason']}; that alone may change it."


def _sign(row: Row) -> float:
    turned = row["effect"] == "surfaces"
    return -1.0 if (row["value"] if turned else row["baseline_value"]) < 0 else 1.0


def _disparity(row: Row) -> str:
    concept = row["concept"] or "Mean over concepts"
    metric = spec_of(row["metric"]).label
    return f"{concept}: the disparity in {metric} between {row['group_a']} and {row['group_b']}"


def _was(row: Row) -> str:
    return number(abs(row["baseline_value"]), 2)


def _explains(row: Row, version: Version) -> str:
    cause = "prevalence: " if version.prevalence else ""
    return (
        f"{_disparity(row)} ({_was(row)}) is explained by {cause}"
        f"{version.prevalence or f'“{version.name}” ({version.changes}): there'} it is "
        f"{size(row, _sign(row))}"
    )


def _surfaces(row: Row, version: Version) -> str:
    old = number(_sign(row) * row["baseline_value"], 2)
    text = (
        f"{_disparity(row)} surfaces {version.where}: {size(row, _sign(row))}, worse for "
        f"{worse(row, row['value'])}, against {old} in the baseline"
    )
    if version.prevalence and _excludes_zero(row):
        return f"{text}. It is one of prevalence"
    return text


def _excludes_zero(row: Row) -> bool:
    return bool(row["change_low"] > 0 or row["change_high"] < 0)


def _switches(row: Row, version: Version) -> str:
    return (
        f"{_disparity(row)} switches {version.where}: worse for {worse(row, row['value'])} by "
        f"{size(row, -_sign(row))}, in the baseline for {worse(row, row['baseline_value'])} by "
        f"{_was(row)}"
    )


def _changes(row: Row, version: Version) -> str:
    how = {"magnifies": "grows", "shrinks": "shrinks"}[row["effect"]]
    return f"{_disparity(row)} ({_was(row)}) {how} {version.where}: {size(row, _sign(row))}"


def _lost_power(row: Row, version: Version) -> str:
    return (
        f"{_disparity(row)} ({_was(row)}) is not significant {version.where}: "
        f"{size(row, _sign(row))}; the change may be chance, so nothing is explained"
    )


_TOLD: Mapping[str, Any] = {
    "explains": _explains,
    "surfaces": _surfaces,
    "switches": _switches,
    "magnifies": _changes,
    "shrinks": _changes,
    "lost power": _lost_power,
}
TOLD = tuple(_TOLD)


def order_sentence(rows: Sequence[Row]) -> str:
    """Say in which versions another model has the larger disparity than in the baseline."""
    first = rows[0]
    old = first["baseline_larger"]
    other = first["model_b"] if old == first["model_a"] else first["model_a"]
    concept = first["concept"] or "Mean over concepts"
    sign = 1.0 if other == first["model_a"] else -1.0
    told = [f"“{row['version']}” by {_by(row, sign)}" for row in rows]
    return (
        f"{concept}, {first['group_a']} and {first['group_b']}: the larger disparity is that of "
        f"{old} in the baseline, and that of {other} under {', '.join(told)}."
    )


def _by(row: Row, sign: float) -> str:
    low, high = (row["low"], row["high"]) if sign > 0 else (-row["high"], -row["low"])
    return f"{number(sign * row['difference'], 2)} {interval(low, high, 2)}"
