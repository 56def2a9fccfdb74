"""The audit of generation: kept sets, and rejections by group."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from equipoise.audits import group_sizes
from equipoise.audits.against_rest import leaf
from equipoise.audits.columns import Row, tables_of
from equipoise.audits.config import group_name, resampling_of
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    comparable,
    lowest_and_highest,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.generation import loading
from equipoise.audits.generation.config import FILTERS, Config
from equipoise.audits.generation.loading import GenerationData
from equipoise.audits.group_sizes import Members, members_of
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.limits import Assumed, Limit, limit_of_sets
from equipoise.audits.quality import ALL_IMAGES, measure_quality
from equipoise.core import (
    Aggregate,
    Booleans,
    DataError,
    Facts,
    Family,
    Groups,
    Integers,
    MissingExtraError,
    Objects,
    record,
)
from equipoise.core.columns import BYTES, FLAG, INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence
from equipoise.counterfactuals.filters import Check, Stage, evidence, of_combination, write_sets
from equipoise.evidence.pictures import ImageError, decode
from equipoise.explain.overlays import WHOLE, blurred
from equipoise.metrics.numbers.kept_share import FEWEST_CAPTIONS, kept_share
from equipoise.metrics.numbers.rejections import rejection_gap
from equipoise.metrics.spec import spec_for
from equipoise.stats import Resampling
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.config.fields import RunConfig
    from equipoise.evidence.pictures import Pictures

# Seconds for a design, and for an image in a permutation or replicate: rough guides.
_SECONDS_PER_DESIGN, _SECONDS_PER_IMAGE = 0.07, 7e-10

_COLUMNS = {
    "rejections": {
        "stage": TEXT,
        "check": TEXT,
        "attributes": TEXT,
        "groups": TEXT,
        "group": TEXT,
        "images": INTEGER,
        "share": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "chance_low": NUMBER,
        "chance_high": NUMBER,
    },
    "subjects": {
        "subject": TEXT,
        "attributes": TEXT,
        "sets": INTEGER,
        "kept": INTEGER,
        "share": NUMBER,
    },
    "thresholds": {
        "attributes": TEXT,
        "attribute": TEXT,
        "threshold": INTEGER,
        "images": INTEGER,
        "learned": FLAG,
        "labels": INTEGER,
        "yes": INTEGER,
        "agreement": NUMBER,
        "accuracy": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "majority": NUMBER,
    },
    "gallery": {"section": TEXT, "group": TEXT, "caption": TEXT, "image_id": TEXT, "image": BYTES},
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


@record
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
        checked = self.data.filtered.rows(self.position, self.check)
        return np.flatnonzero(checked & self.data.labelled(self.groups.attributes))

    @cached_property
    def checked(self) -> Groups:
        """The groups of these images."""
        return self.data.grouped(self.groups.attributes, self.rows, self.groups.min_size)

    def column(self, name: str) -> Objects:
        """Return a column of these images."""
        return self.data.filtered.candidates.columns[name][self.rows]

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        strata, groups = len({*self.column("attributes").tolist()}), int(self.checked.usable.sum())
        return (strata + (strata > 1)) * (1 + groups * (groups > 2))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        images = len(self.rows) * (self.data.copies or 1)
        return _SECONDS_PER_DESIGN + images * draws * _SECONDS_PER_IMAGE

    @cached_property
    def by_caption_set(self) -> bool:
        """Whether there are enough sets of captions to resample them."""
        return len({*self.column("set").tolist()}) >= FEWEST_CAPTIONS


def _tested_stages(config: Config, data: GenerationData) -> list[tuple[int, Stage]]:
    """Return stages that can reject an image, with their positions.

    A table without a column of states lists images that exist: that they do is no result.
    """
    stages = [*enumerate(data.filtered.stages)]
    table = config.images
    existing = table is not None and table.table is not None and table.state is None
    if existing and len(stages) > 1 and data.filtered.candidates.made.all():
        return stages[1:]
    return stages


@audit_kind("generation")
class Generation(Audit[Config, GenerationData, GenerationDesign]):
    """Audits of generated counterfactual sets and their filters."""

    items = "images"

    def load(self, config: Config, models: Models) -> GenerationData:
        """Generate or read the images, and put them through the filters."""
        return loading.load(config, models)

    def groups(self, config: Config, data: GenerationData) -> list[Groups]:
        """Return the groups of the images that have the attributes."""
        return [data.all_groups(names, config.min_group_size) for names in config.compared]

    def members(self, config: Config, data: GenerationData, on: str) -> Members:
        """Return the ids of the images of every group."""
        return members_of(data.ids, data.filtered.candidates.columns, config.compared)

    def examples(self, config: Config, data: GenerationData) -> dict[str, pl.DataFrame]:
        """Return the images that each check saw, with its value as score and their caption."""
        candidates, parts = data.filtered.candidates, list[pl.DataFrame]()
        columns = candidates.columns
        for position, stage in enumerate(data.filtered.stages):
            for check in stage.checks:
                seen_images = pl.DataFrame(
                    {
                        "place": range(candidates.images),
                        "subject": check.name,
                        "outcome": np.where(check.rejected > 0, "rejected", "passed"),
                        "label": columns["caption"].tolist(),
                        "score": check.value,
                        "sets": columns["attributes"].tolist(),
                    }
                ).filter(data.filtered.rows(position, check) & candidates.made)
                of_sets = pl.format("{}, sets of {}", "subject", "sets")
                parts += [seen_images, seen_images.with_columns(subject=of_sets)]
        return {config.called: pl.concat(parts)}

    def pictured(
        self, config: Config, data: GenerationData, models: Models
    ) -> tuple[Objects, list[Groups], list[Pictures]]:
        """Return the images, with groups where attributes are known."""
        all_rows = np.arange(len(data.ids))
        groups = [data.grouped(names, all_rows, config.min_group_size) for names in config.compared]
        return data.ids, groups, [] if data.pictures is None else [data.pictures]

    def designs(self, config: Config, data: GenerationData) -> list[GenerationDesign]:
        """Return every check with every choice of groups that some image reached.

        Images that are yet to be generated must make at least two groups of the minimum size.
        """
        designs = []
        for groups in self.groups(config, data):
            if data.copies is not None and groups.usable.sum() < 2:
                raise DataError(
                    f"groups {groups.name}: fewer than two have {groups.min_size} or more images "
                    f"({group_sizes.listed(groups)})",
                    expected="at least two groups of that size",
                    fix="raise generator.candidates, choose other groups, or lower min_group_size",
                )
            for position, stage in _tested_stages(config, data):
                for check in stage.checks:
                    design = GenerationDesign(config.called, groups, position, stage, check, data)
                    if len(design.rows) and len(design.checked) > 1:
                        designs.append(design)
        return designs

    def measure(
        self,
        config: Config,
        data: GenerationData,
        design: GenerationDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure how often a check rejects images of each group.

        The gap over all sets is a composite of those of each combination of attributes, if there
        are several.
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
        differences = [part for part in estimate.parts if part.aggregate is Aggregate.DIFFERENCE]
        gap = spec_for(estimate.metric, estimate.aggregate)
        place = _place(config, design.groups.name)
        family = Family.COMPOSITE if len(differences) > 1 else Family.LEAF
        findings = [
            _about_check(
                whole(estimate, place, family, by_group=differences[0].by_group), check.name
            )
        ]
        for part in parts(estimate, place):
            aggregate, subject = part.finding.aggregate, part.finding.subject
            name = f"{check.name}, sets of {subject}" if subject else check.name
            if aggregate is Aggregate.DIFFERENCE and subject:
                findings.append(_about_check(part, name))
            elif aggregate is Aggregate.AGAINST_REST:
                findings.append(_about_check(leaf(part, gap), name))
        shares: list[dict[str, str | float | None]] = [
            {"stage": design.stage.name, "check": check.name, "attributes": part.subject,
             "groups": group_name(design.groups.attributes), "group": part.by_group[0].group,
             "images": part.by_group[0].n, "share": part.value, "low": part.low, "high": part.high,
             "chance_low": part.chance_low, "chance_high": part.chance_high}
            for part in estimate.parts
            if part.aggregate is Aggregate.VALUE
        ]  # fmt: skip
        return Measured(tuple(findings), tables_of({"rejections": shares}, _COLUMNS))

    def combine(
        self, config: Config, data: GenerationData, measured: Sequence[Measured]
    ) -> Measured:
        """Add the shares of sets."""
        together = Measured.together([measure_sets(config, data), *measured])
        return replace(together, notes=(*together.notes, *_result_notes(data)))

    def write(self, config: Config, data: GenerationData) -> Iterator[str]:
        """Write the kept sets as a data set.

        Raises
        ------
        RunError
            When the data set can't be written.
        """
        return _written(config, data)

    def details(
        self,
        config: Config,
        data: GenerationData,
        designs: Sequence[GenerationDesign],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return how many sets, candidates and images there are, and which filters are on."""
        candidates, copies = data.filtered.candidates, data.copies or 1
        on = [name for name in FILTERS if getattr(config.filters, name) is not None]
        return {
            "sets": len({*candidates.of_candidates("set").tolist()}),
            "candidates": len(candidates) * copies,
            "images": candidates.images * copies,
            "filters": on,
        }

    def limits(
        self,
        config: Config,
        data: GenerationData,
        designs: Sequence[GenerationDesign],
        assumed: Assumed,
    ) -> Iterator[Limit | None]:
        """Yield how many sets of each combination pass the filters, and how many must."""
        candidates, on = data.filtered.candidates, _filters_on(config)
        at_hand = data.copies is None and all(section.model is None for section in on)
        combination = candidates.of_candidates("attributes")
        for name in candidates.combinations if on else ():
            rows = combination == name
            kept = int(data.filtered.kept[rows].sum()) if at_hand else None
            n_sets = int(rows.sum()) * (data.copies or 1)
            yield limit_of_sets(f"sets of {name}", n_sets, kept, config.min_group_size, assumed)

    def notes(
        self, config: Config, data: GenerationData, designs: Sequence[GenerationDesign]
    ) -> Iterable[str]:
        """Return the notes on filters that are off, and on few sets."""
        for name in FILTERS:
            if getattr(config.filters, name) is None:
                yield f"No filter of {name}: filters.{name} is off and rejects nothing."
        if any(not design.by_caption_set for design in designs):
            yield (
                f"There are fewer than {FEWEST_CAPTIONS} sets of captions to resample: intervals "
                "are about other candidates of these captions, not about other captions."
            )


