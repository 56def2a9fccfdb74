"""Run directories that are whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.core.errors import RunError
from equipoise.data.problems import listed
from equipoise.evidence.leftovers import made, sweep
from equipoise.evidence.ownership import foreign_files, read_list, write_list

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
