"""Total absolute association of every model, and models side by side."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace

from equipoise.audits.associations.apart import around
from equipoise.audits.associations.cases import Case, cases_of
from equipoise.audits.associations.pieces import (
    Piece,
    Question,
    Row,
    Told,
    at,
    drafted,
    part_draft,
    without,
)
from equipoise.audits.associations.scores import fixed_parts
from equipoise.audits.associations.spaces import Space, units_of
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.parts import Part
from equipoise.metrics.associations.encoders import compare_encoders, total_absolute_association

Measured = dict[str, Estimate]


def measure_totals(question: Question) -> Iterator[Piece]:
    """Measure the total absolute association of every model, and compare models."""
    by_modality: dict[str, Measured] = {}
    targets: dict[str, dict[str, tuple[str, ...]]] = {}
    for space in question.spaces:
        for case in cases_of(question.asked, space):
            estimate = yield from _total(question, space, case)
            by_modality.setdefault(case.modality, {})[space.model] = estimate
            targets.setdefault(case.modality, {})[space.model] = case.targets
    for modality, found in by_modality.items():
        if len(found) > 1 and len({*targets[modality].values()}) == 1:
            yield from _compared(question, modality, found)


def _total(question: Question, space: Space, case: Case) -> Generator[Piece, None, Estimate]:
    attribute_kind, target_kind = case.kinds
    # Targets may be called as they like: the metric keeps "a" and "b" for the attributes.
    keys = {f"target {name}": name for name in case.targets}
    sides = {key: space.chosen(name, target_kind) for key, name in keys.items()}
    a, b = (
        around(space, name, attribute_kind, [*sides.values()]) for name in question.asked.attributes
    )
    everyone = {**sides, "a": a, "b": b}
    estimate = total_absolute_association(
        {key: side.things for key, side in sides.items()},
        a.things,
        b.things,
        similarity=space.similarity,
        units=units_of(everyone, [("a", "b"), *((key,) for key in sides)]),
        fixed=fixed_parts(question, everyone),
        **question.drawn(space),
    )
    place = question.place(space, case.modality)
    names = {part: side.name for part, side in everyone.items()}
    yield drafted(estimate, place, Family.COMPOSITE, Told("", "", names, (), without(everyone)))
    ends, chance = estimate.interval(question.level), estimate.chance
    yield Row(
        "totals",
        {
            **at(place),
            "targets": len(case.targets), "value": estimate.value, "low": ends.low,
            "high": ends.high, "chance": math.nan if chance is None else chance.mean,
        },
    )  # fmt: skip
    return estimate


def _compared(question: Question, modality: str, found: Measured) -> Iterator[Piece]:
    """Yield the difference of each pair of models, told of the one with the larger total."""
    estimate = compare_encoders(found, resampling=question.between, rng=question.seed)
    pairs = [part for part in estimate.parts if part.metric == "difference"]
    for part in pairs:
        first, second = _models(part, found)
        larger, smaller = (first, second) if part.value >= 0 else (second, first)
        space = next(one for one in question.spaces if one.model == larger)
        # With two models the difference of the pair is that of all, whose chance level is drawn.
        tested = _turned(part, estimate if len(pairs) == 1 else None)
        text = f"the targets lean more with {larger} than with {smaller}" if part.value else ""
        yield part_draft(
            estimate,
            tested,
            question.place(space, modality),
            Family.COMPOSITE,
            Told(f"against {smaller}", text),
            metric="encoder_difference",
        )


def _models(part: Part, found: Measured) -> tuple[str, str]:
    return next(
        (first, second)
        for first in found
        for second in found
        if part.subject == f"{first} - {second}" and first != second
    )


def _turned(part: Part, whole: Estimate | None) -> Part:
    """Return a difference as that of the larger total minus the smaller."""
    low, high = (part.low, part.high) if part.value >= 0 else (-part.high, -part.low)
    turned = replace(part, value=abs(part.value), low=low, high=high)
    if whole is None or whole.chance is None:
        return turned
    return replace(
        turned,
        chance=whole.chance.mean,
        chance_low=whole.chance.low,
        chance_high=whole.chance.high,
    )
