"""Shares of groups that a model predicted, against a reference: corrected for its errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from equipoise.audits.config import AuditConfig, resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding
from equipoise.audits.group_sizes import Row
from equipoise.audits.group_sources import Source, are_predicted, assigned_groups
from equipoise.audits.represented import (
    ADDITIONS,
    REPRESENTATION,
    SHARES,
    TO_ADD,
    representation_rows,
    represented,
    rows_to_add,
)
from equipoise.core import Aggregate, Family, Finding, floats
from equipoise.core.columns import table_of
from equipoise.metrics.labels.misclassified_groups import CorrectedShares
from equipoise.metrics.labels.representation import corrected_representation
from equipoise.metrics.spec import spec_of
from equipoise.stats.intervals import wilson

_LABELS = "label_shares"
_LABEL = ("model", "groups", "version", "label", "group")
# Intervals that aren't those of true groups are left out.
_UNKNOWN: Row = dict.fromkeys(
    ("low", "high", "rest", "difference", "difference_low", "difference_high", "ratio",
     "ratio_low", "ratio_high"),
    math.nan,
)  # fmt: skip


class Design(NamedTuple):
    """The groups of a data set, held against a reference."""

    model: str
    groups: str
    version: str


def design_of(finding: Finding) -> Design | None:
    """Return the groups that a finding holds against a reference, None of other findings."""
    spec = spec_of(finding.metric)
    # A gap is of groups whose own findings have the share in the reference.
    if "reference" not in (spec.expectation, spec_of(spec.group_metric).expectation):
        return None
    return Design(finding.model, finding.groups, finding.version)


def correct_shares(
    config: AuditConfig,
    sources: Mapping[str, Source],
    drafts: Sequence[UncorrectedFinding],
    sizes: Sequence[Row],
) -> dict[Design, list[UncorrectedFinding]]:
    """Return findings on shares of predicted groups anew, where the errors can be corrected.

    Parameters
    ----------
    config, sources, drafts
    sizes : sequence of mapping
        Rows of the table `group_sizes`.
    """
    corrected = {}
    for design, members in _by_design(drafts, sources).items():
        of_groups = [row for row in sizes if row["groups"] == design.groups and row["group"]]
        findings = _corrected(config, sources, [draft.finding for draft in members], of_groups)
        if findings is not None:
            corrected[design] = findings
    return corrected


def with_corrected_shares(
    tables: Mapping[str, pa.Table],
    drafts: Sequence[UncorrectedFinding],
    sources: Mapping[str, Source],
) -> dict[str, pa.Table]:
    """Return tables with the shares that findings have, where a model predicted the groups."""
    corrected = {**tables}
    if SHARES in tables:
        rows = [
            row for row in tables[SHARES].to_pylist() if not are_predicted(row["groups"], sources)
        ]
        for members in _by_design(drafts, sources).values():
            rows += representation_rows(members)
        corrected[SHARES] = table_of(rows, REPRESENTATION)
        if ADDITIONS in tables:
            corrected[ADDITIONS] = _additions(tables[ADDITIONS], rows)
    if _LABELS in tables:
        table, shares = tables[_LABELS], _label_shares(drafts)
        rows = [
            row | shares.get(tuple(row[key] for key in _LABEL), _UNKNOWN)
            if are_predicted(row["groups"], sources) else row
            for row in table.to_pylist()
        ]  # fmt: skip
        corrected[_LABELS] = pa.Table.from_pylist(rows, schema=table.schema)
    return corrected


def _additions(table: pa.Table, rows: Sequence[Row]) -> pa.Table:
    """Return the images to add by rows of shares, for the groups that have a reference."""
    names = dict.fromkeys(table.column("groups").to_pylist())
    by_groups = ([row for row in rows if row["groups"] == name] for name in names)
    return table_of((row for part in by_groups for row in rows_to_add(part)), TO_ADD)


def _label_shares(drafts: Sequence[UncorrectedFinding]) -> dict[tuple[str, ...], Row]:
    """Return what the table of labels shows of each label and group that findings are about."""
    shares: dict[tuple[str, ...], Row] = {}
    findings = [draft.finding for draft in drafts if spec_of(draft.finding.metric).of_labels]
    for finding in sorted(
        findings, key=lambda finding: finding.aggregate is Aggregate.AGAINST_REST
    ):
        place = finding.model, finding.groups, finding.version, finding.subject
        if finding.aggregate is Aggregate.AGAINST_REST:
            cell, rest = finding.by_group
            shares[*place, cell.group] |= {
                "rest": rest.value, "difference": finding.value,
                "difference_low": finding.ci_low, "difference_high": finding.ci_high,
                "ratio": _over(cell.value, rest.value),
            }  # fmt: skip
            continue
        for cell in finding.by_group:
            others = [other for other in finding.by_group if other is not cell]
            rest_value = others[0].value if len(others) == 1 else math.nan
            shares[*place, cell.group] = _UNKNOWN | {
                "count": round(cell.value * cell.n), "n": cell.n, "share": cell.value,
                "low": cell.low, "high": cell.high, "rest": rest_value,
                "difference": cell.value - rest_value, "ratio": _over(cell.value, rest_value),
            }  # fmt: skip
    return shares


def _over(share: float, other: float) -> float:
    return share / other if other else math.nan


def _by_design(
    drafts: Sequence[UncorrectedFinding], sources: Mapping[str, Source]
) -> dict[Design, list[UncorrectedFinding]]:
    by_design: dict[Design, list[UncorrectedFinding]] = {}
    for draft in drafts:
        design = design_of(draft.finding)
        if design is not None and are_predicted(design.groups, sources):
            by_design.setdefault(design, []).append(draft)
    return by_design


def _corrected(
    config: AuditConfig,
    sources: Mapping[str, Source],
    findings: Sequence[Finding],
    sizes: Sequence[Row],
) -> list[UncorrectedFinding] | None:
    gap, *leaves = findings
    levels = {row["group"]: tuple(row["levels"]) for row in sizes}
    names = tuple(leaf.subject for leaf in leaves)
    # Groups of the reference that no image has are values of the attribute, or unknown.
    levels |= {name: (name,) for name in names if name not in levels}
    assigned = assigned_groups(gap.groups, [*levels.values()], sources, config.resampling.seed)
    if assigned is None:
        return None
    counts = {row["group"]: float(row["n"]) for row in sizes}
    shares = CorrectedShares(
        assigned, floats([counts.get(name, 0.0) for name in levels]),
        _independent_share(leaves) * sum(counts.values()),
        np.array([name in names for name in levels]), gap.groups,
    )  # fmt: skip
    compared = tuple(name for name in levels if name in names)
    order = [names.index(name) for name in compared]
    references = [leaves[place].by_group[1] for place in order]
    estimate = corrected_representation(
        compared, shares, floats([reference.value for reference in references]),
        max(reference.n for reference in references) or math.inf,
        excluded={left_out.reason: left_out.count for left_out in gap.excluded}, unit=gap.unit,
        resampling=resampling_of(config, len(findings)),
    )  # fmt: skip
    place = Place(gap.audit, gap.model, gap.groups, gap.version, gap.level)
    described = gap.reason if gap.family is Family.DESCRIPTIVE else ""
    return represented(estimate, place, described=described)


def _independent_share(leaves: Sequence[Finding]) -> float:
    """Return how much of an independent image an image says, from the widths of intervals."""
    share, n = floats([leaf.by_group[0].value for leaf in leaves]), float(leaves[0].n)
    width = floats([leaf.by_group[0].high - leaf.by_group[0].low for leaf in leaves])
    if leaves[0].unit == "row" or np.isnan(width).any():
        return 1.0
    low, high = wilson(share * n, n, leaves[0].level)
    return float(np.median(1.0 / np.fmax((width / (high - low)) ** 2, 1.0)))
