"""Read the images with their groups, what was answered, and figures from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.config_arrays import located
from equipoise.core.errors import DataError
from equipoise.data import PredictionData, PredictionSource, load_predictions, read_table

if TYPE_CHECKING:
    from equipoise.audits.answers.config import Config, FigureConfig, ModelConfig


@dataclass(frozen=True)
class Asked:
    """One question to one model.

    Attributes
    ----------
    model : str
    question : str
        Its name; "" where there is one question only.
    key : str
        Of the answers, in `AnswersData.rows.models`.
    """

    model: str
    question: str
    key: str


@dataclass(frozen=True, eq=False)
class AnswersData:
    """What an audit of answers measures.

    Attributes
    ----------
    rows : PredictionData
        Images by id, with one set of answers per model and question; without a true answer all
        targets are missing.
    asked : tuple of Asked
    figures : mapping of str to mapping of str to float
        Figure by answer as the table has it, by name.
    inputs, counts : mapping
        Of every file read.
    """

    rows: PredictionData
    asked: tuple[Asked, ...]
    figures: Mapping[str, Mapping[str, float]]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


def load(config: Config, *, base: Path) -> AnswersData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        When a table cannot be read or joined; it names the file, column and row.
    """
    data = config.data
    asked: list[Asked] = []
    sources: dict[str, PredictionSource] = {}
    inputs: dict[str, Mapping[str, Any]] = {}
    for name, model in config.models.items():
        for question, table, digest in _tables(name, model, str(data.id), base):
            one = Asked(name, question, f"{name}, {question}" if question else name)
            asked.append(one)
            sources[one.key] = _source(model, question, table)
            inputs |= digest
    rows = load_predictions(data.labels(base), sources, max_unmatched=data.max_unmatched)
    # Parts of one table are no files of their own.
    parts = tuple(f"predictions of {one.key} (" for one in asked if one.question)
    read = {file: facts for file, facts in rows.inputs.items() if not file.startswith(parts)}
    figures = {}
    for name, figure in config.figures.items():
        figures[name], digest = _figures(figure, base)
        inputs |= digest
    return AnswersData(rows, tuple(asked), figures, {**read, **inputs}, rows.counts)


def _tables(
    name: str, model: ModelConfig, data_id: str, base: Path
) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield each question with the table of its answers, and the file where it was taken apart."""
    table, column = located(model.table, base), model.by_question
    if column is None:
        yield "", table, {}
        return
    wanted = (model.id or data_id, str(model.answer), column)
    read = read_table(
        table,
        texts=tuple(dict.fromkeys(wanted)),
        role=f"answers of {name}",
        encoding=model.encoding,
        delimiter=model.delimiter,
    )
    questions = read.texts[column]
    empty = questions.is_null().arg_true()
    if len(empty):
        raise DataError(
            "no question",
            file=read.name,
            column=column,
            row=int(empty[0]) + 1,
            expected="the name of the question in every row",
            fix="fill it in, or leave `by_question:` out where there is one question only",
        )
    import polars as pl

    frame = pl.DataFrame(dict(read.texts))
    for question in questions.unique().sort().to_list():
        yield question, frame.filter(pl.col(column) == question), {read.name: read.digest}


def _source(model: ModelConfig, question: str, table: Any) -> PredictionSource:
    return PredictionSource(
        table=table,
        prediction=model.answer,
        id=model.id,
        missing=model.missing,
        unknown=model.unknown,
        refused=model.refused,
        open_vocabulary=True,
        normalize=None if model.normalize is None else model.normalize.steps,
        encoding=model.encoding,
        delimiter=model.delimiter,
        failed=model.failed(question),
        may_decline=True,
    )


def _figures(
    figure: FigureConfig, base: Path
) -> tuple[dict[str, float], dict[str, Mapping[str, Any]]]:
    read = read_table(
        located(figure.table, base),
        texts=(figure.subject,),
        numbers=(figure.value,),
        role="figures",
        encoding=figure.encoding,
        delimiter=figure.delimiter,
    )
    names = read.texts[figure.subject].to_list()
    values = read.numbers[figure.value].to_numpy()
    found: dict[str, float] = {}
    for row, (name, value) in enumerate(zip(names, values.tolist(), strict=True)):
        if name is None or value is None or not np.isfinite(value):
            continue
        if name in found:
            raise DataError(
                f"{name!r} has two figures",
                file=read.name,
                column=figure.subject,
                row=row + 1,
                expected="every answer once",
                fix="remove one of the rows",
            )
        found[name] = value
    return found, {read.name: read.digest}
