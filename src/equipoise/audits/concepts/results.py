"""Findings and tables of an audit of concepts, from the measured versions of its choices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from equipoise.audits.columns import Row, table_of
from equipoise.audits.concepts.config import BASELINE
from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.audits.findings import parts as part_findings
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, Finding, GroupValue
from equipoise.metrics.scores.cells import Metric
from equipoise.metrics.scores.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.scores.disparity import HALL_RULE
from equipoise.metrics.scores.measure import ConceptResults
from equipoise.metrics.spec import spec_of
from equipoise.stats.chance import benjamini_hochberg

if TYPE_CHECKING:
    from equipoise.audits.concepts.audit import Design
    from equipoise.audits.concepts.config import Config

Comparison = tuple[str, str, str]
"""Model, groups and metric."""

_DIFFERENCE = "concept_difference"
_OF_VERSIONS = (
    "a version of the baseline's comparison, which is tested; tables/choices.parquet says what "
    "becomes of it here"
)


@dataclass(frozen=True, eq=False)
class Run:
    """One metric of one design.

    Attributes
    ----------
    design : Design
    metric : str
    against : str
        The metric of the baseline that it is compared with.
    results : ConceptResults
    estimate : Estimate
    same_as : str
        The version that has these numbers already; "" where there is none.
    """

    design: Design
    metric: Metric
    against: Metric
    results: ConceptResults
    estimate: Estimate
    same_as: str = ""

    @property
    def baseline(self) -> bool:
        """Whether versions are compared with it."""
        return not self.design.version.changed

    @property
    def place(self) -> Comparison:
        """Model, groups, and the metric of the baseline."""
        return self.design.model, self.design.groups.name, self.against


def place_of(design: Design, version: str) -> Place:
    """Return the place of a design's findings."""
    level = design.config.resampling.level
    return Place("concepts", design.model, design.groups.name, version, level)


def findings(config: Config, runs: Sequence[Run]) -> Iterator[UncorrectedFinding]:
    """Yield the findings of each run: the mean over concepts, its pairs, then each concept."""
    for run in runs:
        of_concepts = part_findings(run.estimate, place_of(run.design, run.design.version.name))
        yield _settled(run, _mean(run, of_concepts))
        # The pairs of the mean come first, then every concept with its pairs behind it.
        concept = null = ""
        for one in of_concepts:
            pair = one.finding.metric == _DIFFERENCE and len(run.results.pairs) > 1
            if one.finding.metric == run.metric:
                concept, pair = one.finding.subject, False
                null = run.results.null_differences(run.results.names.index(concept))[1]
            elif not pair:
                continue
            draft = _pair(run, one, concept, config.primary) if pair else one
            if concept:
                draft = replace(draft, finding=replace(draft.finding, null=null))
            yield _settled(run, draft, concept if pair else "")


def _mean(run: Run, of_concepts: Sequence[UncorrectedFinding]) -> UncorrectedFinding:
    """Return the finding about the mean over concepts, with the groups that differ most."""
    pairs = [one.finding for one in of_concepts if one.finding.metric == _DIFFERENCE]
    means = [one for one in pairs[: len(run.results.pairs)] if not math.isnan(one.value)]
    widest = max(means, key=lambda one: abs(one.value), default=None)
    place = place_of(run.design, run.design.version.name)
    by_group = widest.by_group if widest else ()
    return whole(run.estimate, place, Family.COMPOSITE, metric=run.metric, by_group=by_group)


def _pair(run: Run, one: UncorrectedFinding, concept: str, primary: str) -> UncorrectedFinding:
    """Name the metric of a pair, where several metrics have pairs of one name."""
    subject = one.finding.subject
    if run.metric != primary:
        subject = f"{subject} ({spec_of(run.metric).label})"
    family = Family.LEAF if concept else Family.COMPOSITE
    # The sign says which group has the larger value: neither side is harmless.
    return UncorrectedFinding(replace(one.finding, subject=subject, family=family), "either")


def _settled(run: Run, one: UncorrectedFinding, pair_of: str = "") -> UncorrectedFinding:
    """Give a finding its direction, and its family: only the baseline is tested."""
    finding = one.finding
    known = not math.isnan(finding.value)
    why = finding.reason or (_why_untested(run, finding, pair_of) if known else "")
    tested = run.baseline and not run.results.hall and not (why and known)
    family = finding.family if tested else Family.DESCRIPTIVE
    settled = replace(
        finding,
        direction=_direction(run, finding.by_group),
        family=family,
        p_value=math.nan if family is Family.DESCRIPTIVE else finding.p_value,
        reason=why,
    )
    return replace(one, finding=settled)


def _why_untested(run: Run, finding: Finding, pair_of: str) -> str:
    if run.results.hall:
        return HALL_RULE
    if not run.baseline:
        same = run.same_as
        return f"the same numbers as in version {same}" if same else _OF_VERSIONS
    if math.isnan(finding.p_value):
        return "no null hypothesis was drawn: resampling.method is none"
    if pair_of:
        groups = run.results.observed[run.results.names.index(pair_of)]
        if (~np.isnan(groups)).sum() == 2:
            return f"the same comparison as that of {pair_of}, which is tested"
    return ""


def _direction(run: Run, by_group: Sequence[GroupValue]) -> str:
    """Say which group is worse off, with the prevalence of the concept beside the metric."""
    known = [one for one in by_group if not math.isnan(one.value)]
    if len({one.value for one in known}) < 2:
        return ""
    sign = -1 if spec_of(run.metric).harm == "higher" else 1
    last = min(known, key=lambda one: sign * one.value)
    first = max(known, key=lambda one: sign * one.value)
    version = "" if run.baseline else f", in version “{run.design.version.name}”"
    return (
        f"worse for {last.group}: {spec_of(run.metric).label} {last.value:.3f} ({last.note}), "
        f"against {first.value:.3f} ({first.note}) for {first.group}{version}"
    )


