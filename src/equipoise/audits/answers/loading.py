"""Read the images with their groups, what was answered, and figures from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_arrays import located
from equipoise.core.errors import DataError
from equipoise.data import (
    PredictionData,
    PredictionSource,
    join_predictions,
    read_predictions,
    read_table,
)
from equipoise.data.labels import read_labels

if TYPE_CHECKING:
    from equipoise.audits.answers.config import Config, FigureConfig, ModelConfig
    from equipoise.audits.outputs import Models, Outputs
    from equipoise.data import Reading
    from equipoise.evidence import Pictures


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

    @property
    def ids(self) -> npt.NDArray[np.object_]:
        """Ids of the images."""
        return self.rows.ids


def load(config: Config, models: Models) -> AnswersData:
    """Read everything that a config names, and ask the models that are named.

    Raises
    ------
    DataError
        When a table cannot be read or joined; it names the file, column and row.
    """
    data, base = config.data, models.base
    images = models.read_images(data.pictures, data.columns)
    labels = data.labels(images.source(base))
    asked: list[Asked] = []
    outputs: dict[str, tuple[Outputs, Reading]] = {}
    for name, section in config.models.items():
        answered = (
            _read(name, section, labels.id, base)
            if section.model is None
            else _asked(models, name, section, images.need_pictures(name))
        )
        for question, answers in answered:
            key = f"{name}, {question}" if question else name
            asked.append(Asked(name, question, key))
            outputs[key] = answers, section.reading(name)
    rows = join_predictions(read_labels(labels), outputs, max_unmatched=data.max_unmatched)
    inputs = dict(rows.inputs)
    figures = {}
    for name, figure in config.figures.items():
        figures[name], digest = _figures(figure, base)
        inputs |= digest
    return AnswersData(rows, tuple(asked), figures, inputs, rows.counts)


def _asked(
    models: Models, name: str, section: ModelConfig, pictures: Pictures
) -> Iterator[tuple[str, Outputs]]:
    """Ask a model each question about each image."""
    models.capability(name, section, "answerer")
    key = "questions" if section.questions else "question"
    for question, text in section.by_name.items():
        on = f"images, {question}" if question else "images"
        outputs = models.answer(name, section, pictures, text, on=on)
        yield question, replace(outputs, source=f"models.{name}.{key}", rows=len(outputs.ids))


def _read(
    name: str, section: ModelConfig, id_column: str, base: Path
) -> Iterator[tuple[str, Outputs]]:
    """Read the answers to each question."""
    for question, table, digest in _tables(name, section, id_column, base):
        source = PredictionSource(
            table,
            prediction=section.answer,
            id=section.id,
            encoding=section.encoding,
            delimiter=section.delimiter,
        )
        key = f"{name}, {question}" if question else name
        outputs = read_predictions(source, model=key, id_column=id_column)
        # Parts of one table are no files of their own.
        yield question, replace(outputs, inputs=digest) if digest else outputs


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
