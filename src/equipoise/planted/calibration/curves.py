"""Which curves stand on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from equipoise.planted.calibration.figures import Figure, Line
from equipoise.planted.calibration.runner import ALPHA, Power
from equipoise.planted.calibration.suite import Calibration

_SHOWN = 0.5
_LABELS = ("predicted_label_weat", "label_concentration", "gender_difference")
_SUBJECTS = ("alignment", "correlation")

Chosen = Callable[[Power], bool]
_FIGURES: Sequence[tuple[str, str, str, Chosen]] = (
    (
        "associations",
        "Associations of embeddings",
        "images of both groups together",
        lambda one: (
            one.case.family == "associations"
            and one.case.world == "independent"
            and one.case.metric not in _LABELS
        ),
    ),
    (
        "repeats",
        "One association score, by how images repeat",
        "images of both groups together",
        lambda one: one.case.metric == "association_score",
    ),
    (
        "labels",
        "Labels, words and outside figures",
        "images of both groups together; subjects",
        lambda one: one.case.metric in (*_LABELS, *_SUBJECTS),
    ),
    (
        "retrieval",
        "Rankings of one pool by six queries",
        "images in the pool; K is a quarter of them",
        lambda one: one.case.family == "retrieval" and one.case.world == "shared pool",
    ),
    (
        "sets",
        "Rankings of counterfactual sets by six queries",
        "images in the pool; K is a quarter of them",
        lambda one: one.case.family == "retrieval" and one.case.world == "sets",
    ),
    (
        "concepts",
        "Disparities over four concepts, and between image sets",
        "images of all groups together",
        lambda one: one.case.family in ("concepts", "diversity"),
    ),
)


def figures(found: Calibration) -> list[Figure]:
    """Return the figures of the page: power at half strength."""
    shown = [one for one in found.powers if one.strength == _SHOWN]
    return [
        Figure(
            f"calibration-{name}",
            f"{title}: share found (p ≤ {ALPHA:g}) at strength {_SHOWN:g}",
            axis,
            tuple(
                Line(_called(one, name == "repeats"), one.images, one.found)
                for one in shown
                if chosen(one)
            ),
        )
        for name, title, axis, chosen in _FIGURES
    ]


def _called(one: Power, by_world: bool) -> str:
    if by_world:
        return one.case.world
    # The figure's title says that these are disparities over concepts.
    return one.case.variant if one.case.family == "concepts" else one.case.name
