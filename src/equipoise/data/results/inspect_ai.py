"""Logs of Inspect: `.eval`, an archive with a file for each sample, and `.json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from equipoise.core import Facts, Fields
from equipoise.data.archives import archive_entries
from equipoise.data.results import (
    ANSWERED,
    FAILED,
    REFUSED,
    Files,
    ResultFile,
    ResultsReader,
    Sample,
    as_number,
    as_text,
    is_right,
    json_of,
    texts_of,
)

_ATTACHMENT = "attachment://"


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of every log, in the order of their names."""
    for file in files:
        header, samples = _of_archive(file) if file.path.suffix == ".eval" else _of_json(file)
        for sample in samples:
            yield _sample(sample, header["eval"])


def _of_json(file: ResultFile) -> tuple[Fields, list[Fields]]:
    log = json_of(file, READER)
    if not isinstance(log.get("eval"), dict):
        raise READER.error("it has no key eval", file.path)
    return log, log.get("samples") or []


def _of_archive(file: ResultFile) -> tuple[Fields, list[Fields]]:
    entries = archive_entries(file.content, str(file), READER.files)
    if "header.json" not in entries:
        raise READER.error("it has no header.json: the run didn't end, or isn't one", file.path)
    names = sorted(name for name in entries if name.startswith("samples/"))
    header, *samples = (
        json_of(ResultFile(file.path / name, entries[name]()), READER)
        for name in ["header.json", *names]
    )
    return header, samples


def _sample(sample: Fields, run: Facts) -> Sample:
    attachments: Facts = sample.get("attachments") or {}
    output: Facts = sample.get("output") or {}
    choices = output.get("choices") or [{}]
    stop = choices[0].get("stop_reason")
    error = (sample.get("error") or {}).get("message") or output.get("error")
    text = _whole(texts_of((choices[0].get("message") or {}).get("content")), attachments)
    grades: Mapping[str, Fields] = sample.get("scores") or {}
    grade = next(iter(grades.values()), {})
    score = _score(grade.get("value"))
    refused = stop == "content_filter"
    return Sample(
        id=str(sample["id"]),
        answer=as_text(grade.get("answer")) or text or None,
        output=text or None,
        target=as_text(sample.get("target")),
        correct=is_right(score),
        score=score,
        question=_question(sample.get("input"), attachments),
        options=tuple(map(str, sample.get("choices") or ())),
        model=run.get("model"),
        task=run.get("task"),
        epoch=sample.get("epoch"),
        state=FAILED if error else REFUSED if refused else ANSWERED,
        reason=error or (stop if refused else None),
        metadata=sample.get("metadata") or {},
    )


def _score(value: Any) -> float | None:
    """Return a grade as a number: the first, where a scorer gives several."""
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    return as_number(value)


def _question(prompt: Any, attachments: Facts) -> str | None:
    """Return the question, of a text or messages."""
    if isinstance(prompt, str):
        return _whole(prompt, attachments)
    questions = [texts_of(message.get("content")) for message in prompt or ()
             if message.get("role") == "user"]  # fmt: skip
    return "\n".join(_whole(text, attachments) for text in questions) or None


def _whole(text: str, attachments: Facts) -> str:
    """Return a text that a log may keep among its attachments."""
    if not text.startswith(_ATTACHMENT):
        return text
    return str(attachments.get(text.removeprefix(_ATTACHMENT), text))


READER = ResultsReader(
    "Inspect",
    "a log that ends in .eval or .json, or a folder of logs",
    r".*\.(eval|json)",
    read,
    mark=r'\APK|\A\s*\{\s*"version"[\s\S]*"eval"',
)
