"""`equipoise metrics`: what each number means."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.metrics import MetricSpec

_LINES = (
    ("title", "Title"),
    ("symbol", "Symbol"),
    ("kinds", "Audits"),
    ("definition", "Definition"),
    ("range", "Range"),
    ("unit", "Unit"),
    ("harm", "Harm"),
    ("direction", "Direction"),
    ("chance", "Chance level"),
    ("interval", "Interval"),
    ("null", "Null hypothesis"),
    ("threshold", "Practical threshold"),
    ("parameters", "Parameters"),
    ("threshold_reason", "Threshold reason"),
    ("reference", "Reference"),
    ("errata", "Errata"),
)


@click.command("metrics")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.metrics import SPECS

    chosen = SPECS if name is None else {name: _spec(SPECS, name)}
    if as_json:
        say_json({key: _fields(spec) for key, spec in chosen.items()})
    elif name is None:
        rows = sorted(SPECS.values(), key=lambda spec: spec.kinds[0])
        say_table(("metric", "audit", "range", "title"), [_row(spec) for spec in rows])
        say("\n'equipoise metrics NAME' shows a whole card.")
    else:
        _show(chosen[name])


def _spec(specs: Mapping[str, MetricSpec], name: str) -> MetricSpec:
    if name in specs:
        return specs[name]
    from equipoise.core.errors import InputError

    near = get_close_matches(name, [*specs], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"no metric is called {name!r}. There are: {', '.join(specs)}{hint}")


def _fields(spec: MetricSpec) -> dict[str, object]:
    return {"name": spec.name} | {field: getattr(spec, field) for field, _ in _LINES}


def _row(spec: MetricSpec) -> tuple[str, ...]:
    return spec.name, spec.kinds[0], spec.range, spec.title


def _show(spec: MetricSpec) -> None:
    say(spec.name)
    for field, title in _LINES:
        value = getattr(spec, field)
        if isinstance(value, tuple):
            value = ", ".join(value)
        if isinstance(value, Mapping):
            value = "".join(f"\n    {key}: {text}" for key, text in value.items())
        if value not in ("", None):
            say(f"  {title}: {value}")
