"""The chart that is drawn for a conclusion: its groups in each row, or values around chance."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from equipoise.core import Aggregate, Finding, GroupValue
from equipoise.core.conclusion import Conclusion
from equipoise.core.finding import REAL
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import Role, distinct, has
from equipoise.report.chart_records import NO_ENDS, ChartMark, ChartRecord, Ends, Form, Scale
from equipoise.report.expecting import expected_shares
from equipoise.report.selecting import measure_of
from equipoise.report.text import enclose, number, percent, plural, size_text
from equipoise.report.titles import sides_of
from equipoise.report.words import (
    group_value_name,
    harm,
    has_shares,
    is_comparison,
    name_of,
    sized,
    worst_first,
)

MOST_PANELS = 6
MOST_MARKS = 40
"""Marks of all panels together: more would push everything else out of sight."""
LEAST_ROWS, MOST_ROWS = 3, 12
MOST_IN_ROW = 4
"""Groups of a row; more have a row each."""

_CLOSE = 1e-6


def chart_of(
    finding: Finding, conclusion: Conclusion, findings: Sequence[Finding]
) -> ChartRecord | None:
    """Choose the chart of a conclusion.

    Parameters
    ----------
    finding : Finding
        The one that states it.
    conclusion : Conclusion
    findings : sequence of Finding
        All findings of the run.

    Returns
    -------
    ChartRecord or None
        Bars around expected shares where groups' values are shares of one whole; the groups of
        each subject where their difference is what was measured; else bars of the values around
        chance. None where no number is finite.
    """
    first = of_all_groups(finding, findings)
    same = [other for other in findings if _series(other) == _series(first)]
    first, series = _with_joined_pairs(first, same)
    groups = worst_first(first)
    sides = sides_of(finding, conclusion)
    names = [part.group for part in groups]
    if len(names) == 2 and sides[0] in names:
        # What the worse one is compared with may be an expected share.
        sides = sides[0], names[names[0] == sides[0]]
    rest = [part for part in finding.by_group if part.group == sides[1] and part.group not in names]
    case = _Case(first, sides, series, tuple(rest))
    if conclusion.standings and not _is_spread(first):
        record = case.models_of(conclusion)
    elif groups and spec_of_finding(first).of_whole:
        record = case.shares()
    elif len(groups) > 1 and (_is_spread(first) or len(case.subjects) < 2):
        record = case.dumbbells()
    else:
        record = case.values()
    marks = tuple(mark for mark in record.marks if math.isfinite(mark.value))
    note = " ".join(filter(None, (record.note, case.models_left_out(record))))
    return replace(record, marks=marks, note=note) if marks else None


def of_all_groups(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding over all groups behind that of one group against all others."""
    if not finding.group or finding.aggregate is not Aggregate.AGAINST_REST:
        return finding
    place = finding.model, finding.subject, finding.groups, finding.version
    for candidate in findings:
        same = (candidate.model, candidate.subject, candidate.groups, candidate.version) == place
        gap = (
            candidate.aggregate is Aggregate.DIFFERENCE
            and spec_of_finding(candidate).rest_metric == finding.metric
        )
        if same and gap:
            return candidate
    return finding


def _with_joined_pairs(
    first: Finding, series: Sequence[Finding]
) -> tuple[Finding, Sequence[Finding]]:
    """Join the pairs of groups of a subject to a finding about all of its groups.

    It has the numbers of the pair that leads, or is farthest apart.
    """
    if _subject_of_pair(first) is None:
        return first, series
    by_subject: dict[tuple[str, str], list[Finding]] = {}
    for finding in (first, *sorted(series, key=lambda pair: -abs(pair.value))):
        subject = _subject_of_pair(finding)
        if subject is not None and finding.by_group:
            by_subject.setdefault((finding.model, subject), []).append(finding)
    joined = [
        replace(
            pairs[0],
            subject=subject,
            by_group=tuple({part.group: part for pair in pairs for part in pair.by_group}.values()),
        )
        for (_, subject), pairs in by_subject.items()
    ]
    return joined[0], joined


def _subject_of_pair(finding: Finding) -> str | None:
    """Return the subject of a finding about two groups; None where it is about no pair."""
    names = [part.group for part in finding.by_group]
    pair = " − ".join(names)
    if len(names) != 2 or not finding.subject.endswith(pair):
        return None
    return finding.subject.removesuffix(pair).removesuffix(": ")


