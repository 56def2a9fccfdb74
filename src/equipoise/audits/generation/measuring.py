"""What an audit of generation measures: rejections of each check, and the sets that are kept."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from equipoise.audits.against_rest import leaf
from equipoise.audits.audit import Measured
from equipoise.audits.columns import Row, tables_of
from equipoise.audits.config import group_name, resampling_of
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    lowest_and_highest,
    parts,
    whole,
    without_verdict,
)
from equipoise.core import Booleans, Ends, Estimate, Family, Groups, Integers, Objects
from equipoise.counterfactuals.filtered import evidence
from equipoise.counterfactuals.filters import Check, Stage, of_combination
from equipoise.evidence.pictures import ImageError, decode
from equipoise.explain.overlays import WHOLE, blurred
from equipoise.metrics.building import ends_of, known_ends
from equipoise.metrics.spec import AGAINST_REST, make_estimate
from equipoise.metrics.values.rejections import rejection_gap
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import stream, unit_counts, unit_keys

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData
    from equipoise.evidence.pictures import Pictures

# Sets of captions from which on they are resampled: they stand for other captions.
FEWEST_SETS = 10
# Seconds for a design, and for an image in a permutation or replicate: rough guides.
_SECONDS_PER_DESIGN, _SECONDS_PER_IMAGE = 0.07, 7e-10

_LEARNED = ("labels", "yes", "agreement", "accuracy", "low", "high", "majority")
_COLUMNS = {
    "rejections": "stage check attributes groups group +images #share #low #high #chance_low "
    "#chance_high",
    "subjects": "subject attributes +sets +kept #share",
    "thresholds": "attributes attribute +threshold +images ?learned +labels +yes #agreement "
    "#accuracy #low #high #majority",
    "gallery": "section group caption image_id *image",
}
# Pixels of the longer side, and images of a set that are shown: those that fail first.
_SIDE, _MOST = 96, 6

_KEPT = "Kept"
_WHY = {
    "complete": "Rejected: an image is missing",
    "similarity": "Rejected by similarity",
    "content": "Rejected by content",
    "attributes": "Rejected: too few show their attribute",
}


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
    groups: Groups
    position: int
    stage: Stage
    check: Check
    data: GenerationData

    # A set varies in some attributes only: images without the others aren't missing them.
    lacking: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def rows(self) -> Integers:
        """Images that the check saw and that have the attributes."""
        known = self.data.filtered.rows(self.position, self.check)
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
        """Tests: of each combination of attributes and of all, the gap and each of many groups."""
        strata, groups = len({*self.column("attributes").tolist()}), int(self.checked.usable.sum())
        return (strata + (strata > 1)) * (1 + groups * (groups > 2))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        images = len(self.rows) * (self.data.copies or 1)
        return _SECONDS_PER_DESIGN + images * draws * _SECONDS_PER_IMAGE

    @cached_property
    def by_caption_set(self) -> bool:
        """Whether there are enough sets of captions to resample them."""
        return len({*self.column("set").tolist()}) >= FEWEST_SETS


def measure_design(
    design: GenerationDesign, config: Config, resampling: Resampling | None
) -> Measured:
    """Measure how often a check rejects images of each group.

    The gap over all sets is a composite of those of each combination of attributes, if there are
    several.
    """
    check, rows, unit = design.check, design.rows, "set"
    candidates = design.data.filtered.candidates
    clusters = sets = np.array(candidates.names, dtype=object)[candidates.candidate[rows]]
    if design.by_caption_set:
        clusters, unit = design.column("set"), "caption set"
    estimate = rejection_gap(
        check.rejected[rows],
        design.checked,
        checks=check.checks[rows],
        sets=sets,
        clusters=clusters,
        strata=design.column("attributes"),
        resampling=resampling,
        rng=config.resampling.seed,
    )
    estimate = replace(estimate, unit=unit)
    own = [part for part in estimate.parts if part.metric == estimate.metric]
    place = _place(config, design.groups.name)
    family = Family.COMPOSITE if len(own) > 1 else Family.LEAF
    findings = [_of_check(whole(estimate, place, family, by_group=own[0].by_group), check.name)]
    for part in parts(estimate, place):
        metric, subject = part.finding.metric, part.finding.subject
        name = f"{check.name}, sets of {subject}" if subject else check.name
        if metric == estimate.metric and subject:
            findings.append(_of_check(part, name))
        elif metric.endswith(AGAINST_REST):
            findings.append(_of_check(leaf(part, estimate.metric), name))
    shares = [
        {"stage": design.stage.name, "check": check.name, "attributes": part.subject,
         "groups": group_name(design.groups.attributes), "group": part.by_group[0].group,
         "images": part.by_group[0].n, "share": part.value, "low": part.low, "high": part.high,
         "chance_low": part.chance_low, "chance_high": part.chance_high}
        for part in estimate.parts
        if part.metric == "rejected_share"
    ]  # fmt: skip
    return Measured(tuple(findings), tables_of({"rejections": shares}, _COLUMNS))


def _place(config: Config, groups: str) -> Place:
    return Place(config.audit, config.called, groups, "default", config.resampling.level)


def _of_check(uncorrected: UncorrectedFinding, subject: str) -> UncorrectedFinding:
    """Name the check; a gap without a null distribution has no verdict."""
    known = [g for g in uncorrected.finding.by_group if not math.isnan(g.value) and not g.note]
    direction = ""
    if len({group.value for group in known}) > 1:
        low, high = (choose(known, key=lambda group: group.value) for choose in (min, max))
        direction = f"share rejected: {lowest_and_highest(low, high, shares=True)}"
    named = uncorrected.changed(subject=subject, direction=direction)
    if not math.isnan(named.finding.value) and math.isnan(named.finding.p_value):
        return without_verdict(named, "there is nothing to exchange")
    return named


def measure_sets(config: Config, data: GenerationData) -> Measured:
    """Measure the share of sets that are kept, and the accuracy of learned thresholds."""
    findings = (*_kept_share(config, data), *_learned_accuracy(config, data))
    tables = {
        "subjects": _subjects(data),
        "thresholds": _thresholds(config, data),
        "gallery": _gallery(config, data),
    }
    stages = {"stages": data.filtered.summary(), **evidence(data.filtered)}
    return Measured(findings, stages | tables_of(tables, _COLUMNS))


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
        yield uncorrected.changed(subject=f"sets of {name}" if name else "")


def _share(config: Config, kept: Booleans, sets: Objects) -> Estimate:
    names, owner = np.unique(sets.astype(str), return_inverse=True)
    counts = np.stack([np.bincount(owner, kept), np.bincount(owner)], axis=1)
    total = counts.sum(axis=0)
    resampling = resampling_of(config, 1)
    ends: Ends = ClosedForm(wilson, (float(total[0]), float(total[1])))
    method, unit = "Wilson", "set"
    if isinstance(resampling, Bootstrap) and len(names) >= FEWEST_SETS and 0 < total[0] < total[1]:
        keys = unit_keys(names.tolist())
        times = unit_counts(config.resampling.seed, keys, range(resampling.replicates))
        resampled = times.astype(np.float64) @ counts
        with np.errstate(invalid="ignore"):
            ends = ends_of(resampled[:, 0] / resampled[:, 1])
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
        estimate = make_estimate(
            metric="threshold_accuracy",
            value=learned.accuracy,
            n={"labels": learned.labels},
            method="Wilson, one trial a caption set; cross-validated",
            params={
                "threshold": learned.threshold, "images": learned.size,
                "majority": learned.majority, "agreement": learned.agreement,
            },
            reason=f"always or never agrees with {learned.majority:.3g} of the labels",
            unit="caption set",
            ends=known_ends(learned.low, learned.high),
        )  # fmt: skip
        uncorrected = whole(estimate, _place(config, name), Family.DESCRIPTIVE)
        yield uncorrected.changed(subject=f"{name} shown, sets of {combination}")


def _subjects(data: GenerationData) -> Iterator[Row]:
    candidates = data.filtered.candidates
    if "subject" not in candidates.columns:
        return
    keys = {name: candidates.of_candidates(name).tolist() for name in ("subject", "attributes")}
    sets = pl.DataFrame(keys, dict.fromkeys(keys, pl.String)).fill_null("")
    counts = (
        sets.with_columns(kept=data.filtered.kept)
        .group_by(*keys)
        .agg(sets=pl.len(), kept=pl.sum("kept"), share=pl.mean("kept"))
    )
    yield from counts.sort(*keys).iter_rows(named=True)


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


def _gallery(config: Config, data: GenerationData) -> Iterator[Row]:
    """Yield sets drawn at random, with a small picture of each image, and why it fails."""
    if data.pictures is None or not config.gallery:
        return
    places = {name: place for place, name in enumerate(data.pictures.ids.tolist())}
    candidates = data.filtered.candidates
    for stage, chosen, reasons in _chosen(config, data):
        for candidate in chosen:
            begin, end = candidates.starts[candidate : candidate + 2].tolist()
            # Those that fail are shown first.
            rows = sorted(range(begin, end), key=lambda row: not reasons[row])[:_MOST]
            for row in sorted(rows):
                name = candidates.columns["image_id"][row]
                if name not in places:
                    continue
                image = _small(data.pictures, places[name], config.blur)
                values = (candidates.columns[of][row] for of in candidates.types)
                shown = ", ".join(str(value) for value in values if value)
                caption = f"{shown}: {reasons[row]}" if reasons[row] else shown
                if image is not None:
                    yield {
                        "section": stage, "group": candidates.names[candidate], "image": image,
                        "caption": caption, "image_id": name,
                    }  # fmt: skip


def _chosen(config: Config, data: GenerationData) -> Iterator[tuple[str, list[int], Objects]]:
    """Yield the stage, some of its candidates, and every image's reason there."""
    filtered = data.filtered
    none = np.full(filtered.candidates.images, "", dtype=object)
    yield _KEPT, _drawn(config, filtered.kept, _KEPT), none
    for place, stage in enumerate(filtered.stages):
        rejected = filtered.entering[place] & ~filtered.entering[place + 1]
        reasons = none.copy()
        for check in reversed(stage.checks):
            failing = check.reason != ""
            reasons[failing] = check.reason[failing]
        yield _WHY[stage.name], _drawn(config, rejected, stage.name), reasons


def _drawn(config: Config, mask: Booleans, name: str) -> list[int]:
    places = np.flatnonzero(mask)
    order = stream(config.resampling.seed, "gallery", name).permutation(len(places))
    return sorted(places[order[: config.gallery]].tolist())


def _small(pictures: Pictures, place: int, blur: str | None) -> bytes | None:
    """Return a picture as a small PNG; None where it can't be read."""
    from PIL import Image

    try:
        picture = Image.fromarray(decode(pictures.read(place)))
    except (ImageError, OSError):
        return None
    picture.thumbnail((_SIDE, _SIDE))
    if blur is not None:
        picture = Image.fromarray(blurred(np.asarray(picture), [WHOLE]))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
