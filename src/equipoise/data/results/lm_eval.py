"""Samples of lm-evaluation-harness and lmms-eval: `samples_*.jsonl`."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.core import Fields
from equipoise.data.json_tables import json_lines
from equipoise.data.results import (
    Files,
    ResultFile,
    ResultsReader,
    Sample,
    as_number,
    as_text,
    is_right,
    json_of,
    numbered,
)

_NAME = re.compile(r"(?:(?P<before>.*)_)?samples_(?P<task>.*?)(?:_(?P<date>\d{4}-\d\d-\d\d.*))?")
_RESULTS = r".*results.*\.json"
_TASK_FIELDS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash", "input", "resp",
}  # fmt: skip
"""What isn't the value of a metric."""
_QUESTIONS = ("question", "query", "text", "prompt", "instruction")
_PAIR = 2


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of every task; other filters follow with another epoch."""
    models = {
        (file.path.parent, _date(file)): json_of(file, READER).get("model_name")
        for file in files
        if re.fullmatch(_RESULTS, file.path.name)
    }
    for file in files:
        if re.fullmatch(_RESULTS, file.path.name):
            continue
        name = _NAME.fullmatch(file.path.stem)
        task = name["task"] if name else None
        model = models.get((file.path.parent, _date(file)))
        rows = json_lines(file.text, str(file))
        yield from numbered(_sample(row, task, model) for row in rows)


def _date(file: ResultFile) -> str:
    """Return the date in a file's name, by which files belong together."""
    match = re.search(r"\d{4}-\d\d-\d\d.*|\d{8}_\d+", file.path.stem)
    return match[0].split("_samples_")[0].split("_results")[0] if match else ""


def _sample(row: Fields, task: str | None, model: str | None) -> Sample:
    document = row.get("doc")
    metadata: Fields = document if isinstance(document, dict) else {}
    responses = row.get("filtered_resps", row.get("resps"))
    names = row.get("metrics") or [name for name in row if name not in _TASK_FIELDS]
    scores = (as_number(row.get(name)) for name in names)
    score = next((number for number in scores if number is not None), None)
    options, target = _options(metadata), as_text(row.get("target"))
    answer = _answer(responses)
    return Sample(
        id=str(row["doc_id"]),
        answer=answer if answer is None else _like_target(answer, target, options, responses),
        output=_first(row.get("resps")),
        target=target,
        correct=is_right(score),
        score=score,
        question=next((str(metadata[name]) for name in _QUESTIONS if name in metadata), None),
        options=options,
        model=model,
        task=task,
        metadata=metadata,
    )


def _answer(responses: Any) -> str | None:
    """Return the answer: a text, or the place of the likeliest of the options."""
    likelihoods = _likelihoods(responses)
    if likelihoods:
        return str(likelihoods.index(max(likelihoods)))
    return _first(responses)


def _likelihoods(responses: Any) -> list[float]:
    """Return the likelihood of each option, where a model chose by them."""
    if not isinstance(responses, list) or not responses:
        return []
    numbers = [
        as_number(pair[0]) if isinstance(pair, list) and len(pair) == _PAIR else None
        for pair in responses
    ]
    present = [number for number in numbers if number is not None]
    return present if len(present) == len(numbers) else []


def _like_target(
    answer: str, target: str | None, options: Sequence[str], responses: Any
) -> str:  # fmt: skip
    """Return the place of an option as the target names it: place, letter or text."""
    if not _likelihoods(responses) or target is None or target.isdigit():
        return answer
    place = int(answer)
    if target in options and place < len(options):
        return options[place]
    return chr(ord("A") + place) if len(target) == 1 else answer


def _first(value: Any) -> str | None:
    """Return the first text of nested lists."""
    while isinstance(value, list):
        value = value[0] if value else None
    return as_text(value)


def _options(document: Fields) -> tuple[str, ...]:
    value = document.get("choices", document.get("options"))
    if isinstance(value, dict):
        value = value.get("text")
    return tuple(map(str, value)) if isinstance(value, list) else ()


READER = ResultsReader(
    "lm-evaluation-harness or lmms-eval",
    "files of samples that end in .jsonl, or a folder with them",
    r".*\.jsonl",
    read,
    mark=r'"doc_id"[\s\S]*"(filtered_)?resps"|"(filtered_)?resps"[\s\S]*"doc_id"',
    companions=_RESULTS,
)
