"""The list of files that equipoise wrote into a folder: nothing else is ever removed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

LIST = "files.json"
_WRITER = "equipoise"


def write_list(folder: Path) -> None:
    """Write `files.json`: the SHA-256 of every file in a folder, by relative path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in paths}
    _write(folder, {name: digest for name, digest in digests.items() if name != LIST})


def relist(folder: Path, path: Path) -> None:
    """Update the digest of a file that equipoise wrote again; an unlisted file stays unlisted."""
    files = read_list(folder)
    try:
        name = path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return
    if files is not None and name in files:
        _write(folder, {**files, name: _digest(folder / name)})


def _write(folder: Path, files: Mapping[str, str]) -> None:
    text = json.dumps({"written_by": _WRITER, "files": files}, indent=1)
    partial = folder / f".{LIST}.partial"
    partial.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    partial.replace(folder / LIST)


def read_list(folder: Path) -> Mapping[str, str] | None:
    """Return the digest of every file that equipoise wrote; None where `files.json` isn't ours."""
    path = folder / LIST
    try:
        content = None if path.is_symlink() else json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("written_by") != _WRITER:
        return None
    files = content.get("files")
    return files if isinstance(files, dict) else None


def foreign_files(folder: Path) -> list[str]:
    """Return what equipoise did not write into a folder, or what has changed since.

    Links are never followed. A folder of other files is named once, without what is in it.
    """
    return sorted(_foreign(folder, read_list(folder) or {}))


def _foreign(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for root, folders, names in os.walk(folder):
        relative = Path(root).relative_to(folder)
        for name in [*folders]:
            path = (relative / name).as_posix()
            if path not in parents or Path(root, name).is_symlink():
                folders.remove(name)
                yield path
        for name in names:
            path = (relative / name).as_posix()
            if path != LIST and not _is_intact(folder / path, files.get(path)):
                yield path


def _is_intact(path: Path, digest: str | None) -> bool:
    if digest is None or path.is_symlink() or not path.is_file():
        return False
    return _digest(path) == digest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
