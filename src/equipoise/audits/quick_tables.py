"""The columns and steps of a table as a tool wrote it, guessed from names and values."""

import os
import re
import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.audits.quick_rows import ID, MODEL, UNIT, is_place
from equipoise.config.fields import TableConfig
from equipoise.core import DataError, Strings
from equipoise.core.wording import shortened
from equipoise.data.number_marks import check_marks, has_thousands_mark, hold_decimal_commas
from equipoise.data.problems import check_columns, listed
from equipoise.data.results import guess_reader
from equipoise.data.table_steps import LIST, Split, check_counts
from equipoise.data.tables import OpenTable, TableRecipe, TableSource, as_text, open_table

OUTPUT = re.compile(
    r"(.*[_ .-])?(pred|preds|prediction|predicted|y_?hat|score|scores|prob|probability|confidence|"
    r"logit)([_ .-].*)?",
    re.IGNORECASE,
)
"""How columns of predictions and scores are called."""
_ANSWERS = (
    re.compile(r"filtered_resps?", re.IGNORECASE),
    re.compile(r"answers?|model_answer|outputs?|responses?|completions?|generated", re.IGNORECASE),
    re.compile(r"resps?", re.IGNORECASE),
)
_TARGET = re.compile(
    r"target|labels?|truth|ground[_ .-]?truth|gold|y|y_?true|true[_ .-]?(label|class)|class",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"(perceived[_ .-])?(gender|sex|race|ethnicity|ethnic[_ .-]group|ancestry|nationality|religion"
    r"|age|age[_ .-]?(group|band|range)|skin[_ .-]?(type|tone|colou?r)|disability|region|country"
    r"|fitzpatrick([_ .-]?(type|scale))?|continent|income|male|female|young|old)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"n|counts?|freq|frequency|n_?(rows|images|items)", re.IGNORECASE)
_POSITIVE, _NEGATIVE = "positive", "negative"
_CONFUSION: Mapping[str, tuple[str, str]] = {
    r"n?_?tp|true[_ .-]?pos(itives?)?": (_POSITIVE, _POSITIVE),
    r"n?_?tn|true[_ .-]?neg(atives?)?": (_NEGATIVE, _NEGATIVE),
    r"n?_?fp|false[_ .-]?pos(itives?)?": (_NEGATIVE, _POSITIVE),
    r"n?_?fn|false[_ .-]?neg(atives?)?": (_POSITIVE, _NEGATIVE),
}
"""Forms of the names of counts, and the label and prediction of their rows."""
_LABEL, _PREDICTION = "label", "prediction"
_TRUE_ANSWER, _ANSWER, _CORRECT = "target", "answer", "correct"
"""Columns of what a tool wrote."""
_SEPARATORS = ("|", ";")
# Columns of more values are no labels, and more columns aren't looked through.
_MOST_VALUES, _MOST_COLUMNS = 50, 200
_SHARE_OF_CLASSES, _SHARE_OF_SPLIT = 0.5, 0.05
# Of a column of counts, so many cells are whole numbers and so many rows differ, or more.
_SHARE_OF_COUNTS, _SHARE_OF_DIFFERENT = 0.5, 0.5
# Cohen's kappa from which columns of the same values may be labels and their predictions.
_LEAST_AGREEMENT = 0.3
_EXAMPLES, _WIDTH = 4, 80
COLUMNS = "Columns:"
"""Line above the list of columns in an error."""


@dataclass(frozen=True)
class TableForm:
    """How a table is read, and the roles of its columns.

    Attributes
    ----------
    source : TableSource
        The table, or a recipe of it.
    steps : mapping
        Steps as a config has them; see `TableConfig`.
    target : str or None
    groups : tuple of str
    outputs : tuple of str
        Columns of predictions whose names don't say so.
    labels : tuple of str
        Columns of labels to compare, where there are no predictions.
    alone : tuple of str
        Groups that make no intersections.
    notes : tuple of str
        Each guess in words.
    """

    source: TableSource
    target: str | None
    groups: Strings
    steps: Mapping[str, Any] = field(default_factory=dict)
    outputs: Strings = ()
    labels: Strings = ()
    alone: Strings = ()
    notes: Strings = ()


@dataclass(frozen=True)
class _Columns:
    """The columns of a table that can be roles, as text."""

    file: str
    names: Strings
    cells: Mapping[str, pl.Series]
    delimiter: str = ""

    @classmethod
    def of(cls, table: OpenTable, names: Iterable[str], named: Sequence[str] = ()) -> "_Columns":
        """Read columns; leave out columns of objects unless the user names them."""
        needed = {*named}
        plain = (name for name in names if name not in table.lists)
        requested = dict.fromkeys([*named, *plain])
        # Columns without a name are what a program left at the end of each row.
        check_columns(table.names, filter(str.strip, requested), table.name)
        stored = _read_plain(table, tuple(requested), needed)
        cells = {name: stored[name] for name in table.names if name in stored}
        return cls(table.name, table.names, cells, table.delimiter)

    def fitting(self, form: re.Pattern[str], excluded: Iterable[str] = ()) -> list[str]:
        """Return columns with a part of their dotted name of a form; full names first."""
        passed = {*excluded}
        names = [name for name in self.cells if name not in passed and _fits(name, form)]
        return sorted(names, key=lambda name: form.fullmatch(name) is None)

    def values(self, name: str) -> pl.Series:
        """Return the different values of a column."""
        return self.cells[name].drop_nulls().unique()

    def share_in(self, name: str, classes: pl.Series) -> float:
        """Return the share of a column's cells that are among some classes."""
        cells = self.cells[name].drop_nulls()
        return int(cells.is_in(classes.implode()).sum()) / max(1, cells.len())


def _read_plain(table: OpenTable, names: Strings, needed: Container[str]) -> dict[str, pl.Series]:
    """Return columns as text: all of them in one pass where none is of objects."""

    def read(requested: Strings) -> dict[str, pl.Series]:
        columns = table.read(requested) if requested else {}
        return {name: as_text(column, table.name, name) for name, column in columns.items()}

    try:
        return read(names)
    except DataError:
        cells = dict[str, pl.Series]()
        for name in names:
            try:
                cells |= read((name,))
            except DataError:
                if name in needed:
                    raise
        return cells


def _fits(name: str, form: re.Pattern[str]) -> bool:
    return any(form.fullmatch(part) for part in (name, *name.split(".")))


def guess_form(
    table: TableSource,
    *,
    encoding: str = "utf-8",
    target: str | None = None,
    groups: Sequence[str] = (),
    outputs: Sequence[str] = (),
    labels: Sequence[str] = (),
    runs_model: bool = False,
    needs_labels: bool = True,
) -> TableForm:
    """Guess steps of a table, and the roles of columns that aren't named.

    Without `needs_labels`, of answers and queries, only groups are guessed.

    Raises
    ------
    DataError
        When the table can't be read, or no column looks like a group or a label; it lists the
        columns.
    """
    named = [*groups, *outputs, *labels, *filter(None, [target])]
    form = TableForm(table, target, tuple(groups), labels=tuple(labels))
    if results := guess_results(table, named):
        form = _of_results(form, results, outputs, runs_model=runs_model)
        target, outputs = form.target, form.outputs or outputs
        named = [*dict.fromkeys([*named, *form.outputs, *filter(None, [target])])]
    opened = open_table(_source(form), role="data", encoding=encoding)
    has_labels = labels or {*named} & {_LABEL, _PREDICTION} & {*opened.names}
    counts = _confusion(opened.names) if needs_labels and not has_labels else {}
    if counts:
        form = replace(
            form, steps={**form.steps, "count": counts}, target=target or _LABEL,
            notes=(f"{', '.join(counts)}: numbers of rows, by {_LABEL} and {_PREDICTION}",),
        )  # fmt: skip
    has_roles = counts or labels or not needs_labels or (target and (outputs or runs_model))
    complete = bool(groups and has_roles)
    new_names = {_LABEL, _PREDICTION} if counts else set()
    columns = _Columns.of(
        opened,
        _of_counts(opened.names)
        if complete
        else _candidates(opened.names, all_roles=not (target and groups)),
        [name for name in dict.fromkeys(named) if name not in new_names],
    )
    if not counts:
        columns, form = _with_decimal_points(columns, form, encoding)
    if not complete:
        needs_outputs = needs_labels and not (counts or runs_model or form.labels)
        if runs_model and target is None and needs_labels:
            raise unclear(columns, "a model is named, and no column of labels (--target)")
        form = _guess_roles(columns, form, outputs, needs_outputs=needs_outputs)
        if needs_outputs and target is not None and not (outputs or form.outputs):
            _check_predictions(opened, target, form.groups)
    form = form if counts else _guess_count(columns, form)
    _check_marks(columns, form, outputs)
    if "count" in form.steps:
        _check_single_model(opened)
    form = _guess_split(columns, form, encoding)
    return replace(form, source=_source(form))


def guess_results(table: TableSource, named: Iterable[str] = ()) -> str | None:
    """Return the reader of what a tool wrote, unless the user names columns that it lacks."""
    name = guess_reader(Path(table)) if isinstance(table, str | os.PathLike) else None
    if name is None:
        return None
    columns = open_table(TableRecipe(table, results=name)).names
    return name if {*named} <= {*columns} else None


def _of_results(
    form: TableForm, results: str, outputs: Sequence[str], *, runs_model: bool
) -> TableForm:
    """Return the form of what a tool wrote: its answers, or whether they are right."""
    form = replace(form, steps={"results": results}, notes=(f"results: {results}",))
    if outputs or runs_model or form.labels or form.target is not None:
        return form
    columns = _Columns.of(open_table(_source(form)), (_TRUE_ANSWER, _ANSWER))
    has_classes = _guess_answers(columns, _TRUE_ANSWER, {_TRUE_ANSWER}) == (_ANSWER,)
    if has_classes:
        return replace(form, target=_TRUE_ANSWER, outputs=(_ANSWER,))
    return replace(form, labels=(_CORRECT,))


def _candidates(names: Strings, *, all_roles: bool) -> Iterable[str]:
    """Return columns that may have a role; of labels and groups only where they aren't named."""
    forms = (OUTPUT, *_ANSWERS, _COUNT, MODEL)
    fitting = (name for name in names if any(_fits(name, form) for form in forms))
    return names[:_MOST_COLUMNS] if all_roles else fitting


def _of_counts(names: Strings) -> Strings:
    """Return columns called as counts, and ids if there are some."""
    counts = [name for name in names if _COUNT.fullmatch(name)]
    return (*counts, *(name for name in names if _fits(name, ID))) if counts else ()


def _source(form: TableForm) -> TableSource:
    return _recipe(form) if form.steps else form.source


def _recipe(form: TableForm) -> TableSource:
    section = TableConfig.model_validate({"file": form.source, **form.steps})
    return section.recipe(Path())


def _confusion(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the counts of a confusion matrix by their columns; none unless all are there."""
    counts = {}
    for form, (label, prediction) in _CONFUSION.items():
        name = next((name for name in names if re.fullmatch(form, name, re.IGNORECASE)), None)
        if name is not None:
            counts[name] = {_LABEL: label, _PREDICTION: prediction}
    return counts if len(counts) == len(_CONFUSION) else {}


def _with_decimal_points(
    columns: _Columns, form: TableForm, encoding: str
) -> tuple[_Columns, TableForm]:
    """Return the columns with decimal points, and the step where some have commas."""
    commas = [name for name, cells in columns.cells.items() if hold_decimal_commas(cells)]
    # A comma in a file of commas, or before three digits alone, is likelier a thousands mark.
    if columns.delimiter == "," or all(_may_be_thousands(columns.cells[name]) for name in commas):
        return columns, form
    form = replace(
        form,
        steps={**form.steps, "decimal": ","},
        notes=(*form.notes, f"decimal: comma, in {listed(commas)}"),
    )
    table = open_table(_recipe(form), role="data", encoding=encoding)
    return _Columns.of(table, columns.cells), form


def _may_be_thousands(cells: pl.Series) -> bool:
    """Whether all commas in a column may mark thousands."""
    with_commas = cells.filter(cells.str.contains(",", literal=True))
    return bool(has_thousands_mark(with_commas).all())


def _check_marks(columns: _Columns, form: TableForm, outputs: Sequence[str]) -> None:
    """Refuse numbers with marks of thousands in a target, groups and predictions."""
    likely = outputs or [name for name in columns.cells if OUTPUT.fullmatch(name)]
    for name in dict.fromkeys([*filter(None, [form.target]), *form.groups, *likely]):
        if name in columns.cells:
            check_marks(columns.cells[name], columns.file)


def _guess_roles(
    columns: _Columns, form: TableForm, outputs: Sequence[str], *, needs_outputs: bool
) -> TableForm:
    """Return the form with target, groups and outputs, or with labels of a data set."""
    expects_outputs = form.target is not None
    names_nothing = not (expects_outputs or form.groups or form.labels or outputs)
    assigned = {*outputs, *form.groups, *form.labels, *filter(None, [form.target])}
    likely = [*outputs] or [
        name for name in columns.cells if OUTPUT.fullmatch(name) and name not in assigned
    ]
    target = form.target or (
        _predicted_column(columns, likely, assigned) if needs_outputs else None
    )
    assigned |= {*filter(None, [target])}
    if not form.groups:
        groups = _guess_groups(columns, assigned)
        form = replace(form, groups=groups, notes=(*form.notes, f"groups: {listed(groups)}"))
        assigned |= {*groups}
    if not needs_outputs:
        return form
    target = target or _guess_target(columns, assigned | {*likely}, likely)
    answers: Strings = ()
    if target is not None and not likely:
        answers = _guess_answers(columns, target, assigned | {target})
    if not (expects_outputs or likely or answers):
        form = _as_data_set(columns, form, assigned)
        return _check_labels(columns, form, target, refuses=names_nothing)
    if target is None:
        raise unclear(columns, "no column looks like the labels", form.groups, likely)
    notes = [
        *([] if expects_outputs else [f"target: {target}"]),
        *([f"predictions: {listed(answers)}"] if answers else []),
    ]
    return replace(
        form, target=target, outputs=answers or form.outputs, notes=(*form.notes, *notes)
    )


def _check_predictions(table: OpenTable, target: str, groups: Strings) -> None:
    """Refuse a named target if no column is called as predictions are.

    Raises
    ------
    DataError
        With the columns that have values of the target, or scores.
    """
    columns = _Columns.of(table, table.names[:_MOST_COLUMNS], [target])
    names = [name for name in columns.cells if name not in (target, *groups)]
    if any(map(OUTPUT.fullmatch, names)):
        return
    classes = columns.values(target)
    likely = [
        name for name in names
        if not any(_fits(name, form) for form in (ID, UNIT, MODEL))
        and columns.values(name).len() > 1
        and (columns.share_in(name, classes) >= _SHARE_OF_CLASSES or _may_be_scores(columns, name))
    ]  # fmt: skip
    problem = "no column is called as predictions are, such as pred or score"
    if likely:
        problem += f"; {listed(likely, 6)} may be predictions"
    raise unclear(columns, problem, groups, likely, target)


def _may_be_scores(columns: _Columns, name: str) -> bool:
    """Whether a column has numbers, and most of them have decimals."""
    values = columns.values(name)
    numbers = not values.cast(pl.Float64, strict=False).has_nulls()
    return numbers and _share_of_whole(values) < _SHARE_OF_COUNTS


def _predicted_column(
    columns: _Columns, outputs: Iterable[str], assigned: Iterable[str]
) -> str | None:
    """Return the column that a prediction is named after: age of pred_age."""
    passed = {*assigned}
    words = {*(name for name in columns.cells if name not in passed)}
    for output in outputs:
        parts = [part for part in re.split(r"[_ .-]", output) if not OUTPUT.fullmatch(part)]
        named = next((name for name in words if re.split(r"[_ .-]", name) == parts), None)
        if named is not None:
            return named
    return None


def _guess_groups(columns: _Columns, assigned: Iterable[str]) -> Strings:
    """Return the columns that are called as groups are."""
    groups = tuple(
        name
        for name in columns.fitting(_GROUP, assigned)
        if columns.values(name).len() > 1 and not OUTPUT.fullmatch(name)
    )
    if not groups:
        raise unclear(columns, "no column looks like a group, such as gender or age")
    return groups


def _guess_target(columns: _Columns, assigned: Iterable[str], outputs: Sequence[str]) -> str | None:
    """Return the column of labels: by its name, or as the only one with the predicted values."""
    named = columns.fitting(_TARGET, assigned)
    exact = [name for name in named if _TARGET.fullmatch(name.rpartition(".")[2])]
    if exact:
        return exact[0]
    if not outputs:
        return None
    passed = {*assigned}
    predicted = columns.values(outputs[0])
    similar = [
        name
        for name in columns.cells
        if name not in passed
        and not any(_fits(name, form) for form in (ID, UNIT, MODEL))
        and columns.share_in(name, predicted) >= _SHARE_OF_CLASSES
    ]
    return similar[0] if len(similar) == 1 else None


def _guess_answers(columns: _Columns, target: str, assigned: Iterable[str]) -> Strings:
    """Return the column of answers, most of which are classes of the target."""
    classes = columns.values(target)
    if not 1 < classes.len() <= _MOST_VALUES:
        return ()
    for form in _ANSWERS:
        for name in columns.fitting(form, assigned):
            if columns.share_in(name, classes) >= _SHARE_OF_CLASSES:
                return (name,)
    return ()


def _as_data_set(columns: _Columns, form: TableForm, assigned: Iterable[str]) -> TableForm:
    """Return the form of images without predictions: columns of few values are labels."""
    passed = {*assigned}
    labels = tuple(
        name
        for name in columns.cells
        if name not in passed
        and not any(_fits(name, pattern) for pattern in (ID, MODEL, _COUNT))
        and (not _fits(name, UNIT) or is_place(name, columns.cells[name]))
        and 1 < _distinct(columns.cells[name]) <= _MOST_VALUES
        and columns.values(name).len() < columns.cells[name].len()
    )
    notes = [f"labels: {listed(labels) or 'none'}; there are no predictions"]
    targets = [name for name in columns.fitting(_TARGET, passed) if columns.values(name).len() == 1]
    notes += [
        f"{name}: one value, {columns.values(name)[0]!r}, in all rows, which leaves nothing to "
        "predict; predictions are not audited"
        for name in targets
    ]
    return replace(form, labels=labels, notes=(*form.notes, *notes))


def _check_labels(
    columns: _Columns, form: TableForm, target: str | None, *, refuses: bool
) -> TableForm:
    """Return the form of a data set, with a note on labels that may be predictions.

    Raises
    ------
    DataError
        In place of the note, where the user names no column.
    """
    likely = _likely_predictions(columns, form.labels, target)
    if likely is None:
        return form
    target, outputs = likely
    groups = ["--groups", ",".join(form.groups)]
    options = ["--target", target, "--pred", ",".join(outputs), *groups]
    command = command_of(columns.file, options)
    verb = "has" if len(outputs) == 1 else "have"
    problem = f"{listed(outputs, 6)} {verb} the values of {target!r}, often in the same rows"
    if not refuses:
        note = f"{problem}. If these are predictions, run: {command}"
        return replace(form, notes=(note, *form.notes))
    raise DataError(
        problem,
        file=columns.file,
        expected="columns of predictions that you name, or whose names say so",
        fix=f"if these are predictions, run:\n  {command}\n"
        f"If all are labels, name {shlex.join(groups)} alone",
    )


def _likely_predictions(
    columns: _Columns, labels: Strings, target: str | None
) -> tuple[str, Strings] | None:
    """Return the column of labels that others agree with beyond chance, and these.

    Of columns with two values, such as yes and no, all others with these values have to.
    """
    best, most = None, (0, 0.0)
    for name in labels if target is None else [target]:
        classes = columns.values(name)
        same = [
            other
            for other in labels
            if other != name
            and columns.values(other).len() > 1
            and columns.share_in(other, classes) == 1
        ]
        agreements = {
            other: _agreement(columns.cells[name], columns.cells[other]) for other in same
        }
        outputs = tuple(other for other in same if agreements[other] >= _LEAST_AGREEMENT)
        needed = 1 if classes.len() > 2 else max(2, len(same))
        total = len(outputs), sum(agreements[other] for other in outputs)
        if len(outputs) >= needed and total > most:
            best, most = (name, outputs), total
    return best


def _agreement(cells: pl.Series, other: pl.Series) -> float:
    """Return Cohen's kappa of two columns: 1 if they are equal, 0 as by chance."""
    rows = pl.DataFrame({"a": cells, "b": other}).drop_nulls()
    shares = [
        rows[name].value_counts(normalize=True, name="share").rename({name: "value"})
        for name in rows.columns
    ]
    both = shares[0].join(shares[1], on="value")
    chance = float((both["share"] * both["share_right"]).sum())
    equal = int((rows["a"] == rows["b"]).sum()) / max(1, len(rows))
    return (equal - chance) / (1 - chance) if chance < 1 else 0.0


def _distinct(cells: pl.Series) -> int:
    """Return the number of different values, of a column of several values of its parts."""
    separator = _separator(cells)
    values = cells.drop_nulls().unique()
    if separator in _SEPARATORS:
        return values.str.split(separator).explode().str.strip_chars().n_unique()
    return values.len()


def _separator(cells: pl.Series) -> str | None:
    """Return the separator of values within cells; None for one value a cell."""
    texts = cells.drop_nulls().filter(cells.drop_nulls() != "")
    if not texts.len():
        return None
    if texts.str.contains(r"^\s*\[.*\]\s*$").all():
        return LIST
    distinct = texts.unique()
    for mark in _SEPARATORS:
        parts = distinct.str.split(mark).explode().str.strip_chars()
        n_split = texts.str.contains(mark, literal=True).sum()
        if (
            n_split >= _SHARE_OF_SPLIT * texts.len()
            and (parts != "").all()
            and parts.n_unique() < parts.len()
        ):
            return mark
    return None


def _guess_count(columns: _Columns, form: TableForm) -> TableForm:
    """Return the form with the step for a column of how many rows a row stands for."""
    names = [*form.groups, *form.labels, *form.outputs, *filter(None, [form.target])]
    counts = [name for name in columns.cells if _COUNT.fullmatch(name) and name not in names]
    if not counts:
        return form
    used = [columns.cells[name] for name in dict.fromkeys(names) if name in columns.cells]
    used += [
        cells
        for name, cells in columns.cells.items()
        if OUTPUT.fullmatch(name) or _fits(name, MODEL)
    ]
    rows = pl.DataFrame([cells.alias(str(place)) for place, cells in enumerate(used)])
    n_rows, n_different = len(rows), rows.n_unique()
    for name in counts:
        cells = columns.cells[name]
        if _share_of_whole(cells) < _SHARE_OF_COUNTS:
            note = f"{name}: not read as counts, as its cells aren't whole numbers"
            form = replace(form, notes=(*form.notes, note))
        elif _has_ids(columns):
            note = f"{name}: not read as counts, as rows have ids"
            form = replace(form, notes=(*form.notes, note))
        elif n_different == n_rows:
            check_counts(cells, columns.file)
            note = f"{name}: how many rows a row stands for"
            return replace(form, steps={**form.steps, "count": name}, notes=(*form.notes, note))
        elif n_different > _SHARE_OF_DIFFERENT * n_rows:
            raise _repeated_row(rows, name, columns.file)
        else:
            note = f"{name}: not read as counts, as rows repeat"
            form = replace(form, notes=(*form.notes, note))
    return form


def _share_of_whole(cells: pl.Series) -> float:
    """Return the share of whole numbers, with any sign and marks of thousands, in cells."""
    numbers = cells.str.strip_chars().str.replace_all(r",(\d{3})", "$1")
    whole = numbers.str.contains(r"^[-+]?\d+(?:\.0*)?$").fill_null(value=False)
    return int(whole.sum()) / max(1, len(cells))


def _has_ids(columns: _Columns) -> bool:
    """Whether a column names each row."""
    ids = (cells for name, cells in columns.cells.items() if _fits(name, ID))
    return any(cells.n_unique() == len(cells) for cells in ids)


def _repeated_row(rows: pl.DataFrame, count: str, file: str) -> DataError:
    """Return the error of counts of which two are for the same labels and groups."""
    repeated = rows.is_duplicated()
    row = int(repeated.arg_max() or 0)
    of_row = pl.Series([values == rows.row(row) for values in rows.iter_rows()]).arg_true()
    return DataError(
        f"rows {row + 1} and {of_row[1] + 1} count the same labels, predictions and groups",
        file=file,
        column=count,
        row=of_row[1] + 1,
        expected="one row for each combination, where a column holds counts",
        fix="remove a row that was written twice, add two counts up, or rename a column that "
        "holds no counts",
    )


def _check_single_model(table: OpenTable) -> None:
    """Refuse counts of several models, whose rows can't be matched."""
    names = [name for name in table.names if _fits(name, MODEL)]
    for name, cells in _Columns.of(table, names).cells.items():
        models = cells.drop_nulls().unique(maintain_order=True)
        if models.len() > 1:
            raise DataError(
                f"the counts are of {models.len()} models: {listed(models, _EXAMPLES)}",
                file=table.name,
                column=name,
                expected="counts of one model, whose rows are its own",
                fix="keep the rows of one model in the file; or write a config for each model, "
                f"with `where: {{{name}: {models[0]}}}` under `data` and under the model",
            )


def _guess_split(columns: _Columns, form: TableForm, encoding: str) -> TableForm:
    """Return the form with the steps for groups and labels of several values a cell."""
    split = {
        name: mark
        for name in (*form.groups, *form.labels)
        if name in columns.cells and (mark := _separator(columns.cells[name])) is not None
    }
    if not split:
        return form
    steps = {**form.steps, "split": split}
    source = TableRecipe(form.source, results=form.steps.get("results"))
    notes = (f"{name}: several values a cell, between {mark!r}" for name, mark in split.items())
    form = replace(form, steps=steps, notes=(*form.notes, *notes))
    by_column = {
        name: _values_of(source, name, mark, encoding)
        for name, mark in split.items()
        if name in form.groups
    }
    groups = [part for name in form.groups for part in by_column.get(name, [name])]
    alone = tuple(part for parts in by_column.values() for part in parts)
    return replace(form, groups=tuple(groups), alone=alone)


def _values_of(source: TableSource, column: str, separator: str, encoding: str) -> list[str]:
    """Return the columns that a column of several values becomes."""
    table = open_table(source, role="data", encoding=encoding)
    return [*Split(column, separator)(table).split[column]]


@dataclass(frozen=True)
class ColumnSummary:
    """A column of a table: its name, type, number of values, and some of them."""

    column: str
    type: str
    values: int
    examples: Strings


def summarize(table: TableSource, encoding: str = "utf-8") -> list[ColumnSummary]:
    """Return a summary of each column of a table.

    Raises
    ------
    DataError
        When the table can't be read.
    """
    results = guess_results(table)
    source = TableRecipe(table, results=results) if results else table
    opened = open_table(source, role="data", encoding=encoding)
    return _summaries(_Columns.of(opened, opened.names[:_MOST_COLUMNS]))


def _summaries(columns: _Columns) -> list[ColumnSummary]:
    summaries = []
    for name, cells in columns.cells.items():
        values = cells.drop_nulls().unique(maintain_order=True)
        numbers = values.cast(pl.Float64, strict=False)
        kind = "numbers" if values.len() and not numbers.has_nulls() else "text"
        examples = tuple(values.head(_EXAMPLES).to_list())
        summaries.append(ColumnSummary(name, kind, values.len(), examples))
    return summaries


def column_lines(summaries: Sequence[ColumnSummary]) -> str:
    """Return a line for each column."""
    width = max((len(summary.column) for summary in summaries), default=0)
    lines = []
    for summary in summaries:
        examples = listed(summary.examples, _EXAMPLES)
        head = f"{summary.column:<{width}}  {summary.type:<7}  {summary.values:>7,} values: "
        lines.append(f"  {head}{shortened(examples, max(12, _WIDTH - 2 - len(head)))}")
    return "\n".join(lines)


def command_of(file: str, options: Sequence[str]) -> str:
    """Return the command that audits a file, to paste."""
    return shlex.join(["equipoise", "quick", file, *options])


def unclear(
    columns: _Columns,
    problem: str,
    groups: Sequence[str] = (),
    outputs: Sequence[str] = (),
    target: str = "LABELS",
) -> DataError:
    """Return the error that lists the columns of a table and a command."""
    options = [
        "--target", target, "--groups", ",".join(groups) or "GROUPS",
        "--pred", ",".join(outputs) or "PREDICTIONS",
    ]  # fmt: skip
    return DataError(
        problem,
        file=columns.file,
        expected="columns of labels and groups, and of predictions if there are any",
        fix=f"name them:\n  {command_of(columns.file, options)}\n"
        f"{COLUMNS}\n{column_lines(_summaries(columns))}",
    )
