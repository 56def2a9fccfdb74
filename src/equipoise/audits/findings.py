"""From estimates to findings, corrected and judged together, and the record of their run."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from equipoise import __version__
from equipoise.audits.config import TestingConfig
from equipoise.audits.more_images import images_wanted
from equipoise.core import (
    TESTED,
    Aggregate,
    Chance,
    ComparedTo,
    Estimate,
    Excluded,
    Fact,
    Family,
    Finding,
    Floats,
    GroupValue,
    Harm,
    IntervalKind,
    Manifest,
    NullHypothesis,
    Part,
    Ratio,
    Verdict,
)
from equipoise.core.estimate import name_with
from equipoise.core.finding import plain_parameters
from equipoise.core.records import changed
from equipoise.core.sentences import Sentence, named
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import number, percent
from equipoise.metrics.spec import MetricSpec, corrected_with, spec_for, spec_of_finding
from equipoise.stats.chance import benjamini_hochberg, holm
from equipoise.stats.verdict import (
    LEAST_RATIO,
    harmful_excess,
    harmful_reach,
    holds,
    judge,
    raise_by_ratio,
)

_SMALLER = 1e-6
"""What upper ends of p-values are multiplied by, to see which corrected ones depend on them."""


@dataclass(frozen=True)
class UncorrectedFinding:
    """A finding before correction and verdict.

    Attributes
    ----------
    finding : Finding
    harm : "higher", "lower" or "either"
        Which side of chance is worse.
    fold : Fact, optional
        The finding whose fact it states.
    parent : MetricSpec, optional
        Record of the metric whose threshold it has; its own without one.
    doubt : tuple of float
        How far unresolved texts may make the number less and more harmful; a verdict must hold
        at both.
    together : hashable, optional
        Tests with the same have p-values that hold for all of them together, and are corrected as
        a single test.
    too_few : str
        Why there is no test: what groups have too few of; "" where they have enough.
    threshold : float, optional
        Practical threshold in the unit of the data, where neither the metric's record nor the
        config has one.
    """

    finding: Finding
    harm: Harm
    fold: Fact | None = None
    parent: MetricSpec | None = None
    doubt: tuple[float, float] = (0.0, 0.0)
    together: Hashable = None
    too_few: str = ""
    threshold: float | None = None

    def changed(self, **fields: Any) -> UncorrectedFinding:
        """Return it with other values of some fields of the finding."""
        return changed(self, finding=changed(self.finding, **fields))


@dataclass(frozen=True)
class Place:
    """Where a number was measured; fields are those of `Finding`."""

    audit: str
    model: str
    groups: str
    version: str
    level: float
    within: str = ""
    sides: tuple[str, ...] = ()


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
        **vars(place),
        metric=metric or estimate.metric,
        aggregate=estimate.aggregate,
        compared_to=estimate.compared_to,
        family=family,
        value=estimate.value,
        ci_low=interval.low,
        ci_high=interval.high,
        chance=chance.mean,
        chance_low=chance.low,
        chance_high=chance.high,
        excess=estimate.excess,
        p_value=math.nan if estimate.p_value is None else estimate.p_value,
        p_at_most=estimate.p_at_most,
        n=sum(estimate.n.values()),
        by_group=by_group,
        by_group_of=about,
        excluded=tuple(Excluded(reason, n) for reason, n in estimate.excluded.items()),
        unit=estimate.unit,
        interval=estimate.interval_kind,
        method=estimate.method,
        null=estimate.null,
        null_drawn=estimate.null_drawn,
        top_k=top_k if isinstance(top_k := estimate.params.get("k"), int) else None,
        parameters=plain_parameters(estimate.params),
        direction=direction(
            shows or metric or estimate.metric, about, by_group, estimate.aggregate
        ),
        reason=estimate.reason or estimate.no_chance,
        citation=estimate.reference,
        corrected=estimate.corrected,
    )
    return UncorrectedFinding(finding, estimate.harm)


def parts(
    estimate: Estimate, place: Place, *, metric: str | None = None
) -> list[UncorrectedFinding]:
    """Return one leaf finding for each part of an estimate, uncorrected."""
    base = whole(estimate, place, Family.LEAF)
    return [_part_finding(base, part, metric) for part in estimate.parts]


def rate_and_gap(estimate: Estimate, place: Place) -> list[UncorrectedFinding]:
    """Return a rate, which compares nothing, and its gap between groups."""
    rate, gap = parts(estimate, place)
    compared = UncorrectedFinding(replace(gap.finding, family=Family.COMPOSITE), "higher")
    by_group = rate.finding.by_group
    return [whole(estimate, place, Family.DESCRIPTIVE, by_group=by_group), compared]


def numbers_of(part: Part) -> dict[str, Any]:
    """Return the value, interval, chance level, test and size of a part, as findings have them."""
    names = (
        "value", "chance", "chance_low", "chance_high", "p_value", "p_at_most", "n", "corrected"
    )  # fmt: skip
    ends = {"ci_low": part.low, "ci_high": part.high, "excess": part.value - part.chance}
    return {name: getattr(part, name) for name in names} | ends


def _part_finding(base: UncorrectedFinding, part: Part, metric: str | None) -> UncorrectedFinding:
    name = metric or part.metric
    finding = changed(
        base.finding,
        **numbers_of(part),
        metric=name,
        aggregate=part.aggregate,
        variant=part.variant,
        subject=part.subject,
        part_of=part.part_of,
        within_value=part.within_value,
        by_group=part.by_group,
        by_group_of="",
        excluded=(*base.finding.excluded, *part.excluded),
        direction=direction(part.shows or name, part.subject, part.by_group, part.aggregate),
        reason=part.reason,
    )
    return UncorrectedFinding(finding, base.harm)


def without_verdict(draft: UncorrectedFinding, default_reason: str) -> UncorrectedFinding:
    """Return a draft that is shown and not tested; a reason it has already is kept."""
    reason = draft.finding.reason or default_reason
    return draft.changed(
        family=Family.DESCRIPTIVE, p_value=math.nan, p_at_most=False, reason=reason
    )


def withheld(draft: UncorrectedFinding, reason: str) -> UncorrectedFinding:
    """Return a draft without a meaningful number, so that no rule of a gate holds for it."""
    if math.isnan(draft.finding.value):
        return without_verdict(draft, reason)
    return draft.changed(family=Family.WITHHELD, p_value=math.nan, p_at_most=False, reason=reason)


class _Valued(Protocol):
    """An estimate, with the value NaN where there is none."""

    @property
    def value(self) -> float: ...


_Estimated = TypeVar("_Estimated", bound=_Valued)


def untested(draft: UncorrectedFinding, too_few: str) -> UncorrectedFinding:
    """Return a draft that is not tested, as its groups have too few of something."""
    return replace(draft.changed(p_value=math.nan, p_at_most=False), too_few=too_few)


def estimable(estimates: Iterable[_Estimated]) -> list[_Estimated]:
    """Return the estimates that have a value."""
    return [estimate for estimate in estimates if not math.isnan(estimate.value)]


def comparable(by_group: Iterable[GroupValue]) -> list[GroupValue]:
    """Return the groups that have a value and no note against it."""
    return [group_value for group_value in estimable(by_group) if not group_value.note]


def direction(
    metric: str,
    subject: str,
    by_group: Sequence[GroupValue],
    aggregate: Aggregate = Aggregate.VALUE,
) -> Sentence:
    """Say in words which group has the lowest and which the highest value, and these."""
    groups = comparable(by_group)
    if len(groups) < 2:
        return Sentence()
    low = min(groups, key=lambda group_value: group_value.value)
    high = max(groups, key=lambda group_value: group_value.value)
    label = spec_for(metric, aggregate).group_label
    quantity = label or metric.replace("_", " ")
    shares = bool(label) or "share" in quantity.split() or quantity.endswith(" rate")
    qualifier = f" for “{subject}”" if subject else ""
    return Sentence(f"{quantity}{qualifier}: ", lowest_and_highest(low, high, shares=shares))


def more_alike(groups: Sequence[GroupValue]) -> Sentence:
    """Say which of two sets of images is less diverse; "" where neither is known to be."""
    if len(groups) != 2 or len(estimable(groups)) < 2 or groups[0].value == groups[1].value:
        return Sentence()
    low, high = sorted(groups, key=lambda group_value: group_value.value)
    return Sentence(
        "images of ", named(low.group), f" look more alike (diversity {low.value:.3f}) than images "
        "of ", named(high.group), f" ({high.value:.3f})",
    )  # fmt: skip


def lowest_and_highest(low: GroupValue, high: GroupValue, *, shares: bool) -> Sentence:
    """Name two groups with their values, shares in per cent; equal ones are not named."""
    if low.value == high.value:
        value = percent(low.value) if shares else number(low.value)
        return Sentence(f"the same for all groups ({value})")
    low_text, high_text = (
        percent(group.value) if shares else number(group.value) for group in (low, high)
    )
    return Sentence(
        "lowest for ", named(low.group), f" ({low_text}), highest for ", named(high.group),
        f" ({high_text})",
    )  # fmt: skip


def conclude(drafts: Iterable[UncorrectedFinding], testing: TestingConfig) -> tuple[Finding, ...]:
    """Correct p-values within each family of a model and give every finding its verdict.

    What is found of one model is the same whatever others were audited with it, see decision
    0014. Findings that compare models are families of their own. Where a model has tests in both
    families q is doubled, so that both together keep alpha, see decision 0008; findings of single
    queries, which never lead, don't share it. A finding that folds into another shares its test
    and verdict, see decision 0011.
    """
    folded_drafts = _mark_folds(list(drafts))
    families: dict[tuple[str | None, Family], list[int]] = {}
    for index, draft in enumerate(folded_drafts):
        finding = draft.finding
        if finding.family in TESTED:
            families.setdefault((corrected_with(finding), finding.family), []).append(index)
    p_values, sharing = dict[tuple[str | None, Family], list[float]](), Counter[str | None]()
    for (corrected, family), positions in families.items():
        p = [folded_drafts[position].finding.p_value for position in positions]
        p_values[corrected, family] = p
        sharing[corrected] += family is not Family.QUERY and not np.isnan(p).all()
    # Tested findings are judged below.
    findings = [_describe(draft.finding) for draft in folded_drafts]
    correct = holm if testing.correction == "holm" else benjamini_hochberg
    for key, members in families.items():
        p, share = p_values[key], 1 if key[1] is Family.QUERY else max(sharing[key[0]], 1)
        together = [folded_drafts[member].together for member in members]
        q_values = np.minimum(share * _correct_together(p, together, correct), 1.0)
        uncertain = [folded_drafts[member].finding.p_at_most for member in members]
        smaller_p = np.where(uncertain, _SMALLER, 1.0) * np.asarray(p)
        smaller_q = np.minimum(
            share * _correct_together(smaller_p.tolist(), together, correct), 1.0
        )
        at_most = (smaller_q < (1.0 - _SMALLER) * q_values).tolist()
        cutoff = _find_cutoff(p, q_values, testing) / share
        for index, q, q_at_most in zip(members, q_values.tolist(), at_most, strict=True):
            judged = _judge_finding(folded_drafts[index], q, cutoff, testing)
            findings[index] = replace(judged, q_at_most=q_at_most)
    shared = _share_verdicts(findings, [_fold_key(draft) for draft in folded_drafts])
    return tuple(map(_without_signed_zeros, map(_with_possible_ends, map(with_interval, shared))))


def judge_by_interval(draft: UncorrectedFinding, testing: TestingConfig) -> Finding:
    """Give a draft without a test the verdict of its interval, which holds 0 or doesn't."""
    finding = draft.finding
    if math.isnan(finding.value) or math.isnan(finding.ci_low):
        return _describe(finding)
    excludes_0 = finding.ci_low > 0.0 or finding.ci_high < 0.0
    judged = _judge_finding(draft, 0.0 if excludes_0 else 1.0, math.nan, testing)
    return _with_possible_ends(with_interval(replace(judged, q_value=math.nan)))


