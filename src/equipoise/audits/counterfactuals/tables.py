"""Tables of an audit of counterfactual sets: chance levels, shares, people, subjects, sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.audits.engines.rankings.designs import RankingDesign
from equipoise.audits.engines.rankings.measuring import POOL_ORDER
from equipoise.audits.findings import UncorrectedFinding
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Finding, GroupValue
from equipoise.core.labels import encode

Row = dict[str, Any]

MEASURES = ("max_skew", "ndkl")
"""Measures with both chance levels."""
SETS, POOL = "order within sets", "order of the pool"

_NUMBERS = ("value", "chance", "chance_low", "chance_high", "excess", "p_value")
_CHANCE = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "version", "metric", "null")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [(name, pa.float64()) for name in _NUMBERS[1:]]
)
_PROPORTIONS = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "version", "subject", "attribute")]
    + [("group", pa.string())]
    + [(name, pa.float64()) for name in ("share", "pool_share")]
    + [("n", pa.int64())]
)
_DETECTOR = ("detector_precision", "detector_recall")
_PEOPLE = pa.schema(
    [(name, pa.string()) for name in ("groups", "metric", "error", "group")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [("n", pa.int64())]
)
_SUBJECTS = pa.schema(
    [(name, pa.string()) for name in ("model", "subject")]
    + [(name, pa.float64()) for name in ("accuracy", "low", "high")]
    + [("n", pa.int64()), ("taken_for", pa.string()), ("told_apart", pa.bool_())]
    + [("nearest", pa.string()), ("cosine", pa.float64())]
)


def of_design(
    design: RankingDesign, findings: Sequence[UncorrectedFinding]
) -> Mapping[str, pa.Table]:
    """Return both chance levels of the means over subjects, and the shares of every group."""
    every = [each.finding for each in findings]
    return {
        "chance": pa.Table.from_pylist([*_chances(design, every)], _CHANCE),
        "proportions": pa.Table.from_pylist([*_proportions(design, every)], _PROPORTIONS),
    }


def _versions(design: RankingDesign) -> set[str]:
    """Return the versions of a design's measures, beside which other targets and nulls stand."""
    return {design.version_at(k) for k in design.ks}


def _chances(design: RankingDesign, findings: Sequence[Finding]) -> Iterator[Row]:
    own = _versions(design)
    for finding in findings:
        if finding.metric not in MEASURES or finding.subject:
            continue
        version = finding.version.removesuffix(POOL_ORDER).removesuffix(", ")
        pool = finding.version.endswith(POOL_ORDER)
        if pool or finding.version in own:
            yield {
                "model": finding.model,
                "groups": finding.groups,
                "version": version or "default",
                "metric": finding.metric,
                "null": POOL if pool else SETS,
                "low": finding.ci_low,
                "high": finding.ci_high,
                **{name: getattr(finding, name) for name in _NUMBERS},
            }


def _proportions(design: RankingDesign, findings: Sequence[Finding]) -> Iterator[Row]:
    """Yield the share of every group, and of every attribute, in the first K by subject."""
    own = _versions(design)
    for finding in findings:
        if finding.metric != "max_skew" or not finding.by_group or finding.version not in own:
            continue
        at = {"model": finding.model, "groups": finding.groups, "version": finding.version}
        subject = finding.subject or next(iter(design.scored.queries))
        total = sum(part.n for part in finding.by_group)
        for attribute, group, parts in _members(finding.by_group, design):
            if n := sum(part.n for part in parts):
                share = sum(part.value for part in parts if part.n)
                yield at | {
                    "subject": subject, "attribute": attribute, "group": group, "share": share,
                    "pool_share": n / total, "n": n,
                }  # fmt: skip


def _members(
    groups: Sequence[GroupValue], design: RankingDesign
) -> Iterator[tuple[str, str, list[GroupValue]]]:
    """Yield every group by itself, then the groups of every value of each of several attributes."""
    for part in groups:
        yield design.name, part.group, [part]
    for place, attribute in enumerate(design.attributes if len(design.attributes) > 1 else ()):
        for level in dict.fromkeys(part.levels[place] for part in groups):
            yield attribute, level, [part for part in groups if part.levels[place] == level]


