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
    family : str
        What it measures: predictions, associations, retrieval, similarity, concepts or
        diversity.
    title, definition, range : str
    direction : str
        Which way is worse, in words.
    chance : str
        What the number is when groups are exchangeable, or why there is no such level.
    threshold : float or None
        Default of the practical threshold on the excess over chance; None where there is no
        verdict. The reasons for the defaults stand in cards_*.toml.
    interval, null : str
        How the interval is made, and what is exchangeable under the null hypothesis.
    parameters : mapping of str to str
        Parameters that decide the number, with their defaults.
    citation, errata : str
        Where the definition comes from, and what the source prints otherwise ("": nothing).
    also : tuple of str
        Other kinds of audit that measure it.
    """

    name: str
    family: str
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
    also: tuple[str, ...] = ()


FAMILIES = (
    "predictions", "associations", "retrieval", "similarity", "concepts", "diversity", "answers",
    "text_to_image", "generation", "activations", "counterfactuals", "mitigation",
)  # fmt: skip


def _read() -> dict[str, Card]:
    here = files("equipoise.metrics")
    return {
        name: Card(name=name, family=family, **{**about, "also": tuple(about.get("also", ()))})
        for family in FAMILIES
        for name, about in tomllib.loads(
            here.joinpath(f"cards_{family}.toml").read_text(encoding="utf-8")
        ).items()
    }


CARDS: Mapping[str, Card] = MappingProxyType(_read())
