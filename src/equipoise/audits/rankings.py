"""What a comparison says of all models together: rankings, and metrics that disagree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.differences import LOWER_IS_WORSE, Compared, pair_name
from equipoise.core.finding import Finding, Verdict

Floats = npt.NDArray[np.float64]


def comparison_tables(
    findings: Sequence[Finding], compared: Sequence[Compared]
) -> Mapping[str, pa.Table]:
    """Return the tables `differences`, `ranking` and `disagreements`."""
    judged = {(one.metric, one.subject, one.groups, one.model): one for one in findings}
    return {
        "differences": pa.Table.from_pylist([*_differences(compared, judged)], _DIFFERENCES),
        "ranking": pa.Table.from_pylist([*_rankings(compared)], _RANKING),
        "disagreements": pa.Table.from_pylist([*_disagreements(findings, compared)], _DISAGREE),
    }


_FLOATS = ("value_a", "value_b", "difference", "low", "high", "p_value", "q_value")
_DIFFERENCES = pa.schema(
    [
        (name, pa.string())
        for name in ("metric", "subject", "groups", "version", "model_a", "model_b")
    ]
    + [(name, pa.float64()) for name in _FLOATS]
    + [("n", pa.int64()), ("verdict", pa.string()), ("reason", pa.string())]
)
_RANKING = pa.schema(
    [(name, pa.string()) for name in ("metric", "groups", "model")]
    + [("value", pa.float64()), ("rank", pa.int64())]
    + [(name, pa.float64()) for name in ("rank_low", "rank_high", "share_best")]
)
_DISAGREE = pa.schema(
    [
        (name, pa.string())
        for name in ("groups", "metric_a", "metric_b", "model_a", "model_b", "sentence")
    ]
)


def _differences(
    compared: Sequence[Compared], judged: Mapping[tuple[str, str, str, str], Finding]
) -> Iterator[dict[str, object]]:
    for contrast in (contrast for one in compared for contrast in one.contrasts):
        name = pair_name(contrast.models)
        finding = judged[contrast.metric, contrast.subject, contrast.groups, name]
        yield {
            "metric": contrast.metric,
            "subject": contrast.subject,
            "groups": contrast.groups,
            "version": finding.version,
            "model_a": contrast.models[0],
            "model_b": contrast.models[1],
            "value_a": contrast.values[0],
            "value_b": contrast.values[1],
            "difference": finding.value,
            "low": finding.ci_low,
            "high": finding.ci_high,
            "p_value": finding.p_value,
            "q_value": finding.q_value,
            "n": finding.n,
            "verdict": str(finding.verdict),
            "reason": finding.reason,
        }


def _rankings(compared: Sequence[Compared]) -> Iterator[dict[str, object]]:
    for one in compared:
        values = np.concatenate(one.values)[:, 0]
        ranks = _ranks(values[None], one.metric)[0]
        drawn = _ranks(np.concatenate(one.replicates, axis=1), one.metric)
        for place in np.argsort(ranks, kind="stable").tolist():
            known = drawn[:, place][~np.isnan(drawn[:, place])]
            some = len(known) > 0
            yield {
                "metric": one.metric,
                "groups": one.groups,
                "model": one.models[place],
                "value": float(values[place]),
                "rank": None if math.isnan(ranks[place]) else int(ranks[place]),
                "rank_low": float(np.quantile(known, 0.025)) if some else math.nan,
                "rank_high": float(np.quantile(known, 0.975)) if some else math.nan,
                "share_best": float((known == 1).mean()) if some else math.nan,
            }


def _ranks(values: Floats, metric: str) -> Floats:
    """Rank models (r, models), 1 is best; ties share the best rank, NaN has none."""
    signed = -values if metric in LOWER_IS_WORSE else values
    better = (signed[:, None, :] < signed[:, :, None]).sum(axis=2)
    return np.where(np.isnan(values), np.nan, 1.0 + better)


def _disagreements(
    findings: Sequence[Finding], compared: Sequence[Compared]
) -> Iterator[dict[str, object]]:
    """Yield pairs of metrics that call opposite models better, both beyond doubt."""
    sure = {
        (one.groups, one.model, one.metric): one
        for one in findings
        if one.verdict is Verdict.DISPARITY and not one.subject
    }
    groups = [*dict.fromkeys(one.groups for one in compared)]
    pairs = [*dict.fromkeys(contrast.models for one in compared for contrast in one.contrasts)]
    for name, models in ((name, models) for name in groups for models in pairs):
        found = [
            one
            for (where, pair, _), one in sure.items()
            if where in (name, "") and pair == pair_name(models)
        ]
        for first, second in combinations(found, 2):
            better = _better(first, models), _better(second, models)
            if better[0] != better[1] and name in (first.groups, second.groups):
                yield {
                    "groups": name,
                    "metric_a": first.metric,
                    "metric_b": second.metric,
                    "model_a": models[0],
                    "model_b": models[1],
                    "sentence": f"{_plain(first)} favours {better[0]}, "
                    f"{_plain(second)} over {name} favours {better[1]}.",
                }


def _better(finding: Finding, models: tuple[str, str]) -> str:
    lower_is_worse = finding.metric in LOWER_IS_WORSE
    return models[1 if (finding.value > 0) == lower_is_worse else 0]


def _plain(finding: Finding) -> str:
    return finding.metric.replace("_", " ")
