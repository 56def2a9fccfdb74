"""Metrics of sets and of images of groups: scores, WEAT, MCAS, totals, trend, predicted labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from equipoise.audits.associations.spaces import (
    Case,
    Question,
    Result,
    Row,
    Side,
    Space,
    about,
    closer,
    crossed,
    extremes,
    finding_of,
    tests_of_cases,
    units_of,
)
from equipoise.audits.config import AuditConfig, resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding, estimable, without_verdict
from equipoise.audits.kind import Measured
from equipoise.audits.notes import Note
from equipoise.core import (
    Aggregate,
    Booleans,
    Chance,
    DataError,
    Estimate,
    Excluded,
    Fact,
    Family,
    Floats,
    GroupValue,
    NullHypothesis,
    Objects,
    Part,
    record,
)
from equipoise.core.sentences import Sentence, named
from equipoise.core.wording import number
from equipoise.data.problems import listed, show
from equipoise.metrics.rankings.subjects import (
    ALL_CATEGORIES,
    FEW_SUBJECTS,
    SUMMARIES,
    alignment,
    correlation,
    loess,
    score_summary,
)
from equipoise.metrics.registry import function_of
from equipoise.metrics.spec import spec_of
from equipoise.metrics.vectors.associations import (
    encoder_difference,
    sc_weat,
    total_absolute_association,
    weat,
)
from equipoise.metrics.vectors.mcas import (
    SIDES,
    bias_amplification,
    component_scores,
    diffusion_bias,
    distance_part,
    mcas,
    xmcas,
)
from equipoise.metrics.vectors.mcas import offset as mcas_offset
from equipoise.metrics.vectors.metric import set_names
from equipoise.metrics.vectors.predicted_labels import label_concentration, predicted_label_weat
from equipoise.metrics.vectors.sets import embed
from equipoise.metrics.vectors.trends import ImageSimilarities, gender_difference, trend
from equipoise.stats import Bootstrap, Resampling

Sides = dict[str, Side]

_KINDS = (("images", "image"), ("texts", "text"))
_NOT_EQUAL = (
    "not tested: its null, that groups are exchangeable, is not that both sizes are equal: read "
    "the interval of |II| - |TT|"
)
_PART = "a part of mcas, which is tested; ask for association_score to test it by itself"
_SIDES = {"a": "first", "b": "second", "": "both"}
_ONE_REGION = "all"
# Similarities that differ by rounding only are ties, which go to the label named first.
_DECIMALS = 12


def _estimate(
    metric: Callable[..., Estimate],
    question: Question,
    sides: Sides,
    *exchanged: tuple[str, ...],
    **options: Any,
) -> Estimate:
    """Call a metric with the members of sets, in their order."""
    return metric(
        *(side.things for side in sides.values()),
        similarity=question.space.similarity,
        units=units_of(sides, exchanged),
        **question.drawn,
        **options,
    )


def _sides(question: Question, case: Case, *parts: str) -> Sides:
    """Return the sets of a case by their part in the metric: targets, then attributes."""
    attribute_kind, target_kind = case.kinds
    space = question.space
    targets = [space.chosen(name, target_kind) for name in case.targets]
    attributes = (
        space.chosen(name, attribute_kind, targets) for name in question.options.attributes
    )
    return dict(zip(parts, (*targets, *attributes), strict=True))


@record
class Procedure:
    """How a metric is measured.

    Attributes
    ----------
    measure : callable
        From a question to its findings, rows and notes.
    count_tests : callable
        From a question to the number of its tests.
    exchanges_targets : bool
        Whether its tests exchange members of two targets, so that their sizes decide what shows.
    """

    measure: Callable[[Question], Iterable[Result] | Measured]
    count_tests: Callable[[Question], int] = tests_of_cases
    exchanges_targets: bool = False


_PROCEDURES: dict[str, Procedure] = {}
Measuring = TypeVar("Measuring", bound=Callable[[Question], Iterable[Result] | Measured])


def measures(
    *metrics: Callable[..., Estimate],
    tests: Callable[[Question], int] = tests_of_cases,
    exchanges_targets: bool = False,
) -> Callable[[Measuring], Measuring]:
    """Register a function as the way to measure metrics, with the number of its tests."""

    def registered(measure: Measuring) -> Measuring:
        procedure = Procedure(measure, tests, exchanges_targets)
        _PROCEDURES.update((metric.__name__, procedure) for metric in metrics)
        return measure

    return registered


def procedure_of(metric: str) -> Procedure:
    """Return how a metric is measured: by its sets, if nothing else is registered."""
    return _PROCEDURES.get(metric, Procedure(measure_sets))


def measure_sets(question: Question) -> Iterator[Result]:
    """Measure a metric of each target, or of two, in each modality that the sets allow."""
    scores: dict[str, dict[str, Estimate]] = {}
    for case in question.cases:
        finding, estimate = score_of(question, case)
        yield finding
        if len(case.targets) == 1:
            scores.setdefault(case.modality, {})[case.targets[0]] = estimate
    for modality, values in scores.items():
        yield from _summaries(question, question.place(modality), values)


def score_of(question: Question, case: Case) -> tuple[UncorrectedFinding, Estimate]:
    """Return the number of a target, or of two, in a modality: as a finding and as measured."""
    options = question.options
    metric = function_of(options.metric)
    names = set_names(metric)
    sides = _sides(question, case, *names)
    fixed: dict[str, Any] = {"fixed": ()} if options.resample_texts else {}
    estimate = _estimate(metric, question, sides, names[:-2], names[-2:], **fixed)
    means = [part.value for part in estimate.parts]
    by_group = estimate.parts[0].by_group if means else ()
    family, direction = Family.LEAF, Sentence()
    if len(case.targets) == 2:
        family = Family.COMPOSITE
        direction = crossed(case.targets, means, question.pair) if means else direction
    elif estimate.harm == "either":
        direction = closer(case.targets[0], estimate.value, question.pair)
    finding = finding_of(
        estimate, question.place(case.modality), family, subject=" against ".join(case.targets),
        direction=direction, by_group=by_group, **about(sides),
    )  # fmt: skip
    return finding, estimate


@measures(weat, exchanges_targets=True)
def measure_weat(question: Question) -> Iterator[Result]:
    """Measure WEAT of two targets in each modality that their sets allow."""
    options = question.options
    for case in question.cases:
        sides = _sides(question, case, "x", "y", "a", "b")
        estimate = _estimate(
            weat, question, sides, ("x", "y"), ("a", "b"),
            alternative=options.alternative, ddof=options.ddof, studentized=options.studentized,
        )  # fmt: skip
        effect, statistic, *attribute_variations = estimate.parts
        means, place = (
            [group_value.value for group_value in effect.by_group],
            question.place(case.modality),
        )
        fields = {
            "subject": " against ".join(case.targets),
            "direction": crossed(case.targets, means, question.pair),
            **about(sides),
        }
        finding = finding_of(estimate, place, Family.COMPOSITE, by_group=effect.by_group, **fields)
        yield finding.changed(beside=_sentence_on_similar_sets(attribute_variations))
        yield from _note_uneven_targets(question, estimate, fields["subject"])
        statistic_finding = finding_of(estimate, place, Family.COMPOSITE, statistic, **fields)
        yield replace(
            statistic_finding,
            fold=Fact(estimate.metric, Aggregate.VALUE, finding.finding.subject),
        )


# The variance of a difference over that of an exchange, from which on the classic p is misleading.
_UNEVEN = 1.25


def _note_uneven_targets(
    question: Question, estimate: Estimate, subject: str
) -> Iterator[Note | str]:
    """Yield the note on targets that differ in spread and size."""
    ratio = estimate.params["spread_ratio"]
    if question.options.studentized or math.isnan(ratio) or 1 / _UNEVEN < ratio < _UNEVEN:
        return
    sizes = " and ".join(str(estimate.n[side]) for side in "xy")
    wrong = "small" if ratio > 1.0 else "large"
    yield Note(
        f"{question.model}, weat of {subject}",
        f"the targets ({sizes} members) differ in size and "
        f"spread, so the classic p may be too {wrong}. `studentized: true` allows for both.",
    )


def _sentence_on_similar_sets(variations: Iterable[Part]) -> str:
    """Return the interval that is about other attributes like these, as a sentence."""
    text = "The effect size holds for these attribute sets."
    for part in variations:
        if not math.isnan(part.low):
            ends = f"{number(part.low)} to {number(part.high)}"
            text += f" For similar sets expect {ends}."
    return text


def _count_members(question: Question) -> int:
    """Return the targets' members that the model knows."""
    space, n_members = question.space, 0
    for case in question.cases:
        for table, rows in space.members(case.targets[0], case.kinds[1]).items():
            n_members += int(space.known[table][rows].sum())
    return n_members