def _filters_on(config: Config) -> list[RunConfig]:
    """Return the sections of the filters that are on."""
    sections = (getattr(config.filters, name) for name in FILTERS)
    return [section for section in sections if section is not None]


def _result_notes(data: GenerationData) -> Iterator[str]:
    yield (
        "Filters go by the output of their models, whose own errors may differ by group: a "
        "rejected image isn't always wrong."
    )
    yield (
        "A rejected set takes its images of every group along, so kept images are as many of "
        "each by construction. Tests are about images that fail a check themselves, and "
        "exchange the images of a set."
    )
    filtered, candidates = data.filtered, data.filtered.candidates
    reasons = Counter(candidates.columns["reason"][candidates.state == "unreadable"].tolist())
    for reason, n in sorted(reasons.items()):
        yield f"{n} images count as not made (unreadable: {reason}); each takes its set along."
    if candidates.left_out:
        yield f"{candidates.left_out} images are of no set, or have no attributes."
    for combination in candidates.combinations:
        if not filtered.kept[candidates.of_candidates("attributes") == combination].any():
            yield f"No set of {combination} is kept."


def _written(config: Config, data: GenerationData) -> Iterator[str]:
    """Write the kept sets, and yield the note on where they are."""
    if not config.write_sets or not data.filtered.kept.any():
        return
    if data.pictures is None:
        yield "The kept sets are not written as a data set: the paths of the pictures are unknown."
        return
    key, released = _sets_key(data), config.write_sets is not True
    key += "-released" if released else ""
    folder = data.store / "sets" / key
    images = write_sets(data.filtered, data.pictures, folder, released=released)
    where = f"{config.extraction.store.as_posix()}/sets/{key}"
    layout = (
        "it has the layout of SocialCounterfactuals"
        if released
        else "images.parquet names the pictures"
    )
    yield (
        f"The kept sets, {int(data.filtered.kept.sum())} of {images} images, are a data set in "
        f"{where}: {layout}. An audit of counterfactuals reads it."
    )


