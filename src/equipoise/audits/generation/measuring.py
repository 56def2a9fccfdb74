"""What is measured of one check and one choice of groups, and of the filters as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import (
    Draft,
    Place,
    lowest_and_highest,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.generation.designs import FEWEST_SETS, Design, Objects
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import Percentile
from equipoise.metrics.rejections.gap import rejection_gap
from equipoise.metrics.spec import make_estimate
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.poisson import unit_counts
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import unit_keys

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData

AUDIT = "generation"
_REFERENCE = "Howard et al. 2024, SocialCounterfactuals, Table 11"


@dataclass(frozen=True, eq=False)
class MeasuredDesign:
    """What one design gave.

    Attributes
    ----------
    design : Design
    estimate : Estimate
    drafts : tuple of Draft
    """

    design: Design
    estimate: Estimate
    drafts: tuple[Draft, ...]


def tests_of(design: Design) -> int:
    """Return how many tests a design makes."""
    strata = len({*design.strata.tolist()})
    return strata + (strata > 1)


def place_of(config: Config, groups: str) -> Place:
    """Return where numbers about some groups were measured."""
    return Place(AUDIT, config.called, groups, "default", config.resampling.level)


def measure_design(design: Design, config: Config, tests: int) -> MeasuredDesign:
    """Measure whose images a check rejects."""
    check, rows = design.check, design.rows
    estimate = rejection_gap(
        check.rejected[rows],
        design.groups,
        checks=check.checks[rows],
        sets=design.sets,
        clusters=design.clusters,
        strata=design.strata,
        resampling=resampling_of(config, tests),
        rng=config.resampling.seed,
    )
    estimate = replace(estimate, unit="caption set" if design.by_caption_set else "set")
    return MeasuredDesign(design, estimate, tuple(_drafts(design, estimate, config)))


def _drafts(design: Design, estimate: Estimate, config: Config) -> Iterator[Draft]:
    """Yield the gap over all sets, and of each kind of set where there are several.

    Kinds are the leaves; one alone is the whole. Where the gap over all is NaN nothing is tested.
    """
    own = [one for one in estimate.parts if one.metric == estimate.metric]
    place, name = place_of(config, design.name), design.check.name
    several = len(own) > 1
    first = whole(
        estimate,
        place,
        Family.COMPOSITE if several else Family.LEAF,
        by_group=own[0].by_group,
    )
    yield _about(first, name)
    if several:
        drafts = parts(estimate, place)
        for draft in drafts:
            finding = draft.finding
            if finding.metric == estimate.metric and finding.subject:
                yield _about(draft, f"{name}, sets of {finding.subject}")


def _about(draft: Draft, subject: str) -> Draft:
    """Name the check; a number that nothing was exchanged for has no verdict."""
    told = _who(draft.finding.by_group)
    finding = replace(draft.finding, subject=subject, direction=told)
    named = replace(draft, finding=finding)
    if not math.isnan(finding.value) and math.isnan(finding.p_value):
        return without_verdict(named, finding.reason or "there is nothing to exchange")
    return named


def _who(by_group: Sequence[GroupValue]) -> str:
    """Say whose images are rejected most and least; "" where there is no difference."""
    known = [one for one in by_group if not math.isnan(one.value) and not one.note]
    if len(known) < 2:
        return ""
    high, low = (choose(known, key=lambda one: one.value) for choose in (max, min))
    if high.value == low.value:
        return ""
    return f"share rejected: {lowest_and_highest(low, high, shares=True)}"


def kept_share(config: Config, data: GenerationData) -> Iterator[Draft]:
    """Yield the share of sets that are kept, over all and of each kind."""
    candidates = data.filtered.candidates
    of, kept = candidates.of_candidates("attributes"), data.filtered.kept
    sets = candidates.of_candidates("set")
    kinds = candidates.combinations if len(candidates.combinations) > 1 else ()
    for kind in ("", *kinds):
        rows = np.flatnonzero((of == kind) if kind else np.ones(len(candidates), dtype=bool))
        found = _share(config, kept[rows], sets[rows])
        draft = whole(found, place_of(config, ""), Family.DESCRIPTIVE)
        subject = f"sets of {kind}" if kind else ""
        yield replace(draft, finding=replace(draft.finding, subject=subject))


def _share(config: Config, kept: npt.NDArray[np.bool_], sets: Objects) -> Estimate:
    names, owner = np.unique(sets.astype(str), return_inverse=True)
    counts = np.stack([np.bincount(owner, kept), np.bincount(owner)], axis=1)
    total = counts.sum(axis=0)
    resampling = resampling_of(config, 1)
    ends: ClosedForm | Percentile = ClosedForm(wilson, (float(total[0]), float(total[1])))
    method, unit = "Wilson", "set"
    if isinstance(resampling, Bootstrap) and len(names) >= FEWEST_SETS and 0 < total[0] < total[1]:
        keys = unit_keys(names.tolist())
        times = unit_counts(config.resampling.seed, keys, range(resampling.replicates))
        drawn = times.astype(np.float64) @ counts
        with np.errstate(invalid="ignore"):
            ends = Percentile(drawn[:, 0] / drawn[:, 1])
        method = f"percentile bootstrap over caption sets, {resampling.replicates} replicates"
        unit = "caption set"
    return make_estimate(
        metric="kept_share",
        value=float(total[0] / total[1]),
        n={"sets": int(total[1])},
        method=method,
        no_chance="a set is kept or rejected for all groups alike: there is nothing to exchange",
        unit=unit,
        ends=ends,
    )


def learned_accuracy(config: Config, data: GenerationData) -> Iterator[Draft]:
    """Yield how far thresholds that were learned agree with labels they were not chosen by."""
    for (combination, name), one in data.learned.items():
        about = f"{name} shown, sets of {combination}"
        part = Part(
            "threshold_accuracy", about, one.accuracy, one.low, one.high, n=one.labels,
            reason=f"always or never agrees with {one.majority:.3g} of the labels",
        )  # fmt: skip
        estimate = make_estimate(
            metric="threshold_accuracy",
            value=one.accuracy,
            n={"labels": one.labels},
            method="Wilson, one trial a caption set; cross-validated",
            params={
                "threshold": one.threshold, "images": one.size, "majority": one.majority,
                "agreement": one.agreement,
            },
            by=parts_to_table([part]),
            unit="caption set",
        )  # fmt: skip
        for draft in parts(estimate, place_of(config, name)):
            yield without_verdict(draft, "")
