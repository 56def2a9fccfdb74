"""The audit of generation: which sets filters keep, and whose images they reject more often."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.generation import loading
from equipoise.audits.generation.config import FILTERS, Config
from equipoise.audits.generation.loading import GenerationData
from equipoise.audits.generation.measuring import (
    FEWEST_SETS,
    GenerationDesign,
    measure_design,
    measure_sets,
)
from equipoise.audits.group_sizes import Members, members_of
from equipoise.core import DataError, Facts, Groups
from equipoise.counterfactuals.filtered import write_sets

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.stats.resampling import Resampling


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
            for position, stage in enumerate(data.filtered.stages):
                for check in stage.checks:
                    own = GenerationDesign(config.called, groups, position, stage, check, data)
                    if len(own.rows) and len(own.checked) > 1:
                        designs.append(own)
        return designs

    def measure(
        self,
        config: Config,
        data: GenerationData,
        design: GenerationDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure how often one check rejects images of each group."""
        return measure_design(design, config, resampling)

    def combine(
        self, config: Config, data: GenerationData, measured: Sequence[Measured]
    ) -> Measured:
        """Add the shares of sets, and write the kept sets as a data set.

        Raises
        ------
        RunError
            When the data set can't be written.
        """
        every = Measured.together([measure_sets(config, data), *measured])
        return replace(every, notes=(*every.notes, *_result_notes(data), *_written(config, data)))

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

    def notes(
        self, config: Config, data: GenerationData, designs: Sequence[GenerationDesign]
    ) -> Iterable[str]:
        """Return the notes on filters that are off, and on few sets."""
        for name in FILTERS:
            if getattr(config.filters, name) is None:
                yield f"No filter of {name}: filters.{name} is off and rejects nothing."
        if any(not design.by_caption_set for design in designs):
            yield (
                f"There are fewer than {FEWEST_SETS} sets of captions to resample: intervals are "
                "about other candidates of these captions, not about other captions."
            )


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
    key = _key(data)
    images = write_sets(data.filtered, data.pictures, data.store / "sets" / key)
    where = f"{config.extraction.store.as_posix()}/sets/{key}"
    yield (
        f"The kept sets, {int(data.filtered.kept.sum())} of {images} images, are a data set in "
        f"{where}: images.parquet names the pictures. An audit of counterfactuals reads it."
    )


def _key(data: GenerationData) -> str:
    """Return a name that follows from the files and from which sets are kept."""
    names = zip(data.filtered.candidates.names, data.filtered.kept, strict=True)
    kept = [name for name, is_kept in names if is_kept]
    files = {name: file.get("sha256") for name, file in sorted(data.inputs.items())}
    return hashlib.sha256(json.dumps([files, kept]).encode()).hexdigest()[:16]
