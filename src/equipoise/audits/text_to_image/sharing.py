"""Whom images of neutral prompts show: shares, corrected, and held against those from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.engines.associations.results import Note, Result, Row
from equipoise.audits.findings import Place, UncorrectedFinding, whole, without_verdict
from equipoise.audits.text_to_image.associating import AUDIT
from equipoise.audits.text_to_image.designs import SECONDS_PER_SHARE, version_of
from equipoise.audits.text_to_image.images import IMAGE
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.groups import Groups
from equipoise.metrics.shares.average import mean_share_mad
from equipoise.metrics.shares.confusion import Confusion
from equipoise.metrics.shares.corrected import TRANSPORT, corrected_shares
from equipoise.metrics.shares.gap import share_gap
from equipoise.stats.resampling import Resampling

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_shares import SharesConfig
    from equipoise.audits.text_to_image.loading import TextToImageData


@dataclass(frozen=True, eq=False)
class ShareDesign:
    """One question about the images of a generator at one strength of guidance.

    Attributes
    ----------
    share : SharesConfig
    generator : str
    guidance : float or None
    config : Config
    data : TextToImageData
    confusion : Confusion or None
        Of the labelled images, the same for all generators.
    """

    share: SharesConfig
    generator: str
    guidance: float | None
    config: Config
    data: TextToImageData = field(repr=False)
    confusion: Confusion | None = field(repr=False)

    @property
    def version(self) -> str:
        """How findings call it."""
        return version_of(self.share.classifier, self.guidance)

    @property
    def model(self) -> str:
        """Name of the generator."""
        return self.generator

    @property
    def groups(self) -> Groups:
        """Groups of no items: classes of images are counted."""
        return Groups((self.share.of,), (), np.empty(0, dtype=np.int32))

    @property
    def lacking(self) -> Mapping[str, int]:
        """Items in no group: none."""
        return {}

    @property
    def tests(self) -> int:
        """How many tests the design makes."""
        return (1 + (self.share.outside is not None)) * len(self.config.prompts.target_names)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return SECONDS_PER_SHARE * draws * len(self.config.prompts.target_names)

    @property
    def place(self) -> Place:
        """Where its numbers were measured."""
        level = self.config.resampling.level
        return Place(AUDIT, self.generator, self.share.of, self.version, level)

    @property
    def at(self) -> dict[str, Any]:
        """Columns that say where a row was measured."""
        return {"model": self.generator, "groups": self.share.of, "version": self.version}


def share_designs(config: Config, data: TextToImageData) -> Iterator[ShareDesign]:
    """Yield every question about every generator at every strength of guidance."""
    for share in config.shares:
        confusion = confusion_of(share, data)
        for generator, made in data.made.items():
            for guidance in made.guidances:
                yield ShareDesign(share, generator, guidance, config, data, confusion)


def confusion_of(share: SharesConfig, data: TextToImageData) -> Confusion | None:
    """Count what was said of the labelled images; None where there are none."""
    found = data.judged[share.of]
    if found.true is None or found.said_of_labelled is None:
        return None
    counted, _ = Confusion.of_labels(
        found.true, found.said_of_labelled, outcomes=tuple(share.classes)
    )
    return counted


def measure_shares(design: ShareDesign, resampling: Resampling | None) -> Iterator[Result]:
    """Measure the shares of every target."""
    prompts = design.config.prompts
    found: dict[str, Estimate] = {}
    for category, named in prompts.target_texts.items():
        for target, texts in named.items():
            estimate = _of_target(design, target, texts, resampling)
            yield from _states(design, target, texts)
            found[target] = estimate
            yield from _found(design, target, category, estimate)
            yield from _against(design, target, category, estimate)
    if len(found) > 1 and any(one.estimable for one in found.values()):
        mean = mean_share_mad(found)
        yield _tested(whole(mean, design.place, Family.COMPOSITE))
    yield from _notes(design)


def _of_target(
    design: ShareDesign, target: str, texts: tuple[str, ...], resampling: Resampling | None
) -> Estimate:
    made, share = design.data.made[design.generator], design.share
    rows = made.rows(texts, design.guidance)
    rows = rows[made.state[rows] == IMAGE]
    return corrected_shares(
        design.data.judged[share.of].said[design.generator][rows],
        design.confusion,
        classes=share.compared,
        aside=share.no_person,
        units=made.items.columns["seed"][rows] if made.seeded and len(rows) else None,
        max_condition=share.max_condition,
        min_labelled=share.min_labelled,
        resampling=resampling,
        rng=design.config.resampling.seed,
        name=target,
    )


def by_class(estimate: Estimate, metric: str) -> tuple[GroupValue, ...]:
    """Return one kind of share of every class."""
    return tuple(
        GroupValue(one.subject, (one.subject,), one.n, one.value, one.low, one.high)
        for one in estimate.parts
        if one.metric == metric
    )


def _found(design: ShareDesign, target: str, category: str, estimate: Estimate) -> Iterator[Result]:
    by_group = by_class(estimate, "corrected_share")
    what = "corrected share" if design.confusion is not None else "share"
    draft = whole(estimate, design.place, Family.LEAF, by_group=by_group, about=target, shows=what)
    yield _tested(replace(draft, finding=replace(draft.finding, subject=target)))
    raw = {one.group: one for one in by_class(estimate, "raw_share")}
    outside = design.data.outside.get(design.share.of)
    known = None if outside is None else outside.by_target.get(target)
    target_shares = _outside_shares(known, design.share.compared)
    for one in by_group:
        said = raw[one.group]
        yield Row(
            "shares",
            {
                **design.at, "target": target, "category": category, "class": one.group,
                "guidance": _number(design.guidance), "images": one.n,
                "share": one.value, "low": one.low, "high": one.high,
                "raw": said.value, "raw_low": said.low, "raw_high": said.high,
                "outside": target_shares.get(one.group, math.nan),
                "outside_name": "" if outside is None else outside.name,
                "corrected": design.confusion is not None, "reason": estimate.reason,
            },
        )  # fmt: skip


def _outside_shares(known: Any, classes: tuple[str, ...]) -> dict[str, float]:
    if known is None:
        return {}
    if isinstance(known, str):
        return dict.fromkeys(classes, 1.0 / len(classes))
    total = sum(known[one] for one in classes)
    return {one: known[one] / total for one in classes}


def _against(
    design: ShareDesign, target: str, category: str, estimate: Estimate
) -> Iterator[Result]:
    outside = design.data.outside.get(design.share.of)
    if outside is None or target not in outside.by_target:
        return
    known = outside.by_target[target]
    gap = share_gap(estimate, known if isinstance(known, str) else dict(known))
    draft = whole(gap, design.place, Family.LEAF, by_group=by_class(estimate, "corrected_share"))
    told = replace(draft.finding, subject=target, direction=_direction(gap, outside.name))
    yield _tested(replace(draft, finding=told))
    for part in gap.parts:
        yield Row(
            "share_gaps",
            {
                **design.at, "target": target, "category": category, "class": part.subject,
                "outside_name": outside.name, "difference": part.value, "low": part.low,
                "high": part.high, "p_value": part.p_value, "n": part.n, "reason": part.reason,
            },
        )  # fmt: skip


def _direction(gap: Estimate, name: str) -> str:
    """Say which class is shown more or less often than outside."""
    known = [one for one in gap.parts if not math.isnan(one.value)]
    if not known:
        return ""
    most = max(known, key=lambda one: abs(one.value))
    how = "more" if most.value > 0 else "less"
    points = round(100 * abs(most.value), 1)
    return f"{most.subject} is shown {how} often than {name} say, by {points:g} points"


def _tested(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Describe a number that no chance level was drawn for."""
    finding = draft.finding
    if not math.isnan(finding.value) and math.isnan(finding.p_value):
        return without_verdict(draft, finding.reason or "no resampling was design for")
    return draft


