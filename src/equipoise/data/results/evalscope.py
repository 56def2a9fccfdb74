"""Reviews of EvalScope: `reviews/MODEL/*.jsonl`."""

from collections.abc import Iterator
from typing import Any

from equipoise.core import Fields
from equipoise.data.json_tables import json_lines
from equipoise.data.results import (
    Files,
    ResultsReader,
    Sample,
    as_number,
    as_text,
    is_right,
    numbered,
    texts_of,
)


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of every file; a repetition is another epoch."""
    for file in files:
        model, task = file.path.parent.name or None, file.path.stem
        rows = json_lines(file.text, str(file))
        for row, fields in enumerate(rows, 1):
            if "sample_score" not in fields:
                raise READER.error("the line has no sample_score", file.path, row)
        yield from numbered(_sample(fields, model, task) for fields in rows)


def _sample(row: Fields, model: str | None, task: str) -> Sample:
    outcome = row["sample_score"]
    grade: Fields = outcome["score"]
    values: Fields = grade.get("value") or {}
    name = grade.get("main_score_name") or next(iter(values), "")
    score = as_number(values.get(name))
    metadata: Fields = outcome.get("sample_metadata") or {}
    repeated = outcome.get("group_id")
    return Sample(
        id=str(row["index"] if repeated is None else repeated),
        answer=as_text(grade.get("extracted_prediction")) or as_text(grade.get("prediction")),
        output=as_text(grade.get("prediction")),
        target=as_text(row.get("target")),
        correct=is_right(score),
        score=score,
        question=_question(row.get("input")),
        options=tuple(map(str, metadata.get("choices") or ())),
        model=model,
        task=task,
        metadata=metadata,
    )


def _question(prompt: Any) -> str | None:
    if isinstance(prompt, str):
        return prompt or None
    questions = [texts_of(message.get("content")) for message in prompt or ()
             if message.get("role") == "user"]  # fmt: skip
    return "\n".join(questions) or None


READER = ResultsReader(
    "EvalScope",
    "reviews that end in .jsonl, or the folder reviews",
    r".*\.jsonl",
    read,
    mark='"sample_score"',
)
