"""Files at paths that a user names: whole or not there, and replaced only by their own kind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.core.types import Json

_HEAD = 4096
JUNIT = b'<testsuite name="equipoise gate"'
"""Text near the start of every JUnit file of equipoise."""


def check_output(path: Path, mark: bytes = b"", text: str | None = None) -> None:
    """Refuse a path that `write_output` would refuse, before anything is measured.

    Parameters
    ----------
    path : Path
    mark : bytes
        A file whose start holds this text may be replaced; none unless given.
    text : str, optional
        A file that holds just this may be there: a killed command wrote it.

    Raises
    ------
    RunError
        When the path is taken or not usable; says what to do.
    """
    from equipoise.core import RunError
    from equipoise.core.writing import sweep

    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    replaceable = (mark and mark in content[:_HEAD]) or (text and text.encode() == content)
    problem = ""
    if not str(path).isprintable():
        problem = "expected a name that can be shown, in valid UTF-8"
    elif not above.is_dir():
        problem = f"{above} is no folder"
    elif os.path.lexists(path) and not replaceable:
        problem = "exists already"
    if above.is_dir():
        sweep(path.parent, path.name)
    if problem:
        raise RunError(f"{path}: {problem}. To do: choose another name or folder")


def write_output(path: Path, text: str, mark: bytes = b"") -> None:
    """Write a file that appears when it is whole; missing folders are made.

    Raises
    ------
    RunError
        As `check_output`, or when it cannot be written.
    """
    write_outputs({path: text}, mark)


def write_outputs(files: Mapping[Path, str], mark: bytes = b"") -> None:
    """Write files as `write_output` does, all or none of them.

    Raises
    ------
    RunError
        As `write_output`.
    """
    from equipoise.core.writing import remove, write

    for path, text in files.items():
        check_output(path, mark, text)
    written: list[Path] = []
    try:
        for path, text in files.items():
            # Without a file to replace, it fails where one has appeared meanwhile.
            new = not os.path.lexists(path)
            write(path, text.encode(), new=new)
            written += [path] if new else []
    except BaseException:
        for path in written:
            with suppress(OSError):
                remove(path)
        raise


def config_text(values: Mapping[str, Json], notes: Iterable[str] = ()) -> str:
    """Return a configuration as YAML, after notes as comments."""
    import yaml  # heavy, and the help needs none

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Json) -> bool:  # noqa: ARG002
            return True

    text = yaml.dump(
        dict(values), Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None
    )
    return "".join(f"# {line}\n" for line in notes) + text
