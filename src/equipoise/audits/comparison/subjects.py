"""Models of audits other than predictions, compared over the subjects that they share.

What such a run keeps of a model is a number per subject: a query, a concept, a target. Two models,
or a model before and after it was mitigated, are held against each other subject by subject.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.comparison.differences import AUDIT, pair_name, plain
from equipoise.audits.findings import Draft, conclude
from equipoise.core.errors import DataError
from equipoise.core.finding import Excluded, Family, Finding, Verdict
from equipoise.core.result import AuditResult
from equipoise.stats.intervals import mean_t
from equipoise.stats.sign_flips import sign_flips

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig

Floats = npt.NDArray[np.float64]
Named = tuple[str, str, str]
"""Metric, groups and version of a number."""

FLIPS = 100_000


@dataclass(frozen=True, eq=False)
class Pairing:
    """One measure of two models, by subject.

    Attributes
    ----------
    named : tuple of str
        Metric, groups, version.
    models : tuple of str
        First and second; differences are second minus first.
    subjects : tuple of str
        Those that both have a finite number for; ("",) for a measure of the whole.
    values : ndarray, shape (2, subjects)
    verdicts : tuple of (Verdict, Verdict)
    left : int
        Subjects without a number in one of the two.
    untested : str
        Why nothing is tested over the subjects; "" where they are.
    """

    named: Named
    models: tuple[str, str]
    subjects: tuple[str, ...]
    values: Floats
    verdicts: tuple[tuple[Verdict, Verdict], ...]
    left: int
    untested: str

    @property
    def far(self) -> Floats:
        """How far each number is from 0, where there is no disparity: shape (2, subjects)."""
        return np.abs(self.values)


def compare_subjects(
    runs: Mapping[str, AuditResult], config: AuditConfig
) -> tuple[tuple[Finding, ...], pa.Table]:
    """Compare the models of runs of one kind, pair by pair, over the subjects that both have.

    Parameters
    ----------
    runs : mapping of str to AuditResult
        By name; of one kind of audit, none of them of predictions.
    config : AuditConfig
        Of the first run: level, seed, thresholds.

    Returns
    -------
    findings : tuple of Finding
        Per pair of models and measure the mean over subjects of how much farther from 0 the
        second model is, with Student's interval and a sign-flip test over subjects. A measure
        with one number a model is described.
    changes : pyarrow.Table
        Per pair, measure and subject both numbers, both verdicts, and what became of the
        disparity: see `CHANGES`.

    Raises
    ------
    DataError
        When there are fewer than two models, or two have no measure in common.
    """
    models, groups = named_models(runs), _groups(runs.values())
    if len(models) < 2:
        raise DataError(
            f"{', '.join(models)}: one model only",
            expected="at least two models to compare",
            fix="name several runs, or audit several models in one",
        )
    pairings = [one for pair in combinations(models, 2) for one in _pairings(pair, models, groups)]
    drafts = [_draft(one, config) for one in pairings]
    return conclude(drafts, config.testing), _changes(pairings)


def named_models(runs: Mapping[str, AuditResult]) -> dict[str, list[Finding]]:
    """Return the findings of each model, named after its run too where runs share its name.

    Findings about the images themselves are of no model, and compared with nothing.
    """
    every = [
        (run, model)
        for run, result in runs.items()
        for model in dict.fromkeys(one.model for one in result.findings)
        if model
    ]
    models = [model for _, model in every]
    return {
        model if models.count(model) == 1 else f"{run}: {model}": [
            one for one in runs[run].findings if one.model == model
        ]
        for run, model in every
    }


def _groups(results: Iterable[AuditResult]) -> frozenset[str]:
    tables = [one.tables["group_sizes"] for one in results if "group_sizes" in one.tables]
    return frozenset(name for table in tables for name in table["group"].to_pylist())


def _pairings(
    pair: tuple[str, str], models: Mapping[str, Sequence[Finding]], groups: frozenset[str]
) -> list[Pairing]:
    first, second = (_by_name(models[name]) for name in pair)
    shared = [named for named in first if named in second]
    found = [_pairing(named, pair, (first[named], second[named]), groups) for named in shared]
    kept = [one for one in found if one is not None]
    if not kept:
        raise DataError(
            f"{pair[0]} and {pair[1]} have no measure of the same subjects in common",
            expected="runs with the same metrics, groups and subjects",
            fix="audit both models with one configuration",
        )
    return kept


def _by_name(findings: Sequence[Finding]) -> dict[Named, dict[str, Finding]]:
    """Return the findings that were tested, by measure and subject."""
    found: dict[Named, dict[str, Finding]] = {}
    for one in findings:
        if one.family is not Family.DESCRIPTIVE:
            found.setdefault((one.metric, one.groups, one.version), {})[one.subject] = one
    return found


def _pairing(
    named: Named,
    pair: tuple[str, str],
    both: tuple[Mapping[str, Finding], Mapping[str, Finding]],
    groups: frozenset[str],
) -> Pairing | None:
    """Line up two models' numbers; the whole stands for itself only where there are no parts."""
    first, second = both
    every = [*dict.fromkeys((*first, *second))]
    subjects = [name for name in every if name] or every
    known = [
        name for name in subjects
        if all(name in one and math.isfinite(one[name].value) for one in both)
    ]  # fmt: skip
    if not known:
        return None
    return Pairing(
        named,
        pair,
        tuple(known),
        np.array([[one[name].value for name in known] for one in both]),
        tuple((first[name].verdict, second[name].verdict) for name in known),
        len(subjects) - len(known),
        _untested(known, groups),
    )


