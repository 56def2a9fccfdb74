"""From estimates to findings, corrected and judged together, and the record of their run."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import __version__
from equipoise.audits.config import TestingConfig
from equipoise.core.estimate import Chance, Estimate, Harm
from equipoise.core.finding import Excluded, Family, Finding, GroupValue, Verdict
from equipoise.core.parts import Part
from equipoise.core.result import Manifest
from equipoise.core.wording import number, percent
from equipoise.metrics.spec import corrected_with, spec_of
from equipoise.metrics.vectors.predicted_labels import is_spread
from equipoise.stats.chance import benjamini_hochberg, holm
from equipoise.stats.verdict import judge


@dataclass(frozen=True)
class UncorrectedFinding:
    """A finding before correction and verdict, with the side of chance that is worse."""

    finding: Finding
    harm: Harm

    def changed(self, **fields: Any) -> UncorrectedFinding:
        """Return it with other values of some fields of the finding."""
        return replace(self, finding=replace(self.finding, **fields))


@dataclass(frozen=True)
class Place:
    """Where a number was measured."""

    audit: str
    model: str
    groups: str
    version: str
    level: float


def whole(
    estimate: Estimate,
    place: Place,
    family: Family,
    *,
    metric: str | None = None,
    by_group: tuple[GroupValue, ...] = (),
    about: str = "",
    shows: str = "",
) -> UncorrectedFinding:
    """Return the finding of an estimate as a whole, uncorrected.

    `by_group` is about the class `about`, and holds values of `shows` where that is another
    metric.
    """
    interval = estimate.interval(place.level)
    chance = estimate.chance or Chance(math.nan, math.nan, math.nan, "")
    finding = Finding(
        audit=place.audit,
        model=place.model,
        metric=metric or estimate.metric,
        subject="",
        groups=place.groups,
        version=place.version,
        family=family,
        value=estimate.value,
        ci_low=interval.low,
        ci_high=interval.high,
        level=place.level,
        chance=chance.mean,
        chance_low=chance.low,
        chance_high=chance.high,
        excess=estimate.excess,
        p_value=math.nan if estimate.p_value is None else estimate.p_value,
        q_value=math.nan,
        threshold=math.nan,
        n=sum(estimate.n.values()),
        by_group=by_group,
        excluded=tuple(Excluded(why, n) for why, n in estimate.excluded.items()),
        unit=estimate.unit,
        method=estimate.method,
        null=estimate.null,
        parameters=json.dumps(dict(estimate.params), sort_keys=True, default=str),
        direction=direction(shows or metric or estimate.metric, about, by_group),
        verdict=Verdict.NONE,
        reason=estimate.reason or estimate.no_chance,
        citation=estimate.reference,
    )
    return UncorrectedFinding(finding, estimate.harm)


def parts(
    estimate: Estimate, place: Place, *, metric: str | None = None
) -> list[UncorrectedFinding]:
    """Return one leaf finding for each part of an estimate, uncorrected."""
    base = whole(estimate, place, Family.LEAF)
    return [_part(base, part, metric) for part in estimate.parts]


def rate_and_gap(estimate: Estimate, place: Place) -> list[UncorrectedFinding]:
    """Return a rate, which compares nothing, and its gap between groups."""
    rate, gap = parts(estimate, place)
    compared = UncorrectedFinding(replace(gap.finding, family=Family.COMPOSITE), "higher")
    by_group = rate.finding.by_group
    return [whole(estimate, place, Family.DESCRIPTIVE, by_group=by_group), compared]


def with_numbers(finding: Finding, part: Part) -> Finding:
    """Return a finding with the value, interval, chance level, test and size of a part."""
    return replace(
        finding,
        value=part.value,
        ci_low=part.low,
        ci_high=part.high,
        chance=part.chance,
        chance_low=part.chance_low,
        chance_high=part.chance_high,
        excess=part.value - part.chance,
        p_value=part.p_value,
        n=part.n,
    )


def _part(base: UncorrectedFinding, part: Part, metric: str | None) -> UncorrectedFinding:
    name = metric or part.metric
    finding = replace(
        with_numbers(base.finding, part),
        metric=name,
        subject=part.subject,
        by_group=part.by_group,
        excluded=(*base.finding.excluded, *part.excluded),
        direction=direction(part.shows or name, part.subject, part.by_group),
        reason=part.reason,
    )
    return UncorrectedFinding(finding, base.harm)


def without_verdict(draft: UncorrectedFinding, why: str) -> UncorrectedFinding:
    """Return a draft that is shown and not tested; a reason it has already is kept."""
    reason = draft.finding.reason or why
    return draft.changed(family=Family.DESCRIPTIVE, p_value=math.nan, reason=reason)


def direction(metric: str, subject: str, by_group: Sequence[GroupValue]) -> str:
    """Say in words which group has the lowest and which the highest value, and these."""
    known = [one for one in by_group if not math.isnan(one.value) and not one.note]
    if len(known) < 2:
        return ""
    low = min(known, key=lambda one: one.value)
    high = max(known, key=lambda one: one.value)
    label = spec_of(metric).group_label
    what = label or metric.replace("_", " ")
    shares = bool(label) or "share" in what.split() or what.endswith(" rate")
    about = f" for “{subject}”" if subject else ""
    return f"{what}{about}: {lowest_and_highest(low, high, shares=shares)}"


def lowest_and_highest(low: GroupValue, high: GroupValue, *, shares: bool) -> str:
    """Name two groups with their values, shares in per cent."""
    ends = (("lowest", low), ("highest", high))
    # The commas of an intersection would read as those of the sentence.
    return ", ".join(
        f"{how} for {f'“{one.group}”' if ',' in one.group else one.group} "
        f"({percent(one.value) if shares else number(one.value)})"
        for how, one in ends
    )


def conclude(drafts: Iterable[UncorrectedFinding], testing: TestingConfig) -> tuple[Finding, ...]:
    """Correct p-values within each family of a model and give every finding its verdict.

    What is found of one model is the same whatever others were audited with it, see decision
    0014. Findings that compare models are families of their own.
    """
    every = list(drafts)
    correct = holm if testing.correction == "holm" else benjamini_hochberg
    families: dict[tuple[str | None, Family], list[int]] = {}
    for index, draft in enumerate(every):
        if draft.finding.family is not Family.DESCRIPTIVE:
            family = corrected_with(draft.finding), draft.finding.family
            families.setdefault(family, []).append(index)
    q_values = np.full(len(every), math.nan)
    for members in families.values():
        q_values[members] = correct([every[index].finding.p_value for index in members])
    judged = zip(every, q_values.tolist(), strict=True)
    return tuple(_judged(draft, q, testing) for draft, q in judged)


def _judged(draft: UncorrectedFinding, q: float, testing: TestingConfig) -> Finding:
    finding = draft.finding
    if finding.family is Family.DESCRIPTIVE:
        nothing = Verdict.NOT_ESTIMABLE if math.isnan(finding.value) else Verdict.NONE
        return replace(finding, verdict=nothing)
    known = testing.threshold(finding.metric)
    threshold = math.nan if known is None else known
    # Ends that are no confidence interval show no disparity to be small.
    aside = is_spread(finding.method)
    verdict, why = judge(
        value=finding.value,
        low=math.nan if aside else finding.ci_low,
        high=math.nan if aside else finding.ci_high,
        chance_mean=finding.chance,
        q=q,
        threshold=threshold,
        alpha=testing.alpha,
        harm=draft.harm,
    )
    reason = finding.reason or why
    return replace(finding, q_value=q, threshold=threshold, verdict=verdict, reason=reason)


_LIBRARIES = ("numpy", "scipy", "numba", "polars", "pyarrow", "narwhals", "pydantic", "onnxruntime")


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Return the version of equipoise, and of those libraries that are installed."""
    versions = {"equipoise": __version__}
    for name in libraries:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def manifest_of(
    *,
    config: Mapping[str, Any],
    resolved: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, Any],
    seed: int,
    seconds: float,
    notes: tuple[str, ...],
    base: Path | None = None,
) -> Manifest:
    """Describe a run that has just ended; `base` is the folder whose git commit is recorded."""
    commit, changes = "", ""
    if base is not None:
        with suppress(OSError, subprocess.SubprocessError):
            commit = _git(base, "rev-parse", "HEAD")
            changes = _git(base, "status", "--porcelain")
    return Manifest(
        config=config,
        resolved=resolved,
        versions=versions_of(_LIBRARIES) | {"python": platform.python_version()},
        commit=commit,
        dirty=bool(changes),
        inputs=inputs,
        counts=counts,
        seed=seed,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        machine={
            "system": platform.system(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
        },
        notes=notes,
    )


def _git(base: Path, *arguments: str) -> str:
    # The user's own git, asked about the user's own folder.
    command = ["git", *arguments]
    output = subprocess.check_output(  # noqa: S603
        command, cwd=base, stderr=subprocess.DEVNULL, text=True, timeout=10
    )
    return output.strip()