@measures(sc_weat, tests=_count_members)
def measure_sc_weat(question: Question) -> Iterator[Result]:
    """Measure SC-WEAT of every member of the targets."""
    options, space = question.options, question.space
    for case in question.cases:
        attribute_kind, target_kind = case.kinds
        members = space.chosen(case.targets[0], target_kind)
        for row, name in enumerate(members.ids):
            member = members.only(np.arange(len(members)) == row)
            attributes = (
                space.chosen(attribute, attribute_kind, [member])
                for attribute in options.attributes
            )
            sides = dict(zip("ab", attributes, strict=True))
            estimate = _estimate(
                sc_weat, question, {"w": member, **sides}, ("a", "b"),
                alternative=options.alternative, ddof=options.ddof,
            )  # fmt: skip
            yield finding_of(
                estimate, question.place(case.modality), Family.LEAF, subject=name,
                direction=closer(name, estimate.value, question.pair),
                by_group=estimate.parts[0].by_group if estimate.parts else (), **about(sides),
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MeasuredTotals(Measured):
    """Total absolute associations of one model, which are compared between models."""

    question: Question
    totals: Mapping[Case, Estimate]


@measures(total_absolute_association)
def measure_totals(question: Question) -> MeasuredTotals:
    """Measure the total absolute association in each modality."""
    totals, findings = {}, []
    for case in question.cases:
        # Targets may have any name: the metric keeps "a" and "b" for the attributes.
        keys = tuple(f"target {name}" for name in case.targets)
        sides = _sides(question, case, *keys, "a", "b")
        totals[case] = estimate = total_absolute_association(
            {key: sides[key].things for key in keys},
            sides["a"].things,
            sides["b"].things,
            similarity=question.space.similarity,
            units=units_of(sides, [("a", "b"), *((key,) for key in keys)]),
            **question.drawn,
        )
        place = question.place(case.modality)
        findings.append(finding_of(estimate, place, Family.COMPOSITE, **about(sides)))
    return MeasuredTotals(tuple(findings), question=question, totals=totals)


def compare_totals(measured_models: Iterable[Measured], config: AuditConfig) -> Iterator[Result]:
    """Yield the differences between models in each modality where all have the same targets."""
    totals: dict[tuple[int, str], dict[str, tuple[Question, Case, Estimate]]] = {}
    for measured in measured_models:
        if not isinstance(measured, MeasuredTotals):
            continue
        for case, estimate in measured.totals.items():
            model_totals = totals.setdefault((id(measured.question.options), case.modality), {})
            model_totals[measured.question.model] = measured.question, case, estimate
    resampling = resampling_of(
        config, sum(math.comb(len(model_totals), 2) for model_totals in totals.values())
    )
    for (_, modality), model_totals in totals.items():
        if len(model_totals) < 2 or len({case for _, case, _ in model_totals.values()}) > 1:
            continue
        estimate = encoder_difference(
            {model: total for model, (_, _, total) in model_totals.items()},
            resampling=resampling,
            rng=config.resampling.seed,
        )
        pairs = [part for part in estimate.parts if part.metric == "difference"]
        for pair, part in zip(combinations(model_totals, 2), pairs, strict=True):
            larger, smaller = pair[:: 1 if part.value >= 0 else -1]
            yield finding_of(
                estimate, model_totals[larger][0].place(modality), Family.COMPOSITE,
                # With two models the difference of the pair is that of all, whose chance is drawn.
                _orient_difference(
                    replace(part, metric=estimate.metric),
                    estimate.chance if len(pairs) == 1 else None,
                ),
                subject=f"against {smaller}",
                direction=Sentence(f"the targets lean more with {larger} than with {smaller}"),
            )  # fmt: skip


def _orient_difference(part: Part, chance: Chance | None) -> Part:
    """Return a difference as that of the larger total minus the smaller, with a chance level."""
    low, high = (part.low, part.high) if part.value >= 0 else (-part.high, -part.low)
    part = replace(part, value=abs(part.value), low=low, high=high)
    if chance is None:
        return part
    return replace(part, chance=chance.mean, chance_low=chance.low, chance_high=chance.high)


def _count_mcas(question: Question) -> int:
    """Return the tests of MCAS: with texts as they are, and resampled."""
    return len(question.cases) * (1 if question.options.resample_texts else 2)


@measures(mcas, tests=_count_mcas)
def measure_mcas(question: Question) -> Iterator[Result]:
    """Measure MCAS of each target, its parts and their summaries."""
    yield from report_mcas(question, mcas_by_target(question))


def mcas_by_target(question: Question) -> dict[str, tuple[Sides, Estimate]]:
    """Return the sets and MCAS of each target."""
    measured_targets = dict[str, tuple[Sides, Estimate]]()
    for case in question.cases:
        target = case.targets[0]
        sides = _four_sides(question, target)
        estimate = _mcas(
            question, sides, resample_texts=question.options.resample_texts,
            fixed_texts=question.fixed_texts,
        )  # fmt: skip
        measured_targets[target] = sides, estimate
    return measured_targets


def report_mcas(
    question: Question, measured_targets: Mapping[str, tuple[Sides, Estimate]]
) -> Iterator[Result]:
    """Report MCAS of each target, its parts and their summaries."""
    place, pair, estimates = question.place(), question.pair, dict[str, Estimate]()
    for target, (sides, estimate) in measured_targets.items():
        estimates[target] = estimate
        fields = about(sides)
        kinds = {part: f"{s.name} ({part.partition('_')[2]})" for part, s in sides.items()}
        # MCAS itself, then with texts resampled.
        for tested in (None, *estimate.parts[len(SIDES) :]):
            yield finding_of(
                estimate, question.place(tested.subject if tested else ""), Family.COMPOSITE,
                tested, subject=target,
                direction=closer(target, (tested or estimate).value, pair),
                **fields | {"names": kinds},
            )  # fmt: skip
        for part, score in component_scores(estimate):
            described = finding_of(
                estimate, question.place(part.metric), Family.DESCRIPTIVE,
                score, subject=target, names=fields["names"],
                direction=closer(target, part.value, pair), by_group=part.by_group,
            )  # fmt: skip
            yield without_verdict(described, _PART)
            yield Row("mcas_parts", place, {
                **vars(part), "target": target, "part": part.metric,
                "category": question.options.categories[target],
            })  # fmt: skip
    yield from _summaries(question, place, estimates)
    if question.options.generated:
        yield from _measure_generated(question, estimates)


def _mcas(question: Question, sides: Sides, **options: Any) -> Estimate:
    exchanged = ("target_images",), ("a_images", "b_images"), ("a_texts", "b_texts")
    return _estimate(mcas, question, sides, *exchanged, **options)


def _four_sides(question: Question, target: str) -> Sides:
    """Return a target's and both groups' images and texts, by their part in the metric."""
    space = question.space
    sides = {f"target_{suffix}": space.chosen(target, kind) for suffix, kind in _KINDS}
    for part, name in zip("ab", question.pair, strict=True):
        for suffix, kind in _KINDS:
            sides[f"{part}_{suffix}"] = space.chosen(name, kind, [sides[f"target_{suffix}"]])
    return sides


def _measure_generated(question: Question, estimates: Mapping[str, Estimate]) -> Iterator[Result]:
    """Yield how much images amplify the association of their prompts, by target."""
    place, categories = question.place(), question.options.categories
    biases, gains = dict[str, Estimate](), dict[str, Estimate]()
    resampling = for_intervals(question.resampling)
    encoders = [replace(question, space=space, resampling=resampling) for space in question.spaces]
    for target, estimate in estimates.items():
        components = [
            _mcas(encoder, _four_sides(encoder, target), fixed_texts=True) for encoder in encoders
        ]
        biases[target] = diffusion_bias(components or estimate)
        gains[target] = bias_amplification(components or estimate)
    x = np.array([bias.value for bias in biases.values()])
    y = np.array([gain.value for gain in gains.values()])
    finite, fitted = np.isfinite(x) & np.isfinite(y), np.full(len(x), math.nan)
    # A curve through three or four points shows nothing but these.
    if finite.sum() >= 5:
        fitted[finite] = loess(x[finite], y[finite])(x[finite])
    for target, fitted_gain in zip(estimates, fitted.tolist(), strict=True):
        bias, gain = biases[target], gains[target]
        associations = {
            part.metric: abs(part.value) for part in estimates[target].parts[: len(SIDES)]
        }
        comparison = "more" if associations["II"] > associations["TT"] else "no more"
        described = finding_of(
            bias, place, Family.DESCRIPTIVE, subject=target,
            direction=Sentence(f"the images of {target} lean {comparison} than its texts"),
        )  # fmt: skip
        # Chance level and p would answer another question.
        yield without_verdict(without_chance(described), _NOT_EQUAL)
        yield finding_of(gain, place, Family.DESCRIPTIVE, subject=target)
        bias_ends, gain_ends = bias.interval(question.level), gain.interval(question.level)
        yield Row("amplification", place, {
            "target": target, "category": categories[target], bias.metric: bias.value,
            "diffusion_low": bias_ends.low, "diffusion_high": bias_ends.high,
            gain.metric: gain.value, "amplification_low": gain_ends.low,
            "amplification_high": gain_ends.high, "fitted": fitted_gain, "reason": gain.reason,
        })  # fmt: skip
    yield from _summaries(question, place, biases)
    yield from _summaries(question, place, gains)


def for_intervals(resampling: Resampling | None) -> Resampling | None:
    """Return a resampling for intervals alone, without a chance level."""
    if not isinstance(resampling, Bootstrap):
        return resampling
    return Bootstrap(resampling.replicates, 1, resampling.level, 1.0)


def without_chance(described: UncorrectedFinding) -> UncorrectedFinding:
    """Return a finding without its chance level."""
    nan = math.nan
    finding = replace(
        described.finding,
        chance=nan,
        chance_low=nan,
        chance_high=nan,
        excess=nan,
        null=NullHypothesis.NONE,
        null_drawn="",
    )
    return replace(described, finding=finding)


def _summaries(
    question: Question, place: Place, estimates: Mapping[str, Estimate | Part]
) -> Iterator[Result]:
    """Summarise the scores of targets that have categories or declared sides."""
    options = question.options
    values = {target: estimate.value for target, estimate in estimates.items()}
    if not any(map(math.isfinite, values.values())):
        return
    (of,) = {estimate.metric for estimate in estimates.values()}
    if any(options.categories.values()):
        summary = score_summary(values, options.categories, ddof=options.ddof)
        yield finding_of(summary, place, Family.DESCRIPTIVE, subject=f"all targets, {of}")
        for category, side, numbers in _summarised(summary):
            row = {"metric": of, "category": category, "direction": _SIDES[side], "declared": ""}
            yield Row("score_summaries", place, {**row, **numbers})
    declared = {name: value for name, value in values.items() if name in options.side_of}
    if any(map(math.isfinite, declared.values())):
        summary = score_summary(declared, options.side_of, ddof=options.ddof)
        for side, direction, numbers in _summarised(summary):
            if not direction and side != ALL_CATEGORIES:
                row = {"metric": of, "category": ALL_CATEGORIES, "declared": side}
                yield Row("score_summaries", place, {**row, "direction": _SIDES[""], **numbers})


def _summarised(summary: Estimate) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield category, direction and numbers of each set of targets of a summary."""
    for start in range(0, len(summary.parts), len(SUMMARIES)):
        parts = summary.parts[start : start + len(SUMMARIES)]
        numbers = {part.metric: part.value for part in parts} | {"targets": parts[0].n}
        yield parts[0].part_of or parts[0].subject, parts[0].within_value, numbers


@measures(xmcas, tests=lambda _: 0)
def measure_xmcas(question: Question) -> Iterator[Result]:
    """Measure xMCAS of each target with further groups."""
    options, space, place = question.options, question.space, question.place()
    neutral, offset = math.atan(1.0 / (2 + len(options.further))), options.offset
    estimates, distances = dict[str, Estimate](), dict[str, Part]()
    if options.neutral:
        unsampled = replace(question, resampling=None)
        neutral_values = [
            _mcas(unsampled, _four_sides(question, name)).value for name in options.neutral
        ]
        offset_estimate = mcas_offset(
            neutral_values, size_of_mean=options.size_of_mean, **question.drawn
        )
        yield finding_of(offset_estimate, place, Family.DESCRIPTIVE, subject="neutral targets")
        offset = offset_estimate.value
    for case in question.cases:
        target = case.targets[0]
        sides = _four_sides(question, target)
        # The prefix keeps names apart from those of the parts.
        further = {f"further {name}": name for name in options.further}
        all_sides, further_things = dict(sides), []
        for suffix, kind in _KINDS:
            things = {}
            for prefixed, name in further.items():
                side = space.chosen(name, kind, [sides[f"target_{suffix}"]])
                all_sides[f"{prefixed}_{suffix}"], things[prefixed] = side, side.things
            further_things.append(things)
        estimate = xmcas(
            *(side.things for side in sides.values()),
            *further_things,
            offset=offset,
            centre=options.centre,
            similarity=space.similarity,
            units=units_of(all_sides, [(part,) for part in all_sides if part.endswith("_images")]),
            resample_texts=options.resample_texts,
            **question.drawn,
        )
        estimates[target] = estimate
        comparison = "less" if estimate.value < neutral else "more"
        groups = Sentence(*_joined(options.further))
        yield finding_of(
            estimate, place, Family.DESCRIPTIVE, subject=target,
            direction=Sentence(
                f"{target} represents ", groups, f" {comparison} than the neutral angle"
            ),
            **about(all_sides),
        )  # fmt: skip
        distances[target] = distance = distance_part(estimate)
        described = finding_of(
            estimate, place, Family.DESCRIPTIVE, distance, subject=target, **about(all_sides)
        )
        yield without_verdict(described, estimate.no_chance)
        for part in estimate.parts:
            yield Row(estimate.metric, place, {
                **vars(part), "target": target, "part": part.metric,
                "group": further.get(part.subject, part.subject), "theta": estimate.value,
                "neutral": neutral,
            })  # fmt: skip
    yield from _summaries(question, place, estimates)
    yield from _summaries(question, place, distances)


def _joined(groups: Sequence[str]) -> Iterator[Sentence]:
    """Yield the names of groups with "and" between them."""
    for place, group in enumerate(groups):
        yield Sentence(" and " if place else "", named(group))


@measures(alignment, correlation)
def measure_related(question: Question) -> Iterator[Result]:
    """Relate the scores of targets to external figures, or to a declared hypothesis."""
    for case in question.cases:
        place = question.place(case.modality)
        yield from related(question, place, _values(question, case), question.options.of)


def related(
    question: Question,
    place: Place,
    values: Mapping[str, float],
    of: str,
    ends: Mapping[str, tuple[float, float]] = {},
) -> Iterator[Result]:
    """Relate numbers by subject to the figures of a question, and yield the points."""
    options, score_name = question.options, of.replace("_", " ")
    column = "" if options.figures is None else options.figures.value
    points = {name: (question.figures.get(name, math.nan), values[name]) for name in sorted(values)}
    if missing_subjects := [
        name for name, (figure, _) in points.items() if not math.isfinite(figure)
    ]:
        yield Note(
            column,
            f"no figure for {listed(missing_subjects, 10)}, {len(missing_subjects)} of "
            f"{len(values)} left out.",
        )
    if options.hypothesis is not None:
        estimate = alignment(
            values, question.figures, statistic=options.statistic, **question.drawn
        )
        direction = f"preferences {'follow' if estimate.value > 0 else 'run against'} {column}"
        if (n_subjects := estimate.n["subjects"]) < FEW_SUBJECTS:
            yield Note(
                f"{question.model}, alignment with {column}",
                f"{n_subjects} subjects. With fewer "
                f"than {FEW_SUBJECTS} its interval misses the truth too often.",
            )
    else:
        figures, numbers = zip(*points.values(), strict=True)
        estimate = correlation(numbers, figures, level=question.level)
        direction = f"{score_name} {'rises' if estimate.value > 0 else 'falls'} with {column}"
        for part in estimate.parts:
            correlation_row = {**vars(part), "metric": of, "figure": column, "kind": part.metric}
            yield Row("outside_correlations", place, correlation_row)
    yield finding_of(
        estimate, place, Family.COMPOSITE, subject=f"{score_name} and {column}",
        direction=Sentence("" if math.isnan(estimate.value) else direction),
    )  # fmt: skip
    for name, (figure, value) in points.items():
        low, high = ends.get(name, (math.nan, math.nan))
        yield Row("outside", place, {
            "metric": of, "figure": column, "subject": name, "outside": figure, "value": value,
            "low": low, "high": high,
        })  # fmt: skip


def _values(question: Question, case: Case) -> dict[str, float]:
    """Return the score of each target of a case, without intervals."""
    unsampled, values = replace(question, resampling=None), {}
    score = function_of(question.options.of)
    if question.options.in_all_modalities:
        return {name: _mcas(unsampled, _four_sides(question, name)).value for name in case.targets}
    for target in case.targets:
        sides = _sides(question, Case(case.modality, (target,)), *set_names(score))
        values[target] = _estimate(score, unsampled, sides).value
    return values


def _levels(question: Question, column: str | None) -> int:
    """Return the values of a column of the images; 1 without a column."""
    coded = question.space.data.items[question.table].coded
    return 1 if column is None else len(coded[column].vocabulary)


def _count_regions(question: Question) -> int:
    """Return the tests of regions and of the relation to external figures."""
    options, related_figures = question.options, question.options.outside is not None
    if not _compares_groups(options.metric):
        return len(question.cases) * related_figures * _levels(question, options.groups)
    regions = _levels(question, options.regions)
    return len(question.cases) * (regions * (regions > 1) + 1 + related_figures)


def _compares_groups(metric: str) -> bool:
    """Whether a metric of images and words compares groups, so that it is tested."""
    return spec_of(metric).null != "none"


@measures(trend, gender_difference, tests=_count_regions)
def measure_regions(question: Question) -> Iterator[Result]:
    """Measure trend or gender difference by region, and its relation to external figures."""
    options, place = question.options, question.place()
    images, up, down = _compare_to_words(question)
    tested = _compares_groups(options.metric)
    estimate = function_of(options.metric)(images, up, down, **question.drawn)
    yield from _findings_by_region(question, estimate)
    yield from _rows_of_words(place, images, up)
    if options.outside is None:
        return
    by_subject: dict[str, dict[str, Part | GroupValue]] = {}
    for part in estimate.parts:
        for estimated_value in [part] if tested else part.by_group:
            name = options.metric
            if isinstance(estimated_value, GroupValue):
                name += f", {estimated_value.group}"
            by_subject.setdefault(name, {})[part.subject] = estimated_value
    for name, by_region in by_subject.items():
        values, ends = dict[str, float](), dict[str, tuple[float, float]]()
        for region, estimated_value in by_region.items():
            values[region] = estimated_value.value
            ends[region] = estimated_value.low, estimated_value.high
        yield from related(question, place, values, name, ends)


def _compare_to_words(question: Question) -> tuple[ImageSimilarities, list[str], list[str]]:
    """Return similarities of images to words, and the positive and negative words."""
    options, space, table = question.options, question.space, question.table
    images, rows = space.images(table), space.usable[table]
    names = filter(None, (options.positive, options.negative))
    words = [space.only_usable(space.chosen(name, "text")) for name in names]
    columns = space.data.items[table].columns
    up, down = [*words[0].ids], [*words[1].ids]
    if shared_words := {*up} & {*down}:
        raise DataError(
            f"{min(shared_words)!r} is in the set {words[0].name!r} and in {words[1].name!r}",
            expected="each word among the positive or the negative words",
        )
    similarities = ImageSimilarities(
        np.concatenate([_cosines(space, images, side) for side in words], axis=1),
        [*up, *down],
        columns[options.groups or ""][rows],
        None if options.regions is None else columns[options.regions][rows],
        images.units if images.clustered else None,
    )
    return similarities, up, down


def _cosines(space: Space, rows: Side, columns: Side) -> Floats:
    """Return similarities (rows, columns): cosines, or the model's scores."""
    if space.similarity is not None:
        return np.asarray(space.similarity(rows.things, columns.things), dtype=np.float64)
    embedded = embed({"rows": rows.things}, {"columns": columns.things})
    return embedded["rows"].similarities(embedded["columns"].vectors)


def _findings_by_region(question: Question, estimate: Estimate) -> Iterator[Result]:
    """Yield the number over all regions, and that of each where there are several."""
    table, place = question.table, question.place()
    n_unusable = int((~question.space.usable[table]).sum())
    excluded = (Excluded(f"{table}: no usable vector", n_unusable),) if n_unusable else ()
    has_regions, tested = (
        question.options.regions is not None,
        _compares_groups(estimate.metric),
    )
    family = Family.LEAF if tested else Family.DESCRIPTIVE
    closer = f"closer to {'all' if tested else 'positive'} words"
    if has_regions:
        averages = _averages(estimate)
        yield finding_of(
            estimate, place, Family.COMPOSITE if tested else family, by_group=averages,
            direction=extremes(f"{closer} over all regions", averages), excluded=excluded,
        )  # fmt: skip
    for part in estimate.parts:
        described = finding_of(
            estimate, place, family, part, subject=part.subject if has_regions else "",
            direction=extremes(closer, part.by_group), by_group=part.by_group, excluded=excluded,
        )  # fmt: skip
        yield described if tested else without_verdict(described, estimate.no_chance)


def _averages(estimate: Estimate) -> tuple[GroupValue, ...]:
    """Return each group's mean over the regions that have it."""
    by_group: dict[str, list[GroupValue]] = {}
    for part in estimate.parts:
        for group_value in part.by_group:
            by_group.setdefault(group_value.group, []).append(group_value)
    averages = []
    for group, group_values in by_group.items():
        mean = _average([group_value.value for group_value in estimable(group_values)])
        n = sum(group_value.n for group_value in group_values)
        averages.append(GroupValue(group, (group,), n, mean, math.nan, math.nan))
    return tuple(averages)


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _rows_of_words(place: Place, images: ImageSimilarities, up: Sequence[str]) -> Iterator[Row]:
    """Yield the mean similarity of each region and group to each word, and their sums by kind."""
    groups = np.asarray(images.groups)
    regions = np.asarray([_ONE_REGION] * len(groups) if images.regions is None else images.regions)
    cells = {cell for cell in zip(regions, groups, strict=True) if None not in cell}
    for region, group in sorted(cells):
        scores = np.asarray(images.scores)[(regions == region) & (groups == group)]
        means = np.sort(scores, axis=0).mean(axis=0)
        about = {"region": region, "group": group, "n": len(scores)}
        sums = dict.fromkeys(("positive", "negative"), 0.0)
        for word, mean in zip(images.words, means.tolist(), strict=True):
            kind = "positive" if word in up else "negative"
            sums[kind] += mean
            yield Row("words", place, {**about, "word": word, "kind": kind, "similarity": mean})
        for kind, total in sums.items():
            yield Row("word_sums", place, {**about, "kind": kind, "similarity": total})


@measures(predicted_label_weat)
def measure_label_weat(question: Question) -> Iterator[Result]:
    """Measure WEAT of the labels that are predicted most for each of two groups."""
    options, space, place = question.options, question.space, question.place()
    labels, groups, units, _, vocabulary = _predict_labels(question)
    first, second = _two_groups(question, groups)
    sides = [space.chosen(name, "text") for name in options.attributes]
    estimate = predicted_label_weat(
        labels,
        groups,
        vocabulary.ids,
        vocabulary.things,
        *(side.things for side in sides),
        first=first,
        alternative=options.alternative,
        ddof=options.ddof,
        common_labels=options.common_labels,
        similarity=space.similarity,
        units=units,
        **question.drawn,
    )
    overall, *of_labels = estimate.parts
    values = {group.group: group.value for group in overall.by_group}
    means = [values[group] for group in (first, second)]
    names = [f"labels of {group}" for group in (first, second)]
    yield finding_of(
        estimate, place, Family.COMPOSITE, subject=" against ".join(options.attributes),
        direction=crossed(names, means, question.pair), by_group=overall.by_group,
    )  # fmt: skip
    yield from _rows_of_labels(question, labels, groups)
    for part in of_labels:
        side = first if part.shows.endswith("in x") else second
        yield Row("label_scores", place, {**vars(part), "label": part.subject, "set": side})


def _count_label_regions(question: Question) -> int:
    """Return the tests of all images, and of each region."""
    regions = question.options.regions
    return len(question.cases) * (1 + (0 if regions is None else _levels(question, regions)))


@measures(label_concentration, tests=_count_label_regions)
def measure_concentration(question: Question) -> Iterator[Result]:
    """Measure how much the labels of each group concentrate on a few."""
    predicted = _predict_labels(question)
    place, estimate = question.place(), _concentration(question, predicted)
    yield _concentration_finding(question, estimate, Family.COMPOSITE)
    for part in estimate.parts[1:]:
        described = finding_of(estimate, place, Family.DESCRIPTIVE, part, by_group=part.by_group)
        yield without_verdict(described, "a shape of counts, without a chance level")
    yield from _rows_of_labels(question, predicted.labels, predicted.groups)
    for region in sorted({*predicted.regions} - {None}):
        inside = predicted.only(predicted.regions == region)
        estimate = _concentration(question, inside)
        yield _concentration_finding(question, estimate, Family.LEAF, region)
        yield from _counts_of_labels(question, inside.labels, inside.groups, region)


def _concentration(question: Question, predicted: PredictedLabels) -> Estimate:
    options = question.options
    return label_concentration(
        predicted.labels,
        predicted.groups,
        vocabulary=predicted.vocabulary.ids if options.whole_vocabulary else None,
        k=options.k,
        units=predicted.units,
        **question.drawn,
    )


def _concentration_finding(
    question: Question, estimate: Estimate, family: Family, region: str = ""
) -> UncorrectedFinding:
    """Return the concentration of labels, over all images or a region."""
    share = estimate.parts[0]
    text = extremes(f"labels pile up on {question.options.k}", share.by_group)
    return finding_of(
        estimate, question.place(), family, subject=region, direction=text, by_group=share.by_group
    )


class PredictedLabels(NamedTuple):
    """Labels, groups, units and regions of images, and the vocabulary of the labels."""

    labels: Objects
    groups: Objects
    units: tuple[str, ...] | None
    regions: Objects
    vocabulary: Side

    def only(self, mask: Booleans) -> PredictedLabels:
        """Return some of the images."""
        units = None if self.units is None else tuple(compress(self.units, mask.tolist()))
        return self._replace(
            labels=self.labels[mask], groups=self.groups[mask], units=units,
            regions=self.regions[mask],
        )  # fmt: skip


def _predict_labels(question: Question) -> PredictedLabels:
    """Return the label, group and unit of each image, and the vocabulary.

    A label is the text that an image is most similar to.
    """
    options, space, table = question.options, question.space, question.table
    vocabulary = space.only_usable(space.chosen(options.labels[0], "text"))
    images = space.images(table)
    scores = np.round(_cosines(space, images, vocabulary), _DECIMALS)
    labels = np.array(vocabulary.ids, dtype=object)[scores.argmax(axis=1)]
    columns, usable = space.data.items[table].columns, space.usable[table]
    groups = columns[options.groups or ""][usable]
    regions = (
        np.full(len(labels), None) if options.regions is None else columns[options.regions][usable]
    )
    units = images.units if images.clustered else None
    return PredictedLabels(labels, groups, units, regions, vocabulary)


def _two_groups(question: Question, groups: Objects) -> list[str]:
    """Return the group with labels X, then the other; refuse other numbers of groups."""
    names, first = sorted({*groups} - {None}), question.options.first
    if len(names) != 2 or first not in (None, *names):
        first_group = "" if first is None else f", one of them {show(first)}"
        raise DataError(
            f"the column has {listed(names)}",
            file=question.space.data.items[question.table].name,
            column=question.options.groups,
            expected=f"two groups{first_group}",
            fix="name a column of two values, with other values as `missing:`",
        )
    return names[::-1] if first == names[1] else names


def _rows_of_labels(
    question: Question, labels: Objects, groups: Objects
) -> Iterator[Row | Note | str]:
    """Yield how often each group has each label, and the note on images without one."""
    yield from _counts_of_labels(question, labels, groups)
    if unused := len(question.space.data.items[question.table]) - len(labels):
        yield Note(
            question.model, f"{unused} items of {question.table} have no vector and no label."
        )


def _counts_of_labels(
    question: Question, labels: Objects, groups: Objects, region: str = ""
) -> Iterator[Row]:
    """Yield the count of each label by group, over all images or a region."""
    pairs = zip(groups.tolist(), labels.tolist(), strict=True)
    counts = Counter(pair for pair in pairs if None not in pair)
    totals = Counter(group for group, _ in counts.elements())
    for (group, label), n in sorted(counts.items()):
        share = n / totals[group]
        yield Row("labels", question.place(), {
            "region": region, "group": group, "label": label, "count": n, "share": share,
        })  # fmt: skip