def _sets_key(data: GenerationData) -> str:
    """Return a name that follows from the files and from which sets are kept."""
    names = zip(data.filtered.candidates.names, data.filtered.kept, strict=True)
    kept_names = [name for name, is_kept in names if is_kept]
    files = {name: file.get("sha256") for name, file in sorted(data.inputs.items())}
    return hashlib.sha256(json.dumps([files, kept_names]).encode()).hexdigest()[:16]


def _place(config: Config, groups: str) -> Place:
    return Place(config.audit, config.called, groups, "default", config.resampling.level)


def _about_check(uncorrected: UncorrectedFinding, subject: str) -> UncorrectedFinding:
    """Name the check; a gap without a null distribution has no verdict."""
    groups = comparable(uncorrected.finding.by_group)
    direction = Sentence()
    low = min(groups, key=attrgetter("value"), default=None)
    high = max(groups, key=attrgetter("value"), default=None)
    if low is not None and high is not None and low.value < high.value:
        direction = Sentence("share rejected: ", lowest_and_highest(low, high, shares=True))
    named = uncorrected.changed(subject=subject, direction=direction)
    if not math.isnan(named.finding.value) and math.isnan(named.finding.p_value):
        return without_verdict(named, "there is nothing to exchange")
    return named


def measure_sets(config: Config, data: GenerationData) -> Measured:
    """Measure the share of sets that are kept, and the accuracy of learned thresholds."""
    findings = (
        *_kept_shares(config, data),
        *_learned_accuracy(config, data),
        *_measure_quality(config, data),
    )  # fmt: skip
    tables = {
        "subjects": _subjects(data),
        "thresholds": _thresholds(config, data),
        "gallery": _gallery_rows(config, data),
    }
    stages = {"stages": data.filtered.summary(), **evidence(data.filtered)}
    return Measured(findings, stages | tables_of(tables, _COLUMNS))