def _series(finding: Finding) -> tuple[object, ...]:
    """Return what findings share that stand in one chart."""
    return (*measure_of(finding), finding.groups, finding.version, finding.null)


def _spread(finding: Finding) -> float:
    values = [part.value for part in worst_first(finding)]
    return max(values) - min(values) if values else math.nan


def _is_spread(finding: Finding) -> bool:
    """Whether a finding's value is the distance between the highest group and the lowest."""
    if finding.group and finding.subject == finding.group:
        return False
    return abs(abs(finding.value) - _spread(finding)) <= _CLOSE


@dataclass(frozen=True)
class _Case:
    """A finding that leads, the groups that its conclusion names, and findings of the same kind.

    All other groups together, where the conclusion names them, are the rest.
    """

    first: Finding
    sides: tuple[str, str]
    series: Sequence[Finding]
    rest: tuple[GroupValue, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that have a panel, that of the finding first."""
        return self._all_models[:MOST_PANELS]

    @property
    def _all_models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.first.model, *distinct(self.series, "model"))))

    def models_left_out(self, record: ChartRecord) -> str:
        """Say how many models have no panel; "" where all have one, or there are no panels."""
        more = len(self._all_models) - len(self.models)
        if not (record.panels and more):
            return ""
        if is_comparison(self.first):
            return f"And {plural(more, 'more pair of models', 'more pairs of models')}."
        return f"And {plural(more, 'more model')}."

    @property
    def subjects(self) -> list[Finding]:
        """Findings of the leading model about single subjects."""
        return [
            finding
            for finding in self.series
            if finding.model == self.first.model and finding.subject and has(finding.value)
        ]

    @property
    def scale(self) -> Scale:
        """How groups' values are shown."""
        if has_shares(self.first):
            return Scale.SHARE
        return {"share": Scale.SHARE, "points": Scale.POINTS}.get(
            spec_of_finding(self.first).unit, Scale.NUMBER
        )

    def text_of(self, value: float) -> str:
        """Return a group's value as it stands beside its mark."""
        if self.scale is Scale.POINTS:
            return f"{number(100 * value, 1)} points"
        return percent(value) if self.scale is Scale.SHARE else number(value)

    def room(self, marks: int = 1) -> int:
        """Return how many rows there is room for, with so many marks in each."""
        return max(LEAST_ROWS, min(MOST_ROWS, MOST_MARKS // (len(self.models) * marks)))

    def largest(self, marks: int = 1) -> list[Finding]:
        """Return the findings with the largest values, and always the one that leads."""
        ordered = sorted(self.subjects, key=lambda finding: -abs(finding.value))
        room = self.room(marks)
        chosen = ordered[:room]
        if self.first.subject and self.first not in chosen:
            chosen[-1:] = [self.first]
        return chosen

    def of_models(self, finding: Finding, models: Iterable[str] = ()) -> Iterable[Finding]:
        """Yield the finding about the same subject of each model, else of those drawn."""
        for model in models or self.models:
            for other in self.series:
                if (other.model, other.subject, other.group) == (
                    model, finding.subject, finding.group,
                ):  # fmt: skip
                    yield other

    def role_of(self, group: str) -> Role:
        """Return which side of the conclusion a group is on."""
        worse, other = self.sides
        if group and group == worse:
            return "worse"
        return "other" if group and (group == other or self.rest) else ""

    def extent(self, shown: int, total: int) -> str:
        """Say how many of all rows are shown, where some are not."""
        return f", {shown} of {total}" if shown < total else ""

    # Groups in a row, joined.

    def dumbbells(self) -> ChartRecord:
        """Draw the groups of each subject, of each level of an attribute, or one by one."""
        first = self.first
        groups = worst_first(first)
        if first.subject and len(self.subjects) > 1 and len(groups) <= MOST_IN_ROW:
            return self.by_subject()
        place = _varied_attribute(groups, self.sides)
        if place is not None:
            return self.by_level(place)
        return self.by_group()

    def by_subject(self) -> ChartRecord:
        """Draw the groups of each subject."""
        rows = self.largest(len(worst_first(self.first)))
        marks = list[ChartMark]()
        for row in rows:
            for finding in self.of_models(row):
                marks += self.marks(finding, finding.subject, lambda part: part.group)
        extent = self.extent(len(rows), len(self.subjects))
        grey = "Grey rows: no difference was found." if self.sides[0] else ""
        return self.record(f"by {self.first.groups}{extent}", marks, ("subject", "group"), grey)

    def by_level(self, place: int) -> ChartRecord:
        """Draw groups in a row for each level of the other attributes."""
        attributes = self.first.attributes
        marked, others = attributes[place], [*attributes[:place], *attributes[place + 1 :]]

        def row_of(part: GroupValue) -> str:
            return ", ".join((*part.levels[:place], *part.levels[place + 1 :]))

        lengths: dict[str, list[float]] = {}
        for part in worst_first(self.first):
            lengths.setdefault(row_of(part), []).append(part.value)
        longest = sorted(lengths, key=lambda row: min(lengths[row]) - max(lengths[row]))
        leading = [row_of(part) for part in worst_first(self.first) if part.group in self.sides]
        rows = [*dict.fromkeys((*leading[:1], *longest))][: self.room(2)]
        marks = list[ChartMark]()
        for finding in self.of_models(self.first):
            parts = self.marks(finding, "", lambda part: part.levels[place], row_of)
            marks += sorted(
                (mark for mark in parts if mark.label in rows), key=lambda m: rows.index(m.label)
            )
        extent = self.extent(len(rows), len(lengths))
        rest = f"by {' and '.join(others)}{extent}: {marked}"
        return self.record(rest, marks, (" × ".join(others), marked))

    def by_group(self) -> ChartRecord:
        """Draw each group in a row, the worst first, and all other groups below them."""
        first = self.first
        groups = worst_first(first)
        shown = groups[: self.room()]
        names = [part.group for part in shown]
        n_of = {part.group: part.n for part in shown}
        marks = list[ChartMark]()
        for finding in self.of_models(first):
            parts = self.marks(finding, "", lambda part: part.group, lambda part: part.group)
            marks += sorted(
                (mark for mark in parts if mark.name in names), key=lambda m: names.index(m.name)
            )
        for part in self.rest:
            n_of[part.group] = part.n
            finding = replace(first, by_group=(part,), chance_high=math.nan)
            marks += self.marks(finding, "", lambda part: part.group, lambda part: part.group)
        marks = [
            replace(mark, label=f"{mark.label} ({size_text(first, n_of[mark.name])})")
            for mark in marks
        ]
        extent = self.extent(len(shown), len(groups))
        return self.record(f"by {first.groups}{extent}", marks, ("group", "group"))

    def marks(
        self,
        finding: Finding,
        label: str,
        name_of_part: Callable[[GroupValue], str],
        row_of: Callable[[GroupValue], str] | None = None,
    ) -> list[ChartMark]:
        """Return the marks of a finding's groups."""
        chance, limit = _bands(finding)
        shown = finding.verdict in REAL
        leads = finding.model == self.first.model and finding.subject == self.first.subject
        marks = []
        for part in worst_first(finding):
            role = self.role_of(part.group) if shown else ""
            name = name_of_part(part)
            marks.append(
                ChartMark(
                    label=row_of(part) if row_of else label,
                    name=name,
                    panel=finding.model,
                    value=part.value,
                    ends=(part.low, part.high),
                    # Of rankings it isn't how many images the share is of.
                    n=part.n if finding.top_k is None else 0,
                    role=role,
                    text=self.text_of(part.value),
                    named=bool(role) and leads and row_of is None,
                    chance=chance,
                    limit=limit,
                )
            )
        return marks

    def record(
        self, rest: str, marks: Sequence[ChartMark], names: tuple[str, str], *notes: str
    ) -> ChartRecord:
        """Return the record of a chart of groups."""
        about = ""
        if self.first.subject and names[0] != "subject" and _names_subject(self.first):
            about = f" for “{self.first.subject}”"
        return ChartRecord(
            form=Form.DUMBBELL,
            title=f"{group_value_name(self.first)}{about} {rest}",
            marks=tuple(marks),
            scale=self.scale,
            panels=self.models,
            names={"label": names[0], "series": names[1]},
            highlighted=tuple(filter(None, self.sides)),
            note=_note(marks, *notes),
        )

    # Bars from what is expected.

    def shares(self) -> ChartRecord:
        """Draw a group's share of each subject's whole around its expected share."""
        shown = self.largest() or [self.first]
        group = self.drawn_group()
        marks = [
            mark
            for row in shown
            for finding in self.of_models(row)
            for mark in self.share_marks(finding, group)
        ]
        leading = _surplus(self.first, self.first.group or group)
        sign = -1 if leading is None or not _is_above(*leading) else 1
        marks.sort(key=lambda mark: sign * (mark.expected - mark.value))
        own = all(finding.group for finding in shown)
        about = f"by {self.first.groups}" if own else f"that show {group}"
        extent = self.extent(len(shown), max(len(self.subjects), 1))
        others = [part.group for part in self.first.by_group if part.group != group]
        sides = ("← fewer", "more →")
        if len(others) == 1 and not own:
            sides = (f"← more {others[0]}", f"more {group} →")
        expected = "Upright line: the expected share."
        label = spec_of_finding(self.first).group_label or "share of images"
        return self.bars(
            f"{label[:1].upper()}{label[1:]} {about}{extent}", marks, sides, Scale.SHARE, expected
        )

    def drawn_group(self) -> str:
        """Return the group whose share is drawn: the one that the conclusion names."""
        return self.sides[0] or worst_first(self.first)[0].group

    def share_marks(self, finding: Finding, group: str) -> list[ChartMark]:
        """Return the mark of a group's share, in the colour of its side of what is expected."""
        surplus = _surplus(finding, finding.group or group)
        if surplus is None:
            return []
        part, expected = surplus
        leading = _surplus(self.first, self.first.group or group)
        as_leading = leading is None or _is_above(*leading) == _is_above(part, expected)
        role: Role = "worse" if as_leading else "other"
        return [
            ChartMark(
                label=finding.subject or f"all {finding.unit}s",
                name=part.group,
                panel=finding.model,
                value=part.value,
                ends=(part.low, part.high),
                n=finding.n,
                role=role if finding.verdict in REAL else "",
                text=percent(part.value),
                expected=expected,
            )
        ]

    def values(self) -> ChartRecord:
        """Draw the value of each subject around chance."""
        rows = sorted(self.largest() or [self.first], key=lambda finding: -finding.value)
        marks = [self.value_mark(other) for row in rows for other in self.of_models(row)]
        sides = ("", "")
        if self.first.sides:
            first, second = self.first.sides
            sides = (f"← {second}", f"{first} →")
        extent = self.extent(len(rows), max(len(self.subjects), 1))
        title_text = f"{name_of(self.first)}{enclose(': ', self.first.groups)}{extent}"
        scale = _SCALES.get(spec_of_finding(self.first).unit, Scale.NUMBER)
        return self.bars(title_text, marks, sides, scale)

    def models_of(self, ranking: Conclusion) -> ChartRecord:
        """Draw the value of each model that is ranked, the best first."""
        places = [standing.model for standing in ranking.standings][:MOST_ROWS]
        findings = {finding.model: finding for finding in self.of_models(self.first, places)}
        marks = [
            replace(
                self.value_mark(findings[model]), label=model, panel="", limit=NO_ENDS,
                role=self.role_of(model) if ranking.real else "",
            )
            for model in places if model in findings
        ]  # fmt: skip
        extent = self.extent(len(marks), len(ranking.standings))
        scale = _SCALES.get(spec_of_finding(self.first).unit, Scale.NUMBER)
        title_text = f"{name_of(self.first)} by {self.first.groups}{extent}"
        record = self.bars(title_text, marks, ("", ""), scale)
        note = _note(marks, "Colour: the best and the worst model." if ranking.real else "")
        return replace(record, names={"label": "model", "series": "group"}, note=note)

    def value_mark(self, finding: Finding) -> ChartMark:
        """Return the mark of a finding's value."""
        side = harm(finding)
        base = 0.0 if side == "either" or not has(finding.chance) else finding.chance
        role: Role = ""
        if finding.verdict in REAL:
            role = "other" if side == "either" and finding.value < 0 else "worse"
        low, high = finding.chance_low, finding.chance_high
        threshold = finding.threshold
        limit = {
            "higher": (low, finding.chance + threshold),
            "lower": (finding.chance - threshold, high),
        }.get(side, (finding.chance - threshold, finding.chance + threshold))
        return ChartMark(
            label=finding.subject or finding.groups or finding.model,
            name=finding.groups,
            panel=finding.model,
            value=finding.value,
            ends=(finding.ci_low, finding.ci_high),
            n=finding.n,
            role=role,
            text=sized(finding, finding.value),
            expected=base,
            chance=(low, high),
            limit=limit,
        )

    def bars(
        self,
        title_text: str,
        marks: Sequence[ChartMark],
        sides: tuple[str, str],
        scale: Scale,
        note: str = "",
    ) -> ChartRecord:
        """Return the record of a chart of bars."""
        colors = "Colour: a difference was found. Grey: none was."
        return ChartRecord(
            form=Form.BARS,
            title=title_text,
            marks=tuple(marks),
            scale=scale,
            panels=tuple(panel for panel in self.models if any(m.panel == panel for m in marks)),
            names={"label": "subject", "series": "group"},
            highlighted=tuple(filter(None, self.sides)),
            sides=sides,
            note=_note(marks, note, colors),
        )


_SCALES = {
    "share": Scale.SHARE, "points": Scale.POINTS, "log ratio": Scale.LOG_RATIO,
    "degrees": Scale.DEGREES,
}  # fmt: skip


def _varied_attribute(groups: Sequence[GroupValue], sides: tuple[str, str]) -> int | None:
    """Return the place of the attribute in which the groups of a conclusion differ.

    The last attribute where they differ in several; None where groups have one attribute.
    """
    n_attributes = {len(part.levels) for part in groups}
    if n_attributes != {len(groups[0].levels)} or len(groups[0].levels) < 2:
        return None
    last = len(groups[0].levels) - 1
    levels = {part.group: part.levels for part in groups}
    first, second = (levels.get(name, ()) for name in sides)
    places = [
        place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]
    ]
    return places[0] if len(places) == 1 else last


def _names_subject(finding: Finding) -> bool:
    """Whether the sentence of a finding names its subject, which is the metric's own otherwise."""
    clause = spec_of_finding(finding).clause
    return not clause or any(field in clause for field in ("{subject}", "{about}", "{of}"))


def _expected(finding: Finding) -> Mapping[str, float]:
    """Return the share that each group is compared with: as expected, else equal ones."""
    parts = finding.by_group
    return expected_shares(finding) or {part.group: 1 / len(parts) for part in parts}


def _surplus(finding: Finding, group: str) -> tuple[GroupValue, float] | None:
    """Return a group's share with its expected one; None where it lacks either."""
    expected = _expected(finding)
    parts = [part for part in finding.by_group if part.group == group and has(part.value)]
    return (parts[0], expected[group]) if parts and group in expected else None


def _is_above(part: GroupValue, expected: float) -> bool:
    return part.value >= expected


def _bands(finding: Finding) -> tuple[Ends, Ends]:
    """Return between which values groups lie by chance alone, and within the limit.

    Bands are around the middle of the highest and the lowest group, so that both are outside
    exactly where their distance is larger.
    """
    values = [part.value for part in worst_first(finding)]
    if not _is_spread(finding) or not has(finding.chance_high):
        return NO_ENDS, NO_ENDS
    middle = (max(values) + min(values)) / 2
    reach = finding.chance_high / 2
    chance = (middle - reach, middle + reach)
    if not has(finding.threshold) or not has(finding.chance):
        return chance, NO_ENDS
    reach = (finding.chance + finding.threshold) / 2
    if reach <= finding.chance_high / 2:
        return chance, NO_ENDS
    return chance, (middle - reach, middle + reach)


def _note(marks: Sequence[ChartMark], *notes: str) -> str:
    """Say how to read the marks of a chart."""
    texts = []
    if any(has(mark.ends[0]) for mark in marks):
        texts.append("Lines: intervals.")
    if any(has(mark.chance[0]) for mark in marks):
        texts.append("Dark band: chance alone.")
    if any(has(mark.limit[0]) for mark in marks):
        texts.append("Light band: within the limit.")
    return " ".join(filter(None, (*texts, *notes)))