def _correct_together(
    p_values: Sequence[float],
    together: Sequence[Hashable],
    correct: Callable[[Sequence[float]], Floats],
) -> Floats:
    """Correct p-values; a set that holds together counts as its smallest p-value.

    The others of a set are corrected by the same factor (Benjamini & Bogomolov 2014).
    """
    sets = dict[Hashable, int]()
    keys = [(place,) if key is None else key for place, key in enumerate(together)]
    places = [sets.setdefault(key, len(sets)) for key in keys]
    p, smallest = np.asarray(p_values, np.float64), np.full(len(sets), np.nan)
    np.fmin.at(smallest, places, p)
    q = correct(smallest.tolist())
    factor = np.where(smallest > 0.0, q / np.where(smallest > 0.0, smallest, 1.0), 1.0)
    return np.where(p == smallest[places], q[places], p * factor[places])


def with_interval(finding: Finding) -> Finding:
    """Return a finding with interval kind `none` where it has no ends."""
    if math.isnan(finding.ci_low) and finding.interval is not IntervalKind.NONE:
        return replace(finding, interval=IntervalKind.NONE)
    return finding


def _with_possible_ends(finding: Finding) -> Finding:
    """Return a finding whose interval ends where the values of its metric do."""
    spec = spec_of_finding(finding)
    spec.check_values(finding.value)
    low, high = spec.possible(finding.ci_low, finding.ci_high)
    return changed(finding, ci_low=low, ci_high=high)