def _kept_shares(config: Config, data: GenerationData) -> Iterator[UncorrectedFinding]:
    """Yield the share of all sets that are kept, and of each combination of attributes."""
    candidates = data.filtered.candidates
    combination, kept_sets = candidates.of_candidates("attributes"), data.filtered.kept
    sets = candidates.of_candidates("set")
    combinations = candidates.combinations if len(candidates.combinations) > 1 else ()
    for name in ("", *combinations):
        rows = combination == name if name else np.ones(len(candidates), dtype=bool)
        share = kept_share(
            kept_sets[rows], captions=sets[rows].astype(str),
            resampling=resampling_of(config, 1), rng=config.resampling.seed,
        )  # fmt: skip
        uncorrected = whole(share, _place(config, ""), Family.DESCRIPTIVE)
        yield uncorrected.changed(subject=f"sets of {name}" if name else "")


def _learned_accuracy(config: Config, data: GenerationData) -> Iterator[UncorrectedFinding]:
    """Yield the cross-validated accuracy of learned thresholds."""
    for (combination, name), learned in data.learned.items():
        uncorrected = whole(learned.estimate, _place(config, name), Family.DESCRIPTIVE)
        yield uncorrected.changed(subject=f"{name} shown, sets of {combination}")


def _measure_quality(config: Config, data: GenerationData) -> Iterator[UncorrectedFinding]:
    """Yield the distance from the reference and the inception score, of all and of kept images."""
    candidates = data.filtered.candidates
    if data.quality is None:
        return
    usable = candidates.made & (data.places >= 0)
    for name, in_sample in (
        (ALL_IMAGES, usable),
        ("kept images", usable & data.filtered.kept[candidates.candidate]),
    ):
        rows = np.flatnonzero(in_sample)
        units, place = candidates.candidate[rows], _place(config, "")
        yield from measure_quality(config, place, data.quality, data.places[rows], name, units)


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
            numbers = {} if learned is None else asdict(learned)
            yield {
                **{column: numbers.get(column) for column in _COLUMNS["thresholds"]},
                "attributes": combination,
                "attribute": name,
                "threshold": int(check.set_threshold[place]),
                "images": int(candidates.sizes[place]),
                "learned": learned is not None and not fixed,
            }


def _gallery_rows(config: Config, data: GenerationData) -> Iterator[Row]:
    """Yield sets drawn at random, with a small picture of each image, and why it fails."""
    if data.pictures is None or not config.gallery:
        return
    places = data.pictures.places
    candidates = data.filtered.candidates
    for stage, chosen, reasons in _draw_sets(config, data):
        for candidate in chosen:
            begin, end = candidates.starts[candidate : candidate + 2].tolist()
            # Those that fail are shown first.
            rows = sorted(range(begin, end), key=lambda row: not reasons[row])[:_MOST]
            for row in sorted(rows):
                name = candidates.columns["image_id"][row]
                if name not in places:
                    continue
                image = _thumbnail(data.pictures, places[name], config.blur)
                values = (candidates.columns[of][row] for of in candidates.types)
                values_text = ", ".join(str(value) for value in values if value)
                caption = f"{values_text}: {reasons[row]}" if reasons[row] else values_text
                if image is not None:
                    yield {
                        "section": stage, "group": candidates.names[candidate], "image": image,
                        "caption": caption, "image_id": name,
                    }  # fmt: skip


def _draw_sets(config: Config, data: GenerationData) -> Iterator[tuple[str, list[int], Objects]]:
    """Yield the stage, some of its candidates, and every image's reason there."""
    filtered = data.filtered
    none = np.full(filtered.candidates.images, "", dtype=object)
    yield _KEPT, _draw_candidates(config, filtered.kept, _KEPT), none
    for place, stage in enumerate(filtered.stages):
        rejected = filtered.entering[place] & ~filtered.entering[place + 1]
        reasons = none.copy()
        for check in reversed(stage.checks):
            failing = check.reason != ""
            reasons[failing] = check.reason[failing]
        yield _WHY[stage.name], _draw_candidates(config, rejected, stage.name), reasons


def _draw_candidates(config: Config, mask: Booleans, name: str) -> list[int]:
    places = np.flatnonzero(mask)
    order = stream(config.resampling.seed, "gallery", name).permutation(len(places))
    return sorted(places[order[: config.gallery]].tolist())


def _thumbnail(pictures: Pictures, place: int, blur: str | None) -> bytes | None:
    """Return a picture as a small PNG, or None if it is unreadable."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("PIL", "images") from error
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
