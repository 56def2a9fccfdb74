"""Print the test files of what changed since the last commit or the main branch.

    python -m tools.changed_tests

A changed test file is its own. A changed module `src/equipoise/ROOM/…/NAME.py` has
`tests/ROOM/**/test_NAME*.py`; a module without one of that name has the tests of its folder,
or of its room.
The structure of the package is always tested.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
ALWAYS = ("tests/test_house.py",)


def changed_files() -> list[str]:
    """Return the files that differ from the main branch, and those that git doesn't know."""
    base = _git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    return [
        *_git("diff", "--name-only", "--diff-filter=d", base[0]),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def affected_tests(files: Iterable[str]) -> list[str]:
    """Return the test files of changed files, sorted."""
    tests = set(ALWAYS)
    for name in files:
        tests.update(_tests_of_file(PurePosixPath(name)))
    return sorted(tests)


def _tests_of_file(path: PurePosixPath) -> Iterator[str]:
    if path.suffix != ".py":
        return
    if path.parts[0] == "tests":
        if path.name.startswith("test_") and "slow" not in path.parts:
            yield str(path)
        return
    if path.parts[:2] != ("src", "equipoise"):
        return
    room, folder = TESTS.joinpath(*path.parts[2:3]), TESTS.joinpath(*path.parts[2:-1])
    candidates = (
        room.rglob(f"test_{path.stem}*.py"), folder.glob("test_*.py"), room.glob("test_*.py"),
    )  # fmt: skip
    tests = next(filter(None, map(list, candidates)), [])
    yield from (test.relative_to(ROOT).as_posix() for test in tests)


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return finished.stdout.split()


if __name__ == "__main__":
    sys.stdout.write(" ".join(affected_tests(changed_files())))