def _states(design: ShareDesign, target: str, texts: tuple[str, ...]) -> Iterator[Result]:
    made = design.data.made[design.generator]
    rows = made.rows(texts, design.guidance)
    said = design.data.judged[design.share.of].said[design.generator][rows]
    states = [
        state if state != IMAGE else ("not judged" if one is None else str(one))
        for state, one in zip(made.state[rows].tolist(), said.tolist(), strict=True)
    ]
    for name, count in zip(*np.unique(states, return_counts=True), strict=True):
        yield Row(
            "image_states",
            {**design.at, "target": target, "state": str(name), "count": int(count)},
        )


def _notes(design: ShareDesign) -> Iterator[Note]:
    if design.confusion is None:
        yield Note(
            f"Shares of {design.share.of} are as the classifier says: without labelled images its "
            "errors are not corrected."
        )
        return
    rates = [
        f"{name} {rate:.0%}"
        for name, rate in zip(
            design.confusion.classes, design.confusion.accuracy.tolist(), strict=True
        )
    ]
    yield Note(
        f"Shares of {design.share.of} are corrected by {int(design.confusion.labelled.sum())} "
        f"labelled images, of which are named right: {', '.join(rates)}; the condition number is "
        f"{design.confusion.condition:.3g}. {TRANSPORT[0].upper()}{TRANSPORT[1:]} (transport): "
        "where labelled images are of another style, shares are biased and no interval says so."
    )


def _number(guidance: float | None) -> float:
    return math.nan if guidance is None else guidance
