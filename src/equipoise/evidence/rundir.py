"""Run directories: written whole or not at all, and removed only where equipoise wrote them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from equipoise.core.errors import RunError
from equipoise.data.problems import listed

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


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and hold it as one that a process is at work in; the hold ends with it."""
    descriptor = _made(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _made(folder: Path) -> int | None:
    """Return a descriptor that holds a new folder; None where none can be had."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = _held(folder, wait=True)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        # Between the making and the hold another run may have taken it for a leftover.
        if descriptor is None or folder.is_dir():
            return descriptor
        os.close(descriptor)


def _held(folder: Path, *, wait: bool) -> int | None:
    """Return a descriptor that holds a folder, None where the system has no locks.

    Raises
    ------
    OSError
        When it is held by another process (without `wait`), or cannot be held.
    """
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def sweep(target: Path) -> None:
    """Remove the hidden folders that killed runs left beside where they were to lie.

    A run that was moved aside for another to take its place, which then was killed, is put back.

    Parameters
    ----------
    target : Path
        Where a run is to lie.
    """
    name = f".{_plain(target.name)}.????????"
    for partial in target.parent.glob(f"{name}.partial"):
        with suppress(OSError):  # held by a run at work
            descriptor = _held(partial, wait=False)
            if descriptor is None:
                return
            shutil.rmtree(partial, ignore_errors=True)
            os.close(descriptor)
    for old in target.parent.glob(f"{name}.old"):
        if read_list(old) is None:
            continue
        if target.exists():
            if not foreign_files(old):
                shutil.rmtree(old, ignore_errors=True)
        elif not old.with_suffix(".partial").exists():
            old.rename(target)


def _plain(name: str) -> str:
    """Return a name without meaning for `glob`."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


_TROUBLE = {
    errno.ENOSPC: "the disk is full. To do: free space, or choose another --out",
    errno.EDQUOT: "the disk quota is used up. To do: free space, or choose another --out",
    errno.EFBIG: (
        "a file became larger than this disk or process may write. To do: raise the limit of "
        "file sizes (ulimit -f), or choose another --out"
    ),
    errno.EACCES: "no permission to write there. To do: choose another --out",
    errno.EPERM: "no permission to write there. To do: choose another --out",
    errno.EROFS: "the disk is read-only. To do: choose another --out",
    errno.ENAMETOOLONG: "the name is too long. To do: choose a shorter --out",
    errno.EEXIST: "a part of the path is a file. To do: choose another --out",
    errno.ENOTDIR: "a part of the path is a file. To do: choose another --out",
    errno.ENOSYS: "this file system cannot rename folders. To do: choose another --out",
    errno.EIO: "the disk reports an error. To do: choose another --out",
}


def is_run(path: Path) -> bool:
    """Whether a directory lists the files that equipoise wrote into it."""
    return read_list(path) is not None


def check_place(out: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a place where `new_run` could not write, before anything is measured.

    Raises
    ------
    RunError
        When `out` is taken, or no usable path; says what to do.
    """
    _refuse(_resolved(Path(out)), out, overwrite)


@contextmanager
def new_run(out: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Make a run directory that appears when it is whole, and only then.

    Yields a hidden directory beside `out` to write into. It becomes `out` when the block ends,
    and is removed when the block fails or is interrupted. What a run of this name left that was
    killed, and could not remove its own, is removed first.

    Parameters
    ----------
    out : str or Path
        Where the run is to lie; missing parents are made. An empty directory may be there.
    overwrite : bool
        Replace a run that lies there, if it has no files but those that equipoise wrote, as it
        wrote them. Anything else is never touched.

    Raises
    ------
    RunError
        When `out` is taken or cannot be written; says what to do.
    """
    target = _resolved(Path(out))
    _refuse(target, out, overwrite)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    new = [folder for folder in target.parents if not folder.exists()]
    try:
        with _translated(out, partial, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            sweep(target)
            with made(partial):
                yield partial
                write_list(partial)
                _flush(partial)
                _refuse(target, out, overwrite)
                _replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _drop_empty(new)


def _drop_empty(folders: Iterable[Path]) -> None:
    """Remove folders that were made for a run that did not come about; innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _resolved(out: Path) -> Path:
    try:
        str(out).encode()
    except UnicodeEncodeError:
        raise RunError(f"{out}: not valid UTF-8. To do: choose another --out") from None
    try:
        return out.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError(f"{out}: not a usable path ({error}). To do: choose another --out") from None


@contextmanager
def _translated(out: str | Path, partial: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else _cause(error)
        trouble = None if cause is None else _TROUBLE.get(_number(cause) or 0)
        if cause is None or trouble is None or not _concerns(cause, partial, target):
            raise
        raise RunError(f"{out}: {trouble}") from cause


def _cause(error: RunError) -> OSError | None:
    """Return what kept a named file from being written, where that is why a run failed."""
    cause = error.__cause__
    return cause if isinstance(cause, OSError) and isinstance(cause.filename, str) else None


def _concerns(error: OSError, partial: Path, target: Path) -> bool:
    """Whether an error is about the run's place; a file read meanwhile may be elsewhere."""
    if not isinstance(error.filename, str):
        return True
    path = Path(error.filename).absolute()
    return path.is_relative_to(partial) or target.is_relative_to(path)


def _number(error: OSError) -> int | None:
    """Find the error number; pyarrow has it in the text only."""
    if error.errno is not None:
        return error.errno
    return next((number for number in _TROUBLE if f"errno {number}]" in str(error).lower()), None)


def _refuse(target: Path, out: str | Path, overwrite: bool) -> None:
    try:
        if not target.exists():
            return
        problem = _occupied(target, overwrite)
    except OSError as error:
        raise RunError(f"{out}: {_TROUBLE.get(error.errno or 0, str(error))}") from None
    if problem:
        raise RunError(f"{out}: {problem}")


def _occupied(target: Path, overwrite: bool) -> str:
    if not target.is_dir():
        return "a file has this name. To do: choose another --out"
    if target in (Path.cwd(), *Path.cwd().parents):
        return "this is the folder you work in. To do: choose a folder inside it with --out"
    if not any(target.iterdir()):
        return ""
    if not is_run(target):
        return (
            "holds files, and no files.json that says that equipoise wrote them. "
            "To do: choose another --out, or move the files away"
        )
    if not overwrite:
        return "holds another run. To do: choose another --out or pass --overwrite"
    if foreign := foreign_files(target):
        return (
            f"holds files that equipoise did not write, or that have changed since: "
            f"{listed(foreign)}. To do: choose another --out, or move them away"
        )
    return ""


def _flush(directory: Path) -> None:
    """Bring the files to the disk, so that a crash right after cannot leave empty ones."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _replace(partial: Path, target: Path) -> None:
    if not is_run(target):
        partial.rename(target)
        return
    old = partial.with_suffix(".old")
    target.rename(old)
    try:
        partial.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
