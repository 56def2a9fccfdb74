"""The store of evidence: parts of tables, their ledger and their digests."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import Facts, MissingExtraError, RunError, record
from equipoise.core.files import decode_json, read_json_file, read_table
from equipoise.core.types import FileFacts, Json
from equipoise.core.writing import make_folder, remove, sweep, translated, write
from equipoise.evidence.pictures import Pictures
from equipoise.models.info import one_digest, sha256_of

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class Piece:
    """The images of a part, and the digest of the stored part."""

    number: int
    pictures: Pictures
    have: str = ""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece.

    Attributes
    ----------
    number : int
    digest : str
        Of the part.
    computed : int
        Images the model ran on now; 0 where the part that lies there still holds.
    failures : tuple of Failure
    data : bytes or None
        The file; None where it need not be written.
    contents : bytes
        What the bytes of every image are, see `twins.packed`.
    """

    number: int
    digest: str = ""
    computed: int = 0
    failures: tuple[Failure, ...] = ()
    data: bytes | None = None
    contents: bytes = b""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make a folder if need be, and keep other processes out of it.

    Raises
    ------
    RunError
        When another process works in it, or it cannot be written.
    MissingExtraError
        When filelock is not installed.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingExtraError("filelock", "images") from error

    path = folder / "lock"
    with translated(folder), warnings.catch_warnings():
        # Without locks filelock warns and makes a file instead, which a killed run leaves.
        warnings.simplefilter("error")
        try:
            make_folder(folder)
            lock = FileLock(path).acquire(blocking=False)
        except Timeout:
            raise RunError(
                f"{folder}: another process is writing it. To do: wait until it is done, "
                "or choose another store"
            ) from None
        except (NotImplementedError, UserWarning) as error:
            raise OSError(errno.ENOLCK, str(error)) from error
    with lock:
        sweep(folder)
        yield


@contextmanager
def hold_folder(folder: Path) -> Iterator[bool]:
    """Lock a folder as `lock_folder` does; use a read-only one without a lock.

    Yields whether it may be written.

    Raises
    ------
    RunError
        When another process works in it; or it cannot be written and is not whole.
    """
    with ExitStack() as stack:
        writable = True
        try:
            stack.enter_context(lock_folder(folder))
        except RunError as error:
            writable = getattr(error.__cause__, "errno", None) not in _READ_ONLY
            if writable or read_manifest(folder).get("whole") is not True:
                raise
        yield writable


def write_manifest(folder: Path, facts: Mapping[str, Json]) -> None:
    """Write `manifest.json`."""
    text = json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True)
    write(folder / "manifest.json", text.encode("utf-8", "backslashreplace"))


def read_manifest(folder: Path) -> Facts:
    """Return `manifest.json`; nothing where there is none or it is damaged."""
    try:
        facts = read_json_file(folder / "manifest.json")
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def key_of(facts: Json) -> str:
    """Return the SHA-256 of facts that JSON holds; the order of their names does not matter."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def crops_digest(pictures: Pictures) -> str | None:
    """Return the SHA-256 of the crops of a set; None without crops."""
    return None if pictures.crops is None else hashlib.sha256(pictures.crops.tobytes()).hexdigest()


_NAME = re.compile(r"part-(\d{5,})-([0-9a-f]{16})\.parquet")
FAILURES_KEY = b"equipoise.failures"
UNASKED = "budget"
"""Stage of images that a model wasn't asked about: the next run asks."""

_TRANSIENT = ("model", "request")
"""Stages of failures that a machine in trouble makes."""

FAILURES = pa.schema([("image_id", pa.string()), ("stage", pa.string()), ("reason", pa.string())])


@dataclass(frozen=True)
class Failure:
    """An image that has no row.

    Attributes
    ----------
    image_id : str
    stage : str
        ``read``, ``decode``, ``model``, ``request``, ``cut`` or ``budget``.
    reason : str
    """

    image_id: str
    stage: str
    reason: str

    @property
    def is_unasked(self) -> bool:
        """Whether the model wasn't asked, since that might cost more than the budget."""
        return self.stage == UNASKED


def part_name(number: int, digest: str) -> str:
    """Return the file name of a part."""
    return f"part-{number:05d}-{digest}.parquet"


def parts_in(folder: Path) -> list[tuple[int, str, Path]]:
    """Return the number, digest and path of each stored part, in order."""
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.glob("part-*.parquet"))
    return sorted((int(match[1]), match[2], path) for match, path in matches if match)


