"""The lean of answers towards a group against figures from outside, answer by answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.answers.designs import AnswersDesign, figures_about, frequent_answers
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.core.finding import Family
from equipoise.core.wording import shortened
from equipoise.metrics.values.outside import correlation

if TYPE_CHECKING:
    from equipoise.audits.answers.config import AnswersOptions, Config
    from equipoise.audits.answers.loading import AnswersData

# Answers that a note lists.
_LISTED = 10


@dataclass(frozen=True)
class Point:
    """One answer: its figure from outside, and its lean.

    Attributes
    ----------
    answer : str
    figure : float
    lean : float
        In [0, 1]: share of the first group's answers that are this one, over that share and the
        rest's together; 0.5 where both get it equally often, whatever the groups' sizes.
    n : int
        Rows with the answer.
    """

    answer: str
    figure: float
    lean: float
    n: int


@dataclass(frozen=True)
class Related:
    """What came of one figure and one design."""

    figure: str
    first: str
    place: Place
    drafts: tuple[UncorrectedFinding, ...]
    points: tuple[Point, ...]
    without_figure: tuple[str, ...]


def related(
    one: AnswersDesign, config: Config, data: AnswersData, options: AnswersOptions
) -> list[Related]:
    """Correlate the lean of answers with every figure that is about a design's groups."""
    return [
        _related(one, config, options, name, data.figures[name])
        for name in figures_about(one, config)
    ]


def _related(
    one: AnswersDesign,
    config: Config,
    options: AnswersOptions,
    name: str,
    figures: Mapping[str, float],
) -> Related:
    place = one.place("answers", config.resampling.level, one.shown)
    figure = config.figures[name]
    known = _in_one_form(figures, one, config)
    leans = leans_of(one, options, one.groups.names.index(figure.first))
    points = tuple(
        Point(answer, known[answer], lean, n)
        for answer, (lean, n) in leans.items()
        if answer in known
    )
    lost = tuple(sorted(answer for answer in leans if answer not in known))
    if not points:
        return Related(name, figure.first, place, (), (), lost)
    estimate = correlation(
        [point.lean for point in points], [point.figure for point in points],
        level=config.resampling.level,
    )  # fmt: skip
    verb = "rises" if estimate.value > 0 else "falls"
    said = "" if math.isnan(estimate.value) else f"the lean to {figure.first} {verb} with {name}"
    drafts = [_about(whole(estimate, place, Family.COMPOSITE), name, said)]
    ranks = [draft for draft in parts(estimate, place) if draft.finding.metric == "spearman"]
    drafts += [
        without_verdict(_about(draft, name, said), "beside Pearson's correlation, which is tested")
        for draft in ranks
    ]
    return Related(name, figure.first, place, tuple(drafts), points, lost)


def _about(draft: UncorrectedFinding, name: str, said: str) -> UncorrectedFinding:
    return replace(draft, finding=replace(draft.finding, subject=name, direction=said))


def leans_of(
    one: AnswersDesign, options: AnswersOptions, first: int
) -> dict[str, tuple[float, int]]:
    """Return the lean of each frequent answer to a group, and how often it was given."""
    counts = one.by_answer
    table = counts.by_prediction(counts.observed)[0]
    usable = counts.groups.usable
    rest = usable & (np.arange(len(usable)) != first)
    mine, others = table[:, first], table[:, rest].sum(axis=1)
    frequent = set(frequent_answers(one.answers, options))
    found = {}
    for answer, a, b in zip(counts.classes, mine.tolist(), others.tolist(), strict=True):
        if answer in frequent and a + b > 0:
            share, other = a / mine.sum(), b / others.sum()
            found[answer] = (share / (share + other), round(a + b))
    return found


def _in_one_form(
    figures: Mapping[str, float], one: AnswersDesign, config: Config
) -> Mapping[str, float]:
    """Return figures by answer in the form that the answers have."""
    steps = config.models[one.model].normalize
    if steps is None:
        return figures
    normal = steps.steps
    return {normal(answer): figure for answer, figure in figures.items()}


def lost_answers(found: Related) -> str:
    """Name the answers that a figure does not have; "" where it has all."""
    lost = found.without_figure
    if not lost:
        return ""
    where = ", ".join(part for part in (found.place.model, found.place.version) if part)
    more = ", …" if len(lost) > _LISTED else ""
    return (
        f"{where}: {found.figure} has no figure for {len(lost)} answers: "
        f"{', '.join(map(shortened, lost[:_LISTED]))}{more}."
    )
