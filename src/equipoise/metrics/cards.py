"""Metric cards: what every number means, from when on it counts, where it comes from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True)
class Card:
    """What to know about a metric before reading its number.

    Attributes
    ----------
    name : str
        Public name: the `metric` of estimates, parts and findings.
    title, definition, range : str
    direction : str
        Which way is worse, in words.
    chance : str
        What the number is when groups are exchangeable, or why there is no such level.
    threshold : float or None
        Default of the practical threshold on the excess over chance; None where there is no
        verdict. The reasons for the defaults stand in cards.toml.
    interval, null : str
        How the interval is made, and what is exchangeable under the null hypothesis.
    parameters : mapping of str to str
        Parameters that decide the number, with their defaults.
    citation, errata : str
        Where the definition comes from, and what the source prints otherwise ("": nothing).
    """

    name: str
    title: str
    definition: str
    range: str
    direction: str
    chance: str
    interval: str
    null: str
    citation: str
    threshold: float | None = None
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    errata: str = ""


def _read() -> dict[str, Card]:
    here = files("equipoise.metrics").iterdir()
    tables = sorted((one for one in here if one.name.endswith(".toml")), key=lambda one: one.name)
    cards = (tomllib.loads(one.read_text(encoding="utf-8")) for one in tables)
    return {name: Card(name=name, **fields) for table in cards for name, fields in table.items()}


CARDS: Mapping[str, Card] = MappingProxyType(_read())