def digest_of(key: str, pictures: Pictures, contents: Sequence[str]) -> str:
    """Return the digest of a part.

    Parameters
    ----------
    key : str
        Of the model, the question and the decoding.
    pictures : Pictures
        The images of the part.
    contents : sequence of str
        SHA-256 of the bytes of each; empty where they could not be read.
    """
    crops = [None] * len(pictures) if pictures.crops is None else pictures.crops.tolist()
    rows = [*zip(pictures.ids.tolist(), crops, contents, strict=True)]
    return key_of([key, rows])[:16]


def failures_of(path: Path) -> list[Failure]:
    """Return the failures that a part tells: parts of generated images have rows for all.

    Raises
    ------
    ValueError
        When it is damaged.
    """
    metadata = pq.read_schema(path).metadata or {}
    return [Failure(**failure) for failure in decode_json(metadata.get(FAILURES_KEY, b"[]"))]


def is_sound(path: Path, rows: int) -> bool:
    """Whether a part is there and whole: checksums hold, and all rows are there or have failed.

    A damaged part is named in the log, and is computed again.
    """
    try:
        sound = bool(read_table(path).num_rows + len(failures_of(path)) == rows)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, TypeError, pa.ArrowException):
        sound = False
    if not sound:
        # Where logging is not set up, a warning reaches standard error.
        logging.getLogger("equipoise").warning("%s: it is damaged and is computed again", path)
    return sound


def read_rows(paths: Sequence[Path], columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of parts, in order, with all columns unless some are named.

    Raises
    ------
    RunError
        When one is damaged.
    """
    tables = []
    for path in paths:
        try:
            tables.append(read_table(path, columns).replace_schema_metadata(None))
        except (OSError, pa.ArrowException):
            raise RunError(f"{path}: it is damaged. To do: delete it and run again") from None
    return pa.concat_tables([table for table in tables if table.num_rows] or tables[:1])


def input_of(paths: Sequence[Path], rows: int) -> FileFacts:
    """Return parts as an input of an audit: `sha256`, `bytes`, `rows`."""
    return {
        "sha256": one_digest({path.name: sha256_of(path) for path in paths}),
        "bytes": sum(path.stat().st_size for path in paths),
        "rows": rows,
    }


def failure_table(failures: Sequence[Failure]) -> pa.Table:
    """Return failures as a table: image_id, stage, reason."""
    return pa.Table.from_pylist([asdict(failure) for failure in failures], schema=FAILURES)


@record
class Ledger:
    """The parts of one extraction.

    Attributes
    ----------
    folder : Path
    pictures : Pictures
        All images.
    part : int
        Images in one part, the last aside.
    """

    folder: Path
    pictures: Pictures
    part: int

    def size(self, number: int) -> int:
        """Return how many images a part has."""
        return min(self.part, len(self.pictures) - number * self.part)

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of work, each with the digest of its stored part."""
        have: dict[int, str] = {}
        for number, digest, path in parts_in(self.folder):
            if is_sound(path, self.size(number)) and not any(
                failure.is_unasked for failure in failures_of(path)
            ):
                have[number] = digest
        for number, first in enumerate(range(0, len(self.pictures), self.part)):
            pictures = self.pictures.take(range(first, first + self.size(number)))
            yield Piece(number, pictures, have.get(number, ""))

    def keep(self, outcome: Outcome) -> Outcome:
        """Write a part unless it is stored; return it without its bytes.

        Raises
        ------
        RunError
            When it cannot be written.
        """
        path = self.path(outcome)
        if outcome.data is None:
            return replace(outcome, failures=tuple(failures_of(path)))
        write(path, outcome.data)
        return replace(outcome, data=None)

    def path(self, outcome: Outcome) -> Path:
        """Return the path of a part."""
        return self.folder / part_name(outcome.number, outcome.digest)

    def forget(self, done: Sequence[Outcome]) -> None:
        """Remove parts with images on which the model or a request failed just now.

        A run that stops because a model fails may have met a machine in trouble: the next run is
        to ask the model again.
        """
        for outcome in done:
            if outcome.computed and any(f.stage in _TRANSIENT for f in outcome.failures):
                remove(self.path(outcome))

    def drop_others(self, done: Sequence[Outcome]) -> None:
        """Remove parts that were made from pictures as they were before."""
        paths = {self.path(outcome) for outcome in done}
        for *_, path in parts_in(self.folder):
            if path not in paths:
                remove(path)