_NUMBERS = ("value", "ci_low", "ci_high", "chance", "chance_low", "chance_high", "excess")


def _without_signed_zeros(finding: Finding) -> Finding:
    """Return a finding whose zeros have no sign, which says nothing of a direction."""
    zeros: dict[str, Any] = {
        name: 0.0
        for name in _NUMBERS
        if getattr(finding, name) == 0.0 and math.copysign(1.0, getattr(finding, name)) < 0
    }
    return replace(finding, **zeros) if zeros else finding


Key = tuple[str, str, str, str, NullHypothesis, Fact]
"""Audit, model, version, groups and null of a finding, and the fact that it states."""


def _key(finding: Finding, fact: Fact) -> Key:
    """Return the key of a fact at the place of a finding."""
    groups = fact.groups or finding.groups
    place = finding.audit, finding.model, finding.version, groups, finding.null
    return *place, fact._replace(groups="")


def fact_of(finding: Finding) -> Fact:
    """Return the fact that a finding states."""
    return Fact(finding.metric, finding.aggregate, finding.subject, finding.compared_to)


def gap_of(metric: str, subject: str, compared_to: ComparedTo = "") -> Fact:
    """Return the fact that groups differ in a metric."""
    return Fact(metric, Aggregate.DIFFERENCE, subject, compared_to)