def tables(config: Config, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/concepts.md."""
    versions = [
        {
            "version": version.name,
            "changes": version.description,
            "metric": version.choices.metric or config.primary,
            "prevalence": version.choices.prevalence,
            "ratio": version.choices.ratio,
        }
        for version in config.every_version
    ]
    keys = [[*version.changed] for version in config.every_version]
    return {
        "concepts": table_of(
            (row for run in runs for row in _pairs(run)),
            f"{_PLACE} group_a group_b {_VALUES} positives_a positives_b negatives_a negatives_b "
            "threshold reason",
            number=f"{_VALUES} threshold",
            whole="positives_a positives_b negatives_a negatives_b",
        ),
        "concept_groups": table_of(
            (row for run in runs for row in _groups(run)),
            f"{_PLACE} group value low high prevalence positives n reason",
            number="value low high prevalence",
            whole="positives n",
        ),
        "versions": table_of(
            versions, "version changes metric prevalence ratio", number="ratio"
        ).add_column(2, "keys", pa.array(keys, pa.list_(pa.string()))),
        **_comparisons(config, runs),
    }


_PLACE = "model groups version metric concept"
_VALUES = (
    "value_a value_b difference low high chance_low chance_high p_value q_value prevalence_a "
    "prevalence_b"
)


def _comparisons(config: Config, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return what choices do to the disparities; nothing without replicates or versions."""
    if config.resampling.method == "none" or len(config.every_version) < 2:
        return {}
    alpha = config.testing.alpha
    by_groups: dict[tuple[str, str], dict[str, dict[str, ConceptResults]]] = {}
    for run in runs:
        model, groups, metric = run.place
        models = by_groups.setdefault((groups, metric), {})
        models.setdefault(model, {})[run.design.version.name] = run.results
    kinds = {"choices": design_choices, "robust": robust_conclusions}
    parts: dict[str, list[pa.Table]] = {}
    for (groups, metric), models in by_groups.items():
        place = {"groups": groups, "metric": metric}
        for model, versions in models.items():
            for name, compare in kinds.items():
                table = compare(versions, BASELINE, alpha=alpha)
                parts.setdefault(name, []).append(_placed({"model": model, **place}, table))
        if len(models) > 1:
            order = model_order(models, BASELINE, alpha=alpha)
            parts.setdefault("model_order", []).append(_placed(place, order))
    return {name: pa.concat_tables(some) for name, some in parts.items()}


def _placed(place: Mapping[str, str], table: pa.Table) -> pa.Table:
    for position, (name, value) in enumerate(place.items()):
        table = table.add_column(position, name, pa.array([value] * len(table), pa.string()))
    return table


def _where(run: Run) -> Row:
    model, groups, _ = run.place
    version = run.design.version.name
    return {"model": model, "groups": groups, "version": version, "metric": run.metric}


def _pairs(run: Run) -> Iterator[Row]:
    """Yield a row for each concept ("" for their mean) and pair of groups."""
    found, several = run.results, len(run.results.pairs)
    parts = [part for part in run.estimate.parts if part.metric == _DIFFERENCE]
    # Means are corrected by themselves.
    q_values = np.concatenate([
        benjamini_hochberg(np.array([part.p_value for part in some], dtype=np.float64))
        for some in (parts[:several], parts[several:])
    ])  # fmt: skip
    concepts = [None, *range(len(found.names))]
    places = ((concept, pair) for concept in concepts for pair in found.pairs)
    for (concept, pair), part, q in zip(places, parts, q_values.tolist(), strict=True):
        row = _where(run) | {
            "concept": "" if concept is None else found.names[concept],
            "difference": part.value, "low": part.low, "high": part.high,
            "chance_low": part.chance_low, "chance_high": part.chance_high,
            "p_value": part.p_value, "q_value": q, "reason": part.reason,
            "threshold": math.nan if concept is None else float(found.thresholds[concept]),
        }  # fmt: skip
        for side, group, own in zip("ab", pair, part.by_group, strict=True):
            row |= {f"group_{side}": own.group, f"value_{side}": own.value}
            row[f"prevalence_{side}"] = math.nan
            if concept is not None:
                shown = _shown_by(found, concept, group)
                row[f"prevalence_{side}"] = shown["prevalence"]
                row[f"positives_{side}"] = shown["positives"]
                row[f"negatives_{side}"] = shown["n"] - shown["positives"]
        yield row


def _shown_by(found: ConceptResults, concept: int, group: int) -> Row:
    """Return positives, rows and prevalence of a concept in a group."""
    positives, n = int(found.positives[concept, group]), int(found.groups.counts[group])
    return {"positives": positives, "n": n, "prevalence": positives / n if n else math.nan}


def _groups(run: Run) -> Iterator[Row]:
    """Yield a row for each concept and group: its value beside its prevalence."""
    wanted = (part for part in run.estimate.parts if part.metric == run.metric)
    for concept, part in enumerate(wanted):
        for group, own in enumerate(part.by_group):
            yield _where(run) | _shown_by(run.results, concept, group) | {
                "concept": part.subject, "group": own.group, "value": own.value,
                "low": own.low, "high": own.high,
                "reason": run.results.reasons[concept][group],
            }  # fmt: skip