def count_sets(design: RankingDesign) -> dict[str, int]:
    """Count the sets whose images are compared.

    Returns
    -------
    dict of str to int
        `subjects`, `sets`, `incomplete` (sets that lack a combination that others have) and
        `repeated` (sets with several images of one combination). Images without an attribute,
        subject or set are in none.
    """
    data, groups = design.config.data, design.groups
    subject, _ = encode(design.column(str(data.subject)), what="subject")
    member, _ = encode(design.column(str(data.sets)), what="sets")
    kept = (subject >= 0) & (member >= 0) & (groups.codes >= 0)
    # Sets of one name and different subjects are different sets.
    _, own = np.unique(np.stack([subject[kept], member[kept]]), axis=1, return_inverse=True)
    many = int(own.max()) + 1 if kept.any() else 0
    flat = np.ravel(own) * len(groups) + groups.codes[kept]
    held = np.bincount(flat, minlength=many * len(groups)).reshape(many, len(groups))
    expected = held.any(axis=0)
    return {
        "subjects": len(np.unique(subject[kept])),
        "sets": many,
        "incomplete": int((held[:, expected] == 0).any(axis=1).sum()),
        "repeated": int((held > 1).any(axis=1).sum()),
    }


def of_quality(estimates: Sequence[tuple[str, str, Estimate]]) -> Mapping[str, pa.Table]:
    """Return what people say of images and how subjects are told apart, where it is known.

    `estimates` have the model and the groups before them.
    """
    people = [row for _, groups, each in estimates for row in _people(groups, each)]
    subjects = [*_subjects(estimates)]
    tables = {"people": (people, _PEOPLE), "subjects_told_apart": (subjects, _SUBJECTS)}
    return {
        name: pa.Table.from_pylist(rows, schema) for name, (rows, schema) in tables.items() if rows
    }


def _people(groups: str, estimate: Estimate) -> Iterator[Row]:
    """Yield error rates of all images and of each group, and shares of the detector."""

    def row(metric: str, error: str, group: str, *numbers: Any) -> Row:
        place = {"groups": groups, "metric": metric, "error": error, "group": group}
        return place | dict(zip(("value", "low", "high", "n"), numbers, strict=True))

    if estimate.metric in _DETECTOR:
        n = sum(estimate.n.values())
        yield row(estimate.metric, "", "", estimate.value, *estimate.ends(0.95), n)
        for part in estimate.parts:
            yield row(part.metric, "", part.subject, part.value, part.low, part.high, part.n)
    elif estimate.metric == "label_error_gap":
        rate = "label_error_rate"
        for part in estimate.parts:
            if part.metric == rate:
                yield row(rate, part.subject, "", part.value, part.low, part.high, part.n)
            else:
                for own in part.by_group:
                    yield row(rate, part.subject, own.group, own.value, own.low, own.high, own.n)


def _subjects(estimates: Sequence[tuple[str, str, Estimate]]) -> Iterator[Row]:
    """Yield every subject of each model: what its images are taken for, whose text is nearest."""
    nearest_of = {
        model: _nearest(each)
        for model, _, each in estimates
        if each.metric == "confusable_subjects"
    }
    for model, _, each in estimates:
        if each.metric != "subject_accuracy":
            continue
        unclear = {*each.params["not_told_apart"]}
        for part in each.parts:
            nearest, cosine = nearest_of.get(model, {}).get(part.subject, ("", math.nan))
            yield {
                "model": model,
                "subject": part.subject,
                "accuracy": part.value,
                "low": part.low,
                "high": part.high,
                "n": part.n,
                "taken_for": part.shows.removeprefix("taken for ").removesuffix(" most"),
                "told_apart": part.subject not in unclear and not nearest,
                "nearest": nearest,
                "cosine": cosine,
            }


def _nearest(estimate: Estimate) -> dict[str, tuple[str, float]]:
    """Return the nearest other text of each subject with one at the threshold or above."""
    nearest: dict[str, tuple[str, float]] = {}
    for part in estimate.parts:
        first, second = part.subject.split(" | ", 1)
        nearest.setdefault(first, (second, part.value))
        nearest.setdefault(second, (first, part.value))
    return nearest
