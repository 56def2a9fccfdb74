"""Concepts: what the choices do to each disparity, and what holds whatever is chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_concepts as charts
from equipoise.report.blocks import Block, Chart, Fold, Heading, Section, Table, Words
from equipoise.report.charts_concepts import SYMBOLS
from equipoise.report.names import title
from equipoise.report.tables import Row, distinct, has, panels, rows
from equipoise.report.text import count, interval, number, plural
from equipoise.report.words_concepts import TOLD, Version, name_of, sentence, versions_of, worse
from equipoise.report.words_robust import UNKNOWN, Held, counted, held, unknowns, without_baseline

BASELINE = "baseline"
MOST_PAIRS, MOST_PANELS, MOST_ROWS, MOST_SAID, MOST_FOLDED = 3, 6, 30, 8, 60
_QUIET = ("stays", "absent", "not estimable")
# Heads of narrow columns.
_SHORT = {"stays": "same", "not estimable": "none", "lost power": "lost"}
_KEY = (
    "+ surfaces: significant only there. × explained: no longer significant, and the change is no "
    "chance. ⇄ switches direction. ↑ larger, ↓ smaller by more than a quarter. ? no longer "
    "significant, but the change may be chance. ● significant, · not significant, both as in the "
    "baseline. – not estimable."
)

Place = tuple[str, str, str]
_PLACE = ("model", "groups", "metric")


def versions(result: AuditResult) -> Section | None:
    """A symbol for every concept and version, and in words what the choices do."""
    found = rows(result, "choices")
    if not found:
        return None
    named = versions_of(rows(result, "versions"))
    described = [f"{one.name}: {one.changes}" for one in named.values() if one.changes]
    blocks: list[Block] = [
        Words((_intro(found, named),)),
        Words(tuple(described), "list"),
        Words((_KEY,), "note"),
    ]
    for place, panel, leads in primary(result, found):
        shown = (*_matrix(panel, [*named]), _tally(panel), *_said(panel, named))
        blocks += titled(place, shown, leads=leads)
    return Section("versions", "What the choices do", tuple(blocks))


def _intro(found: Sequence[Row], named: Mapping[str, Version]) -> str:
    changed = sum(row["effect"] not in _QUIET for row in found)
    unknown = sum(row["effect"] == UNKNOWN for row in found)
    return (
        f"{plural(len(named) - 1, 'other choice')} beside the baseline: of "
        f"{plural(len(found), 'comparison')} of a version with it, {count(changed)} come to "
        "another conclusion or another size"
        + (f", and {count(unknown)} cannot be made." if unknown else ".")
    )


def primary(result: AuditResult, found: Sequence[Row]) -> Iterator[tuple[Place, list[Row], bool]]:
    """Yield the rows of each panel, and whether its metric stands for the baseline: those first."""
    first = next(iter(rows(result, "versions")), {"metric": ""})["metric"]
    every = panels(found, *_PLACE)
    ordered = sorted(every, key=lambda place: place[2] != first)
    for place in ordered[:MOST_PANELS]:
        model, groups, metric = place
        yield (model, groups, metric), every[place], metric == first


def titled(place: Place, blocks: Sequence[Block], *, leads: bool) -> list[Block]:
    """Return blocks under the panel's name, folded away unless they lead."""
    if leads:
        return [Heading(panel_name(place)), *blocks]
    return [Fold(panel_name(place), tuple(blocks))]


def panel_name(place: Place) -> str:
    """Return the heading of a panel: metric, model and groups."""
    model, groups, metric = place
    return f"{title(metric)}: {model}, by {groups}"


def _label(row: Row, *, several: bool) -> str:
    name = name_of(row["concept"])
    return f"{name}: {row['group_a']} − {row['group_b']}" if several else name


def _several(panel: Sequence[Row]) -> bool:
    return len({(row["group_a"], row["group_b"]) for row in panel}) > 1


