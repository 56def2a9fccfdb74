"""The claims of a source, judged by the findings of a run, as tables of its record."""

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from equipoise.core import AuditResult
from equipoise.core.types import Fields
from equipoise.studies.conditions import Comparison, Mark, mark_of
from equipoise.studies.repetition import Repetition
from equipoise.studies.study import study_of

CLAIMS, COMPARISONS = "claims", "claim_comparisons"
_CLAIMS = pa.schema([
    (name, pa.string()) for name in ("claim", "part", "where", "text", "mark", "why")
])  # fmt: skip
_COMPARISONS = pa.schema([
    (name, pa.float64() if name.endswith(("value", "low", "high")) else pa.string())
    for name in (
        "claim", "part", "left", "left_value", "left_low", "left_high", "relation", "right",
        "right_value", "right_low", "right_high", "mark", "reason",
    )
])  # fmt: skip
AnyResult = TypeVar("AnyResult", bound=AuditResult)


def with_claims(result: AnyResult) -> AnyResult:
    """Return the result of a run of a study with the tables of its source's claims.

    `claims` has a row for each claim with its mark, `claim_comparisons` one for each number that
    decides it.
    """
    study = study_of(result)
    if study is None or not study.claims:
        return result
    run = Repetition(result, study.parsed_configs)
    claims, compared = list[Fields](), list[Fields]()
    for claim in study.claims:
        printed = study.work.claims[claim.of]
        comparisons = [*claim.comparisons(run)]
        key = {"claim": claim.of, "part": claim.part}
        texts = {"where": printed.where, "text": printed.claim, "why": claim.reason(run)}
        claims.append(key | texts | {"mark": mark_of(comparisons).value})
        compared += [key | _row(comparison) for comparison in comparisons]
    tables = {
        CLAIMS: pa.Table.from_pylist(claims, _CLAIMS),
        COMPARISONS: pa.Table.from_pylist(compared, _COMPARISONS),
    }
    return replace(result, tables={**result.tables, **tables})


def _row(comparison: Comparison) -> Fields:
    left, right = comparison.left, comparison.right
    return {
        "left": left.name, "left_value": left.value, "left_low": left.low, "left_high": left.high,
        "relation": comparison.relation,
        "right": right.name, "right_value": right.value, "right_low": right.low,
        "right_high": right.high,
        "mark": comparison.mark.value, "reason": comparison.reason,
    }  # fmt: skip


def count_marks(result: AuditResult) -> dict[Mark, int]:
    """Return how many claims have each mark; nothing without claims."""
    if CLAIMS not in result.tables:
        return {}
    marks = result.tables[CLAIMS]["mark"].to_pylist()
    return {mark: marks.count(mark.value) for mark in Mark}


def claims_of(result: AuditResult) -> list[Fields]:
    """Return the claims of a run's source, each with what decides it under `comparisons`."""
    if CLAIMS not in result.tables:
        return []
    comparisons = result.tables[COMPARISONS].to_pylist()
    return [
        {
            **claim,
            "comparisons": [
                {key: row[key] for key in row if key not in ("claim", "part")}
                for row in comparisons
                if (row["claim"], row["part"]) == (claim["claim"], claim["part"])
            ],
        }
        for claim in result.tables[CLAIMS].to_pylist()
    ]
