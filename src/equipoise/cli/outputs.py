"""Files at paths that a user names: whole or not there, and replaced only by their own kind."""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from equipoise.core.types import Json

_HEAD = 4096
JUNIT = b'<testsuite name="equipoise gate"'
"""Text near the start of every JUnit file of equipoise."""


def check_output(path: Path, mark: bytes = b"") -> None:
    """Refuse a path that `write_output` would refuse, before anything is measured.

    Parameters
    ----------
    path : Path
    mark : bytes
        A file whose start holds this text may be replaced; none unless given.

    Raises
    ------
    RunError
        When the path is taken or not usable; says what to do.
    """
    from equipoise.core import RunError

    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    replaceable = (
        mark and path.is_file() and not path.is_symlink() and mark in path.read_bytes()[:_HEAD]
    )
    problem = ""
    if not str(path).isprintable():
        problem = "expected a name that can be shown, in valid UTF-8"
    elif not above.is_dir():
        problem = f"{above} is no folder"
    elif os.path.lexists(path) and not replaceable:
        problem = "exists already"
    if problem:
        raise RunError(f"{path}: {problem}. To do: choose another name or folder")


def write_output(path: Path, text: str, mark: bytes = b"") -> None:
    """Write a file under a temporary name, then rename it; missing folders are made.

    Raises
    ------
    RunError
        As `check_output`.
    """
    check_output(path, mark)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        if not os.path.lexists(path):
            path.touch(exist_ok=False)  # fails where a file has appeared meanwhile
        partial.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def config_text(values: Mapping[str, Json], notes: Iterable[str] = ()) -> str:
    """Return a configuration as YAML, after notes as comments."""
    import yaml  # heavy, and the help needs none

    text = yaml.safe_dump(
        dict(values), sort_keys=False, allow_unicode=True, default_flow_style=None
    )
    return "".join(f"# {line}\n" for line in notes) + text
