"""Models of audits other than predictions, compared over the subjects that they share.

What such a run keeps of a model is a number per subject: a query, a concept, a target. Two models,
or a model before and after it was mitigated, are held against each other subject by subject. Where
a subject has several numbers, of its parts, their mean is what is paired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

import pyarrow as pa

from equipoise.audits.comparison.differences import AUDIT, pair_name, plain
from equipoise.audits.comparison.pairs import Floats, Known, Pairing, pairings
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core.errors import DataError
from equipoise.core.finding import Family, Finding, Verdict
from equipoise.core.result import AuditResult
from equipoise.metrics.spec import SPECS
from equipoise.stats.chance import sign_flips
from equipoise.stats.intervals import mean_t

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig

FLIPS = 100_000


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
        second model is, with Student's interval and a sign-flip test over subjects, each of
        which is one pair whatever parts it has. A measure of
        fewer than 6 subjects is described.
    changes : pyarrow.Table
        Per pair, measure and subject, or part of one, both numbers, both verdicts, and what
        became of the disparity: see `CHANGES`.

    Raises
    ------
    DataError
        When there are fewer than two models, or two have no measure in common.
    """
    models, known = named_models(runs), Known.of([*runs.values()])
    if len(models) < 2:
        raise DataError(
            f"{', '.join(models)}: one model only",
            expected="at least two models to compare",
            fix="name several runs, or audit several models in one",
        )
    found = [one for pair in combinations(models, 2) for one in pairings(pair, models, known)]
    drafts = [_draft(one, config) for one in found]
    return conclude(drafts, config.testing), _changes(found)


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


def _draft(one: Pairing, config: AuditConfig) -> UncorrectedFinding:
    level, seed = config.resampling.level, config.resampling.seed
    metric, groups, version = one.named
    apart = one.far[1] - one.far[0]
    tested = not one.untested
    low, high = _interval(apart, level, metric) if tested else (math.nan, math.nan)
    p = sign_flips(apart, permutations=FLIPS, seed=seed) if tested else None
    mean = float(apart.mean())
    method = f"Student's t over {len(apart)} subjects, paired{one.averaged}"
    finding = Finding(
        audit=AUDIT, model=pair_name(one.models), metric=metric, subject="", groups=groups,
        version=version, family=Family.COMPOSITE if tested else Family.DESCRIPTIVE,
        value=mean, ci_low=low, ci_high=high, level=level,
        chance=0.0 if tested else math.nan, chance_low=math.nan, chance_high=math.nan,
        excess=mean if tested else math.nan, p_value=math.nan if p is None else p.value,
        q_value=math.nan, threshold=math.nan, n=len(apart), by_group=(), excluded=one.left,
        unit="subject", method=method if tested else "",
        null=f"signs of the differences are exchangeable over subjects; {p.method}" if p else "",
        parameters=_parameters(one), direction=_direction(one, mean), verdict=Verdict.NONE,
        reason=one.untested, citation="",
    )  # fmt: skip
    return UncorrectedFinding(finding, "either")


def _interval(apart: Floats, level: float, metric: str) -> tuple[float, float]:
    """Return Student's interval of a mean difference, within what the metric can differ by."""
    low, high = mean_t(apart, level)
    most = _farthest(metric)
    return max(float(low), -most), min(float(high), most)


def _farthest(metric: str) -> float:
    """Return how far from 0 a metric can be, by its range; infinity where that has no limit."""
    bounds = SPECS[metric].bounds if metric in SPECS else None
    return max(map(abs, bounds)) if bounds else math.inf


def _parameters(one: Pairing) -> str:
    worse, means = _worse(one, float((one.far[1] - one.far[0]).mean())), one.far.mean(axis=1)
    known: dict[str, object] = {
        "model_a": one.models[0],
        "model_b": one.models[1],
        "value_a": float(means[0]),
        "value_b": float(means[1]),
        "worse": worse,
        "over": one.far.shape[1],
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
    for place, (subject, verdicts) in enumerate(zip(one.parts, one.verdicts, strict=True)):
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
