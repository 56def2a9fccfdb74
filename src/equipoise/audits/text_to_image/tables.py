"""The tables that the report draws on beside the findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.engines.associations.results import SCHEMAS as ASSOCIATIONS
from equipoise.audits.engines.associations.results import Row
from equipoise.audits.text_to_image.associating import spread
from equipoise.audits.text_to_image.designs import ALL, version_of

if TYPE_CHECKING:
    from equipoise.audits.findings import UncorrectedFinding
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.loading import TextToImageData

_KINDS = {"#": pa.float64(), "+": pa.int64(), "?": pa.bool_()}


def _schema(*columns: str) -> pa.Schema:
    """Make a schema: "#" marks numbers, "+" counts, "?" yes or no; the rest is text."""
    every = ("model", "groups", "version", *columns)
    return pa.schema([(name.lstrip("#+?"), _KINDS.get(name[0], pa.string())) for name in every])


SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        **{name: ASSOCIATIONS[name] for name in ("amplification", "score_summaries")},
        "components": ASSOCIATIONS["mcas_parts"].append(pa.field("set", pa.string())),
        "plane": ASSOCIATIONS["xmcas"].append(pa.field("set", pa.string())),
        "shares": _schema(
            "target", "category", "class", "#guidance", "+images", "#share", "#low", "#high",
            "#raw", "#raw_low", "#raw_high", "#outside", "outside_name", "?corrected", "reason",
        ),
        "share_gaps": _schema(
            "target", "category", "class", "outside_name", "#difference", "#low", "#high",
            "#p_value", "+n", "reason",
        ),
        "image_states": _schema("target", "state", "+count"),
    }
)  # fmt: skip
"""Columns by table; docs/audits/text_to_image.md explains them."""

_CONFUSIONS = pa.schema(
    [("groups", pa.string()), ("label", pa.string()), ("said", pa.string()),
     ("count", pa.int64()), ("n", pa.int64()), ("condition", pa.float64())]
)  # fmt: skip
_CURVE = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "by", "metric", "subject")]
    + [(name, pa.float64()) for name in ("guidance", "value", "low", "high")]
)
_ENCODERS = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "target", "encoder")]
    + [(name, pa.float64()) for name in ("guidance", "value", "low", "high", "mean", "sd")]
)
TARGETS = "targets"
"""The set of rows that are about targets, and not about prompts of attributes."""

_OWN = {"mcas_parts": "components", "xmcas": "plane"}
_CURVED = ("mcas", "diffusion_bias", "bias_amplification", "share_mad", "share_gap")


def row_tables(rows: Iterable[Row]) -> dict[str, pa.Table]:
    """Return the tables that have rows."""
    split: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = _OWN.get(row.table, row.table)
        split.setdefault(name, []).append({"set": TARGETS, **row.values})
    return {
        name: pa.Table.from_pylist(split[name], schema=schema)
        for name, schema in SCHEMAS.items()
        if name in split
    }


def further_tables(
    config: Config, data: TextToImageData, findings: Sequence[UncorrectedFinding]
) -> dict[str, pa.Table]:
    """Return the tables that all designs make together, where they have rows."""
    tables = {
        "share_confusions": ([*_confusions(config, data)], _CONFUSIONS),
        "guidance": ([*_curve(config, data, findings)], _CURVE),
        "encoders": ([*_encoders(config, data, findings)], _ENCODERS),
    }
    return {
        name: pa.Table.from_pylist(rows, schema) for name, (rows, schema) in tables.items() if rows
    }


def _confusions(config: Config, data: TextToImageData) -> Iterator[dict[str, Any]]:
    from equipoise.audits.text_to_image.sharing import confusion_of

    for share in config.shares:
        found = confusion_of(share, data)
        if found is None:
            continue
        for row, label in enumerate(found.classes):
            for column, said in enumerate(found.outcomes):
                yield {
                    "groups": share.of, "label": label, "said": said,
                    "count": int(found.counts[row, column]), "n": int(found.labelled[row]),
                    "condition": found.condition if math.isfinite(found.condition) else math.inf,
                }  # fmt: skip


def _by(config: Config) -> list[str]:
    encoders = config.encoders if len(config.encoders) < 2 else (ALL,)
    return list(dict.fromkeys([*encoders, *(share.classifier for share in config.shares)]))


def _curve(
    config: Config, data: TextToImageData, drafts: Sequence[UncorrectedFinding]
) -> Iterator[dict[str, Any]]:
    """Yield numbers of generators that made images at several strengths of guidance."""
    targets = {"", *config.prompts.target_names}
    for name, made in data.made.items():
        if len(made.guidances) < 2:
            continue
        at = {version_of(by, g): (by, g) for by in _by(config) for g in made.guidances}
        for draft in drafts:
            one = draft.finding
            meant = one.subject in targets and one.metric in _CURVED
            if one.model == name and meant and one.version in at:
                by, guidance = at[one.version]
                yield {
                    "model": name, "groups": one.groups, "by": by, "metric": one.metric,
                    "subject": one.subject, "guidance": guidance, "value": one.value,
                    "low": one.ci_low, "high": one.ci_high,
                }  # fmt: skip


def _encoders(
    config: Config, data: TextToImageData, drafts: Sequence[UncorrectedFinding]
) -> Iterator[dict[str, Any]]:
    """Yield MCAS of targets by encoder, with mean and spread over encoders."""
    targets = {*config.prompts.target_names}
    if len(config.encoders) < 2:
        return
    for name, made in data.made.items():
        for guidance in made.guidances:
            held: dict[tuple[str, str], dict[str, UncorrectedFinding]] = {}
            for encoder in config.encoders:
                for draft in drafts:
                    one = draft.finding
                    here = (name, "mcas", version_of(encoder, guidance))
                    if (one.model, one.metric, one.version) == here and one.subject in targets:
                        held.setdefault((one.groups, one.subject), {})[encoder] = draft
            for (groups, target), by in held.items():
                mean, sd = spread({key: one.finding.value for key, one in by.items()})
                for encoder, draft in by.items():
                    yield {
                        "model": name, "groups": groups, "target": target, "encoder": encoder,
                        "guidance": math.nan if guidance is None else guidance,
                        "value": draft.finding.value, "low": draft.finding.ci_low,
                        "high": draft.finding.ci_high, "mean": mean, "sd": sd,
                    }  # fmt: skip
