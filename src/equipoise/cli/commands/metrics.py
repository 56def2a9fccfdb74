"""`equipoise metrics`: what each number means."""

from __future__ import annotations

import click

from equipoise.cli.terminal import json_option, say, say_json, say_table, say_values

_FIELDS = [
    "title",
    "symbol",
    "kinds",
    "definition",
    "range",
    "unit",
    "harm",
    "direction",
    "chance",
    "interval",
    "null",
    "threshold",
    "parameters",
    "threshold_reason",
    "reference",
    "errata",
]


@click.command("metrics")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.audits.config_yaml import nearest
    from equipoise.core.errors import InputError
    from equipoise.metrics import SPECS

    if name is not None and name not in SPECS:
        raise InputError(
            f"no metric is called {name!r}. There are: {', '.join(SPECS)}{nearest(name, SPECS)}"
        )
    cards = {
        key: {"name": key} | {field: getattr(spec, field) for field in _FIELDS}
        for key, spec in SPECS.items()
        if name in (None, key)
    }
    if as_json:
        say_json(cards)
    elif name is None:
        rows = sorted(SPECS.values(), key=lambda spec: spec.kinds[0])
        cells = [(spec.name, spec.kinds[0], spec.range, spec.title) for spec in rows]
        say_table(("metric", "audit", "range", "title"), cells)
        say("\n'equipoise metrics NAME' shows a whole card.")
    else:
        say_values({field: value for field, value in cards[name].items() if value})
