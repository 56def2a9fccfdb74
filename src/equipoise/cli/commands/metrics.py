"""`equipoise metrics`: what each number means."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click

from equipoise.cli.terminal import json_option, say, say_json, say_table

_LINES = (
    ("title", "Title"),
    ("definition", "Definition"),
    ("range", "Range"),
    ("direction", "Direction"),
    ("chance", "Chance level"),
    ("interval", "Interval"),
    ("null", "Null hypothesis"),
    ("threshold", "Practical threshold"),
    ("parameters", "Parameters"),
    ("citation", "Citation"),
    ("errata", "Printed otherwise"),
)


@click.command("metrics")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    citation.
    """
    from equipoise.metrics.cards import CARDS

    chosen = CARDS if name is None else {name: _card(CARDS, name)}
    if as_json:
        say_json({key: _fields(card) for key, card in chosen.items()})
    elif name is None:
        say_table(("metric", "range", "title"), [_row(card) for card in CARDS.values()])
        say("\n'equipoise metrics NAME' shows a whole card.")
    else:
        _show(chosen[name])


def _card(cards: Mapping[str, Any], name: str) -> Any:
    if name in cards:
        return cards[name]
    from equipoise.core.errors import InputError

    near = get_close_matches(name, [*cards], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"no metric is called {name!r}. There are: {', '.join(cards)}{hint}")


def _fields(card: Any) -> dict[str, Any]:
    return {"name": card.name} | {field: getattr(card, field) for field, _ in _LINES}


def _row(card: Any) -> tuple[str, str, str]:
    return card.name, card.range, card.title


def _show(card: Any) -> None:
    say(card.name)
    for field, title in _LINES:
        value = getattr(card, field)
        if isinstance(value, Mapping):
            value = "".join(f"\n    {key}: {text}" for key, text in value.items())
        if value not in ("", None):
            say(f"  {title}: {value}")
