"""`equipoise metrics`: list the metrics, or show the card of one."""

import click

from equipoise.cli.terminal import json_option, note, say, say_json, say_table, say_values

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
    "threshold_reason",
    "reference",
    "errata",
]


@click.command("metrics", epilog="Example: equipoise metrics equalized_odds")
@click.argument("name", required=False)
@json_option
def metrics_command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.config.files import nearest
    from equipoise.core import InputError
    from equipoise.metrics import SPECS

    if name is None:
        for error in SPECS.broken.values():
            note(f"left out: {error}")
    elif name in SPECS:
        SPECS.find(name)
    else:
        raise InputError(
            f"no metric is called {name!r}. There are: {', '.join(SPECS)}{nearest(name, SPECS)}"
        )
    cards = {}
    for key in SPECS if name is None else (name,):
        card = {"name": key} | {field: getattr(SPECS[key], field) for field in _FIELDS}
        cards[key] = card | {"range": SPECS[key].range_text}
    if as_json:
        say_json(cards)
    elif name is None:
        rows = sorted(SPECS.values(), key=lambda spec: spec.kinds[0])
        cells = [(spec.name, spec.kinds[0], spec.range_text, spec.title) for spec in rows]
        say_table(("metric", "audit", "range", "title"), cells)
        say("\n'equipoise metrics NAME' shows a whole card.")
    else:
        say_values({field: value for field, value in cards[name].items() if value})
