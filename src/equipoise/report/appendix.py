"""The end of every report: pictures, data, limitations, settings, provenance, how to read it."""

import base64
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from equipoise.core import Aggregate, AuditResult, Family, Finding
from equipoise.core.types import FileFacts
from equipoise.core.wording import PERCEIVED
from equipoise.metrics.spec import MetricSpec, corrected_with, spec_for, spec_of
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    SHARE,
    Block,
    Code,
    Column,
    Facts,
    Gallery,
    Heading,
    Picture,
    Row,
    Section,
    Summary,
    Table,
    TableSection,
    Words,
    distinct,
    number_columns,
    panels,
    parameters_text,
    rows,
)
from equipoise.report.text import in_words, listed, number, plural, title
from equipoise.report.words import compares, is_comparison, models_of, null_sentence

MOST_BYTES = 48_000
"""Larger pictures are left out and counted: a page stays a page."""

MOST_ALL = 1_900_000
"""Characters of all pictures of a page together."""

MOST_OF_GROUP, MOST = 12, 72
"""Pictures of one group of a heading, and of the whole page."""

_SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}


def gallery(result: AuditResult) -> Section | None:
    """Pictures of the table `gallery`: `section`, `group`, `caption` and `image` (PNG or JPEG)."""
    gallery_rows = rows(result, "gallery")
    if not gallery_rows:
        return None
    blocks: list[Block] = []
    room, space = MOST, MOST_ALL
    for (name,), section_rows in panels(gallery_rows, "section").items():
        if name:
            blocks.append(Heading(name))
        for (group,), group_rows in panels(section_rows, "group").items():
            shown_pictures = _pictures_that_fit(group_rows, min(MOST_OF_GROUP, room), space)
            room -= len(shown_pictures)
            space -= sum(len(picture.source) for picture in shown_pictures)
            if shown_pictures:
                blocks.append(Gallery(group, shown_pictures, len(group_rows)))
    return Section.of("gallery", "Pictures", _blur_note(result), *blocks)


def _pictures_that_fit(group_rows: Sequence[Row], most: int, space: int) -> tuple[Picture, ...]:
    """Return the first pictures, at most so many, whose sources fit into a space."""
    pictures = [*filter(None, map(_picture, group_rows))][:most]
    sizes = accumulate(len(picture.source) for picture in pictures)
    return tuple(picture for picture, size in zip(pictures, sizes, strict=True) if size <= space)


def _blur_note(result: AuditResult) -> str:
    chosen = result.manifest.resolved.get("report")
    if not isinstance(chosen, Mapping):
        return ""
    return _BLUR.get(str(chosen.get("blur")), "")


_BLUR = {
    "faces": "Faces are blurred where a detector finds them, and other pictures as a whole.",
    "all": "Every picture is blurred.",
}


def _picture(row: Row) -> Picture | None:
    """Return a picture that a page can hold; None of any other bytes."""
    data = bytes(row["image"] or b"")
    kind = next((name for name, start in _SIGNATURES.items() if data.startswith(start)), None)
    if kind is None or len(data) > MOST_BYTES:
        return None
    coded = base64.b64encode(data).decode("ascii")
    return Picture(f"data:image/{kind};base64,{coded}", str(row["caption"] or ""))


def data(result: AuditResult, facts: Sequence[tuple[str, str]], subjects: str) -> Section:
    """Return the facts about the data: rows used and excluded, and group sizes."""
    sizes = rows(result, "group_sizes")
    pairs = (
        *facts,
        ("Models", listed(models_of(result), 12)),
        ("Tests", _tests(result, subjects)),
    )
    if not sizes:
        return Section.of("data", "Data", Facts(pairs), _states(result))
    columns = [
        Column("Group", "group"),
        Column("Attributes", "groups"),
        Column("n", "n", NUMBER),
        Column("Compared", lambda row: _YES_NO[bool(row["usable"])]),
        Column("Note", "note"),
    ]
    table = Table.of("Group sizes", columns, sizes, source="group_sizes", limit=60)
    return Section.of("data", "Data", Facts(pairs), _states(result), table)


_YES_NO = {True: "yes", False: "no"}


