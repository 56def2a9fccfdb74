"""Files at paths that a user names: whole or not there, and replaced only by their own kind."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import click

_HEAD = 4096
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace a file that is there, if equipoise wrote it."
)


@dataclass(frozen=True)
class FileKind:
    """A kind of file that equipoise writes.

    Attributes
    ----------
    name : str
    mark : bytes
        Text near the start of every file of this kind.
    """

    name: str
    mark: bytes

    def matches(self, path: Path) -> bool:
        """Whether a file is of this kind; a link or a folder never is."""
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return self.mark in file.read(_HEAD)


REPORT = FileKind("report of equipoise", b'<meta name="generator" content="equipoise">')
JUNIT = FileKind("JUnit file of equipoise", b'<testsuite name="equipoise gate"')


def check_output(path: Path, kind: FileKind | None = None, *, overwrite: bool = False) -> None:
    """Refuse a path that `write_output` would refuse, before anything is measured.

    Parameters
    ----------
    path : Path
    kind : FileKind, optional
        What `overwrite` may replace; None where nothing is ever replaced.
    overwrite : bool

    Raises
    ------
    RunError
        When the path is taken or not usable; says what to do.
    """
    from equipoise.core.errors import RunError

    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    problem = ""
    if not str(path).isprintable():
        problem = "expected a name that can be shown, in valid UTF-8. To do: choose another name"
    elif not above.is_dir():
        problem = f"{above} is no folder. To do: choose another name"
    elif os.path.lexists(path) and not (overwrite and kind is not None and kind.matches(path)):
        offer = "" if kind is None else f", or pass --overwrite if it is a {kind.name}"
        problem = f"exists already. To do: choose another name{offer}"
    if problem:
        raise RunError(f"{path}: {problem}")


def write_output(
    path: Path, text: str, kind: FileKind | None = None, *, overwrite: bool = False
) -> None:
    """Write a file under a temporary name, then rename it; missing folders are made.

    Raises
    ------
    RunError
        As `check_output`.
    """
    check_output(path, kind, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        if not os.path.lexists(path):
            path.touch(exist_ok=False)  # fails where a file has appeared meanwhile
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
