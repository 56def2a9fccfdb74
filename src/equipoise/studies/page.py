"""The section of a report that compares a run with its source."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from equipoise.core import AuditResult
from equipoise.report import blocks
from equipoise.report.blocks import NUMBER, Column, Fold, Number, Row, Table, has, panels, rows
from equipoise.report.text import enclose, interval, listed, number, plural
from equipoise.studies.chance import ChanceConfig, FairResult
from equipoise.studies.claims import CLAIMS, COMPARISONS, count_marks
from equipoise.studies.conditions import UNDECIDED, Mark
from equipoise.studies.quantities import UNDEFINED, Quantity, Reading
from equipoise.studies.repetition import Repetition, contains
from equipoise.studies.study import Study, StudyTable, study_of
from equipoise.studies.works import PrintedTable

_MARKS: Mapping[str, str] = {
    Mark.HOLDS: "✓ holds in your run",
    Mark.FAILS: "✗ doesn't",
    Mark.OPEN: "? can't tell",
}
_MOST_KEYS = 10
_ARROWS = {"higher": " ↑", "lower": " ↓"}
_CELLS = "Each cell has this run's value with its interval and chance level"
_BETTER = "↑ and ↓ mark columns where the source calls higher or lower better."
CHANCE = "Value of a fair model under the published protocol"
_FAIR = (
    "A fair model treats all groups alike. Its numbers are simulated for the published sizes: "
    "compare printed numbers with them. Compare the number of this run with its own chance level. "
    "This run may average more answers, such as those in both orders, and then chance gives less."
)
_CHANCE_HEADS = (
    "Number",
    "In words",
    "95 of 100 fair models",
    "Mean of fair models",
    "Simulated runs",
    "This run",
    "Chance in this run",
)
_JUDGED = (
    "A claim holds if the confidence intervals of all its numbers support it. It doesn't if an "
    "interval contradicts it. Each interval is judged by itself."
)


def source_tables(result: AuditResult) -> blocks.Section | None:
    """Return the source's tables and claims with this run's numbers; None of a run of no study."""
    study = study_of(result)
    if study is None:
        return None
    run = Repetition(result, study.parsed_configs)
    tables = [(table, _fill_table(study, table, run)) for table in study.tables]
    origin = f"{study.source}. Data: {study.data}. Licence: {study.licence}."
    legend = _legend(study, [table for table, filled in tables if filled])
    parts: list[blocks.Block | str | None] = [origin, legend, _changed(run), _changed_settings(run)]
    unmeasured = list[str]()
    for table, filled in tables:
        if filled is None:
            unmeasured.append(_title(study, table))
        else:
            parts += [filled, *_notes(study, table)]
    if chance := _measured_chance(study.chance, run):
        parts += [_chance_table(chance, run), _FAIR]
    if unmeasured:
        titles = "; ".join(dict.fromkeys(unmeasured))
        parts.append(f"This run measures nothing of: {titles}.")
    if alone := [*_printed_alone(study, unmeasured)]:
        parts.append(Fold("Printed, without a number of this run", tuple(alone)))
    parts += _claims(result)
    return blocks.Section.of("study", "Comparison with the source", *parts)


def _legend(study: Study, tables: Sequence[StudyTable]) -> str | None:
    """Explain the cells of tables, and the arrows where columns have any."""
    if not tables:
        return None
    printed = [*filter(None, map(partial(_printed, study), tables))]
    source = ", then the number that the source prints" if any(p.rows for p in printed) else ""
    arrows = _BETTER if any(p.better for p in printed) else ""
    return " ".join(filter(None, (f"{_CELLS}{source}.", arrows)))


def _changed(run: Repetition) -> str | None:
    changed = run.changed()
    if not changed:
        return None
    verb = "has" if len(changed) == 1 else "have"
    return f"{listed(changed)} {verb} other settings than in the study's own configuration."


def _changed_settings(run: Repetition) -> str | None:
    changed = run.changed_settings()
    if not changed:
        return None
    keys = listed(changed, _MOST_KEYS)
    return f"This run and the study's configuration differ in {keys}."


def _printed(study: Study, table: StudyTable) -> PrintedTable | None:
    return study.work.tables[table.of] if table.of else None


def _title(study: Study, table: StudyTable) -> str:
    printed = _printed(study, table)
    return f"{table.of}: {printed.title}" if printed else str(table.title)


def _notes(study: Study, table: StudyTable) -> Iterator[str]:
    """Yield what to know of a table: its units, errata of the source, and of the comparison."""
    printed = _printed(study, table)
    if printed is None:
        yield table.note
        return
    units = enclose("Units: ", printed.units, ".")
    without = "" if printed.rows else "The source draws this and prints no numbers for it."
    yield " ".join(filter(None, (units, without, printed.note, table.note)))


def _fill_table(study: Study, table: StudyTable, run: Repetition) -> Table | None:
    """Return a table with the numbers of a run; None without any."""
    if not contains(run.resolved, table.run):
        return None
    printed = _printed(study, table)
    row_names = printed.rows if printed and printed.rows else table.rows
    columns = printed.columns if printed and printed.rows else [*table.columns]
    cells, measured = list[list[str | Number]](), False
    for row in row_names:
        models = _models(table, row, run)
        for model in models or ("",):
            line = list[str | Number]()
            for column in columns:
                source = _source_text(printed, row, column)
                line.append(_cell(table, row, column, run, model, source))
            measured = measured or any(isinstance(cell, Number) for cell in line)
            cells.append([f"{row}, {model}" if len(models) > 1 else row, *line])
    if not measured:
        return None
    better = printed.better if printed else {}
    heads = [
        Column(f"{name}{_ARROWS.get(better.get(name, ''), '')}", format=NUMBER) for name in columns
    ]
    return Table.of(_title(study, table), [Column("Row"), *heads], cells)


def _printed_alone(study: Study, unmeasured: Sequence[str]) -> Iterator[blocks.Block]:
    """Yield the source's tables that a run measures nothing of, with the reason where one is."""
    reasons = {table.of: "" for table in study.tables if _title(study, table) in unmeasured}
    for place, reason in (reasons | dict(study.left_out)).items():
        if place and (printed := study.work.tables[place]).rows:
            columns = printed.columns
            cells = [
                [row, *(_source_text(printed, row, name) or "–" for name in columns)]
                for row in printed.rows
            ]
            heads = [Column(name) for name in ("Row", *columns)]
            yield Table.of(f"{place}: {printed.title}", heads, cells)
            if text := " ".join(filter(None, (enclose("", reason, "."), printed.note))):
                yield blocks.Words((text,), "note")


