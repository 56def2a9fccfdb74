"""Every Eval Ever 0.3.0: rows of `*_samples.jsonl`, beside the results of the model."""

from collections.abc import Iterator
from typing import Any

from equipoise.core import Fields
from equipoise.data.json_tables import json_lines
from equipoise.data.results import (
    ANSWERED,
    FAILED,
    Files,
    ResultsReader,
    Sample,
    as_text,
    is_right,
    numbered,
)

_STATES = ("missing", "unknown", "refused")
"""Errors that are no failures: the model said nothing, or declined."""


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of the files, each with an epoch where it repeats."""
    rows = (row for file in files for row in json_lines(file.text, str(file)))
    yield from numbered(_sample(row) for row in rows)


def _sample(row: Fields) -> Sample:
    error, output = row.get("error"), as_text((row.get("output") or {}).get("raw"))
    prompt: Fields = row.get("input") or {}
    score = row["evaluation"].get("score")
    right = row["evaluation"].get("is_correct")
    state = ANSWERED if error is None else FAILED
    return Sample(
        id=str(row["sample_id"]),
        answer=_answer(row) or output,
        output=output,
        target=as_text(prompt.get("reference")),
        correct=is_right(score) if right is None else right,
        score=score,
        question=as_text(prompt.get("raw")),
        options=tuple(map(str, prompt.get("choices") or ())),
        model=row.get("model_id"),
        task=row.get("evaluation_name"),
        state=error if error in _STATES else state,
        reason=error,
        metadata=row.get("metadata") or {},
    )


def _answer(row: Fields) -> str | None:
    """Return the last answer that was taken from the output."""
    parts: list[Any] = row.get("answer_attribution") or []
    return as_text(parts[-1].get("extracted_value")) if parts else None


READER = ResultsReader(
    "Every Eval Ever",
    "files that end in _samples.jsonl, or a folder with them",
    r".*_samples\.jsonl",
    read,
    mark='"sample_hash"|"evaluation_id"',
)
