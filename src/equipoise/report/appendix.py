"""The end of every report: data, limitations, failures, settings, provenance, how to read it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Family
from equipoise.metrics.spec import corrected_with
from equipoise.report.asking import groups_of, models_of
from equipoise.report.blocks import Block, Code, Facts, Section, Table, Words
from equipoise.report.comparison import compares, is_comparison
from equipoise.report.names import title
from equipoise.report.tables import Row, distinct, panels, parameters_text, rows
from equipoise.report.text import count, listed, number, percent, plural

_STAGES = {"read": "Not read", "decode": "Not decoded", "model": "Model failed"}


def data(result: AuditResult, facts: Sequence[tuple[str, str]], subjects: str) -> Section:
    """Return what was measured on which data: facts, rows used and excluded, group sizes."""
    tests = [] if not result.findings else [("Tests", _tests(result, subjects))]
    pairs = [
        *facts,
        ("Models", listed(models_of(result), 12)),
        ("Groups", _groups(result)),
        *tests,
        ("Made", f"{result.manifest.started}, seed {result.manifest.seed}"),
    ]
    blocks: list[Block] = [Facts(tuple((name, text) for name, text in pairs if text))]
    states = [row for row in rows(result, "states") if not row["group"]]
    if states:
        blocks.append(_states(states))
    sizes = rows(result, "group_sizes")
    if sizes:
        blocks.append(_sizes(sizes))
    return Section("data", "Data", tuple(blocks))


def _tests(result: AuditResult, subjects: str) -> str:
    """Say how many tests are corrected together, by model."""
    families: dict[str | None, Counter[Family]] = {}
    for one in result.findings:
        if math.isfinite(one.p_value):
            families.setdefault(corrected_with(one), Counter())[one.family] += 1
    texts = [
        f"{f'{_family(model)}: ' if len(families) > 1 else ''}"
        f"{plural(counts[Family.LEAF], 'test')} of single {subjects}, "
        f"{plural(counts[Family.COMPOSITE], 'test')} over all {subjects}"
        for model, counts in families.items()
    ]
    return f"{'; '.join(texts) or 'none'}. q-values are corrected within each of the two families."


def _family(model: str | None) -> str:
    return "differences between models" if model is None else model or "no model"


def _groups(result: AuditResult) -> str:
    sizes = panels(rows(result, "group_sizes"), "groups")
    parts = []
    for name in groups_of(result):
        own = sizes.get((name,), [])
        left = sum(not row["usable"] for row in own)
        small = f", {left} too small or empty" if left else ""
        parts.append(f"{name} ({plural(len(own), 'group')}{small})" if own else name)
    return "; ".join(parts)


def _states(states: list[dict[str, Any]]) -> Table:
    names = distinct(states, "state")
    cells = []
    for (model,), own in panels(states, "model").items():
        by_state = {row["state"]: row["count"] for row in own}
        cells.append((model, *(count(by_state.get(name, 0)) for name in names)))
    columns = ["Model", *(f"#{name}" for name in names)]
    return Table.of("Rows used and excluded", columns, cells, source="states")


def _sizes(sizes: list[dict[str, Any]]) -> Table:
    cells = [
        (row["group"], row["groups"], count(row["n"]), "yes" if row["usable"] else "no",
         row["note"] or "")
        for row in sizes
    ]  # fmt: skip
    columns = ["Group", "Attributes", "#n", "Compared", "Note"]
    return Table.of("Group sizes", columns, cells, source="group_sizes", limit=60)


def limitations(result: AuditResult) -> Section:
    """Return what the data can't show."""
    sizes = rows(result, "group_sizes")
    notes = result.manifest.notes
    perceived = (
        "Groups are perceived: they come from the labels in the data, not from the people shown."
    )
    items = [
        *([] if any("perceived" in note for note in notes) else [perceived]),
        *_binary(sizes),
        *_absent(sizes),
        *notes,
        f"A {'difference' if compares(result) else 'disparity'} that isn't reported may still "
        "exist. It may be smaller than these data can show, or concern groups without labels.",
    ]
    return Section("limits", "Limitations", (Words(tuple(items), "list"),))


def _binary(sizes: list[dict[str, Any]]) -> list[str]:
    levels: dict[str, dict[str, None]] = {}
    for row in sizes:
        for attribute, level in zip(row["groups"].split(" × "), row["levels"], strict=False):
            levels.setdefault(attribute, {})[level] = None
    return [
        f"The data label {attribute} as {' or '.join(own)} only. Other people are in no number."
        for attribute, own in levels.items()
        if len(own) == 2
    ]


def _absent(sizes: list[dict[str, Any]]) -> list[str]:
    left = [f"{row['group']} (n = {row['n']})" for row in sizes if not row["usable"]]
    return (
        [f"Too small or absent, so counted but not compared: {listed(left, 12)}."] if left else []
    )


def failures(result: AuditResult) -> Section | None:
    """Return images without model output, by group."""
    failed = rows(result, "failures")
    if not failed:
        return None
    text = (
        "No number of the model includes these images. If one group lost a larger share than "
        "another, its numbers rest on the images that are left."
    )
    tables = [
        _failures(f"{model}, {on}", own)
        for (model, on), own in panels(failed, "model", "on").items()
    ]
    return Section("failures", "Missing data", (Words((text,), "note"), *tables))