def _own_key(finding: Finding) -> Key:
    return _key(finding, fact_of(finding))


def _fold_key(draft: UncorrectedFinding) -> Key | None:
    """Return the key of the finding that a draft folds into; None without a fold."""
    return None if draft.fold is None else _key(draft.finding, draft.fold)


def _mark_folds(drafts: Sequence[UncorrectedFinding]) -> list[UncorrectedFinding]:
    """Take drafts out of their families that fold into another that is there."""
    facts = {_own_key(draft.finding) for draft in drafts}
    marked = []
    for draft in drafts:
        untested = draft.finding.family in (Family.DESCRIPTIVE, Family.WITHHELD)
        if not untested and _fold_key(draft) in facts:
            marked.append(draft.changed(family=Family.FOLD))
        else:
            marked.append(changed(draft, fold=None))
    return marked


def _share_verdicts(findings: Sequence[Finding], folds: Sequence[Key | None]) -> Iterator[Finding]:
    """Give folded findings the test and verdict of the finding that they repeat."""
    facts = {_own_key(finding): place for place, finding in enumerate(findings)}
    for finding, fold in zip(findings, folds, strict=True):
        if fold is None or finding.verdict is Verdict.NOT_ESTIMABLE:
            yield finding
            continue
        place = facts[fold]
        while (further := folds[place]) is not None:
            place = facts[further]
        base = findings[place]
        qualifier = f" of {base.subject}" if base.subject else ""
        qualifier += f" by {base.groups}" if base.groups != finding.groups else ""
        yield replace(
            finding,
            q_value=base.q_value,
            q_at_most=base.q_at_most,
            threshold=base.threshold,
            ratio=base.ratio,
            verdict=base.verdict,
            reason=(
                f"the same fact as {_full_name(base)}{qualifier}, which is tested: {base.reason}"
            ),
            more=base.more,
            more_of=base.more_of,
        )