def subjects_of(panel: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by concept and pair: the mean, unless pairs are many, then what changes most."""
    several = _several(panel)
    few = len({(row["group_a"], row["group_b"]) for row in panel}) <= MOST_PAIRS
    found: dict[str, list[Row]] = {}
    for row in panel:
        found.setdefault(_label(row, several=several), []).append(row)

    def weight(label: str) -> tuple[bool, int, float]:
        some = found[label]
        loud = sum(row["effect"] not in _QUIET for row in some)
        size = abs(some[0]["baseline_value"])
        return few and bool(some[0]["concept"]), -loud, -size if has(size) else math.inf

    return {label: found[label] for label in sorted(found, key=weight)}


def _matrix(panel: Sequence[Row], order: list[str]) -> list[Block]:
    subjects = subjects_of(panel)
    shown = [*subjects][:MOST_ROWS]
    present = [name for name in order if name == BASELINE or name in distinct(panel, "version")]
    data = [cell for label in shown for cell in _cells(label, subjects[label])]
    cells = [
        (label, *(_word(subjects[label], version) for version in present)) for label in subjects
    ]
    table = Table.of("What each version does", ["Concept", *present], cells, source="choices")
    label = "What each version does to the difference of each concept, as symbols."
    spec = charts.matrix("rows", tuple(present), len(shown))
    blocks: list[Block] = [Chart(label, spec, {"rows": data}, table)]
    if len(subjects) > MOST_ROWS:
        left = f"The {MOST_ROWS} of {count(len(subjects))} that the choices change most."
        blocks.append(Words((left,), "note"))
    return blocks


def _tally(panel: Sequence[Row]) -> Table:
    """Count the concepts by effect in every version; their mean is none of them."""
    some = [row for row in panel if row["concept"]]
    present = [one for one in SYMBOLS if any(row["effect"] == one for row in some)]
    cells = [
        (version, *(count(sum(row["effect"] == one for row in found)) for one in present))
        for (version,), found in panels(some, "version").items()
    ]
    columns = ["Version", *(f"#{SYMBOLS[one]} {_SHORT.get(one, one)}" for one in present)]
    what = "concepts and pairs of groups" if _several(panel) else "concepts"
    return Table.of(f"How many {what} each version changes", columns, cells, source="choices")


def _cells(label: str, some: Sequence[Row]) -> Iterator[dict[str, Any]]:
    first = some[0]
    yield _cell(label, BASELINE, baseline_effect(first), first["baseline_value"], "")
    for row in some:
        spread = interval(row["low"], row["high"])
        yield _cell(label, row["version"], row["effect"], row["value"], spread)


def baseline_effect(row: Row) -> str:
    """Return the effect that stands for the baseline: whether its difference is significant."""
    if not has(row["baseline_value"]):
        return "not estimable"
    return "stays" if row["baseline_significant"] else "absent"


def _cell(label: str, version: str, effect: str, value: float, spread: str) -> dict[str, Any]:
    word = {"stays": "significant", "absent": "not significant"}.get(effect, effect)
    return {
        "concept": label,
        "version": version,
        "effect": effect,
        "symbol": SYMBOLS[effect],
        "tip": f"{label}, {version}: {word}, difference {number(value)} {spread}".strip(),
    }


def _word(some: Sequence[Row], version: str) -> str:
    if version == BASELINE:
        effect = baseline_effect(some[0])
        return {"stays": "● significant", "absent": "· not significant"}.get(effect, "– none")
    effect = next((row["effect"] for row in some if row["version"] == version), "")
    return f"{SYMBOLS[effect]} {effect}" if effect else ""


def _said(panel: Sequence[Row], named: Mapping[str, Version]) -> Iterator[Block]:
    """Yield sentences by effect, the largest changes first."""
    texts: list[str] = []
    for effect in TOLD:
        by_subject = panels(
            [row for row in panel if row["effect"] == effect], "concept", "group_a", "group_b"
        )
        told = sorted(by_subject.values(), key=lambda some: -_change(some))
        texts += [f"{SYMBOLS[effect]} {sentence(some, named)}" for some in told]
    silent = unknowns(panel)
    if texts:
        yield from _listed(texts)
    else:
        compared = " where it can be estimated" if silent else ""
        yield Words((f"No other choice changes a conclusion or a size{compared}.",))
    if silent:
        yield Words((_SILENT,))
        yield from _listed(silent)


_SILENT = "What a version that cannot be estimated would say is not known; it confirms nothing:"


def _listed(texts: Sequence[str]) -> Iterator[Block]:
    yield Words(tuple(texts[:MOST_SAID]), "list")
    rest = texts[MOST_SAID:MOST_FOLDED]
    if rest:
        yield Fold(f"Show {plural(len(rest), 'more statement')}", (Words(tuple(rest), "list"),))
    if len(texts) > MOST_FOLDED:
        left = plural(len(texts) - MOST_FOLDED, "further one")
        yield Words((f"{left}: see tables/choices.parquet.",), "note")


def _change(some: Sequence[Row]) -> float:
    return max((abs(row["change"]) for row in some if has(row["change"])), default=0.0)


def robust(result: AuditResult) -> Section | None:
    """Which conclusions hold in every version, and which only where they can be judged."""
    choices = [row for row in rows(result, "choices") if row["concept"]]
    found = held((row for row in rows(result, "robust") if row["concept"]), choices)
    if not found:
        return None
    by_place = panels(choices, *_PLACE)
    blocks: list[Block] = [Words((_MEANT,), "note")]
    for place, _, leads in primary(result, [one.row for one in found]):
        here = [one for one in found if tuple(one.row[key] for key in _PLACE) == place]
        said = (*_conclusions(here), *without_baseline(by_place.get(place, [])))
        blocks += titled(place, (Words(said, "list"),), leads=leads)
    columns = ["Concept", "Conclusion of the baseline", "#Versions that agree", "#Not estimable",
               "Model", "Groups", "Metric"]  # fmt: skip
    cells = [
        (
            one.row["concept"], _conclusion(one.row),
            f"{one.row['agreeing']} of {one.row['versions']}", count(len(one.unknown)),
            one.row["model"], one.row["groups"], title(one.row["metric"]),
        )
        for one in sorted(found, key=_weakness)
    ]  # fmt: skip
    table = Table.of("Conclusions and the versions that agree", columns, cells, source="robust")
    return Section("robust", "What holds whatever is chosen", (*blocks, table))


_MEANT = (
    "Significant is what a version's own test says. The verdict of a finding says more: whether a "
    "difference is large enough to matter, and whether one that is not significant is small or "
    "only uncertain. A version that cannot be estimated agrees with nothing."
)


def _weakness(one: Held) -> tuple[bool, bool, float, int]:
    """Order conclusions: significant ones first, of these the most widely confirmed."""
    return not one.row["conclusion"], not one.robust, -one.row["share"], len(one.unknown)


def _conclusion(row: Row) -> str:
    if not row["conclusion"]:
        return f"no significant difference ({row['group_a']}, {row['group_b']})"
    loser = worse(row, 1.0 if row["conclusion"] == row["group_a"] else -1.0)
    other = row["group_a"] if loser == row["group_b"] else row["group_b"]
    return f"worse for {loser} than for {other}"


def _conclusions(found: Sequence[Held]) -> Iterator[str]:
    """Yield the counts, what holds in every version, and what holds where it can be judged."""
    yield counted(found)
    agreed = [one for one in found if one.row["conclusion"] and one.agrees]
    for some in ([o for o in agreed if o.robust], [o for o in agreed if not o.robust]):
        for one in some[:MOST_SAID]:
            yield f"{one.row['concept']}: {_conclusion(one.row)}, {one.where}."
        if len(some) > MOST_SAID:
            yield f"{plural(len(some) - MOST_SAID, 'further one')}: see the table."
