"""Findings and tables of an audit of concepts, from the measured versions of its choices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from equipoise.audits.against_rest import leaf
from equipoise.audits.columns import Row, placed
from equipoise.audits.concepts.config import BASELINE, Config
from equipoise.audits.findings import Place, UncorrectedFinding, whole, without_verdict
from equipoise.audits.findings import parts as part_findings
from equipoise.core import Estimate, Family, GroupValue, table_of
from equipoise.metrics.scores.cells import Metric
from equipoise.metrics.scores.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.scores.disparity import HALL_RULE, ConceptResults
from equipoise.metrics.spec import AGAINST_REST, spec_of

if TYPE_CHECKING:
    from equipoise.audits.concepts.audit import Design

_OF_VERSIONS = (
    "a version of the baseline's comparison, which is tested; tables/choices.parquet says what "
    "becomes of it here"
)


@dataclass(frozen=True, eq=False)
class Run:
    """One metric of one design."""

    design: Design
    results: ConceptResults
    estimate: Estimate

    @property
    def metric(self) -> Metric:
        """The metric."""
        return self.results.choices.metric

    @property
    def against(self) -> Metric:
        """The metric of the baseline that it is compared with."""
        first = self.metric == self.design.version.metric
        return self.design.config.primary if first else self.metric


def place_of(design: Design, version: str) -> Place:
    """Return the place of a design's findings."""
    level = design.config.resampling.level
    return Place("concepts", design.model, design.groups.name, version, level)


def findings(run: Run) -> Iterator[UncorrectedFinding]:
    """Yield the mean over concepts and its pairs of groups, then each concept and its pairs.

    Last each group against all others, where three or more are compared.
    """
    results, place = run.results, place_of(run.design, run.design.version.name)
    drafts, pairs = part_findings(run.estimate, place), len(results.pairs)
    means = [one.finding for one in drafts[:pairs] if not math.isnan(one.finding.value)]
    widest = max(means, key=lambda one: abs(one.value), default=None)
    by_group = widest.by_group if widest else ()
    yield _settled(
        run, whole(run.estimate, place, Family.COMPOSITE, metric=run.metric, by_group=by_group)
    )
    # The only pair of groups repeats its concept.
    several = pairs > 1
    for draft in drafts[:pairs] if several else ():
        yield _settled(run, _pair(run, draft, Family.COMPOSITE))
    for index in range(len(results.names)):
        concept, *own = drafts[pairs + index * (pairs + 1) :][: pairs + 1]
        null = results.null_differences(index)[1]
        repeats = int((~np.isnan(results.observed[index])).sum()) == 2
        yield _settled(run, concept.changed(null=null))
        for draft in own if several else ():
            yield _settled(run, _pair(run, draft, Family.LEAF).changed(null=null), repeats)
    for draft in drafts:
        if draft.finding.metric.endswith(AGAINST_REST) and not run.design.version.changes:
            yield _settled(run, _leaf(run, draft))


def _leaf(run: Run, draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return the finding of a group against all others, of a concept or their mean."""
    finding, names = draft.finding, run.results.names
    concept = names.index(finding.subject) if finding.subject else None
    family = Family.COMPOSITE if concept is None else Family.LEAF
    null = run.results.null_differences(concept)[1]
    return leaf(draft, run.metric, family=family, null=null)


def _pair(run: Run, draft: UncorrectedFinding, family: Family) -> UncorrectedFinding:
    """Name the metric of a pair, where several metrics have pairs of one name."""
    subject = draft.finding.subject
    if run.metric != run.design.config.primary:
        subject = f"{subject} ({spec_of(run.metric).label})"
    # The sign says which group has the larger value: neither side is harmless.
    return UncorrectedFinding(replace(draft.finding, subject=subject, family=family), "either")


def _settled(run: Run, draft: UncorrectedFinding, repeats: bool = False) -> UncorrectedFinding:
    """Give a finding its direction; only those of the baseline that repeat none are tested."""
    finding = draft.finding
    draft = draft.changed(direction=_direction(run, finding.by_group))
    if run.results.hall:
        why = HALL_RULE
    elif run.design.version.changes:
        why = _OF_VERSIONS
    elif math.isnan(finding.value):
        return draft
    elif math.isnan(finding.p_value):
        why = "no null hypothesis was drawn: resampling.method is none"
    elif repeats:
        why = "the same comparison as that of the concept, which is tested"
    else:
        return draft
    return without_verdict(draft, why)


def _direction(run: Run, by_group: Sequence[GroupValue]) -> str:
    """Say which group is worse off, with the prevalence of the concept beside the metric."""
    known = sorted(
        (one for one in by_group if not math.isnan(one.value)),
        key=lambda one: one.value,
        reverse=spec_of(run.metric).harm == "higher",
    )
    if len({one.value for one in known}) < 2:
        return ""
    (worst, shown), (best, held_against) = (
        (one.group, f"{one.value:.3f} ({one.note})") for one in (known[0], known[-1])
    )
    label = spec_of(run.metric).label
    return f"worse for {worst}: {label} {shown}, against {held_against} for {best}"


def tables(runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return the tables of one design by name, see docs/audits/concepts.md."""
    columns = (
        "model groups version metric concept group #value #low #high #prevalence +positives +n "
        "#threshold reason"
    )
    return {"concept_groups": table_of((row for run in runs for row in _groups(run)), columns)}


def comparisons(config: Config, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return what versions change, and what that does to the disparities, by name."""
    every = config.every_version
    changes = [{"version": one.name, "changes": one.description} for one in every]
    parts: dict[str, list[pa.Table]] = {"versions": [table_of(changes, "version changes")]}
    by_groups: dict[tuple[str, str], dict[str, dict[str, ConceptResults]]] = {}
    for run in runs if config.resampling.method != "none" and len(every) > 1 else ():
        models = by_groups.setdefault((run.design.groups.name, run.against), {})
        models.setdefault(run.design.model, {})[run.design.version.name] = run.results
    alpha = config.testing.alpha
    for (groups, metric), models in by_groups.items():
        place = {"groups": groups, "metric": metric}
        for model, versions in models.items():
            for name, compare in (("choices", design_choices), ("robust", robust_conclusions)):
                table = compare(versions, BASELINE, alpha=alpha)
                parts.setdefault(name, []).append(placed(table, {"model": model} | place))
        if len(models) > 1:
            order = model_order(models, BASELINE, alpha=alpha)
            parts.setdefault("model_order", []).append(placed(order, place))
    return {name: pa.concat_tables(some) for name, some in parts.items()}


def _groups(run: Run) -> Iterator[Row]:
    """Yield a row for each concept and group: its value beside its prevalence."""
    design, found = run.design, run.results
    wanted = (part for part in run.estimate.parts if part.metric == run.metric)
    for concept, part in enumerate(wanted):
        for group, own in enumerate(part.by_group):
            positives, n = int(found.positives[concept, group]), int(found.groups.counts[group])
            yield {
                "model": design.model, "groups": design.groups.name,
                "version": design.version.name, "metric": run.metric, "concept": part.subject,
                "group": own.group, "value": own.value, "low": own.low, "high": own.high,
                "prevalence": positives / n if n else math.nan, "positives": positives, "n": n,
                "threshold": float(found.thresholds[concept]),
                "reason": found.reasons[concept][group],
            }  # fmt: skip