def _tests(result: AuditResult, subjects: str) -> str:
    """Say how many tests are corrected together, by model."""
    over = {Family.LEAF: f"single {subjects}", Family.COMPOSITE: f"all {subjects}"}
    over[Family.QUERY] = f"{subjects} one by one"
    tests: Counter[str] = Counter()
    for finding in result.findings:
        if math.isfinite(finding.p_value) and finding.family in over:
            tests[f"{corrected_with(finding) or 'models compared'}, {over[finding.family]}"] += 1
    if not tests:
        return ""
    texts = [f"{name}: {plural(n, 'test')}" for name, n in tests.items()]
    correction_text = "q-values are corrected within each family, and a model's families share α."
    return f"{'; '.join(texts)}. {correction_text}"


def _states(result: AuditResult) -> Table | None:
    states = rows(result, "states")
    if not states:
        return None
    names = distinct(states, "state")
    cells = []
    for (model,), model_states in panels(states, "model").items():
        counts = dict.fromkeys(names, 0)
        for row in model_states:
            counts[row["state"]] = row["count"]
        cells.append((model, *counts.values()))
    columns = [Column("Model"), *number_columns(names)]
    return Table.of("Rows used and excluded", columns, cells, source="states")


def limitations(result: AuditResult) -> Section:
    """Return the limitations of the data."""
    sizes = rows(result, "group_sizes")
    disparity = "difference" if compares(result) else "disparity"
    small = {(row["groups"], row["group"]) for row in sizes if row["group"] and not row["usable"]}
    # Shares of groups have a test whatever their size.
    tested = {(finding.groups, finding.group) for finding in result.findings if finding.tested}
    items = (
        PERCEIVED,
        *_binary_attributes(sizes),
        *_small_groups(sizes, "labels not" if small & tested else "not"),
        *result.manifest.notes,
        f"A {disparity} that isn't reported may still exist. It may be smaller than these data can "
        "show.",
    )
    return Section.of("limits", "Limitations", Words((*dict.fromkeys(items),), "list"))


def _binary_attributes(sizes: Sequence[Row]) -> Iterator[str]:
    """Yield a limitation for each attribute with two values."""
    levels: dict[str, dict[str, None]] = {}
    for row in sizes:
        for attribute, level in zip(row["attributes"], row["levels"], strict=False):
            levels.setdefault(attribute, {})[level] = None
    for attribute, values in levels.items():
        if len(values) == 2:
            yield (
                f"The data label {attribute} as {' or '.join(values)} only. No group holds other "
                "people."
            )


def _small_groups(sizes: Sequence[Row], but: str) -> Iterator[str]:
    """Yield a limitation if groups are too small to compare, or their labels are."""
    by_attributes = dict[str, list[Row]]()
    for row in sizes:
        if row["group"]:
            by_attributes.setdefault(row["groups"], []).append(row)
    groups = list[str]()
    for attributes, members in by_attributes.items():
        small = [row for row in members if not row["usable"]]
        if len(members) > 2 and len(small) > len(members) - 2:
            groups.append(f"all {len(members)} groups of {attributes}")
        else:
            groups += [f"{row['group']} (n = {row['n']})" for row in small]
    if groups:
        yield f"Too small or absent, so counted but {but} compared: {listed(groups, 12)}."


failures = TableSection(
    name="failures",
    heading="Missing data",
    caption="Images without an output",
    source="failures",
    columns=[
        Column("Output", "on"),
        Column("Model", "model"),
        Column("Group", lambda row: row["group"] or "All images"),
        Column("Attributes", "groups"),
        Column("Failed at", "stage"),
        Column("Images", "n", NUMBER),
        Column("Of", "of", NUMBER),
        Column("Share", lambda row: row["n"] / row["of"], SHARE),
    ],
    text=(
        "No number of the model includes these images. If one group lost a larger share than "
        "another, its numbers rest on the images that are left."
    ),
)


def settings(result: AuditResult) -> Section:
    """Return how each metric is computed, tested and judged, and the config."""
    config = json.dumps(result.manifest.resolved, ensure_ascii=False, indent=2, default=str)
    code = Code("Config with every default filled in", tuple(config.splitlines()))
    metrics = dict.fromkeys(map(_metric_settings, result.findings))
    if not metrics:
        return Section.of("choices", "Settings", code)
    columns = [
        Column("Metric"),
        Column("Threshold", format=NUMBER),
        Column("Interval"),
        Column("Null hypothesis"),
        Column("Resampled"),
        Column("Reference"),
        Column("Parameters", format=CLIPPED),
    ]
    table = Table.of("Metrics and tests", columns, metrics, source="findings")
    return Section.of("choices", "Settings", table, code)


