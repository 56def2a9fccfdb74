"""Damage small valid files of every format, and read them through the public readers.

    python -m tools.soak.fuzz [--count 2000] [--seed 0]

Each file is read, refused with an error of equipoise, or shows a bug: another exception, an error
that names no file, a crash, more than 20 seconds or 3 GB. The exit code is 1 when there is a bug.
The same seed makes the same files.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import select
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.soak.fuzz_formats import Format

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20
BYTES = 3 << 30
_STARTING = 120
_READER = (sys.executable, "-m", "tools.soak.fuzz", "--reader")
_NUMBERS = (b"0", b"-1", b"1e999", b"-0.0", b"NaN", b"9" * 30, b"1e-7", b"2147483648", b"null")


@dataclass(frozen=True)
class Fuzzed:
    """Damaged files of one format.

    Attributes
    ----------
    format : str
    files, read, refused : int
    bugs : tuple of str
        What happened, each with the seed and number that make the file again.
    """

    format: str
    files: int
    read: int
    refused: int
    bugs: tuple[str, ...]


def fuzz(count: int, seed: int) -> list[Fuzzed]:
    """Read damaged files, as many of each format, and count what became of them.

    Parameters
    ----------
    count : int
        Files in all.
    seed : int
    """
    from tools.soak.fuzz_formats import formats

    known = formats()
    rows = []
    with TemporaryDirectory(prefix="fuzz-") as folder, Reader(Path(folder)) as reader:
        for place, name in enumerate(known):
            number = count // len(known) + (place < count % len(known))
            sample = Path(folder) / "sample"
            _emptied(sample)
            known[name].write(sample)
            rows.append(_fuzzed(name, number, seed, sample, reader))
    return rows


def _fuzzed(name: str, count: int, seed: int, sample: Path, reader: Reader) -> Fuzzed:
    outcomes: dict[str, int] = {"read": 0, "refused": 0}
    bugs = []
    outcome, problem = reader.read(name, sample)
    if outcome != "read":
        bugs.append(f"{name}, undamaged: {problem}")
    case = sample.with_name("case")
    for number in range(count):
        shutil.rmtree(case, ignore_errors=True)
        shutil.copytree(sample, case)
        damage(case, random.Random(f"{seed} {name} {number}"))  # noqa: S311 - no secret
        outcome, problem = reader.read(name, case)
        if outcome == "bug":
            bugs.append(f"{name}, seed {seed}, number {number}: {problem}")
        else:
            outcomes[outcome] += 1
    return Fuzzed(name, count, outcomes["read"], outcomes["refused"], tuple(bugs))


def damage(folder: Path, chance: random.Random) -> None:
    """Change one file of a folder, once or a few times."""
    file = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
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


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


class Reader:
    """A process with limits that reads folders; it is started anew when one ends it.

    Parameters
    ----------
    folder : Path
        Where its standard error goes.
    command : sequence of str
        What runs; it answers each line of its input with one.
    """

    def __init__(self, folder: Path, command: Sequence[str] = _READER) -> None:
        self._errors, self._command = folder / "stderr", command
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reader:
        """Return the reader; its process starts with the first folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def read(self, name: str, folder: Path) -> tuple[str, str]:
        """Return what became of a folder ("read", "refused" or "bug"), and what was wrong."""
        process = self._process or self._start()
        if process.stdin is None:
            raise RuntimeError("the process has no input")
        process.stdin.write(json.dumps([name, str(folder)]) + "\n")
        process.stdin.flush()
        line = _line(process, SECONDS)
        if line is None:
            self._end()
            return "bug", f"no answer within {SECONDS} seconds"
        if not line:
            code = process.wait()
            self._end()
            return "bug", f"the process ended with {code}: {self._errors.read_text()[-300:]}"
        outcome, problem = json.loads(line)
        return str(outcome), str(problem)

    def _start(self) -> subprocess.Popen[str]:
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        if not _line(self._process, _STARTING):
            raise RuntimeError(f"the reader did not start: {self._errors.read_text()}")
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _line(process: subprocess.Popen[str], seconds: float) -> str | None:
    """Return the next line of a process, "" when it ended, and None when none came in time."""
    if process.stdout is None or not select.select([process.stdout], [], [], seconds)[0]:
        return None
    return process.stdout.readline()


def _read_folders() -> None:
    """Read the folders that standard input names, one line of result for each."""
    from tools.soak.fuzz_formats import formats

    known = formats()
    warnings.simplefilter("ignore")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        name, folder = json.loads(line)
        sys.stdout.write(json.dumps(outcome(known[name], Path(folder))) + "\n")
        sys.stdout.flush()


def outcome(form: Format, folder: Path) -> tuple[str, str]:
    """Read a folder; return what became of it, as `Reader.read` does."""
    from equipoise.core.errors import EquipoiseError
    from equipoise.evidence import ImageError

    try:
        form.read(folder)
    except ImageError:  # who decodes bytes knows their file, and adds it
        return "refused", ""
    except EquipoiseError as error:
        named = str(folder) in str(error)
        return ("refused", "") if named else ("bug", f"the error names no file: {error}")
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "bug", f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"[:500]
    return "read", ""


def table(rows: list[Fuzzed]) -> Iterator[str]:
    """Yield the lines of a table of the counts by format."""
    yield f"{'format':32} {'files':>6} {'read':>6} {'refused':>8} {'bugs':>5}"
    for row in rows:
        yield f"{row.format:32} {row.files:6} {row.read:6} {row.refused:8} {len(row.bugs):5}"
    counts = [sum(counted) for counted in zip(*map(_counts, rows), strict=True)]
    yield f"{'all':32} {counts[0]:6} {counts[1]:6} {counts[2]:8} {counts[3]:5}"


def _counts(row: Fuzzed) -> tuple[int, int, int, int]:
    return row.files, row.read, row.refused, len(row.bugs)


def main() -> None:
    """Fuzz, and print the counts and the bugs."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="files in all")
    parser.add_argument("--seed", type=int, default=0, help="of the damage")
    parser.add_argument("--reader", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.reader:
        _read_folders()
        return
    rows = fuzz(chosen.count, chosen.seed)
    sys.stdout.write("\n".join(table(rows)) + "\n")
    bugs = [bug for row in rows for bug in row.bugs]
    if bugs:
        sys.exit("\n".join(bugs))


if __name__ == "__main__":
    main()
