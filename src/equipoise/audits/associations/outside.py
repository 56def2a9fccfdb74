"""Numbers of targets and regions against figures from outside, or a declared hypothesis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from equipoise.audits.associations.cases import Case, cases_of
from equipoise.audits.associations.composites import composite_values, smoothed
from equipoise.audits.associations.pieces import Note, Piece, Question, Row, Told, at, drafted
from equipoise.audits.associations.scores import values_of
from equipoise.audits.associations.spaces import Space
from equipoise.audits.findings import Place
from equipoise.core.finding import Family
from equipoise.metrics.associations.alignment import alignment
from equipoise.metrics.associations.outside import correlation

Ends = Mapping[str, tuple[float, float]]


def measure_correlation(question: Question) -> Iterator[Piece]:
    """Correlate the scores of targets with figures from outside."""
    for space in question.spaces:
        for case in cases_of(question.asked, space):
            place = question.place(space, case.modality)
            values = _values(question, space, case)
            yield from related(question, place, values, question.asked.of, {})


def measure_alignment(question: Question) -> Iterator[Piece]:
    """Hold the scores of targets against a hypothesis that was declared."""
    asked = question.asked
    figures = question.data.outside[question.index]
    for space in question.spaces:
        for case in cases_of(asked, space):
            values = _values(question, space, case)
            place = question.place(space, case.modality)
            yield from _missing(question, values)
            estimate = alignment(
                values, figures, statistic=asked.statistic, **question.drawn(space)
            )
            follows = "follow" if estimate.value > 0 else "run against"
            column = asked.hypothesis.value if asked.hypothesis is not None else ""
            text = "" if math.isnan(estimate.value) else f"preferences {follows} {column}"
            yield drafted(estimate, place, Family.COMPOSITE, Told(_about(asked.of, column), text))
            yield from _points(question, place, values, {}, asked.of)


def related(
    question: Question, place: Place, values: Mapping[str, float], of: str, ends: Ends
) -> Iterator[Piece]:
    """Correlate numbers by subject with the figures of a question, and yield the points."""
    figures = question.data.outside[question.index]
    yield from _missing(question, values)
    names = sorted(values)
    estimate = correlation(
        [values[name] for name in names],
        [figures.get(name, math.nan) for name in names],
        level=question.level,
    )
    column = question.asked.outside.value if question.asked.outside is not None else ""
    verb = "rises" if estimate.value > 0 else "falls"
    text = "" if math.isnan(estimate.value) else f"{of.replace('_', ' ')} {verb} with {column}"
    yield drafted(estimate, place, Family.COMPOSITE, Told(_about(of, column), text))
    for part in estimate.parts:
        yield Row(
            "outside_correlations",
            {
                **at(place), "metric": of, "figure": column, "kind": part.metric, "n": part.n,
                "value": part.value, "low": part.low, "high": part.high, "p_value": part.p_value,
                "reason": part.reason,
            },
        )  # fmt: skip
    yield from _points(question, place, values, ends, of)


def _values(question: Question, space: Space, case: Case) -> dict[str, float]:
    if question.asked.of == "mcas":
        return composite_values(question, space, case.targets)
    return values_of(question, space, case)


def _missing(question: Question, values: Mapping[str, float]) -> Iterator[Note]:
    """Name subjects that the outside table has no figure for."""
    figures = question.data.outside[question.index]
    lost = sorted(name for name in values if not math.isfinite(figures.get(name, math.nan)))
    if lost:
        given = question.asked.outside or question.asked.hypothesis
        column = given.value if given is not None else ""
        yield Note(
            f"{column}: no figure for {', '.join(lost[:10])}{', …' if len(lost) > 10 else ''}, "
            f"{len(lost)} of {len(values)} left out."
        )


def _points(
    question: Question, place: Place, values: Mapping[str, float], ends: Ends, of: str
) -> Iterator[Row]:
    figures = question.data.outside[question.index]
    given = question.asked.outside or question.asked.hypothesis
    names = sorted(values)
    x = np.array([figures.get(name, math.nan) for name in names])
    y = np.array([values[name] for name in names])
    fitted = smoothed(x, y, question.asked.span)
    for name, figure, value, smooth in zip(names, x, y, fitted, strict=True):
        low, high = ends.get(name, (math.nan, math.nan))
        yield Row(
            "outside",
            {
                **at(place), "metric": of, "figure": "" if given is None else given.value,
                "subject": name, "outside": float(figure), "value": float(value), "low": low,
                "high": high, "fitted": float(smooth),
            },
        )  # fmt: skip


def _about(of: str, column: str) -> str:
    return f"{of.replace('_', ' ')} and {column}"
