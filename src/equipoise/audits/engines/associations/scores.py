"""Association scores, WEAT, SC-WEAT, differential association, totals, and external figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.engines.associations.cases import MOST_MEMBERS, Case, cases_of
from equipoise.audits.engines.associations.composites import (
    composite_values,
    smoothed,
    summaries,
)
from equipoise.audits.engines.associations.results import (
    Note,
    Question,
    Result,
    Row,
    closer,
    crossed,
    finding_of,
    names_of,
    part_finding,
    without,
)
from equipoise.audits.engines.associations.spaces import Side, units_of
from equipoise.audits.findings import Place, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.parts import Part
from equipoise.metrics.values.alignment import alignment
from equipoise.metrics.values.outside import correlation
from equipoise.metrics.vectors.associations import (
    association_score,
    compare_encoders,
    differential_association,
    sc_weat,
    total_absolute_association,
    weat,
)
from equipoise.stats.resampling import Resampling

Ends = Mapping[str, tuple[float, float]]


def measure_scores(question: Question) -> Iterator[Result]:
    """Measure the association score of each target in each modality that its sets allow."""
    scores: dict[str, dict[str, float]] = {}
    for case in cases_of(question.options, question.space):
        target, place = case.targets[0], question.place(case.modality)
        sides = _sides(question, case, ("targets",), ("a", "b"))
        estimate = association_score(
            *(sides[part].things for part in ("targets", "a", "b")),
            similarity=question.space.similarity,
            units=units_of(sides, [("targets",), ("a", "b")]),
            fixed=_fixed(question, sides),
            **question.drawn,
        )
        yield finding_of(
            estimate, place, Family.LEAF, subject=target,
            direction=closer(target, estimate.value, question.pair, case.modality),
            sides=names_of(sides), by_group=estimate.parts[0].by_group, excluded=without(sides),
        )  # fmt: skip
        scores.setdefault(case.modality, {})[target] = estimate.value
        # Let go before the sets of the next target are taken.
        del sides
    for modality, values in scores.items():
        place, categories = question.place(modality), question.options.categories
        yield from summaries(values, categories, place, "association_score")


def measure_weat(question: Question) -> Iterator[Result]:
    """Measure WEAT of two targets in each modality that their sets allow."""
    for case in cases_of(question.options, question.space):
        first, second = case.targets
        sides = _sides(question, case, ("x", "y"), ("a", "b"))
        estimate = weat(
            *(sides[part].things for part in ("x", "y", "a", "b")),
            alternative=question.options.alternative or "greater",
            ddof=question.options.ddof,
            similarity=question.space.similarity,
            units=units_of(sides, [("x", "y"), ("a", "b")]),
            fixed=_fixed(question, sides),
            **question.drawn,
        )
        effect, difference = estimate.parts
        x, y = effect.by_group
        about: dict[str, Any] = {
            "subject": f"{first} against {second}",
            "direction": crossed((first, second), (x.value, y.value), question.pair, case.modality),
            "sides": names_of(sides),
            "excluded": without(sides),
        }
        place = question.place(case.modality)
        yield finding_of(estimate, place, Family.COMPOSITE, by_group=effect.by_group, **about)
        again = part_finding(estimate, difference, place, Family.DESCRIPTIVE, **about)
        yield without_verdict(again, "the same test as weat, on another scale")


def measure_sc_weat(question: Question) -> Iterator[Result]:
    """Measure SC-WEAT of every member of the targets."""
    options, space = question.options, question.space
    for case in cases_of(options, space):
        attribute_kind, target_kind = case.kinds
        members = space.chosen(case.targets[0], target_kind)
        if len(members) > MOST_MEMBERS:
            raise DataError(
                f"sc_weat measures each of the {len(members)} members of {members.name!r}",
                expected=f"at most {MOST_MEMBERS} members",
                fix="ask for association_score, or name a smaller set",
            )
        sets = [space.chosen(name, attribute_kind) for name in options.attributes]
        for row in range(len(members)):
            member = members.only(np.array([row]))
            apart = [space.without_targets(side, attribute_kind, [member]) for side in sets]
            yield _sc_weat(question, case, member, dict(zip("ab", apart, strict=True)))


def _sc_weat(question: Question, case: Case, target: Side, sides: Mapping[str, Side]) -> Result:
    member = target.ids[0]
    estimate = sc_weat(
        target.things,
        *(side.things for side in sides.values()),
        alternative=question.options.alternative or "two-sided",
        ddof=question.options.ddof,
        similarity=question.space.similarity,
        units=units_of(sides, [("a", "b")]),
        fixed=_fixed(question, sides),
        **question.drawn,
    )
    return finding_of(
        estimate, question.place(case.modality), Family.LEAF, subject=member,
        direction=closer(member, estimate.value, question.pair, case.modality),
        sides=names_of(sides), excluded=without(sides),
        by_group=estimate.parts[0].by_group if estimate.parts else (),
    )  # fmt: skip


def measure_differential(question: Question) -> Iterator[Result]:
    """Measure the differential association of two concepts with two groups."""
    for case in cases_of(question.options, question.space):
        first, second = case.targets
        sides = _sides(question, case, ("c1", "c2"), ("m_images", "f_images"))
        estimate = differential_association(
            *(sides[part].things for part in ("c1", "c2", "m_images", "f_images")),
            similarity=question.space.similarity,
            units=units_of(sides, [("c1", "c2"), ("m_images", "f_images")]),
            fixed=() if question.options.resample_texts else ("c1", "c2"),
            **question.drawn,
        )
        c1, c2 = estimate.parts
        text = crossed((first, second), (c1.value, c2.value), question.pair, case.modality)
        yield finding_of(
            estimate, question.place(case.modality), Family.COMPOSITE,
            subject=f"{first} against {second}", direction=text, sides=names_of(sides),
            excluded=without(sides),
        )  # fmt: skip


def _sides(
    question: Question, case: Case, targets: tuple[str, ...], attributes: tuple[str, ...]
) -> dict[str, Side]:
    """Return the sets of a case by their part in the metric; targets are in no attributes."""
    attribute_kind, target_kind = case.kinds
    space = question.space
    chosen = [space.chosen(name, target_kind) for name in case.targets]
    others = [space.apart(name, attribute_kind, chosen) for name in question.options.attributes]
    return dict(zip((*targets, *attributes), (*chosen, *others), strict=True))


def _fixed(question: Question, sides: Mapping[str, Side]) -> tuple[str, ...]:
    """Return the parts whose sets intervals take as given."""
    return tuple(part for part, side in sides.items() if side.name in question.options.fixed)


def totals_of(question: Question) -> dict[Case, tuple[dict[str, Side], Estimate]]:
    """Measure the total absolute association in each modality."""
    totals = {}
    for case in cases_of(question.options, question.space):
        # Targets may have any name: the metric keeps "a" and "b" for the attributes.
        keys = tuple(f"target {name}" for name in case.targets)
        sides = _sides(question, case, keys, ("a", "b"))
        estimate = total_absolute_association(
            {key: sides[key].things for key in keys},
            sides["a"].things,
            sides["b"].things,
            similarity=question.space.similarity,
            units=units_of(sides, [("a", "b"), *((key,) for key in keys)]),
            fixed=_fixed(question, sides),
            **question.drawn,
        )
        totals[case] = sides, estimate
    return totals


def total_results(
    question: Question, totals: Mapping[Case, tuple[dict[str, Side], Estimate]]
) -> Iterator[Result]:
    """Yield the results of total absolute associations."""
    for case, (sides, estimate) in totals.items():
        place = question.place(case.modality)
        ends, chance = estimate.interval(question.level), estimate.chance
        yield finding_of(
            estimate, place, Family.COMPOSITE, sides=names_of(sides), excluded=without(sides)
        )
        yield Row.of(
            "totals", place, targets=len(case.targets), value=estimate.value, low=ends.low,
            high=ends.high, chance=math.nan if chance is None else chance.mean,
        )  # fmt: skip


def compared_totals(
    questions: Mapping[str, Question],
    totals: Mapping[str, Mapping[Case, Estimate]],
    resampling: Resampling | None,
) -> Iterator[Result]:
    """Yield the differences between models in each modality where all have the same targets.

    Parameters
    ----------
    questions : mapping of str to Question
        By model.
    totals : mapping of str to mapping of Case to Estimate
        By model.
    resampling : Resampling or None
    """
    by_modality: dict[str, dict[str, tuple[Case, Estimate]]] = {}
    for model, cases in totals.items():
        for case, estimate in cases.items():
            by_modality.setdefault(case.modality, {})[model] = case, estimate
    for modality, models in by_modality.items():
        if len(models) > 1 and len({case for case, _ in models.values()}) == 1:
            estimates = {model: estimate for model, (_, estimate) in models.items()}
            yield from _compared(questions, modality, estimates, resampling)


def _compared(
    questions: Mapping[str, Question],
    modality: str,
    totals: Mapping[str, Estimate],
    resampling: Resampling | None,
) -> Iterator[Result]:
    """Yield the difference of each pair of models, about the model with the larger total."""
    seed = next(iter(questions.values())).seed
    estimate = compare_encoders(dict(totals), resampling=resampling, rng=seed)
    pairs = [part for part in estimate.parts if part.metric == "difference"]
    models = {f"{one} - {other}": (one, other) for one in totals for other in totals}
    for part in pairs:
        first, second = models[part.subject]
        larger, smaller = (first, second) if part.value >= 0 else (second, first)
        text = f"the targets lean more with {larger} than with {smaller}" if part.value else ""
        yield part_finding(
            estimate,
            # With two models the difference of the pair is that of all, whose chance is drawn.
            _turned(part, estimate if len(pairs) == 1 else None),
            questions[larger].place(modality),
            Family.COMPOSITE,
            metric="encoder_difference",
            subject=f"against {smaller}",
            direction=text,
        )


def _turned(part: Part, whole: Estimate | None) -> Part:
    """Return a difference as that of the larger total minus the smaller."""
    low, high = (part.low, part.high) if part.value >= 0 else (-part.high, -part.low)
    turned = replace(part, value=abs(part.value), low=low, high=high)
    if whole is None or whole.chance is None:
        return turned
    chance = whole.chance
    return replace(turned, chance=chance.mean, chance_low=chance.low, chance_high=chance.high)


def measure_correlation(question: Question) -> Iterator[Result]:
    """Correlate the scores of targets with external figures."""
    for case in cases_of(question.options, question.space):
        values = _values(question, case)
        yield from related(question, question.place(case.modality), values, question.options.of, {})


def measure_alignment(question: Question) -> Iterator[Result]:
    """Compare the scores of targets with a declared hypothesis."""
    options = question.options
    column = options.hypothesis.value if options.hypothesis is not None else ""
    for case in cases_of(options, question.space):
        values = _values(question, case)
        place = question.place(case.modality)
        yield from _missing(question, values)
        estimate = alignment(
            values, question.figures, statistic=options.statistic, **question.drawn
        )
        follows = "follow" if estimate.value > 0 else "run against"
        text = "" if math.isnan(estimate.value) else f"preferences {follows} {column}"
        subject = f"{_named(options.of)} and {column}"
        yield finding_of(estimate, place, Family.COMPOSITE, subject=subject, direction=text)
        yield from _points(question, place, values, {}, options.of)


def related(
    question: Question, place: Place, values: Mapping[str, float], of: str, ends: Ends
) -> Iterator[Result]:
    """Correlate numbers by subject with the figures of a question, and yield the points."""
    yield from _missing(question, values)
    names = sorted(values)
    estimate = correlation(
        [values[name] for name in names],
        [question.figures.get(name, math.nan) for name in names],
        level=question.level,
    )
    column = question.options.outside.value if question.options.outside is not None else ""
    verb = "rises" if estimate.value > 0 else "falls"
    text = "" if math.isnan(estimate.value) else f"{_named(of)} {verb} with {column}"
    subject = f"{_named(of)} and {column}"
    yield finding_of(estimate, place, Family.COMPOSITE, subject=subject, direction=text)
    for part in estimate.parts:
        yield Row.of(
            "outside_correlations", place, metric=of, figure=column, kind=part.metric, n=part.n,
            value=part.value, low=part.low, high=part.high, p_value=part.p_value,
            reason=part.reason,
        )  # fmt: skip
    yield from _points(question, place, values, ends, of)


def _values(question: Question, case: Case) -> dict[str, float]:
    """Return the score of each target of a case, without intervals."""
    if question.options.of == "mcas":
        return composite_values(question, case.targets)
    values = {}
    for target in case.targets:
        sides = _sides(question, Case(case.modality, (target,)), ("targets",), ("a", "b"))
        values[target] = association_score(
            *(side.things for side in sides.values()),
            similarity=question.space.similarity,
            resampling=None,
        ).value
    return values


def _missing(question: Question, values: Mapping[str, float]) -> Iterator[Note]:
    """Name subjects without an external figure."""
    figures = question.figures
    lost = sorted(name for name in values if not math.isfinite(figures.get(name, math.nan)))
    if lost:
        source = question.options.figures
        yield Note(
            f"{'' if source is None else source.value}: no figure for {', '.join(lost[:10])}"
            f"{', …' if len(lost) > 10 else ''}, {len(lost)} of {len(values)} left out."
        )


def _points(
    question: Question, place: Place, values: Mapping[str, float], ends: Ends, of: str
) -> Iterator[Row]:
    source, names = question.options.figures, sorted(values)
    x = np.array([question.figures.get(name, math.nan) for name in names])
    y = np.array([values[name] for name in names])
    fitted = smoothed(x, y, question.options.span)
    for name, figure, value, smooth in zip(names, x, y, fitted, strict=True):
        low, high = ends.get(name, (math.nan, math.nan))
        yield Row.of(
            "outside", place, metric=of, figure="" if source is None else source.value,
            subject=name, outside=float(figure), value=float(value), low=low, high=high,
            fitted=float(smooth),
        )  # fmt: skip


def _named(metric: str) -> str:
    return metric.replace("_", " ")