def _untested(subjects: Sequence[str], groups: frozenset[str]) -> str:
    if len(subjects) == 1:
        many = "one subject that both models have" if subjects[0] else "one number a model"
        return f"{many}: nothing to pair; read the intervals of both in their own reports"
    if groups.issuperset(subjects):
        return "the numbers are those of the groups, which depend on each other: none is tested"
    return ""


def _draft(one: Pairing, config: AuditConfig) -> Draft:
    level, seed = config.resampling.level, config.resampling.seed
    metric, groups, version = one.named
    apart = one.far[1] - one.far[0]
    tested = not one.untested
    low, high = mean_t(apart, level) if tested else (math.nan, math.nan)
    p = sign_flips(apart, permutations=FLIPS, seed=seed) if tested else None
    mean = float(apart.mean())
    left = (Excluded("subjects without a number in both", one.left),) if one.left else ()
    finding = Finding(
        audit=AUDIT, model=pair_name(one.models), metric=metric, subject="", groups=groups,
        version=version, family=Family.COMPOSITE if tested else Family.DESCRIPTIVE,
        value=mean, ci_low=float(low), ci_high=float(high), level=level,
        chance=0.0 if tested else math.nan, chance_low=math.nan, chance_high=math.nan,
        excess=mean if tested else math.nan, p_value=math.nan if p is None else p.value,
        q_value=math.nan, threshold=math.nan, n=len(apart), by_group=(), excluded=left,
        unit="subject", method=f"Student's t over {len(apart)} subjects, paired" if tested else "",
        null=f"signs of the differences are exchangeable over subjects; {p.method}" if p else "",
        parameters=_parameters(one), direction=_direction(one, mean), verdict=Verdict.NONE,
        reason=one.untested, citation="",
    )  # fmt: skip
    return Draft(finding, "either")


def _parameters(one: Pairing) -> str:
    worse, means = _worse(one, float((one.far[1] - one.far[0]).mean())), one.far.mean(axis=1)
    known: dict[str, object] = {
        "model_a": one.models[0],
        "model_b": one.models[1],
        "value_a": float(means[0]),
        "value_b": float(means[1]),
        "worse": worse,
        "over": len(one.subjects),
    }
    return json.dumps(known, ensure_ascii=False)


def _worse(one: Pairing, mean: float) -> str:
    return one.models[1 if mean > 0 else 0] if mean else ""


def _direction(one: Pairing, mean: float) -> str:
    metric, groups, _ = one.named
    worse = _worse(one, mean)
    return f"{plain(metric)} over {groups} is worse for {worse}" if worse else ""


CHANGES = ("went", "came", "stayed", "never there")
"""What becomes of a disparity from the first model to the second."""

CHANGES_SCHEMA = pa.schema(
    [
        (name, pa.string())
        for name in ("model_a", "model_b", "metric", "groups", "version", "subject")
    ]
    + [("value_a", pa.float64()), ("value_b", pa.float64())]
    + [(name, pa.string()) for name in ("verdict_a", "verdict_b", "change")]
)


def _changes(pairings: Sequence[Pairing]) -> pa.Table:
    return pa.Table.from_pylist([row for one in pairings for row in _rows(one)], CHANGES_SCHEMA)


def _rows(one: Pairing) -> Iterator[dict[str, object]]:
    metric, groups, version = one.named
    for place, (subject, verdicts) in enumerate(zip(one.subjects, one.verdicts, strict=True)):
        yield {
            "model_a": one.models[0], "model_b": one.models[1],
            "metric": metric, "groups": groups, "version": version, "subject": subject,
            "value_a": float(one.values[0, place]), "value_b": float(one.values[1, place]),
            "verdict_a": str(verdicts[0]), "verdict_b": str(verdicts[1]),
            "change": _change(*verdicts),
        }  # fmt: skip


def _change(before: Verdict, after: Verdict) -> str:
    shown = (before is Verdict.DISPARITY, after is Verdict.DISPARITY)
    order = [*product((True, False), repeat=2)]
    return {order[0]: "stayed", order[1]: "went", order[2]: "came"}.get(shown, "never there")
