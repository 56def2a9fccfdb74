"""What was asked and of what data; what the data cannot show; how to read the numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Family, Finding
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.augmentation import question
from equipoise.report.blocks import Block, Facts, Fold, Section, Table, Words
from equipoise.report.comparison import compares, over_subjects
from equipoise.report.sections.tables import distinct, panels, rows
from equipoise.report.text import count, listed, plural, source
from equipoise.report.voices import voice


def asked(result: AuditResult) -> Section:
    """What was asked, of which models and images, and what became of every row."""
    blocks: list[Block] = [Words((_question(result),)), Facts(_facts(result))]
    states = [row for row in rows(result, "states") if not row["group"]]
    if states:
        blocks.append(_states_table(states))
    sizes = rows(result, "group_sizes")
    if sizes:
        blocks.append(Fold(f"Sizes of {plural(len(sizes), 'group')}", (_sizes_table(sizes),)))
    return Section("asked", "What was asked, and of what data", tuple(blocks))


def _data(result: AuditResult) -> Mapping[str, Any]:
    config = result.manifest.resolved or result.manifest.config
    data = config.get("data", {})
    return data if isinstance(data, Mapping) else {}


def _question(result: AuditResult) -> str:
    models, groups = models_of(result), groups_of(result)
    if not models:
        return "This audit has no findings."
    spoken = voice(result.findings[0].audit)
    if spoken is not None:
        return spoken.question(result)
    target = _data(result).get("target")
    if "augmentation" in result.tables:
        return question(result)
    if compares(result):
        return _question_between(models, groups, target)
    task = f" when the answer asked for is {target}" if target else ""
    return f"{doing('Do', models)} treat images of different {listed(groups)} alike{task}?"


def _question_between(models: Sequence[str], groups: Sequence[str], target: object) -> str:
    of = " and of ".join(groups)
    if not groups and target is None:
        return f"Which of {listed(models)} is right more often?"
    if target is None:
        return f"Which of {listed(models)} treats the groups of {of} more alike?"
    alike = f", and which treats the groups of {of} more alike" if groups else ""
    task = f", when the answer asked for is {target}" if target else ""
    return f"Which of {listed(models)} is right more often{alike}{task}?"


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    manifest = result.manifest
    spoken = voice(result.findings[0].audit) if result.findings else None
    parts = spoken.parts if spoken else _parts(result)
    given = spoken.facts(result) if spoken else _images(result)
    pairs = [
        *given,
        ("Models", listed(models_of(result), 12)),
        ("Groups", _groups_text(result)),
        ("Tests", _tested(result, parts)),
        ("Paired", " ".join(_paired(result))),
        ("Made", f"{manifest.started}, seed {manifest.seed}"),
    ]
    return tuple((name, text) for name, text in pairs if text)


def _tested(result: AuditResult, parts: str) -> str:
    """Say how many tests were corrected together: those of each model, and of comparing them."""
    families: dict[str | None, Counter[Family]] = {}
    for one in result.findings:
        # Findings without a p-value were not tested.
        if math.isfinite(one.p_value):
            families.setdefault(one.corrected_with, Counter())[one.family] += 1
    alike: dict[tuple[int, int], list[str | None]] = {}
    for whose, counted in families.items():
        alike.setdefault((counted[Family.LEAF], counted[Family.COMPOSITE]), []).append(whose)
    within = "q-values are corrected within each of the two"
    if len(families) < 2:
        leaves, composites = next(iter(alike), (0, 0))
        return f"{_counted(leaves, composites, parts)}; {within}"
    told = [
        f"{listed([*map(_named, whose)], 12)}: "
        f"{_counted(*tests, parts)}{' each' if len(whose) > 1 else ''}"
        for tests, whose in alike.items()
    ]
    return f"{'; '.join(told)}; {within}, model by model"


def _named(model: str | None) -> str:
    return "differences between models" if model is None else model or "no model"


def _counted(leaves: int, composites: int, parts: str) -> str:
    return (
        f"{plural(leaves, 'test')} of single {parts}, {plural(composites, 'test')} over all {parts}"
    )


def _parts(result: AuditResult) -> str:
    return "subjects" if all(map(over_subjects, result.findings)) else "classes"


def _images(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = _data(result)
    images = [finding.n for finding in result.findings if not over_subjects(finding)]
    subjects = [finding.n for finding in result.findings if over_subjects(finding)]
    if "augmentation" in result.tables:
        return (("Images", f"{count(max(images))} that were asked after each training"),)
    return (
        ("Images", f"{count(max(images))}, from {source(data)}" if images else ""),
        ("Subjects", f"up to {count(max(subjects))}" if subjects else ""),
        ("Target", str(data.get("target") or "")),
    )


def _paired(result: AuditResult) -> Iterator[str]:
    """Say how models are held against each other."""
    if not compares(result):
        return
    units = {_unit(finding) for finding in result.findings}
    yield from (text for unit, text in _PAIRED_BY.items() if unit in units)


def _unit(finding: Finding) -> str:
    """Return what is paired: subjects, training runs, or else images."""
    if over_subjects(finding):
        return "subject"
    return "run" if "training run" in finding.unit else "image"


_PAIRED_SUBJECTS = (
    "over the subjects that two models have in common, each of which is one pair: intervals are "
    "Student's, tests flip the signs of the differences"
)
_PAIRED = (
    "all models are held against the same images: intervals resample images for all of them at "
    "once, and tests exchange the answers of two models on images drawn at random"
)
_PAIRED_RUNS = (
    "runs of one number start from the same weights, and all are asked the same images: intervals "
    "are Student's over training runs, widened by the spread over images"
)
_PAIRED_BY = {"image": _PAIRED, "subject": _PAIRED_SUBJECTS, "run": _PAIRED_RUNS}


def _groups_text(result: AuditResult) -> str:
    sizes = panels(rows(result, "group_sizes"), "groups")
    parts = []
    for name in groups_of(result):
        counted = sizes.get((name,), [])
        usable = sum(bool(row["usable"]) for row in counted)
        rest = len(counted) - usable
        left = f", {rest} of them too small or empty" if rest else ""
        parts.append(f"{name} ({plural(len(counted), 'group')}{left})" if counted else name)
    return "; ".join(parts)


def _states_table(states: list[dict[str, Any]]) -> Table:
    names = distinct(states, "state")
    cells = []
    for (model,), found in panels(states, "model").items():
        by_state = {row["state"]: row["count"] for row in found}
        cells.append((model, *(count(by_state.get(name, 0)) for name in names)))
    caption = "What became of every row of the predictions"
    return Table.of(caption, ["Model", *(f"#{name}" for name in names)], cells, source="states")


def _sizes_table(sizes: list[dict[str, Any]]) -> Table:
    cells = [
        (row["group"], row["groups"], count(row["n"]), "yes" if row["usable"] else "no",
         row["note"] or "")
        for row in sizes
    ]  # fmt: skip
    columns = ["Group", "Attributes", "#Images", "Compared", "Note"]
    return Table.of("Groups and their sizes", columns, cells, source="group_sizes", limit=60)


def limits(result: AuditResult) -> Section:
    """What the data cannot show."""
    sizes = rows(result, "group_sizes")
    notes = result.manifest.notes
    perceived = (
        "Groups are perceived: they come from the labels in the data given, not from the people "
        "shown. A different labelling gives different groups."
    )
    items = [
        *([] if any("perceived" in note for note in notes) else [perceived]),
        *_binary(sizes),
        *_absent(sizes),
        *_missing_classes(result),
        *notes,
        f"A {'difference' if compares(result) else 'disparity'} that was not found may still "
        "exist: it may be smaller than these data can show, or concern groups that are not "
        "labelled.",
    ]
    return Section("limits", "What these data cannot show", (Words(tuple(items), "list"),))


def _binary(sizes: list[dict[str, Any]]) -> list[str]:
    levels: dict[str, dict[str, None]] = {}
    for row in sizes:
        for attribute, level in zip(row["groups"].split(" × "), row["levels"], strict=False):
            levels.setdefault(attribute, {})[level] = None
    return [
        f"The data know {attribute} only as {' or '.join(found)}. People outside these two "
        "labels are in no number here."
        for attribute, found in levels.items()
        if len(found) == 2
    ]


def _absent(sizes: list[dict[str, Any]]) -> list[str]:
    left = [row for row in sizes if not row["usable"]]
    if not left:
        return []
    named = listed([f"{row['group']} (n = {row['n']})" for row in left], 12)
    return [f"Too small or absent, so counted but not compared: {named}."]


def _missing_classes(result: AuditResult) -> list[str]:
    items = []
    for (model, groups), found in panels(rows(result, "classes"), "model", "groups").items():
        lost = [row for row in found if row["reason"]]
        if lost:
            items.append(
                f"{model}, {groups}: the effect size of {plural(len(lost), 'class', 'classes')} "
                f"of {len(found)} cannot be estimated ({listed(distinct(lost, 'reason'), 3)})."
            )
    return items


def reading(result: AuditResult) -> Section:
    """How to read the numbers, in five sentences."""
    items = _READING_PAIRS if compares(result) else _READING
    return Section("reading", "How to read the numbers", (Words(items, "steps"),))


_INTERVAL = (
    "An interval is the range of values that fit the data at its level, usually 95 %: the wider "
    "it is, the less the value is known."
)
_READING = (
    _INTERVAL,
    "The chance level is what the same number comes to when groups make no difference; it is "
    "rarely 0, because the worst of many small groups is always somewhat worse.",
    "The excess is the value minus the chance level, and the threshold says how large an "
    "excess must be to matter in practice; it can be set in the configuration.",
    "q is the share of false alarms to expect among all findings of a model with a q as small as "
    "this one, so that many tests at once do not make disparities out of noise.",
    "The verdict is ▲ disparity where q is small and the excess reaches the threshold, ▽ below "
    "threshold where even the upper end of the interval stays under it, ◆ inconclusive "
    "otherwise, and ○ not estimable where there is no number, with the reason.",
)
_READING_PAIRS = (
    "A difference is the second model's value minus the first's on the same images; whether a "
    "higher value is better depends on the metric, so each sentence says which model is worse.",
    _INTERVAL,
    "The threshold says how large a difference, in either direction, must be to matter in "
    "practice; it can be set in the configuration.",
    "q is the share of false alarms to expect among all findings with a q as small as this "
    "one, so that many tests at once do not make differences out of noise.",
    "The verdict is ▲ difference where q is small and the difference reaches the threshold, ▽ "
    "below threshold where the whole interval stays under it, ◆ inconclusive otherwise, and ○ not "
    "estimable where a model has no number, with the reason.",
)