def _models(table: StudyTable, row: str, run: Repetition) -> Sequence[str]:
    """Return the models that fill a row which names none, the first cell's first."""
    if row not in table.rows:
        return ()
    return _models_of([table.quantity(row, column) for column in table.columns], run)


def _models_of(quantities: Iterable[Quantity], run: Repetition) -> Sequence[str]:
    """Return the models that have numbers of no particular model, those of the first first."""
    models = dict[str, None]()
    for quantity in quantities:
        for where in quantity.any_model:
            models |= dict.fromkeys(finding.model for finding in where.findings(run))
    return [*models]


def _measured_chance(chance: Sequence[ChanceConfig], run: Repetition) -> list[ChanceConfig]:
    """Return the numbers of a protocol without those of its other configurations."""
    return [
        entry
        for entry in chance
        if entry.finding is None
        or all(contains(run.resolved, where.run) for where in entry.finding.wheres)
    ]


def _chance_table(chance: Sequence[ChanceConfig], run: Repetition) -> Table:
    """Return the numbers of fair models under the protocol, and of this run."""
    lines = list[list[str]]()
    for entry in chance:
        quantities = [] if entry.finding is None else [entry.finding]
        models = _models_of(quantities, run)
        for model in models or ("",):
            reading = entry.read(run.of(model) if model else run)
            title = f"{entry.number}, {model}" if len(models) > 1 else entry.number
            lines.append(
                [
                    title,
                    chance_words(entry),
                    chance_range(entry.result),
                    number(entry.result.mean),
                    f"{entry.draws:,}, seed {entry.seed}",
                    _run_text(reading),
                    _chance_text(reading),
                ]
            )
    heads = [Column(title) for title in _CHANCE_HEADS]
    return Table.of(CHANCE, heads, lines)


def _run_text(reading: Reading) -> str:
    return reading.missing or (number(reading.value) if has(reading.value) else "–")


def _chance_text(reading: Reading) -> str:
    """Return the chance level of a number of the run, with its band."""
    if not has(reading.chance):
        return "–"
    band = interval(reading.chance_low, reading.chance_high) if has(reading.chance_low) else ""
    return f"{number(reading.chance)}{enclose(' ', band)}"


def chance_range(result: FairResult) -> str:
    """Return the numbers of 95 of 100 fair models."""
    if math.isinf(result.low):
        return f"up to {number(result.high)}"
    return f"{number(result.low)} to {number(result.high)}"


def chance_words(entry: ChanceConfig) -> str:
    """State whether a published number is within the range of fair models."""
    text = ""
    if entry.too_small:
        model, ends = entry.fair_model.title.capitalize(), chance_range(entry.result)
        text = f"{model} gives {ends} under the published protocol{_evidence(entry)}."
    return " ".join(filter(None, [text, entry.note]))


def _evidence(entry: ChanceConfig) -> str:
    if not entry.fair_model.shows_bias:
        return ""
    within = "a smaller printed number"
    if not math.isinf(entry.result.low):
        within = "a printed number between"
    fairness = ", nor of fairness" if entry.too_small else ""
    return f"; {within} is no evidence of bias{fairness}"


def _cell(
    table: StudyTable, row: str, column: str, run: Repetition, model: str, source: str
) -> str | Number:
    if row not in table.rows or column not in table.columns:
        return source or "–"
    quantity = table.quantity(row, column)
    reading = quantity.read(run.of(model) if model and quantity.any_model else run)
    if reading.missing not in ("", UNDEFINED):
        return enclose(f"{reading.missing}; ", source) or reading.missing
    if reading.text:
        text = "; ".join(filter(None, (reading.text, source)))
        return Number(text, math.nan, math.nan, math.nan)
    return Number(_reading_text(reading, source), reading.value, reading.low, reading.high)


