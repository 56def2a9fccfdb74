"""What an audit of generation measures: rejections of each check, and the sets that are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.config_sections import group_name
from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    lowest_and_highest,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.generation.gallery import gallery
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.counterfactuals.filters.evidence import evidence
from equipoise.counterfactuals.filters.thresholds import of_combination
from equipoise.metrics.building import Percentile
from equipoise.metrics.rejections.gap import rejection_gap
from equipoise.metrics.spec import make_estimate
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import unit_counts, unit_keys

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData
    from equipoise.core.groups import Groups
    from equipoise.counterfactuals.filters import Check, Stage
    from equipoise.stats.resampling import Resampling

AUDIT = "generation"
# Sets of captions from which on they are resampled: they stand for other captions.
FEWEST_SETS = 10
# Seconds for a design, and for an image in a permutation or replicate: rough guides.
_SECONDS_PER_DESIGN, _SECONDS_PER_IMAGE = 0.07, 7e-10
_REFERENCE = "Howard et al. 2024, SocialCounterfactuals, Table 11"

Objects = npt.NDArray[np.object_]
Row = dict[str, Any]

_REJECTIONS = pa.schema(
    [(name, pa.string()) for name in ("stage", "check", "attributes", "groups", "group")]
    + [("images", pa.int64())]
    + [(name, pa.float64()) for name in ("share", "low", "high", "chance_low", "chance_high")]
)
_SUBJECTS = pa.schema(
    [("subject", pa.string()), ("attributes", pa.string())]
    + [(name, pa.int64()) for name in ("sets", "kept")]
    + [("share", pa.float64())]
)
_LEARNED = ("labels", "yes", "agreement", "accuracy", "low", "high", "majority", "curve")
_THRESHOLDS = pa.schema(
    [("attributes", pa.string()), ("attribute", pa.string())]
    + [(name, pa.int64()) for name in ("threshold", "images")]
    + [("learned", pa.bool_())]
    + [(name, pa.int64()) for name in _LEARNED[:2]]
    + [(name, pa.float64()) for name in _LEARNED[2:-1]]
    + [("curve", pa.list_(pa.float64()))]
)


@dataclass(frozen=True, eq=False)
class GenerationDesign:
    """One check of one stage by one choice of groups.

    Attributes
    ----------
    model : str
        The generator, or the name of the images.
    groups : Groups
        Of all images that have the attributes.
    position : int
        Of the stage.
    stage : Stage
    check : Check
    data : GenerationData
    """

    model: str
    groups: Groups = field(repr=False)
    position: int
    stage: Stage = field(repr=False)
    check: Check = field(repr=False)
    data: GenerationData = field(repr=False)

    # A set varies in some attributes only: images without the others aren't missing them.
    lacking: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Images that the check saw and that have the attributes."""
        known, _ = self.data.filtered.rows(self.position, self.check)
        return np.flatnonzero(known & self.data.labelled(self.groups.attributes))

    @cached_property
    def checked(self) -> Groups:
        """The groups of these images."""
        return self.data.grouped(self.groups.attributes, self.rows, self.groups.min_size)

    def column(self, name: str) -> Objects:
        """Return a column of these images."""
        return self.data.filtered.candidates.columns[name][self.rows]

    @property
    def tests(self) -> int:
        """Tests: one for each combination of attributes, and one of all."""
        strata = len({*self.column("attributes").tolist()})
        return strata + (strata > 1)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        images = len(self.rows) * (self.data.copies or 1)
        return _SECONDS_PER_DESIGN + images * draws * _SECONDS_PER_IMAGE

    @cached_property
    def by_caption_set(self) -> bool:
        """Whether there are enough sets of captions to resample them."""
        return len({*self.column("set").tolist()}) >= FEWEST_SETS