def _failures(what: str, failed: Sequence[Row]) -> Table:
    stages = [stage for stage in _STAGES if any(row["stage"] == stage for row in failed)]
    cells = []
    for (groups, group), own in panels(failed, "groups", "group").items():
        by_stage = {row["stage"]: row["n"] for row in own}
        lost, of = sum(by_stage.values()), own[0]["of"]
        numbers = [count(by_stage.get(stage, 0)) for stage in stages]
        cells.append((group or "All images", groups, count(of), *numbers, percent(lost / of)))
    columns = ["Group", "Attributes", "#n", *(f"#{_STAGES[stage]}" for stage in stages), "#Share"]
    return Table.of(f"Images without an output of {what}", columns, cells, source="failures")


def settings(result: AuditResult) -> Section:
    """Return how each metric is computed, tested and judged, and the config."""
    seen = dict.fromkeys(
        (title(one.metric), number(one.threshold), one.method, one.null or "none", one.unit,
         one.citation)
        for one in result.findings
    )  # fmt: skip
    columns = ["Metric", "#Threshold", "Interval", "Null hypothesis", "Resampled", "Reference"]
    blocks: list[Block] = []
    if seen:
        blocks.append(Table.of("Metrics and tests", columns, list(seen), source="findings"))
    # Parameters of a comparison are the models' values, which stand with the findings.
    parameters = sorted(
        {
            (title(one.metric), one.parameters)
            for one in result.findings
            if one.parameters not in ("", "{}") and not is_comparison(one)
        }
    )
    if parameters:
        cells = [(name, parameters_text(text)) for name, text in parameters]
        header = ["Metric", "Parameters"]
        blocks.append(Table.of("Parameters", header, cells, source="findings", limit=60))
    manifest = result.manifest
    blocks.append(Code("Config with every default filled in", _lines(manifest.resolved)))
    blocks.append(Code("Config as given", _lines(manifest.config)))
    return Section("choices", "Settings", tuple(blocks))


def provenance(result: AuditResult) -> Section:
    """Return inputs with their hashes, versions, machine, counts."""
    manifest = result.manifest
    commit = manifest.commit or "not in a repository"
    pairs = (
        ("Started", manifest.started),
        ("Took", f"{manifest.seconds:.1f} s"),
        ("Seed", str(manifest.seed)),
        ("Commit", f"{commit}, with uncommitted changes" if manifest.dirty else commit),
        ("Machine", "; ".join(f"{k} {v}" for k, v in manifest.machine.items())),
        ("Versions", "; ".join(f"{k} {v}" for k, v in manifest.versions.items())),
    )
    blocks: list[Block] = [Facts(pairs)]
    if manifest.inputs:
        blocks.append(_inputs(manifest.inputs))
    if manifest.models:
        blocks.append(_models(manifest.models))
    counts = list(_flat(manifest.counts))
    if counts:
        blocks.append(Table.of("Counts", ["What", "#Count"], counts, source="manifest.json"))
    return Section("provenance", "Provenance", tuple(blocks))


def _inputs(inputs: Mapping[str, Mapping[str, Any]]) -> Table:
    cells = [
        (name, count(about.get("rows")), count(about.get("bytes")), str(about.get("sha256", "")))
        for name, about in inputs.items()
    ]
    columns = ["File", "#Rows", "#Bytes", "SHA-256"]
    return Table.of("Input files", columns, cells, source="manifest.json")


def _models(models: Mapping[str, Mapping[str, Any]]) -> Table:
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


def reading(result: AuditResult) -> Section:
    """Return how to read the numbers."""
    items = _READING_PAIRS if compares(result) else _READING
    return Section("reading", "How to read this report", (Words(items, "steps"),))


_INTERVAL = (
    "Interval: the values that fit the data, usually at 95 %. A wide interval means that the value "
    "is uncertain."
)
_Q = (
    "q: the share of false alarms to expect among the findings with a q as small as this. It "
    "accounts for the number of tests."
)
_READING = (
    _INTERVAL,
    "Chance: the value if groups made no difference. It's rarely 0, because the worst of many "
    "small groups is always somewhat worse.",
    "Excess: the value minus chance. The threshold says which excess matters in practice. You can "
    "set it in the config.",
    _Q,
    "Verdict: ▲ disparity if q is small and the excess reaches the threshold, ▽ below threshold if "
    "even the far end of the interval stays under it, ◆ inconclusive otherwise, ○ not estimable if "
    "there is no number.",
)
_READING_PAIRS = (
    "Difference: the second model's value minus the first's on the same images. Each sentence says "
    "which model is worse.",
    _INTERVAL,
    "Threshold: which difference matters in practice, in either direction. You can set it in the "
    "config.",
    _Q,
    "Verdict: ▲ difference if q is small and the difference reaches the threshold, ▽ below "
    "threshold if the whole interval stays under it, ◆ inconclusive otherwise, ○ not estimable if "
    "a model has no number.",
)
