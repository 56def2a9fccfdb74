"""MCAS with its parts, diffusion bias and amplification, and xMCAS."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.associations.apart import around
from equipoise.audits.associations.cases import cases_of
from equipoise.audits.associations.leaning import closer
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
from equipoise.audits.associations.spaces import Side, Space, units_of
from equipoise.audits.associations.summaries import summaries
from equipoise.audits.findings import Draft, Place, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.metrics.associations.amplification import bias_amplification, diffusion_bias
from equipoise.metrics.associations.mcas import mcas
from equipoise.metrics.associations.outside import loess
from equipoise.metrics.associations.xmcas import estimate_offset, xmcas

_EXCHANGED = [("target_images",), ("a_images", "b_images"), ("a_texts", "b_texts")]
_KINDS = (("images", "image"), ("texts", "text"))
_NOT_EQUAL = (
    "not tested: its null, that groups are exchangeable, is not that both sizes are equal: read "
    "the interval of |II| - |TT|"
)
_PART = "a part of mcas, which is tested; ask for association_score to test it by itself"


def measure_mcas(question: Question) -> Iterator[Piece]:
    """Measure MCAS of each target, and what follows from its parts."""
    asked = question.asked
    for space in question.spaces:
        place = question.place(space)
        found = {}
        for case in cases_of(asked, space):
            target = case.targets[0]
            sides = composite_sides(question, space, target)
            estimate = mcas(
                *(side.things for side in sides.values()),
                similarity=space.similarity,
                units=units_of(sides, _EXCHANGED),
                resample_texts=asked.resample_texts,
                **question.drawn(space),
            )
            found[target] = estimate
            told = _told(question, sides, estimate, target)
            yield drafted(estimate, place, Family.COMPOSITE, told)
            yield from _components(question, space, sides, estimate, target)
        if asked.generated:
            yield from _generated(question, place, found)
        values = {target: one.value for target, one in found.items()}
        yield from summaries(values, asked.categories, place, "mcas")


def composite_sides(question: Question, space: Space, target: str) -> dict[str, Side]:
    """Return a target's and both groups' images and texts, by their part in the metric.

    What is of the target is left out of the groups: nothing is compared with itself.
    """
    targets = {suffix: space.chosen(target, kind) for suffix, kind in _KINDS}
    return {f"target_{suffix}": side for suffix, side in targets.items()} | {
        f"{part}_{suffix}": around(space, name, kind, [targets[suffix]])
        for part, name in zip("ab", question.pair, strict=True)
        for suffix, kind in _KINDS
    }


def _told(question: Question, sides: Mapping[str, Side], estimate: Estimate, target: str) -> Told:
    names = {part: f"{side.name} ({part.partition('_')[2]})" for part, side in sides.items()}
    text = closer(target, estimate.value, question.pair)
    return Told(target, text, names, (), without(sides))


def _components(
    question: Question, space: Space, sides: Mapping[str, Side], estimate: Estimate, target: str
) -> Iterator[Piece]:
    whole = question.place(space)
    for part in estimate.parts:
        place = question.place(space, part.metric)
        told = Told(
            target,
            closer(target, part.value, question.pair, part.metric),
            {name: side.name for name, side in sides.items()},
            part.by_group,
        )
        draft = part_draft(
            estimate, part, place, Family.DESCRIPTIVE, told, metric="association_score"
        )
        yield without_verdict(draft, _PART)
        yield Row(
            "mcas_parts",
            {
                **at(whole), "target": target, "category": question.asked.categories[target],
                "part": part.metric, "value": part.value, "low": part.low, "high": part.high,
            },
        )  # fmt: skip


def _generated(question: Question, place: Place, found: Mapping[str, Estimate]) -> Iterator[Piece]:
    """Yield what the images add to the association of their prompts, by target."""
    bias = {target: diffusion_bias(one) for target, one in found.items()}
    gain = {target: bias_amplification(one) for target, one in found.items()}
    for target in found:
        text = _images_and_texts(target, found[target], question.pair)
        yield _untested(bias[target], place, Told(target, text))
        yield drafted(gain[target], place, Family.DESCRIPTIVE, Told(target))
    x = np.array([bias[target].value for target in found])
    y = np.array([gain[target].value for target in found])
    fitted = smoothed(x, y, question.asked.span)
    for target, size, value, smooth in zip(found, x, y, fitted, strict=True):
        ends = (bias[target].interval(question.level), gain[target].interval(question.level))
        yield Row(
            "amplification",
            {
                **at(place), "target": target, "category": question.asked.categories[target],
                "diffusion_bias": float(size), "diffusion_low": ends[0].low,
                "diffusion_high": ends[0].high, "bias_amplification": float(value),
                "amplification_low": ends[1].low, "amplification_high": ends[1].high,
                "fitted": float(smooth), "reason": gain[target].reason,
            },
        )  # fmt: skip


def _untested(estimate: Estimate, place: Place, told: Told) -> Draft:
    """Draft diffusion bias without chance level and p, which would answer another question."""
    draft = drafted(estimate, place, Family.DESCRIPTIVE, told)
    signed = estimate.parts[0]
    ends = "" if math.isnan(signed.low) else f", {signed.low:.3g} to {signed.high:.3g}"
    shown = replace(
        draft.finding,
        chance=math.nan,
        chance_low=math.nan,
        chance_high=math.nan,
        excess=math.nan,
        null="",
    )
    return without_verdict(replace(draft, finding=shown), f"{_NOT_EQUAL}{ends}")


def _images_and_texts(target: str, whole: Estimate, pair: tuple[str, str]) -> str:
    """Say whether images or texts of a target lean more, and whether to different sides."""
    leans = {part.metric: part.value for part in whole.parts}
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


def measure_xmcas(question: Question) -> Iterator[Piece]:
    """Measure xMCAS of each target with further groups."""
    asked = question.asked
    for space in question.spaces:
        place = question.place(space)
        cases = cases_of(asked, space)
        offset = asked.offset
        if cases and asked.neutral:
            estimate = estimate_offset(
                [_value(question, space, name) for name in asked.neutral], **question.drawn(space)
            )
            offset = estimate.value
            neutral = ", ".join(asked.neutral)
            yield drafted(estimate, place, Family.DESCRIPTIVE, Told(f"neutral: {neutral}"))
        for case in cases:
            yield from _xmcas(question, space, case.targets[0], offset)


def _xmcas(question: Question, space: Space, target: str, offset: float) -> Iterator[Piece]:
    sides = composite_sides(question, space, target)
    further = {
        suffix: {
            name: around(space, name, kind, [sides[f"target_{suffix}"]])
            for name in question.asked.further
        }
        for suffix, kind in _KINDS
    }
    # Names that a, b and target may also have.
    safe = {name: f"further {name}" for name in question.asked.further}
    groups = {
        suffix: {safe[name]: side.things for name, side in sides_.items()}
        for suffix, sides_ in further.items()
    }
    everyone = sides | {
        f"{safe[name]}_{suffix}": side
        for suffix, sides_ in further.items()
        for name, side in sides_.items()
    }
    alone = [(part,) for part in everyone if part.endswith("_images")]
    estimate = xmcas(
        sides["target_images"].things,
        sides["target_texts"].things,
        sides["a_images"].things,
        sides["a_texts"].things,
        sides["b_images"].things,
        sides["b_texts"].things,
        groups["images"],
        groups["texts"],
        offset=offset,
        similarity=space.similarity,
        units=units_of(everyone, alone),
        resample_texts=question.asked.resample_texts,
        **question.drawn(space),
    )
    place = question.place(space)
    names = {part: side.name for part, side in everyone.items()}
    neutral = math.atan(1.0 / (2 + len(safe)))
    less = "less" if estimate.value < neutral else "more"
    listed = " and ".join(question.asked.further)
    angle = f"{neutral:.3f}\u00a0rad ({math.degrees(neutral):.1f}°)"
    text = f"{target} represents {listed} {less} than the neutral angle of {angle} does"
    yield drafted(
        estimate, place, Family.DESCRIPTIVE, Told(target, text, names, (), without(everyone))
    )
    for part in estimate.parts:
        yield Row(
            "xmcas",
            {
                **at(place), "target": target, "part": part.metric,
                "group": part.subject.removeprefix("further "), "value": part.value,
                "low": part.low, "high": part.high, "theta": estimate.value, "neutral": neutral,
                "offset": offset,
            },
        )  # fmt: skip


def _value(question: Question, space: Space, target: str) -> float:
    sides = composite_sides(question, space, target)
    things = (side.things for side in sides.values())
    return mcas(*things, similarity=space.similarity, resampling=None).value


def composite_values(
    question: Question, space: Space, targets: tuple[str, ...]
) -> dict[str, float]:
    """Return MCAS of each target, without intervals."""
    return {target: _value(question, space, target) for target in targets}
