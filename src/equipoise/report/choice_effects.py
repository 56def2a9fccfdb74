"""What becomes of conclusions under other choices of measurement: records, chart and table."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from equipoise.core import Aggregate, AuditResult, Finding, Verdict
from equipoise.core.conclusion import Conclusion, Step
from equipoise.core.wording import shortened
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import (
    NUMBER,
    Column,
    Role,
    Row,
    Table,
    Value,
    distinct,
    has,
    rows,
    value_of,
)
from equipoise.report.chart_records import MOST_LETTERS, ChartMark, ChartRecord, Form, Scale
from equipoise.report.choice_words import name_of_step
from equipoise.report.text import number, title
from equipoise.report.words import in_points

EFFECTS, STEPS = "choices", "steps"
"""Tables of a run: a row for each difference and step, and a row for each step."""
_CHANGED = ("surfaces", "explains", "switches")
_UNCLEAR = ("gained power", "lost power")
_MOST_MARKS, _MOST_ROWS, _LEAST_ROWS = 32, 8, 4
MEAN = "mean over concepts"
_GREY: Role = ""


def conclusions_of_choices(
    tables: Mapping[str, pa.Table], findings: Sequence[Finding]
) -> Iterator[Conclusion]:
    """Yield what becomes of a run's conclusions on each metric under its other choices.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
        Of a run. "choices" has a row for each difference and step, as `design_choices` returns it
        with the model, groups and metric; "steps" says what each step changes. Without these
        tables there are no conclusions.
    findings : sequence of Finding
        All findings of the run.
    """
    if EFFECTS not in tables or STEPS not in tables:
        return
    steps = tables[STEPS].to_pylist()
    by_place: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in tables[EFFECTS].to_pylist():
        by_place[row["model"], row["groups"], row["metric"]].append(row)
    for place, place_rows in by_place.items():
        counted = [_count_effects(step, place_rows) for step in steps]
        measured = _with_leading([step for step in counted if step.compared])
        finding = _finding_of(place, measured, findings)
        if measured and finding is not None:
            yield _conclude(finding, findings[finding], measured)


def with_effects(
    conclusions: Sequence[Conclusion], tables: Mapping[str, pa.Table], findings: Sequence[Finding]
) -> Iterator[Conclusion]:
    """Yield conclusions with what becomes of them in the step that leads on their metric.

    Parameters
    ----------
    conclusions : sequence of Conclusion
        On groups.
    tables, findings
        As of `conclusions_of_choices`.
    """
    leading = {
        (conclusion.model, conclusion.groups, conclusion.metric): conclusion.leading_step
        for conclusion in conclusions_of_choices(tables, findings)
    }
    effects: dict[tuple[object, ...], str] = {}
    for row in tables[EFFECTS].to_pylist() if leading else ():
        place = row["model"], row["groups"], row["metric"], row["concept"]
        pair = frozenset((row["group_a"], row["group_b"]))
        effects[(*place, pair, row["baseline"], row["version"])] = row["effect"]
    for conclusion in conclusions:
        finding = findings[conclusion.finding]
        step = leading.get((finding.model, finding.groups, finding.metric))
        if step is None or finding.group or not conclusion.real:
            yield conclusion
            continue
        place = finding.model, finding.groups, finding.metric, finding.subject
        pair = frozenset((conclusion.group, conclusion.other))
        effect = effects.get((*place, pair, finding.version, step.version), "")
        yield replace(conclusion, effect=effect, change=step.change if effect else "")


def _count_effects(step: Row, effects: Sequence[Row]) -> Step:
    """Count the differences of a step by what becomes of them."""
    counts = Counter(
        row["effect"] for row in effects
        if (row["baseline"], row["version"]) == (step["baseline"], step["version"])
    )  # fmt: skip
    compared = counts.total() - counts["not estimable"]
    return Step(
        baseline=step["baseline"], version=step["version"], choices=tuple(step["choices"]),
        change=step["change"], compared=compared, found=compared - counts["absent"],
        surfaces=counts["surfaces"], explains=counts["explains"], magnifies=counts["magnifies"],
        shrinks=counts["shrinks"], switches=counts["switches"],
        unclear=sum(counts[name] for name in _UNCLEAR),
    )  # fmt: skip


def _with_leading(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Mark the single choice that changes most; the last version's step without a single one."""
    if not steps:
        return ()
    single = [place for place, step in enumerate(steps) if len(step.choices) == 1]
    leading = max(
        single or [len(steps) - 1], key=lambda place: (steps[place].changed, steps[place].found)
    )
    return tuple(replace(step, leads=place == leading) for place, step in enumerate(steps))