def designs_of(config: Config, data: GenerationData) -> Iterator[GenerationDesign]:
    """Yield every check with every choice of groups that some image reached."""
    choices = [data.all_groups(names, config.min_group_size) for names in config.compared]
    for position, stage in enumerate(data.filtered.stages):
        for check in stage.checks:
            for groups in choices:
                design = GenerationDesign(config.called, groups, position, stage, check, data)
                if len(design.rows) and len(design.checked) > 1:
                    yield design


def measure_design(
    design: GenerationDesign, config: Config, resampling: Resampling | None
) -> Measured:
    """Measure how often a check rejects images of each group."""
    check, rows = design.check, design.rows
    candidates = design.data.filtered.candidates
    sets = np.array(candidates.names, dtype=object)[candidates.candidate[rows]]
    estimate = rejection_gap(
        check.rejected[rows],
        design.checked,
        checks=check.checks[rows],
        sets=sets,
        clusters=design.column("set") if design.by_caption_set else sets,
        strata=design.column("attributes"),
        resampling=resampling,
        rng=config.resampling.seed,
    )
    estimate = replace(estimate, unit="caption set" if design.by_caption_set else "set")
    rejections = pa.Table.from_pylist([*_rejections(design, estimate)], _REJECTIONS)
    return Measured(tuple(_findings(design, estimate, config)), {"rejections": rejections})


def _place(config: Config, groups: str) -> Place:
    return Place(AUDIT, config.called, groups, "default", config.resampling.level)


def _findings(
    design: GenerationDesign, estimate: Estimate, config: Config
) -> Iterator[UncorrectedFinding]:
    """Yield the gap over all sets, and of each combination of attributes if there are several.

    Combinations are the leaves; a single combination is the whole.
    """
    own = [part for part in estimate.parts if part.metric == estimate.metric]
    place, name = _place(config, design.groups.name), design.check.name
    family = Family.COMPOSITE if len(own) > 1 else Family.LEAF
    yield _of_check(whole(estimate, place, family, by_group=own[0].by_group), name)
    if len(own) > 1:
        for part in parts(estimate, place):
            if part.finding.metric == estimate.metric and part.finding.subject:
                yield _of_check(part, f"{name}, sets of {part.finding.subject}")


def _of_check(uncorrected: UncorrectedFinding, subject: str) -> UncorrectedFinding:
    """Name the check; a gap without a null distribution has no verdict."""
    direction = _direction(uncorrected.finding.by_group)
    finding = replace(uncorrected.finding, subject=subject, direction=direction)
    named = replace(uncorrected, finding=finding)
    if not math.isnan(finding.value) and math.isnan(finding.p_value):
        return without_verdict(named, finding.reason or "there is nothing to exchange")
    return named


def _direction(by_group: Sequence[GroupValue]) -> str:
    """Name the groups that are rejected least and most; "" where none differ."""
    known = [part for part in by_group if not math.isnan(part.value) and not part.note]
    if len({part.value for part in known}) < 2:
        return ""
    low, high = (choose(known, key=lambda part: part.value) for choose in (min, max))
    return f"share rejected: {lowest_and_highest(low, high, shares=True)}"


def _rejections(design: GenerationDesign, estimate: Estimate) -> Iterator[Row]:
    for part in estimate.parts:
        if part.metric == "rejected_share":
            group = part.by_group[0]
            yield {
                "stage": design.stage.name,
                "check": design.check.name,
                "attributes": part.subject,
                "groups": group_name(design.groups.attributes),
                "group": group.group,
                "images": group.n,
                "share": part.value,
                "low": part.low,
                "high": part.high,
                "chance_low": part.chance_low,
                "chance_high": part.chance_high,
            }


