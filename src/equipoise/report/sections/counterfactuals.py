"""Whom neutral prompts show first: over subjects beside both kinds of chance, and by subject."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_counterfactuals
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.charts_heat import tone
from equipoise.report.names import title
from equipoise.report.sections.retrieval import distributions
from equipoise.report.tables import distinct, panels, rows, scope
from equipoise.report.text import interval, number, p_value, percent

Row = Mapping[str, Any]

MOST_SUBJECTS, MOST_GROUPS = 20, 14
SETS, POOL = "order within sets", "order of the pool"
_ENDS = ("low", "high", "chance_low", "chance_high", "pool_low", "pool_high")
_AXES = {"max_skew": "MaxSkew@K", "ndkl": "NDKL"}


def subjects(result: AuditResult) -> Section | None:
    """Every subject of every model, the mean over them, and what chance gives it."""
    found = [row for row in rows(result, "chance") if not _is_marginal(row)]
    if not found:
        return None
    note = (
        "A line is a subject, the large mark the mean over subjects with its interval. Grey: where "
        "the mean lies in 95 of 100 cases when the members of each set, who share all but their "
        "attributes, change places at random. Dashed: the same when all images of a subject do, "
        "as if images of one set were unrelated. Compare with the grey band. Neither is near 0: "
        "among few images shares are uneven by chance."
    )
    blocks: list[Block] = [
        Words((note,), "note"),
        Grid(tuple(_plots(result, found))),
        _chances(found, "Means over subjects beside both chance levels"),
    ]
    table = distributions(result, "Over the subjects", held=False)
    return Section(
        "subjects",
        "Over subjects, beside what chance gives",
        (*blocks, *([table] if table else ())),
    )


def marginals(result: AuditResult) -> Section | None:
    """Each attribute where the others are held fixed."""
    found = [row for row in rows(result, "chance") if _is_marginal(row)]
    if not found:
        return None
    note = (
        "One attribute is compared among images that have one value of the others: a subject’s "
        "pool is split, and each part ranked by itself, as “doctor | old” is. K is the number of "
        "values compared, unless it was given, so numbers do not compare with those of the "
        "combinations."
    )
    blocks: list[Block] = [
        Words((note,), "note"),
        Grid(tuple(_plots(result, found))),
        _chances(found, "Means over subjects and values held fixed"),
    ]
    table = distributions(result, "Over the subjects and the values held fixed", held=True)
    return Section("marginals", "Given the other attribute", (*blocks, *([table] if table else ())))


def _is_marginal(row: Row) -> bool:
    return str(row["version"]).startswith("within")


def _plots(result: AuditResult, found: Sequence[Row]) -> Iterable[Chart]:
    by_subject = _by_subject(result)
    for (groups, version, metric), panel in panels(found, "groups", "version", "metric").items():
        models = distinct(panel, "model")
        data = [
            row
            for model in models
            for row in (
                *by_subject.get((model, groups, version, metric), ()),
                *_mean(model, [row for row in panel if row["model"] == model]),
            )
        ]
        if data:
            name = f"{title(metric)}: {scope(groups, version)}"
            spec = charts_counterfactuals.subjects("rows", _AXES[metric], models)
            label = f"{name}, by subject; grey: chance within sets; dashed: chance of the pool."
            yield Chart(label, spec, {"rows": data}, None, name)


def _by_subject(result: AuditResult) -> dict[tuple[str, str, str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for one in result.findings:
        if one.metric in _AXES and one.subject and math.isfinite(one.value):
            key = (one.model, one.groups, one.version, one.metric)
            tip = f"{one.subject}, {one.model}: {number(one.value)}, by chance {number(one.chance)}"
            about = {"kind": charts_counterfactuals.SUBJECT, "model": one.model}
            nothing = dict.fromkeys(_ENDS, math.nan)
            found.setdefault(key, []).append(about | {"value": one.value, **nothing, "tip": tip})
    return found


def _mean(model: str, panel: Sequence[Row]) -> Iterable[dict[str, Any]]:
    by_null = {row["null"]: row for row in panel}
    one, other = by_null.get(SETS), by_null.get(POOL, {})
    if one is None or not math.isfinite(one["value"]):
        return
    nothing = math.nan
    yield {
        "kind": charts_counterfactuals.MEAN,
        "model": model,
        "value": one["value"],
        **{name: one[name] for name in _ENDS[:4]},
        "pool_low": other.get("chance_low", nothing),
        "pool_high": other.get("chance_high", nothing),
        "tip": f"{model}, mean over subjects: {number(one['value'])} "
        f"{interval(one['low'], one['high'])}; by chance {number(one['chance'])} within sets, "
        f"{number(other.get('chance', nothing))} in the pool",
    }


def _chances(found: Sequence[Row], caption: str) -> Table:
    cells = [
        (
            title(row["metric"]), row["model"], scope(row["groups"], row["version"]), row["null"],
            number(row["value"]), interval(row["low"], row["high"]), number(row["chance"]),
            interval(row["chance_low"], row["chance_high"]), number(row["excess"]),
            p_value(row["p_value"]),
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Metric", "Model", "Groups", "Chance: a random", "#Mean", "#Interval", "#By chance",
        "#Band", "#Excess", "#p",
    ]  # fmt: skip
    return Table.of(caption, columns, cells, source="chance")


def proportions(result: AuditResult) -> Section | None:
    """Shares among the first K by subject, of every attribute by itself and of combinations."""
    found = [row for row in rows(result, "proportions") if not _is_marginal(row)]
    if not found:
        return None
    keys = ("model", "groups", "version", "attribute")
    plots = [
        _map(panel, model, attribute, scope(groups, version))
        for (model, groups, version, attribute), panel in panels(found, *keys).items()
        if len(distinct(panel, "group")) <= MOST_GROUPS
    ]
    note = (
        f"Share of each group among the first K; up to {MOST_SUBJECTS} subjects, those furthest "
        "from the shares of their pool first. In brackets: the group's share of all images."
    )
    cells = [
        (
            row["subject"], row["attribute"], row["group"], percent(row["share"]),
            percent(row["pool_share"]), row["model"], scope(row["groups"], row["version"]),
        )
        for row in sorted(found, key=lambda row: -abs(row["share"] - row["pool_share"]))
    ]  # fmt: skip
    columns = ["Subject", "Attribute", "Group", "#Of the first K", "#Of the pool", "Model", "Of"]
    table = Table.of("Shares among the first K", columns, cells, source="proportions")
    return Section(
        "proportions", "Who is among the first, by subject",
        (Words((note,), "note"), Grid(tuple(plots)), table),
    )  # fmt: skip


def _map(panel: Sequence[Row], model: str, attribute: str, where: str) -> Chart:
    apart = {
        subject: sum(abs(row["share"] - row["pool_share"]) for row in own)
        for (subject,), own in panels(panel, "subject").items()
    }
    shown = sorted(apart, key=lambda subject: -apart[subject])[:MOST_SUBJECTS]
    pooled: dict[str, int] = {}
    for row in panel:
        pooled[row["group"]] = pooled.get(row["group"], 0) + row["n"]
    total = max(1, sum(pooled.values()))
    names = {group: f"{group} ({100 * n / total:.0f} %)" for group, n in pooled.items()}
    by_subject = panels(panel, "subject")
    data = [
        {
            "subject": row["subject"], "group": names[row["group"]], "share": row["share"],
            "shown": f"{100 * row['share']:.0f} %", "tone": tone(row["share"], 0.0, 1.0),
            "tip": f"{row['subject']}, {row['group']}: {percent(row['share'])} of the first, "
            f"{percent(row['pool_share'])} of the pool",
        }
        for subject in shown
        for row in by_subject[(subject,)]
    ]  # fmt: skip
    spec = charts_counterfactuals.proportions("rows", tuple(names.values()), len(shown))
    name = f"{attribute}: {model}" + (f", {where}" if attribute not in where else "")
    return Chart(f"Shares among the first K by subject: {name}", spec, {"rows": data}, None, name)
