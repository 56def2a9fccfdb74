"""Damage small valid files of every format, and read them through the public readers.

Each file is read, refused with an error of equipoise, or shows a bug: another exception, an error
that names no file, a crash, more than 20 seconds or 3 GB. The same seed makes the same files.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import EquipoiseError
from equipoise.evidence import ImageError
from tools.soak.fuzz_formats import Format, formats

SECONDS = 20
BYTES = 3 << 30
_SPAWN = get_context("spawn")
# Most levels of records inside one another.
_DEEPEST = 8
_NUMBERS = (b"0", b"-1", b"1e999", b"-0.0", b"NaN", b"9" * 30, b"1e-7", b"2147483648", b"null")


def fuzz(count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Read damaged files, as many of each format.

    Parameters
    ----------
    count : int
        Files in all.
    seed : int

    Yields
    ------
    format, outcome, problem : str
        The outcome is "read", "other" (read as other values), "refused" or "bug". The problem of a
        bug has the seed and number that make its file again.
    """
    known = formats()
    with TemporaryDirectory(prefix="fuzz-") as folder, closing(Reader(Path(folder))) as reader:
        for place, (name, form) in enumerate(known.items()):
            sample, case = Path(folder, f"sample-{place}"), Path(folder, "case")
            sample.mkdir()
            form.write(sample)
            outcome, values = reader.read(name, sample)
            if outcome != "read":
                yield name, "bug", f"{name}, undamaged: {values}"
            for number in range(count // len(known) + (place < count % len(known))):
                shutil.rmtree(case, ignore_errors=True)
                shutil.copytree(sample, case)
                damage(case, random.Random(f"{seed} {name} {number}"))  # noqa: S311 - no secret
                outcome, problem = reader.read(name, case)
                if outcome == "read":
                    outcome, problem = "read" if problem == values else "other", ""
                yield name, outcome, f"{name}, seed {seed}, number {number}: {problem}"


def damage(folder: Path, chance: random.Random) -> None:
    """Change one file of a folder, once or a few times."""
    damage_file(chance.choice(sorted(path for path in folder.rglob("*") if path.is_file())), chance)


def damage_file(file: Path, chance: random.Random) -> None:
    """Change a file once or a few times."""
    content = file.read_bytes()
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = _mutated(content, chance)
    file.write_bytes(content)


def _mutated(content: bytes, chance: random.Random) -> bytes:
    """Return content with one change of a random kind."""
    if not content:
        return chance.randbytes(8)
    # Half of the changes are near the start: headers decide most.
    start = chance.randrange(len(content) if chance.random() < 0.5 else min(len(content), 200))
    end = min(len(content), start + chance.choice((1, 2, 4, 16, 60)))
    before, part, after = content[:start], content[start:end], content[end:]
    changes: dict[str, Callable[[], bytes]] = {
        "bit": lambda: bytes([part[0] ^ 1 << chance.randrange(8)]) + part[1:],
        "bytes": lambda: chance.randbytes(len(part)),
        "zeros": lambda: bytes(len(part)),
        "ones": lambda: b"\xff" * len(part),
        "removed": lambda: b"",
        "repeated": lambda: part * chance.choice((2, 3, 500)),
        "inserted": lambda: chance.randbytes(chance.choice((1, 7))) + part,
        "number": lambda: chance.choice(_NUMBERS) + part[1:],
        "copied": lambda: content[chance.randrange(len(content)) :][: len(part)],
    }
    if chance.random() < 0.1:
        return before
    return before + changes[chance.choice(sorted(changes))]() + after


def read_folders(asked: Connection, errors: Path) -> None:
    """Read the folders that are asked for, within limits, and answer what became of each."""
    known = formats()
    warnings.simplefilter("ignore")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    with errors.open("w") as file:
        os.dup2(file.fileno(), 2)
    asked.send("ready")
    while True:
        name, folder = asked.recv()
        asked.send(outcome(known[name], folder))


class Reader:
    """A process with limits that reads folders; it is started anew when one ends it.

    Parameters
    ----------
    folder : Path
        Where its standard error goes.
    serve : callable
        What runs, as `read_folders` does.
    """

    def __init__(
        self, folder: Path, serve: Callable[[Connection, Path], object] = read_folders
    ) -> None:
        self._errors, self._serve = folder / "stderr", serve
        self._started: tuple[BaseProcess, Connection] | None = None

    def read(self, name: str, folder: Path) -> tuple[str, str]:
        """Return what became of a folder, and a digest of its values or the problem."""
        process, connection = self._started = self._started or self._start()
        connection.send((name, folder))
        try:
            if connection.poll(SECONDS):
                answer: tuple[str, str] = connection.recv()
                return answer
            problem = f"no answer within {SECONDS} seconds"
        except EOFError:
            process.join()
            problem = (
                f"the process ended with {process.exitcode}: {self._errors.read_text()[-300:]}"
            )
        self.close()
        return "bug", problem

    def _start(self) -> tuple[BaseProcess, Connection]:
        connection, given = _SPAWN.Pipe()
        process = _SPAWN.Process(target=self._serve, args=(given, self._errors))
        process.start()
        given.close()
        connection.recv()
        return process, connection

    def close(self) -> None:
        """End the process."""
        if self._started is None:
            return
        process, connection = self._started
        self._started = None
        process.kill()
        process.join()
        process.close()
        connection.close()


def outcome(form: Format, folder: Path) -> tuple[str, str]:
    """Read a folder; return what became of it, as `Reader.read` does."""
    try:
        values = form.read(folder)
    except ImageError:  # who decodes bytes knows their file, and adds it
        return "refused", ""
    except EquipoiseError as error:
        named = str(folder) in str(error)
        return ("refused", "") if named else ("bug", f"the error names no file: {error}")
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "bug", f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"[:500]
    return "read", digest_of(values)


# Digests and paths of files differ where their values are the same.
_APART = frozenset({"digest", "inputs", "file", "files", "path", "source", "root"})


def digest_of(values: object) -> str:
    """Return a digest of what was read, as far as it is data."""
    return sha256(repr(_plain(values, 0)).encode("utf-8", "backslashreplace")).hexdigest()


def _plain(value: Any, depth: int) -> Any:
    """Return the data in a value as plain Python."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tolist()]
    if isinstance(value, pl.DataFrame):
        return value.to_dict(as_series=False)
    if isinstance(value, pl.Series):
        return value.to_list()
    if isinstance(value, pa.Table | pa.Array | pa.ChunkedArray):
        return value.to_pylist()
    if isinstance(value, Mapping):
        return [[key, _plain(value[key], depth + 1)] for key in value if key not in _APART]
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, Path) or callable(value) or depth > _DEEPEST:
        return ""
    fields = getattr(value, "__dict__", None)
    return value if fields is None else [type(value).__name__, _plain(fields, depth + 1)]
