"""Results that other evaluation tools write: a file for each tool, found by a scan."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from equipoise.core import DataError, Facts, Fields, InputError, PluginError
from equipoise.core.types import FileFacts, Json
from equipoise.data.files import RepeatedKeyError, hash_parts, parse_json, read_whole, to_utf8
from equipoise.data.problems import listed, nearest, show
from equipoise.data.spreadsheets import XLSX, read_sheet
from equipoise.discovery import Places

READERS = Places(
    "reader of results",
    "equipoise.results",
    Path(__file__).parent,
    "*.py",
    "equipoise.data.results.{name}:READER",
)
"""The `ResultsReader` of each name: of files of the folder, and of plugins."""

ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"
STATE, REASON = "state", "reason"
"""Columns of the state of a sample, and of why it failed."""

_HEAD_BYTES = 1 << 16
_TRUE, _FALSE = ("c", "correct", "true", "yes"), ("i", "incorrect", "false", "no", "n")


@dataclass(frozen=True)
class Sample:
    """A sample that a tool evaluated: a row of the table of results.

    Attributes
    ----------
    id : str
        Name of the sample in the data set.
    answer : str or None
        What the tool took for the model's answer; its text where it took no part of it.
    output : str or None
        The whole text of the model.
    target : str or None
        The right answer.
    correct : bool or None
        Whether the tool took the answer for right.
    score : float or None
    question : str or None
    options : sequence of str
        Answers to choose from.
    model : str or None
    task : str or None
        The data set, where a file or folder holds several.
    epoch : int or None
        Of a sample that was answered several times.
    state : str
        "answered", "refused" or "failed"; or "missing" and "unknown" where the tool says so.
    reason : str or None
        Why it failed, or was refused.
    metadata : mapping
        What the data set says of the sample.
    """

    id: str
    answer: str | None = None
    output: str | None = None
    target: str | None = None
    correct: bool | None = None
    score: float | None = None
    question: str | None = None
    options: Sequence[str] = ()
    model: str | None = None
    task: str | None = None
    epoch: int | None = None
    state: str = ANSWERED
    reason: str | None = None
    metadata: Facts = field(default_factory=dict)

    def record(self, name: str) -> Fields:
        """Return the row, with a name of its own.

        What failed has no answer, and what was refused neither: both are no wrong answers.
        """
        answered = self.state == ANSWERED
        return {
            "id": name, "sample": self.id, "answer": self.answer if answered else None,
            "output": self.output, "target": self.target,
            "correct": self.correct if self.state != FAILED else None,
            "score": self.score if self.state != FAILED else None, "question": self.question,
            "options": "\n".join(self.options) or None, "model": self.model, "task": self.task,
            "epoch": self.epoch, STATE: self.state, REASON: self.reason,
            "metadata": dict(self.metadata),
        }  # fmt: skip


@dataclass(frozen=True)
class ResultFile:
    """A file of results, read once.

    Attributes
    ----------
    path : Path
    content : bytes
    """

    path: Path
    content: bytes

    def __str__(self) -> str:
        """Return the path."""
        return str(self.path)

    @property
    def text(self) -> str:
        """The text, of UTF-8.

        Raises
        ------
        DataError
            When it is no text of UTF-8.
        """
        return to_utf8(self.content, str(self), "utf-8", header=False).decode("utf-8-sig")


Files: TypeAlias = Sequence[ResultFile]


@dataclass(frozen=True)
class ResultsReader:
    """A reader of the results of one tool.

    Attributes
    ----------
    tool : str
        Name of the tool.
    files : str
        What it writes, in words.
    pattern : str
        Names of the files with samples, as a regular expression.
    read : callable
        Takes the files, and returns their samples.
    mark : str
        Text that the head of such a file holds, as a regular expression; for a guess.
    companions : str
        Names of files that stand beside those, and are read with them.
    """

    tool: str
    files: str
    pattern: str
    read: Callable[[Files], Iterable[Sample]]
    mark: str = ""
    companions: str = "(?!)"

    def find(self, path: Path) -> list[Path]:
        """Return the files with samples: the path itself, or its files."""
        paths = sorted(path.rglob("*")) if path.is_dir() else [path]
        return [file for file in paths if re.fullmatch(self.pattern, file.name) and file.is_file()]

    def fits(self, path: Path) -> bool:
        """Whether a file, or the first of a folder, looks like one of this tool."""
        files = self.find(path)
        if not files:
            return False
        return re.search(self.mark, _head(files[0])) is not None

    def error(self, problem: str, file: Path | str, row: int | None = None) -> DataError:
        """Return the error of a file that the tool didn't write."""
        return DataError(
            problem,
            file=str(file),
            row=row,
            expected=f"results of {self.tool}: {self.files}",
            fix="name the file or folder that the tool wrote, or another reader under `results:`",
        )


