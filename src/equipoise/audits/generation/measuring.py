"""What an audit of generation measures: rejections of each check, and the sets that are kept."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.config import group_name, resampling_of
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    lowest_and_highest,
    parts,
    whole,
    without_verdict,
)
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.counterfactuals.filters import BEST, evidence, of_combination
from equipoise.evidence.decoding import ImageError, decode
from equipoise.explain.blurring import WHOLE, blurred
from equipoise.metrics.building import Percentile
from equipoise.metrics.spec import make_estimate
from equipoise.metrics.values.rejections import rejection_gap
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import stream, unit_counts, unit_keys

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData
    from equipoise.core.groups import Groups
    from equipoise.counterfactuals.filters import Check, Stage
    from equipoise.evidence.pictures import Pictures
    from equipoise.stats.resampling import Resampling

AUDIT = "generation"
# Sets of captions from which on they are resampled: they stand for other captions.
FEWEST_SETS = 10
# Seconds for a design, and for an image in a permutation or replicate: rough guides.
_SECONDS_PER_DESIGN, _SECONDS_PER_IMAGE = 0.07, 7e-10
_REFERENCE = "Howard et al. 2024, SocialCounterfactuals, Table 11"

Objects = npt.NDArray[np.object_]
Row = dict[str, Any]

_LEARNED = ("labels", "yes", "agreement", "accuracy", "low", "high", "majority", "curve")
_TYPES = {"#": pa.float64(), "+": pa.int64(), "?": pa.bool_(), "[": pa.list_(pa.float64()),
          "*": pa.binary()}  # fmt: skip


def _schema(*columns: str) -> pa.Schema:
    """Make a schema: a mark before a name is its type; the rest is text."""
    return pa.schema([(name.lstrip("#+?[*"), _TYPES.get(name[0], pa.string())) for name in columns])


_SCHEMAS = {
    "rejections": _schema(
        "stage", "check", "attributes", "groups", "group", "+images", "#share", "#low", "#high",
        "#chance_low", "#chance_high",
    ),
    "subjects": _schema("subject", "attributes", "+sets", "+kept", "#share"),
    "thresholds": _schema(
        "attributes", "attribute", "+threshold", "+images", "?learned", "+labels", "+yes",
        "#agreement", "#accuracy", "#low", "#high", "#majority", "[curve",
    ),
    "gallery": _schema("section", "group", "caption", "image_id", "*image"),
}  # fmt: skip
# Pixels of the longer side, and images of a set that are shown: those that fail first.
_SIDE, _MOST = 96, 6

_KEPT = "Kept"
_WHY = {
    "complete": "Rejected: an image is missing",
    "similarity": "Rejected by similarity",
    "content": "Rejected by content",
    "attributes": "Rejected: too few show their attribute",
    BEST: "Passed, and not among the best",
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
    rejections = [*_rejections(design, estimate)]
    tables = {"rejections": pa.Table.from_pylist(rejections, _SCHEMAS["rejections"])}
    return Measured(tuple(_findings(design, estimate, config)), tables)


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
    rows = {
        "subjects": [*_subjects(data)],
        "thresholds": [*_thresholds(config, data)],
        "gallery": [*_gallery(config, data)],
    }
    optional = {n: pa.Table.from_pylist(own, _SCHEMAS[n]) for n, own in rows.items() if own}
    stages = {"stages": data.filtered.summary(), **evidence(data.filtered)}
    return Measured(findings, {**stages, **optional})


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


def _gallery(config: Config, data: GenerationData) -> Iterator[Row]:
    """Yield sets drawn at random, with a small picture of each image, and why it fails."""
    if data.pictures is None or not config.gallery:
        return
    places = {name: place for place, name in enumerate(data.pictures.ids.tolist())}
    for stage, chosen, reasons in _chosen(config, data):
        for candidate in chosen.tolist():
            for row in _of_set(data, candidate, stage, reasons):
                place = places.get(row["image_id"])
                image = None if place is None else _small(data.pictures, place, config.blur)
                if image is not None:
                    yield row | {"image": image}


def _chosen(config: Config, data: GenerationData) -> Iterator[tuple[str, Any, Any]]:
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
    if filtered.best is not None:
        yield _WHY[BEST], _drawn(config, filtered.entering[-1] & ~filtered.kept, BEST), none


def _drawn(config: Config, mask: Any, name: str) -> Any:
    places = np.flatnonzero(mask)
    order = stream(config.resampling.seed, "gallery", name).permutation(len(places))
    return np.sort(places[order[: config.gallery]])


def _of_set(data: GenerationData, place: int, stage: str, reasons: Any) -> Iterator[Row]:
    """Yield the images of a set that are shown: those that fail first."""
    candidates = data.filtered.candidates
    begin, end = candidates.starts[place : place + 2].tolist()
    rows = sorted(range(begin, end), key=lambda row: not reasons[row])[:_MOST]
    for row in sorted(rows):
        values = [candidates.columns[name][row] for name in candidates.types]
        shown = ", ".join(str(value) for value in values if value)
        yield {
            "section": stage,
            "group": candidates.names[place],
            "caption": f"{shown}: {reasons[row]}" if reasons[row] else shown,
            "image_id": candidates.columns["image_id"][row],
        }


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