def _full_name(finding: Finding) -> str:
    return name_with(finding.metric, finding.aggregate)


def _find_cutoff(p: Sequence[float], q_values: Floats, testing: TestingConfig) -> float:
    """Return the p-value from which on findings of a family count, as the family stands."""
    tests = int((~np.isnan(p)).sum())
    rejected = int((q_values <= testing.alpha).sum())
    if testing.correction == "holm":
        return testing.alpha / max(tests - rejected, 1)
    return testing.alpha * max(rejected, 1) / max(tests, 1)


def _describe(finding: Finding) -> Finding:
    verdict = Verdict.NOT_ESTIMABLE if math.isnan(finding.value) else Verdict.NONE
    return changed(finding, verdict=verdict)


def _judge_finding(
    draft: UncorrectedFinding, q: float, cutoff: float, testing: TestingConfig
) -> Finding:
    finding = draft.finding
    spec = spec_of_finding(finding)
    configured = testing.threshold(draft.parent or spec)
    threshold = draft.threshold if configured is None else configured
    threshold = math.nan if threshold is None else threshold
    excess, reach = harmful_excess(finding.value, finding.chance, draft.harm), math.nan
    holds_null = False
    # Ends that are no confidence interval show no disparity to be small.
    if finding.interval is not IntervalKind.SPREAD:
        middle = finding.chance if spec.neutral is None else spec.neutral
        reach = harmful_reach(finding.ci_low, finding.ci_high, draft.harm, middle)
        holds_null = holds(finding.ci_low, finding.ci_high, middle, spec.range)
    decrease, increase = draft.doubt
    verdict, reason = judge(
        value=finding.value,
        excess=(excess if math.isnan(finding.corrected) else finding.corrected) - decrease,
        reach=reach + increase,
        q=q,
        threshold=threshold,
        alpha=testing.alpha,
        holds_null=holds_null,
        too_few=draft.too_few,
    )
    ratio, by_points = finding.ratio, verdict
    if ratio is not None:
        verdict = raise_by_ratio(by_points, ratio, q, testing.alpha)
        ratio = replace(ratio, decides=verdict is not by_points)
        reason = _reason_of_ratio(ratio) if ratio.decides else reason
    if verdict is Verdict.DISPARITY and spec.gravest == "detected":
        verdict, reason = Verdict.DETECTED, "chance doesn't explain it, as of any trained model"
    if any(draft.doubt):
        reason = f"whatever class unresolved texts name: {reason}"
    n_more, wanted_group = math.nan, ""
    if verdict is Verdict.INCONCLUSIVE and not draft.too_few:
        n_more, wanted_group, wanted_text = images_wanted(finding, threshold, cutoff)
        reason = f"{reason}; {wanted_text}" if wanted_text else reason
    return changed(
        finding,
        q_value=q,
        threshold=threshold,
        ratio=ratio,
        verdict=verdict,
        reason=finding.reason or reason,
        more=n_more,
        more_of=wanted_group,
    )


def _reason_of_ratio(ratio: Ratio) -> str:
    """Say why the ratio of errors decides a verdict."""
    place = "its interval begins" if ratio.low >= LEAST_RATIO else "it is"
    return (
        f"errors are rare and chance doesn't explain the difference, so their ratio decides: "
        f"{place} at {LEAST_RATIO:g} or above"
    )


_LIBRARIES = ("numpy", "scipy", "numba", "polars", "pyarrow", "narwhals", "pydantic", "onnxruntime")


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of equipoise and of installed libraries."""
    versions = {"equipoise": __version__}
    for name in libraries:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def manifest_of(
    *,
    config: Mapping[str, Json],
    resolved: Mapping[str, Json],
    inputs: Mapping[str, FileFacts],
    counts: Mapping[str, Json],
    seed: int,
    seconds: float,
    notes: tuple[str, ...],
    base: Path | None = None,
) -> Manifest:
    """Return the manifest of a run; `base` is the folder of the git commit to record."""
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
