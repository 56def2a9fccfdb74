"""`equipoise metrics`: list or search the metrics, or show the card of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import json_option, note, say, say_json, say_table, say_values

if TYPE_CHECKING:
    from equipoise.core.types import Json
    from equipoise.metrics import MetricSpec

_FIELDS = [
    "title",
    "symbol",
    "aliases",
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
@click.option(
    "--search", "text", metavar="WORDS", help="List the metrics that match, the best first."
)
@json_option
def metrics_command(name: str | None, text: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of a name or alias.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.metrics import SPECS
    from equipoise.metrics.naming import search

    if name is not None and text is not None:
        raise click.BadParameter(
            "can't go with a NAME. To do: leave one of them out", param_hint="'--search'"
        )
    if name is not None:
        specs = [_named(name)]
    else:
        specs = [*SPECS.values()] if text is None else search(text)
        for error in SPECS.broken.values():
            note(f"left out: {error}")
    cards = {spec.name: _card(spec) for spec in specs}
    if as_json:
        say_json(cards)
    elif not specs:
        say(f"No record of a metric has the words {text!r}.")
    elif name is None:
        _say_list(specs if text else sorted(specs, key=lambda spec: spec.kinds[0]))
    else:
        say_values({field: value for field, value in cards[specs[0].name].items() if value})


def _named(name: str) -> MetricSpec:
    """Return the record of a name or an alias."""
    from equipoise.config.files import nearest
    from equipoise.core import InputError
    from equipoise.metrics.naming import find_records
    from equipoise.metrics.spec import ALIASES, SPECS

    records = find_records(name)
    if not records:
        raise InputError(
            f"no metric is called {name!r}{nearest(name, [*SPECS, *ALIASES])}. "
            "To do: list the metrics with 'equipoise metrics --search WORDS'"
        )
    return records[0]


def _card(spec: MetricSpec) -> dict[str, Json]:
    from equipoise.metrics.spec import aliases_of

    card = {"name": spec.name} | {field: getattr(spec, field) for field in _FIELDS}
    return card | {"range": spec.range_text, "aliases": aliases_of(spec.name)}


def _say_list(specs: Sequence[MetricSpec]) -> None:
    from equipoise.metrics.spec import aliases_of

    cells = [
        (spec.name, spec.kinds[0], spec.range_text, spec.title, ", ".join(aliases_of(spec.name)))
        for spec in specs
    ]
    say_table(("metric", "audit", "range", "title", "also called"), cells)
    say("\n'equipoise metrics NAME' shows a whole card.")
