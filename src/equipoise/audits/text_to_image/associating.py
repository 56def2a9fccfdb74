"""Associations of the images and prompts of targets with attributes: MCAS and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.config_associations import MeasureConfig
from equipoise.audits.engines.associations.composites import (
    measure_mcas,
    measure_xmcas,
    without_chance,
)
from equipoise.audits.engines.associations.results import Note, Question, Result, Row
from equipoise.audits.findings import UncorrectedFinding, without_verdict
from equipoise.audits.text_to_image.designs import ALL, SpaceDesign
from equipoise.core.finding import Family
from equipoise.stats.resampling import Bootstrap, Resampling

AUDIT = "text_to_image"
_BESIDE = f"one of several encoders: what is tested is their average, {ALL}"
_OWN = (
    "an attribute's own lean is no disparity: it shows that generator and encoder tell the groups "
    "apart"
)


def measure_associations(design: SpaceDesign, resampling: Resampling | None) -> Iterator[Result]:
    """Measure every pair of attributes over the targets, and over the prompts of attributes."""
    given = design.config.associations
    if given is None:
        return
    for pair in design.config.pairs:
        without = [name for name in pair if not design.known(name)]
        if without or not design.targets:
            what = without[0] if without else "any target"
            yield Note(
                f"{design.generator}, {design.version}: no image of {what} can be used, so "
                f"{' against '.join(pair)} is not measured."
            )
            continue
        drawn = resampling if design.tested else untested(resampling)
        if not design.tested:
            # What stands beside is in the findings and the table of encoders alone.
            yield from map(_beside, _drafts(_targets(design, pair, drawn)))
            continue
        yield from _targets(design, pair, drawn)
        yield from _attributes(design, pair, untested(resampling))


def untested(resampling: Resampling | None) -> Resampling | None:
    """Return what draws intervals alone: no chance level is shown of what is not tested."""
    if not isinstance(resampling, Bootstrap):
        return resampling
    return Bootstrap(resampling.replicates, 1, resampling.level, 1.0)


def _targets(
    design: SpaceDesign, pair: tuple[str, str], resampling: Resampling | None
) -> Iterator[Result]:
    question = _question(design, pair, design.targets, resampling)
    yield from measure_mcas(question)
    yield from _further(design, pair, design.targets, resampling)


def _further(
    design: SpaceDesign,
    pair: tuple[str, str],
    targets: Mapping[str, Any],
    resampling: Resampling | None,
    sets: Mapping[str, Any] | None = None,
) -> Iterator[Result]:
    """Measure the angle with all other sets of attributes as further groups."""
    names = [*design.config.prompts.attribute_texts]
    further = [name for name in names if name not in pair and design.known(name)]
    if sets is not None:
        further = [name for name in further if len(sets[name]["images"])]
    if further:
        question = _question(design, pair, targets, resampling, further=further, sets=sets)
        yield from measure_xmcas(question)


def _attributes(
    design: SpaceDesign, pair: tuple[str, str], resampling: Resampling | None
) -> Iterator[Result]:
    """Measure each prompt of an attribute as a target, without it in its own set."""
    for name, texts in design.config.prompts.attribute_texts.items():
        single = len(texts) == 1
        if single:
            yield Note(
                f"{name} has one prompt, which cannot be held against itself: its own MCAS is not "
                "measured."
            )
        for text in texts if not single else ():
            members = design.members((text,))
            rest = design.members(tuple(one for one in texts if one != text))
            if not len(members["images"]) or not len(rest["images"]):
                continue
            sets = {**design.sets, name: rest, text: members}
            targets = {name: [text]}
            question = _question(design, pair, targets, resampling, sets=sets)
            for piece in measure_mcas(question):
                yield from _own(piece, name)
            for piece in _further(design, pair, targets, resampling, sets):
                yield from _own(piece, name)


def _own(piece: Result, name: str) -> Iterator[Result]:
    """Describe what is found of an attribute's own prompt; keep what the plane draws."""
    if isinstance(piece, UncorrectedFinding):
        if piece.finding.metric in ("mcas", "xmcas"):
            yield _described(piece, _OWN)
    elif isinstance(piece, Row) and piece.table == "xmcas":
        yield Row("plane", {**piece.values, "set": name})
    elif isinstance(piece, Row) and piece.table == "mcas_parts":
        yield Row("components", {**piece.values, "set": name})


def _question(
    design: SpaceDesign,
    pair: tuple[str, str],
    targets: Mapping[str, Any],
    resampling: Resampling | None,
    *,
    further: list[str] | None = None,
    sets: Mapping[str, Any] | None = None,
) -> Question:
    given = design.config.associations
    assert given is not None  # noqa: S101 - asked only where associations are measured
    options: dict[str, Any] = {"metric": "mcas", "generated": True, "span": given.span}
    if further is not None:
        options = {"metric": "xmcas", "further": further, "offset": given.offset}
    asked = MeasureConfig(
        targets=dict(targets),
        attributes=pair,
        resample_texts=given.clusters == "prompt",
        version=design.version,
        **options,
    )
    space = design.space
    if sets is not None:
        space = replace(space, data=replace(space.data, sets=sets))
    seed, level = design.config.resampling.seed, design.config.resampling.level
    return Question(AUDIT, asked, space, resampling, seed, level)


def _drafts(pieces: Iterable[Result]) -> Iterator[UncorrectedFinding]:
    return (piece for piece in pieces if isinstance(piece, UncorrectedFinding))


def _beside(draft: UncorrectedFinding) -> UncorrectedFinding:
    return draft if draft.finding.family is Family.DESCRIPTIVE else _described(draft, _BESIDE)


def _described(draft: UncorrectedFinding, why: str) -> UncorrectedFinding:
    """Return what is not tested: without a chance level, too."""
    return without_verdict(without_chance(draft), why)


def spread(values: Mapping[str, float]) -> tuple[float, float]:
    """Return mean and standard deviation over encoders (n - 1); NaN of one."""
    found = np.sort(np.array([*values.values()]))
    return float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else float("nan")
