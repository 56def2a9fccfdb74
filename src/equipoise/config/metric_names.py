"""Names of metrics in a config: registered names, and those that the field has for them."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from equipoise.config.files import nearest
from equipoise.core import Aggregate
from equipoise.metrics.naming import find_records
from equipoise.metrics.spec import ALIASES, SPECS, MetricSpec, own_aggregate


def kind_of(info: ValidationInfo) -> str:
    """Return the kind of audit of a config, "" of another config."""
    return str((info.context or {}).get("audit") or "")


def metrics_of_kind(kind: str) -> list[str]:
    """Return the metrics that a kind of audit reports; "" stands for all kinds."""
    return [name for name, spec in SPECS.items() if kind in ("", *spec.kinds)]


def find_metric(
    name: object, key: str | int, kind: str = "", allowed: Iterable[str] | None = None
) -> MetricSpec:
    """Return the record that a name in a config stands for.

    Parameters
    ----------
    name : str
        Name of a metric, an alias, or either with how groups compare in it.
    key : str or int
        Key or place in the section, for errors.
    kind : str
        The kind of audit; "" for any.
    allowed : iterable of str, optional
        Names of metrics; those of the kind unless given.

    Raises
    ------
    PydanticCustomError
        When there is none, with the names that are allowed and the likeliest of them.
    PluginError
        When a plugin adds another metric of this name.
    """
    names = metrics_of_kind(kind) if allowed is None else [*allowed]
    records = find_records(str(name))
    for record in records:
        if record.name in names:
            check_measured(record.name, record.aggregate, key)
            return record
    of_kind = f" of audits of {kind.replace('_', ' ')}" if kind else ""
    aliases = [alias for alias, record in ALIASES.items() if record.name in names]
    hint = "" if records else nearest(name, [*names, *aliases])
    if records and kind in records[0].kinds:
        problem = f"{str(name)!r} has no switch of its own here. Allowed: {', '.join(names)}"
        raise refused(key, problem)
    if records and (other_kinds := [other for other in records[0].kinds if other != kind]):
        hint = f"; it is one of audits of {', '.join(other_kinds).replace('_', ' ')}"
    allowed_names = "" if hint.startswith("; did") else f". Allowed: {', '.join(names)}"
    problem = f"{str(name)!r} isn't a metric{of_kind}{allowed_names}{hint}"
    raise refused(key, problem)


def check_measured(metric: str, comparison: str | None, key: str | int) -> None:
    """Refuse the ratio of groups, unless the metric is a ratio itself: no audit measures it.

    Raises
    ------
    PydanticCustomError
        With what audits measure in its place.
    """
    if comparison == Aggregate.RATIO != own_aggregate(metric):
        problem = f"audits measure no ratio of groups. To do: write {metric} of the difference"
        raise refused(key, problem)


def refused(key: str | int, problem: str) -> PydanticCustomError:
    """Return an error about a key of a section, which names its line."""
    return PydanticCustomError("unknown_key", "{problem}", {"key": key, "problem": problem})
