"""Whether preferences line up with what was declared, over concepts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise.audits.findings import Draft, Place, whole
from equipoise.audits.similarity.designs import Design
from equipoise.audits.similarity.wording import following
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.metrics.associations.alignment import alignment
from equipoise.metrics.similarity.favourites import favourite_gap, preferences
from equipoise.stats.resampling import Resampling

if TYPE_CHECKING:
    from equipoise.audits.similarity.loading import Expected

# Concepts that a rank correlation needs.
_FEWEST = 3


@dataclass(frozen=True, eq=False)
class Declared:
    """A hypothesis beside what was found.

    Attributes
    ----------
    name : str
    drafts : tuple of Draft
    rows : tuple of mapping
        Per concept: concept, favourite, declared, preference.
    """

    name: str
    drafts: tuple[Draft, ...]
    rows: tuple[Mapping[str, Any], ...]


def declared(
    design: Design, gap: Estimate, resampling: Resampling | None, place: Place
) -> Iterator[Declared]:
    """Hold a design's preferences against every hypothesis about its groups.

    Raises
    ------
    DataError
        When a hypothesis names no concept that is compared.
    """
    effects = {
        part.subject: {one.group: one.value for one in part.by_group}
        for part in gap.parts
        if part.metric == gap.metric
    }
    how: dict[str, Any] = {"resampling": resampling, "rng": design.config.resampling.seed}
    for index, favours in design.favours():
        about, expected = design.config.hypotheses[index], design.data.expected[index]
        preferred = preferences(effects, favours)
        known = {name: one for name, one in preferred.items() if not math.isnan(one)}
        if not known:
            raise DataError(
                f"no concept of hypotheses[{index}] has images of its group and of another",
                expected="concepts with several groups",
                fix="name other concepts, or add images",
            )
        drafts = []
        if about.favours is not None:
            drafts.append(_follows(favourite_gap(effects, favours, **how), place, about.favours))
        values = {name: expected.values[name] for name in known if name in expected.values}
        if about.value is not None and len(values) >= (_FEWEST if about.statistic == "rank" else 1):
            found = alignment(known, values, statistic=about.statistic, **how)
            drafts.append(_follows(found, place, about.value))
        yield Declared(expected.name, tuple(drafts), tuple(_rows(preferred, favours, expected)))


def _follows(estimate: Estimate, place: Place, column: str) -> Draft:
    draft = whole(estimate, place, Family.COMPOSITE)
    text = following(estimate.value, column)
    return replace(draft, finding=replace(draft.finding, subject=column, direction=text))


def _rows(
    preferred: Mapping[str, float], favours: Mapping[str, str], expected: Expected
) -> Iterator[Mapping[str, Any]]:
    for concept in sorted(preferred):
        yield {
            "concept": concept,
            "favourite": favours[concept],
            "declared": expected.values.get(concept),
            "preference": preferred[concept],
        }
