"""What a comparison says of all models together: rankings, and metrics that disagree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.comparison.differences import (
    DESCRIBED,
    Compared,
    Contrast,
    plain,
)
from equipoise.audits.group_sizes import sizes_of
from equipoise.core.finding import Family, Finding, Verdict
from equipoise.core.groups import Groups
from equipoise.metrics.spec import spec_of

Floats = npt.NDArray[np.float64]
Judged = Sequence[tuple[Contrast, Finding]]


def comparison_tables(
    judged: Judged, compared: Sequence[Compared], sizes: Sequence[Groups]
) -> Mapping[str, pa.Table]:
    """Return the tables `differences`, `ranking`, `disagreements` and `group_sizes`.

    A metric whose findings repeat others, or follow from base rates, ranks nobody and disagrees
    with nothing.
    """
    repeats = {
        (contrast.metric, contrast.groups)
        for contrast, finding in judged
        if finding.family is Family.DESCRIPTIVE and contrast.metric != DESCRIBED
        if not contrast.subject
    }
    ranked = [one for one in compared if (one.metric, one.groups) not in repeats]
    rows = {
        "differences": [*_differences(judged)],
        "ranking": [*_rankings(ranked)],
        "disagreements": [*_disagreements(judged)],
    }
    found = {name: pa.Table.from_pylist(rows[name], schema) for name, schema in _SCHEMAS.items()}
    sized = (row for groups in sizes for row in sizes_of(groups))
    return {**found, "group_sizes": group_sizes.table(sized)}


_FLOATS = ("value_a", "value_b", "difference", "low", "high", "p_value", "q_value")


def _texts(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


_SCHEMAS = {
    "differences": pa.schema(
        _texts("metric", "subject", "groups", "version", "model_a", "model_b")
        + [(name, pa.float64()) for name in _FLOATS]
        + [("n", pa.int64()), *_texts("verdict", "reason")]
    ),
    "ranking": pa.schema(
        _texts("metric", "groups", "model")
        + [("value", pa.float64()), ("rank", pa.int64())]
        + [(name, pa.float64()) for name in ("rank_low", "rank_high", "share_best")]
    ),
    "disagreements": pa.schema(
        _texts("groups", "metric_a", "metric_b", "model_a", "model_b", "sentence")
    ),
}


def _differences(judged: Judged) -> Iterator[dict[str, object]]:
    for contrast, finding in judged:
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
        values = np.array(one.values)
        ranks = _ranks(values[None], one.metric)[0]
        drawn = _ranks(one.replicates, one.metric)
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
    signed = -values if spec_of(metric).value_harm == "lower" else values
    better = (signed[:, None, :] < signed[:, :, None]).sum(axis=2)
    return np.where(np.isnan(values), np.nan, 1.0 + better)


def _disagreements(judged: Judged) -> Iterator[dict[str, object]]:
    """Yield pairs of metrics that call opposite models better, both with a verdict of difference.

    Accuracy over all images is held against every set of groups, other metrics against those of
    their own groups.
    """
    sure = [
        contrast
        for contrast, finding in judged
        if finding.verdict is Verdict.DISPARITY and not contrast.subject
    ]
    for first, second in combinations(sure, 2):
        together = first.models == second.models and first.groups in ("", second.groups)
        if together and first.worse != second.worse:
            yield {
                "groups": second.groups,
                "metric_a": first.metric,
                "metric_b": second.metric,
                "model_a": first.models[0],
                "model_b": first.models[1],
                "sentence": f"{_prefers(first)}; {_prefers(second)}.",
            }


def _prefers(contrast: Contrast) -> str:
    first, second = (0, 1) if contrast.worse == contrast.models[1] else (1, 0)
    over = f" over {contrast.groups}" if contrast.groups else ""
    return (
        f"{plain(contrast.metric)}{over} prefers {contrast.models[first]} "
        f"({contrast.values[first]:.3f} against {contrast.values[second]:.3f})"
    )