def _head(path: Path) -> str:
    """Return the start of a file; of a workbook the names of its columns."""
    if path.suffix == XLSX:
        try:
            return "\t".join(read_sheet(path.read_bytes(), str(path)).columns)
        except DataError:
            return ""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).decode("utf-8", errors="replace")


def reader_of(name: str) -> ResultsReader:
    """Return a reader by its name, with hyphens or underscores.

    Raises
    ------
    InputError
        When there is none of this name.
    """
    key = name.replace("-", "_")
    if key not in READERS:
        raise InputError(
            f"given {name!r}; expected one of {listed(READERS)}{nearest(key, READERS) or ''}"
        )
    return READERS[key].load(ResultsReader)


def guess_reader(path: Path) -> str | None:
    """Return the name of the only reader that a file or folder fits; None without one.

    Readers of packages that can't be imported are passed over.
    """
    names = list[str]()
    for name in READERS if path.exists() else ():
        try:
            reader = READERS[name].load(ResultsReader)
        except PluginError:
            continue
        names += [name] if reader.fits(path) else []
    return names[0] if len(names) == 1 else None


def read_results(tool: str, path: Path) -> tuple[list[Fields], FileFacts]:
    """Return a row for each sample of a file or folder, and the digest of all that was read.

    Raises
    ------
    DataError
        When there is no file of the tool, or one of them is not as the tool writes it.
    """
    reader = reader_of(tool)
    paths = reader.find(path)
    if not paths:
        raise reader.error("there is no file of results", path)
    companions = {
        file
        for folder in {file.parent for file in paths}
        for file in folder.iterdir()
        if re.fullmatch(reader.companions, file.name) and file.is_file()
    }
    files = [
        ResultFile(file, read_whole(file, reader.files)) for file in sorted({*paths, *companions})
    ]
    try:
        samples = [*reader.read(files)]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise reader.error(f"it isn't as the tool writes it ({show(error)})", path) from None
    if not samples:
        raise reader.error("there are no samples in it", path)
    records = [sample.record(name) for sample, name in zip(samples, _names(samples), strict=True)]
    return records, hash_parts(file.content for file in files)


def _names(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a name for each sample: with its task and epoch where it would repeat."""
    pairs = {(sample.model, sample.id) for sample in samples}
    tasks = len({sample.task for sample in samples}) > 1 and len(pairs) < len(samples)
    triples = {(sample.model, sample.task if tasks else None, sample.id) for sample in samples}
    epochs = len(triples) < len(samples)
    for sample in samples:
        name = f"{sample.task}/{sample.id}" if tasks and sample.task else sample.id
        yield f"{name} #{sample.epoch}" if epochs and sample.epoch is not None else name


def json_of(file: ResultFile, reader: ResultsReader) -> Fields:
    """Return the object that a file holds.

    Raises
    ------
    DataError
        When it holds none, or a key twice.
    """
    value = _parsed(file.text, file)
    if not isinstance(value, dict):
        raise reader.error("it is no JSON object", file.path)
    return value


def _parsed(text: str, file: ResultFile) -> Json:
    try:
        value: Json = parse_json(text)
    except RepeatedKeyError as error:
        raise error.located(str(file), None) from None
    except ValueError:
        return None
    return value


def as_text(value: Json) -> str | None:
    """Return a value as the text of a cell; None and empty lists have none."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)


def as_number(value: Json) -> float | None:
    """Return a score as a number: grades of a judge are 1 and 0."""
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(value).strip().lower() if isinstance(value, str) else ""
    if text in (*_TRUE, *_FALSE):
        return float(text in _TRUE)
    try:
        return float(text)
    except ValueError:
        return 0.5 if text == "p" else None


def is_right(score: float | None) -> bool | None:
    """Return whether a score is that of a right answer; None of a score between 0 and 1."""
    return bool(score) if score in (0.0, 1.0) else None


def texts_of(content: Json) -> str:
    """Return the text of a message: its content, or the parts of it that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") or "" for part in parts if isinstance(part, Mapping)]
    return "\n".join(filter(None, texts))


def numbered(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield samples with an epoch where one of a model and a task repeats."""
    counts: dict[tuple[str | None, str | None, str], int] = {}
    for sample in samples:
        key = sample.model, sample.task, sample.id
        counts[key] = counts.get(key, 0) + 1
        yield sample if counts[key] == 1 else replace(sample, epoch=counts[key])
