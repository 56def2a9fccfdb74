"""Older findings with the fields of today, read from what their texts said."""

import json
import math
import re
from typing import Any

import polars as pl

Row = dict[str, Any]
_WITHIN = re.compile(r"within ([^,]+)")
_FACT = re.compile(r"(?<=the same fact as )\w+")


def typed_findings(table: pl.DataFrame, names: dict[str, Any]) -> pl.DataFrame:
    """Return older findings with the fields that replaced their texts; today's as they are."""
    if "aggregate" in table.columns:
        return table
    rows = [_typed(row, names) for row in table.to_dicts()]
    fields = {key: pl.Series(key, [row[key] for row in rows]) for key in rows[0]} if rows else {}
    replaced = [column for name, column in fields.items() if not _nested(table, name)]
    return table.with_columns(replaced)


def without_new(table: pl.DataFrame, names: dict[str, Any]) -> pl.DataFrame:
    """Return today's findings but for those that older records lack, and for fields added."""
    new = names.get("new", {})
    lacking = pl.col("metric").is_in(new["metrics"]) & (pl.col("aggregate") == new["aggregate"])
    unnamed = pl.col("variant").is_in(names.get("unnamed_variants", []))
    main = pl.when(unnamed).then(pl.lit("")).otherwise(pl.col("variant"))
    return (
        table.filter(~lacking).with_columns(variant=main).drop(names.get("added", []), strict=False)
    )


def _nested(table: pl.DataFrame, name: str) -> bool:
    return name in table.columns and table.schema[name].is_nested()


def _typed(row: Row, names: dict[str, Any]) -> Row:
    level = math.isnan(row["chance"]) and not math.isnan(row["value"])
    about = measured(row["metric"], names, level=level)
    within = _WITHIN.search(row["version"])
    variant = next((v for text, v in names["variants"].items() if text in row["version"]), "")
    k = json.loads(row["parameters"]).get("k")
    reason = _FACT.sub(lambda match: _called(match[0], names), row["reason"])
    return row | about | {
        "within": within[1] if within else "", "variant": variant,
        "top_k": k if isinstance(k, int) else None, "reason": reason, "null_drawn": row["null"],
    }  # fmt: skip


def measured(metric: str, names: dict[str, Any], *, level: bool = False) -> Row:
    """Return the metric of an older name, and how groups compare in it."""
    plain = {"metric": metric, "aggregate": "value", "compared_to": ""}
    if metric in names["renamed"]:
        renamed: Row = names["renamed"][metric]
        return plain | renamed
    for ending, aggregate in names["endings"].items():
        if metric.endswith(ending):
            return plain | {"metric": metric.removesuffix(ending), "aggregate": aggregate}
    gap = metric in names["differences"]
    gap |= metric in names["levels_without_chance"] and not level
    return plain | ({"aggregate": "difference"} if gap else {})


def _called(metric: str, names: dict[str, Any]) -> str:
    about = measured(metric, names)
    aggregate = "" if about["aggregate"] == "value" else f" {about['aggregate'].replace('_', ' ')}"
    return f"{about['metric']}{aggregate}"
