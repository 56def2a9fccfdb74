"""Design choices, and everything needed to repeat the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Code, Facts, Section, Table
from equipoise.report.comparison import is_comparison
from equipoise.report.names import title
from equipoise.report.sections.tables import parameters_text
from equipoise.report.text import count, number


def choices(result: AuditResult) -> Section:
    """How each metric was computed, tested and judged, and the resolved configuration."""
    seen = dict.fromkeys(
        (title(f.metric), number(f.threshold), f.method, f.null or "none", f.unit, f.citation)
        for f in result.findings
    )
    columns = ["Metric", "#Threshold", "Interval", "Null hypothesis", "Unit", "Definition"]
    blocks: list[Block] = []
    if seen:
        caption = "How each metric was computed and tested"
        blocks.append(Table.of(caption, columns, list(seen), source="findings"))
    # Those of a comparison are the models' values, which stand with the findings.
    parameters = sorted(
        {
            (title(f.metric), f.parameters)
            for f in result.findings
            if f.parameters and not is_comparison(f)
        }
    )
    if parameters:
        cells = [(name, parameters_text(text)) for name, text in parameters if text != "{}"]
        blocks.append(
            Table.of("Parameters", ["Metric", "Parameters"], cells, source="findings", limit=60)
        )
    manifest = result.manifest
    blocks.append(Code("Configuration with every default filled in", _lines(manifest.resolved)))
    blocks.append(Code("Configuration as passed", _lines(manifest.config)))
    return Section("choices", "Design choices", tuple(blocks))


def provenance(result: AuditResult) -> Section:
    """Inputs with their hashes, versions, machine, counts."""
    manifest = result.manifest
    commit = manifest.commit or "not in a repository"
    pairs = [
        ("Started", manifest.started),
        ("Took", f"{manifest.seconds:.1f} s"),
        ("Seed", str(manifest.seed)),
        ("Commit", f"{commit}, with uncommitted changes" if manifest.dirty else commit),
        ("Machine", "; ".join(f"{k} {v}" for k, v in manifest.machine.items())),
        ("Versions", "; ".join(f"{k} {v}" for k, v in manifest.versions.items())),
    ]
    blocks: list[Block] = [Facts(tuple(pairs))]
    if manifest.inputs:
        blocks.append(_inputs(manifest.inputs))
    if manifest.models:
        blocks.append(_models(manifest.models))
    counted = list(_flat(manifest.counts))
    if counted:
        caption = "Rows read, matched, used and dropped"
        blocks.append(Table.of(caption, ["What", "#Count"], counted, source="manifest.json"))
    return Section("provenance", "Provenance", tuple(blocks))


def _inputs(inputs: Mapping[str, Mapping[str, Any]]) -> Table:
    cells = [
        (name, count(about.get("rows")), count(about.get("bytes")), str(about.get("sha256", "")))
        for name, about in inputs.items()
    ]
    columns = ["File", "#Rows", "#Bytes", "SHA-256"]
    return Table.of("Input files", columns, cells, source="manifest.json")


def _models(models: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return what each model that was run is; all that is known of it is in the manifest."""
    keys = ("name", "family", "revision", "dtype", "device", "backend", "weights_sha256")
    cells = [
        (model, *(str(about.get(key) or "–") for key in keys)) for model, about in models.items()
    ]
    columns = ["Model", "Name", "Family", "Revision", "Numbers", "Device", "Backend", "SHA-256"]
    return Table.of("Models that were run", columns, cells, source="manifest.json")


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        name = f"{path} › {key}" if path else str(key)  # noqa: RUF001 - a path, not a comparison
        if isinstance(item, Mapping):
            yield from _flat(item, name)
        else:
            yield name, count(item) if isinstance(item, int) else str(item)


def _lines(config: Mapping[str, Any]) -> tuple[str, ...]:
    text = json.dumps(config, ensure_ascii=False, indent=2, default=str)
    return tuple(text.splitlines())