def _metric_settings(finding: Finding) -> tuple[str, ...]:
    """Return how a finding is computed and tested, in the order of the table's columns."""
    # Parameters of a comparison are its models and their values.
    parameters = "" if is_comparison(finding) else in_words(parameters_text(finding.parameters))
    return (
        title(finding.metric), number(finding.threshold), finding.method, null_sentence(finding),
        finding.unit, finding.citation, parameters,
    )  # fmt: skip


def provenance(result: AuditResult) -> Section:
    """Return inputs with their hashes, models, versions, machine."""
    manifest = result.manifest
    commit = manifest.commit or "not in a repository"
    if manifest.dirty:
        commit += ", with uncommitted changes"
    pairs = (
        ("Started", manifest.started),
        ("Took", f"{manifest.seconds:.1f} s"),
        ("Seed", str(manifest.seed)),
        ("Commit", commit),
        ("Machine", _facts_text(manifest.machine)),
        ("Versions", _facts_text(manifest.versions)),
    )
    return Section.of(
        "provenance",
        "Provenance",
        Facts(pairs),
        _records("Input files", manifest.inputs, ("rows", "bytes", "sha256")),
        _records("Models that were run", manifest.models, _MODEL),
    )


def _facts_text(facts: Mapping[str, object]) -> str:
    return "; ".join(f"{name} {fact}" for name, fact in facts.items())


_MODEL = ("name", "family", "revision", "dtype", "device", "backend", "weights_sha256")


def _records(caption: str, records: Mapping[str, FileFacts], keys: Sequence[str]) -> Table | None:
    if not records:
        return None
    cells = []
    for name, about in records.items():
        cells.append((name, *(str(about.get(key) or "–") for key in keys)))
    columns = [Column("Name"), *(Column(key.replace("_", " ").capitalize()) for key in keys)]
    return Table.of(caption, columns, cells, source="manifest.json")


def trust(result: AuditResult) -> str:
    """Return what a reader must know before relying on the first screen."""
    tests = Counter(finding.model for finding in result.findings if finding.tested)
    n_tests = max(tests.values(), default=0)
    texts = ["Groups are as the data label them."]
    if n_tests:
        corrected = ", corrected for their number" if n_tests > 1 else ""
        of_model = " of each model" if len(tests) > 1 else ""
        up_to = "Up to " if len({*tests.values()}) > 1 else ""
        texts.append(f"{up_to}{plural(n_tests, 'test')}{of_model}{corrected}.")
    if n_notes := len(result.manifest.notes):
        texts.append(f"{plural(n_notes, 'note')} on the data under “Limitations”.")
    texts.append("The same data and seed give this page again.")
    return " ".join(texts)


def reading(summary: Summary) -> Facts:
    """Return the definitions of metrics, the first screen's first."""
    metrics = {}
    for statement in summary.statements:
        if statement.finding:
            spec = _described(statement.finding)
            metrics[spec.title] = f"{spec.definition} {spec.direction}"
    return Facts((*metrics.items(), *_TERMS))


def _described(finding: Finding) -> MetricSpec:
    """Return the record that defines a finding's measure."""
    if finding.aggregate is Aggregate.AGAINST_REST:
        return spec_of(finding.metric).in_audit(finding.audit)
    spec = spec_for(finding.metric, finding.aggregate, finding.compared_to)
    return spec.in_audit(finding.audit)


_TERMS = (
    ("Expected by chance", "The mean value if groups made no difference, or two models were alike. "
     "It's rarely 0, because the worst of many small groups is always somewhat worse."),
    ("Threshold", "The distance from chance that matters in practice; between two models, their "
     "difference."),
    ("Interval", "The values that fit the data, usually at 95 %. A wide interval means that the "
     "value is uncertain."),
    ("Corrected p, q", "The p-value after the correction for the number of tests: the share of "
     "false alarms to expect among the findings with a q as small as this. It is doubled where "
     "single and overall tests share α."),
    ("Verdict", "▲ Disparity: q is small and the size reaches the threshold. △ Real, size "
     "uncertain: q is small and the size may be under the threshold. ▽ Too small to matter: the "
     "whole interval is under the threshold. ◆ Not enough data: anything else. ○ Can't be "
     "estimated: there is no number."),
    ("Charts", "Point: value. Line: interval. Grey bar: values that chance often gives. Tick: "
     "threshold."),
)  # fmt: skip