def _finding_of(
    place: tuple[str, str, str], steps: Sequence[Step], findings: Sequence[Finding]
) -> int | None:
    """Return the place of the finding over all subjects in the version that the steps end in."""
    candidates = [
        index for index, finding in enumerate(findings)
        if (finding.model, finding.groups, finding.metric) == place
        and finding.aggregate is Aggregate.DIFFERENCE
    ]  # fmt: skip
    if not candidates:
        return None
    last = steps[-1].version if steps else ""
    return min(
        candidates,
        key=lambda index: (bool(findings[index].subject), findings[index].version != last),
    )


def _conclude(place: int, finding: Finding, steps: tuple[Step, ...]) -> Conclusion:
    leading = next(step for step in steps if step.leads)
    return Conclusion(
        model=finding.model, verdict=Verdict.NONE, groups=finding.groups, metric=finding.metric,
        aggregate=finding.aggregate, compared_to=finding.compared_to,
        size=leading.changed / leading.found if leading.found else math.nan,
        low=math.nan, high=math.nan, n=leading.found, finding=place, steps=steps,
    )  # fmt: skip


def changes_conclusions(conclusion: Conclusion) -> bool:
    """Whether some choice changes a conclusion."""
    return any(step.changed for step in conclusion.steps)


_COUNTS = (
    Column("Surfaces", "surfaces", NUMBER),
    Column("Explains", "explains", NUMBER),
    Column("Magnifies or shrinks", lambda step: step.magnifies + step.shrinks, NUMBER),
    Column("Switches", "switches", NUMBER),
)


def table_of_steps(conclusion: Conclusion) -> Table:
    """Return the counted effects of each choice on the conclusions on a metric."""
    columns = [Column("Choice", _choice_cell), *_COUNTS]
    caption = f"Effect of choices on conclusions about {spec_of(conclusion.metric).label}"
    return Table.of(caption, columns, conclusion.steps, source=EFFECTS)


def table_of_every_step(result: AuditResult) -> Table | None:
    """Return the counted effects of each choice for every metric of every model."""
    steps = [(step, conclusion) for conclusion in result.conclusions for step in conclusion.steps]
    counts = (*_COUNTS, Column("Perhaps chance", "unclear"), Column("Found", "found"),
              Column("Compared", "compared"))  # fmt: skip
    columns = [
        Column("Choice", _of_step(_choice_cell)),
        Column("Metric", lambda row: title(row[1].metric)),
        *(Column(column.title, _of_step(column.value), NUMBER) for column in counts),
        Column("Model", lambda row: row[1].model),
        Column("Groups", lambda row: row[1].groups),
    ]
    caption = "Effect of choices on conclusions about each metric"
    return Table.of(caption, columns, steps, source=EFFECTS) if steps else None


def _of_step(value: Value | None) -> Callable[[tuple[Step, Conclusion]], object]:
    """Return a function of a step with its conclusion, for a column of steps."""
    return lambda row: value_of(row[0], value or "")


def _choice_cell(step: Step) -> str:
    text = f"{step.change[:1].upper()}{step.change[1:]}"
    return f"{text} ({name_of_step(step)})" if text else name_of_step(step)


