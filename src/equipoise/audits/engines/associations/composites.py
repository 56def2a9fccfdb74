"""MCAS with its parts, diffusion bias and amplification, and xMCAS."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.engines.associations.cases import cases_of
from equipoise.audits.engines.associations.results import (
    Question,
    Result,
    Row,
    closer,
    finding_of,
    names_of,
    part_finding,
    without,
)
from equipoise.audits.engines.associations.spaces import Side, units_of
from equipoise.audits.findings import Place, UncorrectedFinding, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.metrics.values.outside import loess, score_summary
from equipoise.metrics.vectors.mcas import (
    bias_amplification,
    diffusion_bias,
    estimate_offset,
    mcas,
    xmcas,
)

_EXCHANGED = [("target_images",), ("a_images", "b_images"), ("a_texts", "b_texts")]
_KINDS = (("images", "image"), ("texts", "text"))
_NOT_EQUAL = (
    "not tested: its null, that groups are exchangeable, is not that both sizes are equal: read "
    "the interval of |II| - |TT|"
)
_PART = "a part of mcas, which is tested; ask for association_score to test it by itself"
_SIDES = {"a": "first", "b": "second"}


def measure_mcas(question: Question) -> Iterator[Result]:
    """Measure MCAS of each target, and what follows from its parts."""
    options, place = question.options, question.place()
    measured = {}
    for case in cases_of(options, question.space):
        target = case.targets[0]
        sides = _sides(question, target)
        estimate = mcas(
            *(side.things for side in sides.values()),
            similarity=question.space.similarity,
            units=units_of(sides, _EXCHANGED),
            resample_texts=options.resample_texts,
            **question.drawn,
        )
        measured[target] = estimate
        yield finding_of(
            estimate, place, Family.COMPOSITE, subject=target,
            direction=closer(target, estimate.value, question.pair),
            sides={part: f"{s.name} ({part.partition('_')[2]})" for part, s in sides.items()},
            excluded=without(sides),
        )  # fmt: skip
        yield from _components(question, sides, estimate, target)
    if options.generated:
        yield from _generated(question, place, measured)
    values = {target: estimate.value for target, estimate in measured.items()}
    yield from summaries(values, options.categories, place, "mcas")


def _sides(question: Question, target: str) -> dict[str, Side]:
    """Return a target's and both groups' images and texts, by their part in the metric."""
    space = question.space
    targets = {suffix: space.chosen(target, kind) for suffix, kind in _KINDS}
    return {f"target_{suffix}": side for suffix, side in targets.items()} | {
        f"{part}_{suffix}": space.apart(name, kind, [targets[suffix]])
        for part, name in zip("ab", question.pair, strict=True)
        for suffix, kind in _KINDS
    }


def _components(
    question: Question, sides: Mapping[str, Side], estimate: Estimate, target: str
) -> Iterator[Result]:
    for part in estimate.parts:
        described = part_finding(
            estimate, part, question.place(part.metric), Family.DESCRIPTIVE,
            metric="association_score", subject=target, sides=names_of(sides),
            direction=closer(target, part.value, question.pair, part.metric),
            by_group=part.by_group,
        )  # fmt: skip
        yield without_verdict(described, _PART)
        yield Row.of(
            "mcas_parts", question.place(), target=target,
            category=question.options.categories[target], part=part.metric, value=part.value,
            low=part.low, high=part.high,
        )  # fmt: skip


def _generated(
    question: Question, place: Place, measured: Mapping[str, Estimate]
) -> Iterator[Result]:
    """Yield what the images add to the association of their prompts, by target."""
    bias = {target: diffusion_bias(estimate) for target, estimate in measured.items()}
    gain = {target: bias_amplification(estimate) for target, estimate in measured.items()}
    for target, estimate in measured.items():
        text = _images_and_texts(target, estimate, question.pair)
        yield _untested(
            finding_of(bias[target], place, Family.DESCRIPTIVE, subject=target, direction=text),
            bias[target],
        )
        yield finding_of(gain[target], place, Family.DESCRIPTIVE, subject=target)
    x = np.array([bias[target].value for target in measured])
    y = np.array([gain[target].value for target in measured])
    fitted = smoothed(x, y, question.options.span)
    for target, size, value, smooth in zip(measured, x, y, fitted, strict=True):
        ends = [each[target].interval(question.level) for each in (bias, gain)]
        yield Row.of(
            "amplification", place, target=target,
            category=question.options.categories[target], diffusion_bias=float(size),
            diffusion_low=ends[0].low, diffusion_high=ends[0].high,
            bias_amplification=float(value), amplification_low=ends[1].low,
            amplification_high=ends[1].high, fitted=float(smooth), reason=gain[target].reason,
        )  # fmt: skip


def _untested(described: UncorrectedFinding, estimate: Estimate) -> UncorrectedFinding:
    """Return diffusion bias without chance level and p, which would answer another question."""
    signed = estimate.parts[0]
    ends = "" if math.isnan(signed.low) else f", {signed.low:.3g} to {signed.high:.3g}"
    return without_verdict(without_chance(described), f"{_NOT_EQUAL}{ends}")


def without_chance(described: UncorrectedFinding) -> UncorrectedFinding:
    """Return a finding without its chance level."""
    none = math.nan
    shown = replace(
        described.finding, chance=none, chance_low=none, chance_high=none, excess=none, null=""
    )
    return replace(described, finding=shown)


def _images_and_texts(target: str, estimate: Estimate, pair: tuple[str, str]) -> str:
    """Say whether images or texts of a target lean more, and whether to different sides."""
    leans = {part.metric: part.value for part in estimate.parts}
    images, texts = leans["II"], leans["TT"]
    if math.isnan(images) or math.isnan(texts):
        return ""
    apart = abs(images) - abs(texts)
    size = "more than" if apart > 0 else "less than" if apart < 0 else "as much as"
    text = f"the images of {target} lean {size} its texts"
    if images * texts >= 0:
        return text
    near, far = pair if images > 0 else pair[::-1]
    return f"{text}, and to opposite sides: images to {near}, texts to {far}"


def smoothed(x: Any, y: Any, span: float) -> Any:
    """Return local regression of y on x at each x; NaN below five points or without x."""
    known = np.isfinite(x) & np.isfinite(y)
    fitted = np.full(len(x), math.nan)
    # A curve through three or four points shows nothing but these.
    if known.sum() >= 5:
        fitted[known] = loess(x[known], y[known], span=span)(x[known])
    return fitted


def summaries(
    values: Mapping[str, float], categories: Mapping[str, str], place: Place, of: str
) -> Iterator[Result]:
    """Summarise the scores of targets that have categories: mean and spread by direction."""
    if not any(categories.values()) or not any(map(math.isfinite, values.values())):
        return
    summary = score_summary(values, categories)
    yield finding_of(summary, place, Family.DESCRIPTIVE, subject=f"all targets, {of}")
    for mean, spread in zip(summary.parts[::2], summary.parts[1::2], strict=True):
        category, _, side = mean.subject.rpartition(", ")
        yield Row.of(
            "score_summaries", place, metric=of,
            category=category if side in _SIDES else mean.subject,
            direction=_SIDES.get(side, "both"), targets=mean.n, mean=mean.value, sd=spread.value,
        )  # fmt: skip


def measure_xmcas(question: Question) -> Iterator[Result]:
    """Measure xMCAS of each target with further groups."""
    options = question.options
    cases = cases_of(options, question.space)
    offset = options.offset
    if cases and options.neutral:
        values = composite_values(question, options.neutral)
        estimate = estimate_offset([*values.values()], **question.drawn)
        offset = estimate.value
        neutral = f"neutral: {', '.join(options.neutral)}"
        yield finding_of(estimate, question.place(), Family.DESCRIPTIVE, subject=neutral)
    for case in cases:
        yield from _xmcas(question, case.targets[0], offset)


def _xmcas(question: Question, target: str, offset: float) -> Iterator[Result]:
    options, space = question.options, question.space
    sides = _sides(question, target)
    # Names that a, b and target may also have.
    safe = {name: f"further {name}" for name in options.further}
    further = {
        suffix: {
            safe[name]: space.apart(name, kind, [sides[f"target_{suffix}"]])
            for name in options.further
        }
        for suffix, kind in _KINDS
    }
    everyone = sides | {
        f"{name}_{suffix}": side
        for suffix, groups in further.items()
        for name, side in groups.items()
    }
    estimate = xmcas(
        *(side.things for side in sides.values()),
        *({name: side.things for name, side in further[suffix].items()} for suffix, _ in _KINDS),
        offset=offset,
        similarity=space.similarity,
        units=units_of(everyone, [(part,) for part in everyone if part.endswith("_images")]),
        resample_texts=options.resample_texts,
        **question.drawn,
    )
    neutral = math.atan(1.0 / (2 + len(safe)))
    less = "less" if estimate.value < neutral else "more"
    angle = f"{neutral:.3f}\u00a0rad ({math.degrees(neutral):.1f}°)"
    text = (
        f"{target} represents {' and '.join(options.further)} {less} than the neutral angle of "
        f"{angle} does"
    )
    yield finding_of(
        estimate, question.place(), Family.DESCRIPTIVE, subject=target, direction=text,
        sides=names_of(everyone), excluded=without(everyone),
    )  # fmt: skip
    for part in estimate.parts:
        yield Row.of(
            "xmcas", question.place(), target=target, part=part.metric,
            group=part.subject.removeprefix("further "), value=part.value, low=part.low,
            high=part.high, theta=estimate.value, neutral=neutral, offset=offset,
        )  # fmt: skip


def composite_values(question: Question, targets: tuple[str, ...]) -> dict[str, float]:
    """Return MCAS of each target, without intervals."""
    return {
        target: mcas(
            *(side.things for side in _sides(question, target).values()),
            similarity=question.space.similarity,
            resampling=None,
        ).value
        for target in targets
    }
