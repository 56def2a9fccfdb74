"""Answers of VLMEvalKit: tables in `.tsv` or `.xlsx`, with or without a judge's verdict."""

import csv
import io
import re
from collections.abc import Iterator
from string import ascii_uppercase

from equipoise.core import Fields
from equipoise.data.results import (
    ANSWERED,
    FAILED,
    Files,
    ResultFile,
    ResultsReader,
    Sample,
    as_number,
    as_text,
    is_right,
    numbered,
)
from equipoise.data.spreadsheets import XLSX, read_sheet

_FAILURE = "Failed to obtain answer via API"
"""What stands in the place of an answer that the model's server didn't give."""
_COLUMNS = {"index", "question", "answer", "prediction", "hit", "log", "image", "image_path"}


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of every table; a repetition is another epoch."""
    for file in files:
        rows = _sheet_rows(file) if file.path.suffix == XLSX else _tsv_rows(file)
        for place, row in enumerate(rows, 1):
            if not {"index", "prediction"} <= {*row}:
                problem = "the table has no columns index and prediction"
                raise READER.error(problem, file.path, place)
        name = re.fullmatch(r"(?P<model>.+?)_(?P<task>[^_].*)", file.path.stem)
        task = name["task"] if name else None
        model = name["model"] if name else None
        yield from numbered(_sample(row, model, task) for row in rows)


def _tsv_rows(file: ResultFile) -> list[Fields]:
    csv.field_size_limit(max(csv.field_size_limit(), len(file.content) + 1))
    rows = csv.DictReader(io.StringIO(file.text, newline=""), delimiter="\t", strict=True)
    try:
        return [{name: cell or None for name, cell in row.items() if name} for row in rows]
    except csv.Error as error:
        raise READER.error(f"it isn't a table separated by tabs ({error})", file.path) from None


def _sheet_rows(file: ResultFile) -> list[Fields]:
    return read_sheet(file.content, str(file)).to_dicts()


def _sample(row: Fields, model: str | None, task: str | None) -> Sample:
    text = as_text(row["prediction"])
    failed = text is not None and _FAILURE in text
    score = as_number(row.get("hit"))
    letters = [letter for letter in ascii_uppercase if row.get(letter) is not None]
    columns = {*_COLUMNS, *ascii_uppercase}
    metadata = {name: value for name, value in row.items() if name not in columns}
    return Sample(
        id=str(as_text(row["index"])),
        answer=text,
        output=text,
        target=as_text(row.get("answer")),
        correct=is_right(score),
        score=score,
        question=as_text(row.get("question")),
        options=tuple(str(row[letter]) for letter in letters),
        model=model,
        task=task,
        state=FAILED if failed else ANSWERED,
        reason=text if failed else None,
        metadata=metadata,
    )


READER = ResultsReader(
    "VLMEvalKit",
    "a table that ends in .tsv or .xlsx, with the columns index and prediction",
    r".*\.(tsv|xlsx)",
    read,
    mark=r"\A(?=[^\n]*\bindex\b)(?=[^\n]*\bquestion\b)[^\n]*\bprediction\b",
)