def chart_of_choices(result: AuditResult, conclusion: Conclusion) -> ChartRecord | None:
    """Draw the difference of each subject in every version, those that change most first.

    Returns
    -------
    ChartRecord or None
        A dumbbell for each subject: its first version, the one of the leading step in colour where
        its conclusion changes, and the others in grey. None without numbers.
    """
    step = conclusion.leading_step
    table = [
        row for row in rows(result, EFFECTS)
        if (row["model"], row["groups"], row["metric"])
        == (conclusion.model, conclusion.groups, conclusion.metric)
    ]  # fmt: skip
    if step is None or not table:
        return None
    versions = _versions(conclusion.steps)
    values = _values(table)
    of_step = [
        row for row in table if (row["baseline"], row["version"]) == (step.baseline, step.version)
    ]
    of_step.sort(key=lambda row: (row["effect"] not in _CHANGED, -abs(_number(row["change"]))))
    room = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_MARKS // len(versions)))
    shown = of_step[:room]
    pairs = {(row["group_a"], row["group_b"]) for row in table}
    points = in_points(result.findings[conclusion.finding])
    marks = [
        mark
        for row in shown
        for mark in _marks(row, step, versions, values, several=len(pairs) > 1, points=points)
    ]
    if not marks:
        return None
    extent = f", {len(shown)} of {len(of_step)}" if len(shown) < len(of_step) else ""
    name = f"Difference in {spec_of(conclusion.metric).label} by {conclusion.groups}"
    return ChartRecord(
        form=Form.DUMBBELL, title=f"{name} in each version{extent}", marks=tuple(marks),
        scale=Scale.POINTS if points else Scale.NUMBER,
        names={"label": "subject", "series": "version"},
        highlighted=(step.baseline, step.version),
        sides=_sides(conclusion.metric, *pairs.pop()) if len(pairs) == 1 else ("", ""),
        zero=True,
        note="Colour: the conclusion changes. Lines: intervals.",
    )  # fmt: skip


def _versions(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the versions of steps in order."""
    return (*distinct(steps, "baseline")[:1], *(
        name for name in distinct(steps, "version") if name != steps[0].baseline
    ))  # fmt: skip


Place = tuple[str, str, str, str]
"""A version, a subject and two groups."""


def _values(table: Sequence[Row]) -> dict[Place, tuple[float, float, float]]:
    """Return differences with their intervals, by version, subject and groups."""
    values: dict[Place, tuple[float, float, float]] = {}
    for row in table:
        place = row["concept"], row["group_a"], row["group_b"]
        baseline = row["baseline_value"], row["baseline_low"], row["baseline_high"]
        values[(row["baseline"], *place)] = baseline
        values[(row["version"], *place)] = row["value"], row["low"], row["high"]
    return values


def _marks(
    row: Row,
    step: Step,
    versions: Sequence[str],
    values: Mapping[Place, tuple[float, float, float]],
    *,
    several: bool,
    points: bool,
) -> Iterator[ChartMark]:
    """Yield a subject's difference in each version."""
    subject = row["concept"] or MEAN
    label = f"{subject}: {row['group_a']} − {row['group_b']}" if several else subject
    changed = row["effect"] in _CHANGED
    for version in versions:
        place = version, row["concept"], row["group_a"], row["group_b"]
        value, low, high = values.get(place, (math.nan, math.nan, math.nan))
        if not has(value):
            continue
        in_step = version in (step.baseline, step.version)
        text, role = number(100 * value, 1) if points else number(value), _GREY
        if in_step and changed:
            role = "other" if version == step.baseline else "worse"
        yield ChartMark(
            label=label, name=version, value=value,
            ends=(low, high) if in_step else (math.nan, math.nan),
            role=role, text=text if in_step else "",
        )  # fmt: skip


def _sides(metric: str, first: str, second: str) -> tuple[str, str]:
    """Return the group that is worse off at the left and at the right of the chart."""
    names = (shortened(name, MOST_LETTERS) for name in (first, second))
    left, right = names if spec_of(metric).harm != "higher" else reversed([*names])
    return f"← worse for {left}", f"worse for {right} →"


def _number(value: float) -> float:
    return value if has(value) else 0.0
