"""Designs of an audit of activations: shares between groups, and between two people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.activations.data import ActivationData, Mapped
from equipoise.audits.against_rest import leaf
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.group_sizes import Row, lacking
from equipoise.audits.kind import Measured
from equipoise.core import (
    Estimate,
    Family,
    Floats,
    Groups,
    Integers,
    Objects,
    Part,
    Strings,
    record,
    table_of,
)
from equipoise.core.columns import BYTES, INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, named, quoted
from equipoise.metrics.numbers.activation import (
    Regions,
    occlusion_difference,
    paired_share_difference,
)
from equipoise.metrics.spec import spec_of

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, QuestionsConfig
    from equipoise.stats.resampling import Resampling

# Seconds for an image in a permutation or replicate of a design, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_IMAGE, _SECONDS_PER_DESIGN = 4e-7, 0.15


@record
class Design:
    """One model's maps over one region, compared between one choice of groups.

    Attributes
    ----------
    model, region : str
    all_groups : Groups
        Of all images with a map: those without a share are counted.
    mapped : Mapped
    lacking : mapping of str to int
    draws : int
    """

    model: str
    region: str
    all_groups: Groups
    mapped: Mapped
    lacking: Mapping[str, int]
    draws: int

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        groups = int(self.groups.usable.sum())
        return 1 + groups * (groups > 2)

    @cached_property
    def rows(self) -> Integers:
        """Rows of the images with a share, among the images with a map."""
        return Regions.of(self.mapped.maps, self.mapped.boxes[self.region]).rows

    @cached_property
    def groups(self) -> Groups:
        """Groups of the images that have a share."""
        return self.all_groups.take(self.rows)

    @property
    def compared(self) -> bool:
        """Whether two groups or more have enough images with a share."""
        return bool(self.groups.usable.sum() >= 2)

    def seconds(self, draws: int) -> float:  # noqa: ARG002 - designs of all kinds take it
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + self.draws * len(self.rows) * _SECONDS_PER_IMAGE


@record
class Question(Design):
    """One prompt to one model about two people in every image.

    Attributes
    ----------
    prompt : str
    controls : tuple of Mapped
        What is taken away; none of a control prompt itself.
    persons : tuple of 2 str
        Regions: shares on the first less those on the second.
    control : bool
        Whether it is a control prompt.
    pictured : bool
        Whether its pictures are shown: for the first choice of groups.
    """

    prompt: str
    controls: tuple[Mapped, ...]
    persons: Strings
    control: bool
    pictured: bool

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        groups = int(self.all_groups.usable.sum())
        return 0 if self.control else 1 + groups * (groups > 1)

    @property
    def groups(self) -> Groups:
        """Groups of all images, with or without a share."""
        return self.all_groups

    @cached_property
    def rows(self) -> Integers:
        """Images with a share on both people."""
        return np.flatnonzero(np.isfinite(self.mapped.share_differences))

    @property
    def compared(self) -> bool:
        """Whether two images or more have a share on both people."""
        return len(self.rows) > 1

    def measured(
        self,
        config: Config,
        units: Sequence[str] | None,
        ids: Objects,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure which of the two people the prompt's map covers."""
        level, seed = config.resampling.level, config.resampling.seed
        place = Place(config.audit, self.model, self.all_groups.name, "default", level)

        def estimate(
            metric: Callable[..., Estimate], differences: Floats, controls: Sequence[Floats]
        ) -> Estimate:
            control_mean = np.mean(controls, axis=0) if controls else 0.0
            return metric(
                differences - control_mean, self.all_groups, units=units,
                resampling=resampling, rng=seed,
            )  # fmt: skip

        share, fall = (
            estimate(
                paired_share_difference,
                self.mapped.share_differences,
                [control.share_differences for control in self.controls],
            ),
            None,
        )
        findings = self._findings(share, place)
        if self.controls:
            with_controls = replace(place, version="with what controls show")
            alone = estimate(paired_share_difference, self.mapped.share_differences, ())
            raw = whole(alone, with_controls, Family.LEAF)
            findings.append(without_verdict(raw, "the difference less controls is tested instead"))
        if self.mapped.falls is not None:
            fallen = [control.fallen for control in self.controls]
            fall = estimate(occlusion_difference, self.mapped.fallen, fallen)
            hidden = whole(fall, place, Family.LEAF)
            findings.append(without_verdict(hidden, "in units of the model's own score"))
        tables = {"questions": table_of([*self._rows(share, fall, level)], QUESTIONS)}
        if self.pictured and self.mapped.pictures:
            tables["gallery"] = table_of(
                [*self._gallery(ids)],
                {"section": TEXT, "group": TEXT, "caption": TEXT, "image": BYTES},
            )
        return Measured(
            tuple(self._with_direction(finding) for finding in findings),
            tables,
            tuple(f"{self.model}, {self.prompt}: {n} images have no share on both people."
                  for n in share.excluded.values()),
        )  # fmt: skip

    def _with_direction(self, draft: UncorrectedFinding) -> UncorrectedFinding:
        first, second = self.persons if draft.finding.value >= 0.0 else self.persons[::-1]
        words = Sentence(named(first), " than on ", named(second))
        if draft.finding.group:
            words += Sentence(" in ", quoted(draft.finding.group))
        return draft.changed(subject=self.prompt, direction=words)

    def _findings(self, share: Estimate, place: Place) -> list[UncorrectedFinding]:
        large = {
            name
            for name, ok in zip(self.all_groups.names, self.all_groups.usable, strict=True)
            if ok
        }
        by_group = tuple(group for part in share.parts for group in part.by_group)
        drafts = [whole(share, place, Family.LEAF, by_group=by_group)]
        leaves = [leaf(draft, spec_of(share.metric)) for draft in parts(share, place)]
        if len(large) > 1:
            drafts += [draft for draft in leaves if draft.finding.group in large]
        return (
            [without_verdict(draft, "a control prompt") for draft in drafts]
            if self.control
            else drafts
        )

    def _rows(self, share: Estimate, fall: Estimate | None, level: float) -> Iterator[Row]:
        """Yield rows of all images and of each group, with the effect of hiding people."""
        agree = np.sign(self.mapped.share_differences) * np.sign(self.mapped.fallen)
        ends, p = share.interval(level), math.nan if share.p_value is None else share.p_value
        overall = Part(
            share.metric, "", share.value, ends.low, ends.high, p_value=p, n=share.n["images"]
        )
        falls = [math.nan] * (1 + len(share.parts))
        if fall is not None:
            falls = [fall.value, *(part.value for part in fall.parts)]
        for code, part in enumerate((overall, *share.parts), start=-1):
            in_group = np.isfinite(agree) & ((self.all_groups.codes == code) | (code < 0))
            yield {
                "model": self.model, "groups": self.all_groups.name, "prompt": self.prompt,
                "group": part.subject or "all", "n": part.n, "difference": part.value,
                "low": part.low, "high": part.high, "p_value": part.p_value,
                "fall": falls[code + 1],
                "agree": float((agree[in_group] > 0).mean()) if in_group.any() else None,
            }  # fmt: skip

    def _gallery(self, ids: Objects) -> Iterator[Row]:
        """Yield a prompt's row of pictures: the same images for all prompts, group by group."""
        used, codes = self.mapped.used, self.all_groups.codes
        for place in sorted(self.mapped.pictures, key=lambda place: (codes[used[place]], place)):
            row = used[place]
            group = f" ({self.all_groups.names[codes[row]]})" if codes[row] >= 0 else ""
            yield {
                "section": f"{self.model}: {self.persons[0]} and {self.persons[1]}",
                "group": f"{self.prompt} (control)" if self.control else self.prompt,
                "caption": f"{ids[row]}{group}",
                "image": self.mapped.pictures[place],
            }  # fmt: skip


QUESTIONS = {
    "model": TEXT,
    "groups": TEXT,
    "prompt": TEXT,
    "group": TEXT,
    "n": INTEGER,
    "difference": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p_value": NUMBER,
    "fall": NUMBER,
    "agree": NUMBER,
}


def questions(
    section: QuestionsConfig, data: ActivationData, groups_of_choices: Sequence[Groups], draws: int
) -> Iterator[Question]:
    """Yield every model with every prompt and choice of groups; controls last."""
    for (model, prompts), groups in product(data.by_prompt.items(), groups_of_choices):
        controls = tuple(prompts[control] for control in section.controls)
        codes = {name: data.images.coded[name].codes for name in groups.attributes}
        for prompt, mapped in prompts.items():
            control = prompt in section.controls
            yield Question(
                model, " and ".join(section.persons), groups, mapped, lacking(codes), draws,
                prompt, () if control else controls, section.persons, control,
                groups is groups_of_choices[0],
            )  # fmt: skip
