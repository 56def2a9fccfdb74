"""Association scores, WEAT, SC-WEAT and differential association of named sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.associations.apart import around, without_targets
from equipoise.audits.associations.cases import MOST_MEMBERS, Case, cases_of
from equipoise.audits.associations.leaning import closer, crossed
from equipoise.audits.associations.pieces import Piece, Question, Told, drafted, part_draft, without
from equipoise.audits.associations.spaces import Side, Space, units_of
from equipoise.audits.associations.summaries import summaries
from equipoise.audits.findings import Draft, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.finding import Family
from equipoise.metrics.associations.scores import association_score, differential_association
from equipoise.metrics.associations.weat import sc_weat, weat

Sides = Mapping[str, Side]


def measure_scores(question: Question) -> Iterator[Piece]:
    """Measure the association score of each target in each modality that its sets allow."""
    asked = question.asked
    for space in question.spaces:
        found: dict[str, dict[str, float]] = {}
        for case in cases_of(asked, space):
            draft = _score(question, space, case)
            yield draft
            found.setdefault(case.modality, {})[case.targets[0]] = draft.finding.value
        for modality, values in found.items():
            place = question.place(space, modality)
            yield from summaries(values, asked.categories, place, "association_score")


def _score(question: Question, space: Space, case: Case) -> Draft:
    """Measure one target; its sets are let go before those of the next are taken."""
    target = case.targets[0]
    sides = sides_of(question, space, case, ("targets",), ("a", "b"))
    estimate = association_score(
        *(sides[part].things for part in ("targets", "a", "b")),
        similarity=space.similarity,
        units=units_of(sides, [("targets",), ("a", "b")]),
        fixed=fixed_parts(question, sides),
        **question.drawn(space),
    )
    told = Told(
        target,
        closer(target, estimate.value, question.pair, case.modality),
        names_of(sides),
        estimate.parts[0].by_group,
        without(sides),
    )
    return drafted(estimate, question.place(space, case.modality), Family.LEAF, told)


def measure_weat(question: Question) -> Iterator[Piece]:
    """Measure WEAT of two targets in each modality that their sets allow."""
    for space in question.spaces:
        for case in cases_of(question.asked, space):
            yield from _weat(question, space, case)


def _weat(question: Question, space: Space, case: Case) -> Iterator[Piece]:
    asked, (first, second) = question.asked, case.targets
    sides = sides_of(question, space, case, ("x", "y"), ("a", "b"))
    estimate = weat(
        *(sides[part].things for part in ("x", "y", "a", "b")),
        alternative=asked.alternative or "greater",
        ddof=asked.ddof,
        similarity=space.similarity,
        units=units_of(sides, [("x", "y"), ("a", "b")]),
        fixed=fixed_parts(question, sides),
        **question.drawn(space),
    )
    effect, difference = estimate.parts
    x, y = effect.by_group
    told = Told(
        f"{first} against {second}",
        crossed((first, second), (x.value, y.value), question.pair, case.modality),
        names_of(sides),
        effect.by_group,
        without(sides),
    )
    place = question.place(space, case.modality)
    yield drafted(estimate, place, Family.COMPOSITE, told)
    again = part_draft(estimate, difference, place, Family.DESCRIPTIVE, replace(told, by_group=()))
    yield without_verdict(again, "the same test as weat, on another scale")


def measure_sc_weat(question: Question) -> Iterator[Piece]:
    """Measure SC-WEAT of every member of the targets."""
    asked = question.asked
    for space in question.spaces:
        for case in cases_of(asked, space):
            attribute_kind, target_kind = case.kinds
            members = space.chosen(case.targets[0], target_kind)
            if len(members) > MOST_MEMBERS:
                raise DataError(
                    f"sc_weat measures each of the {len(members)} members of {members.name!r}",
                    expected=f"at most {MOST_MEMBERS} members",
                    fix="ask for association_score, or name a smaller set",
                )
            sets = [space.chosen(name, attribute_kind) for name in asked.attributes]
            for row in range(len(members)):
                one = members.only(np.array([row]))
                apart = [without_targets(space, attribute_kind, side, [one]) for side in sets]
                yield _sc_weat(question, space, case, one, dict(zip("ab", apart, strict=True)))


def _sc_weat(question: Question, space: Space, case: Case, target: Side, sides: Sides) -> Piece:
    asked, member = question.asked, target.ids[0]
    estimate = sc_weat(
        target.things,
        *(side.things for side in sides.values()),
        alternative=asked.alternative or "two-sided",
        ddof=asked.ddof,
        similarity=space.similarity,
        units=units_of(sides, [("a", "b")]),
        fixed=fixed_parts(question, sides),
        **question.drawn(space),
    )
    told = Told(
        member,
        closer(member, estimate.value, question.pair, case.modality),
        names_of(sides),
        estimate.parts[0].by_group if estimate.parts else (),
        without(sides),
    )
    return drafted(estimate, question.place(space, case.modality), Family.LEAF, told)


def measure_differential(question: Question) -> Iterator[Piece]:
    """Measure the differential association of two concepts with two groups."""
    asked = question.asked
    for space in question.spaces:
        for case in cases_of(asked, space):
            first, second = case.targets
            sides = sides_of(question, space, case, ("c1", "c2"), ("m_images", "f_images"))
            estimate = differential_association(
                *(sides[part].things for part in ("c1", "c2", "m_images", "f_images")),
                similarity=space.similarity,
                units=units_of(sides, [("c1", "c2"), ("m_images", "f_images")]),
                fixed=() if asked.resample_texts else ("c1", "c2"),
                **question.drawn(space),
            )
            c1, c2 = estimate.parts
            told = Told(
                f"{first} against {second}",
                crossed((first, second), (c1.value, c2.value), question.pair, case.modality),
                names_of(sides),
                (),
                without(sides),
            )
            yield drafted(estimate, question.place(space, case.modality), Family.COMPOSITE, told)


def sides_of(
    question: Question,
    space: Space,
    case: Case,
    targets: tuple[str, ...],
    attributes: tuple[str, ...],
) -> dict[str, Side]:
    """Return the sets of a case by the part that each plays in the metric.

    Targets are in no set of attributes: none is compared with itself.

    Raises
    ------
    DataError
        When the model has no usable vector for a set, or for no member of it but targets.
    """
    attribute_kind, target_kind = case.kinds
    found = dict(zip(targets, (space.chosen(n, target_kind) for n in case.targets), strict=True))
    others = (
        around(space, n, attribute_kind, [*found.values()]) for n in question.asked.attributes
    )
    return found | dict(zip(attributes, others, strict=True))


def names_of(sides: Sides) -> dict[str, str]:
    """Return the set that plays each part."""
    return {part: side.name for part, side in sides.items()}


def fixed_parts(question: Question, sides: Sides) -> tuple[str, ...]:
    """Return the parts whose sets intervals take as given."""
    return tuple(part for part, side in sides.items() if side.name in question.asked.fixed)


def values_of(question: Question, space: Space, case: Case) -> dict[str, Any]:
    """Return the association score of each target of a case, without intervals."""
    found = {}
    for target in case.targets:
        single = Case(case.modality, (target,))
        sides = sides_of(question, space, single, ("targets",), ("a", "b"))
        found[target] = association_score(
            *(sides[part].things for part in ("targets", "a", "b")),
            similarity=space.similarity,
            resampling=None,
        ).value
    return found