def _source_text(table: PrintedTable | None, row: str, column: str) -> str:
    """Return a source's cell, and whether it is printed; "" of an empty one."""
    value = table.cell(row, column) if table else None
    if table is None or value is None:
        return ""
    text = value if isinstance(value, str) else f"{value:g}".replace("-", "−")
    return f"{table.origin} {text}"


def _reading_text(reading: Reading, source: str) -> str:
    ends = f" {interval(reading.low, reading.high)}" if reading.low < reading.high else ""
    is_count = not ends and abs(reading.value) > 1.0 and float(reading.value).is_integer()
    value = f"{reading.value:.0f}" if is_count else number(reading.value)
    parts = [
        reading.missing or f"{value}{ends}",
        f"chance {number(reading.chance)}" if has(reading.chance) else "",
        source,
    ]
    return "; ".join(filter(None, parts))


def _claims(result: AuditResult) -> Iterator[blocks.Block | str]:
    """Yield the claims of the source with their marks, and the numbers that decide them."""
    claims = rows(result, CLAIMS)
    if not claims:
        return
    comparisons = rows(result, COMPARISONS)
    by_claim = panels(comparisons, "claim", "part")
    yield f"{count_claims(result)} {_JUDGED}"
    lines = [
        (
            _name(claim),
            _MARKS[claim["mark"]],
            claim["text"],
            claim["where"],
            _why(claim, by_claim.get((claim["claim"], claim["part"]), ())),
        )
        for claim in claims
    ]
    heads = [Column(title) for title in ("Claim", "Result", "In our words", "Where", "Why")]
    yield Table.of("Claims of the source", heads, lines)
    if comparisons:
        yield Fold("Numbers behind the claims", (_comparison_table(comparisons),))


def _name(row: Row) -> str:
    return f"{row['claim']}{enclose(', ', row['part'])}"


def count_claims(result: AuditResult) -> str:
    """Return how many claims of the source hold, in a sentence; "" without claims."""
    marks = count_marks(result)
    if not marks:
        return ""
    fails, unknown = marks[Mark.FAILS], marks[Mark.OPEN]
    total = plural(sum(marks.values()), "claim")
    texts = [
        f"{marks[Mark.HOLDS]} of {total} of the source {_verb(marks[Mark.HOLDS], 'holds', 'hold')}",
        f"{fails} {_verb(fails, 'does', 'do')}n't" if fails else "",
        f"{unknown} can't be estimated" if unknown else "",
    ]
    return f"{', '.join(filter(None, texts))}."


def _verb(n: int, singular: str, several: str) -> str:
    return singular if n == 1 else several


_SHOWN = 3
"""Numbers that the table of claims has; the others are folded away."""


def _why(claim: Row, comparisons: Sequence[Row]) -> str:
    """Return the numbers that refute a claim, or why it is open."""
    decisive = [row for row in comparisons if row["mark"] == claim["mark"]]
    if claim["mark"] == Mark.HOLDS:
        texts = [f"all of {plural(len(decisive), 'number')}"]
    elif claim["mark"] == Mark.FAILS:
        texts = [_comparison_text(row) for row in decisive]
    else:
        texts = [_open_text(row) for row in decisive]
    distinct = [*dict.fromkeys(texts)]
    more = f"and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    numbers = "; ".join(filter(None, [*distinct[:_SHOWN], more]))
    return ". ".join(filter(None, (numbers, claim["why"])))


def _open_text(row: Row) -> str:
    reason = str(row["reason"])
    return f"{_comparison_text(row)}: {reason}" if reason == UNDECIDED else reason


def _comparison_text(row: Row) -> str:
    return f"{_side(row, 'left')}, required {row['relation']} {_side(row, 'right')}"


def _side(row: Row, side: str) -> str:
    texts = (number(row[f"{side}_value"]), _ends(row, side))
    return enclose("", row[side], ": ") + " ".join(filter(None, texts))


def _ends(row: Row, side: str) -> str:
    """Return the interval of a side; "" where it is unknown, or the number exact."""
    low, high = row[f"{side}_low"], row[f"{side}_high"]
    return interval(low, high) if has(low) and low < high else ""


def _comparison_table(comparisons: Sequence[Row]) -> Table:
    columns = [
        Column("Claim", _name),
        Column("Number", "left"),
        Column("Value", "left_value", NUMBER),
        Column("Interval", lambda row: _ends(row, "left")),
        Column("Required", "relation"),
        Column("Of", "right"),
        Column("Bound", "right_value", NUMBER),
        Column("Its interval", lambda row: _ends(row, "right")),
        Column("Result", lambda row: _MARKS[row["mark"]]),
        Column("Why", "reason"),
    ]
    return Table.of("Numbers behind the claims", columns, comparisons)