def measure_sets(config: Config, data: GenerationData) -> Measured:
    """Measure the share of sets that are kept, and the accuracy of learned thresholds."""
    findings = (*_kept_share(config, data), *_learned_accuracy(config, data))
    tables = {
        "stages": data.filtered.summary(),
        **evidence(data.filtered),
        "subjects": pa.Table.from_pylist([*_subjects(data)], _SUBJECTS),
        "thresholds": pa.Table.from_pylist([*_thresholds(config, data)], _THRESHOLDS),
        "gallery": gallery(config, data),
    }
    optional = ("subjects", "thresholds", "gallery")
    kept = {name: table for name, table in tables.items() if table.num_rows or name not in optional}
    return Measured(findings, kept)


def _kept_share(config: Config, data: GenerationData) -> Iterator[UncorrectedFinding]:
    """Yield the share of all sets that are kept, and of each combination of attributes."""
    candidates = data.filtered.candidates
    combination, kept = candidates.of_candidates("attributes"), data.filtered.kept
    sets = candidates.of_candidates("set")
    several = candidates.combinations if len(candidates.combinations) > 1 else ()
    for name in ("", *several):
        rows = combination == name if name else np.ones(len(candidates), dtype=bool)
        share = _share(config, kept[rows], sets[rows])
        uncorrected = whole(share, _place(config, ""), Family.DESCRIPTIVE)
        subject = f"sets of {name}" if name else ""
        yield replace(uncorrected, finding=replace(uncorrected.finding, subject=subject))


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
        resampled = times.astype(np.float64) @ counts
        with np.errstate(invalid="ignore"):
            ends = Percentile(resampled[:, 0] / resampled[:, 1])
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


def _learned_accuracy(config: Config, data: GenerationData) -> Iterator[UncorrectedFinding]:
    """Yield the cross-validated accuracy of learned thresholds."""
    for (combination, name), learned in data.learned.items():
        subject = f"{name} shown, sets of {combination}"
        part = Part(
            "threshold_accuracy", subject, learned.accuracy, learned.low, learned.high,
            n=learned.labels,
            reason=f"always or never agrees with {learned.majority:.3g} of the labels",
        )  # fmt: skip
        estimate = make_estimate(
            metric="threshold_accuracy",
            value=learned.accuracy,
            n={"labels": learned.labels},
            method="Wilson, one trial a caption set; cross-validated",
            params={
                "threshold": learned.threshold, "images": learned.size,
                "majority": learned.majority, "agreement": learned.agreement,
            },
            by=parts_to_table([part]),
            unit="caption set",
        )  # fmt: skip
        for finding in parts(estimate, _place(config, name)):
            yield without_verdict(finding, "")


def _subjects(data: GenerationData) -> Iterator[Row]:
    candidates = data.filtered.candidates
    if "subject" not in candidates.columns:
        return
    columns = (candidates.of_candidates(name).tolist() for name in ("subject", "attributes"))
    keys = [(str(subject or ""), names) for subject, names in zip(*columns, strict=True)]
    for key in sorted({*keys}):
        rows = np.array([other == key for other in keys], dtype=bool)
        sets, kept = int(rows.sum()), int(data.filtered.kept[rows].sum())
        yield {
            "subject": key[0], "attributes": key[1], "sets": sets, "kept": kept,
            "share": kept / sets,
        }  # fmt: skip


def _thresholds(config: Config, data: GenerationData) -> Iterator[Row]:
    candidates, section = data.filtered.candidates, config.filters.attributes
    of_candidates = candidates.of_candidates("attributes")
    stages = [stage for stage in data.filtered.filters if stage.name == "attributes"]
    for check in (check for stage in stages for check in stage.checks):
        name = check.name.removesuffix(" shown")
        for combination in candidates.combinations:
            if name not in combination.split("-"):
                continue
            place = int(np.argmax(of_candidates == combination))
            learned = data.learned.get((combination, name))
            fixed = section is not None and name in of_combination(section.fixed, combination)
            yield {
                "attributes": combination,
                "attribute": name,
                "threshold": int(check.set_threshold[place]),
                "images": int(candidates.sizes[place]),
                "learned": learned is not None and not fixed,
                **{key: getattr(learned, key) for key in _LEARNED if learned is not None},
            }
