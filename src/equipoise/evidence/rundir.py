"""Run directories: written whole or not at all, and removed only if unchanged."""

import glob
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath

from equipoise.core import RunError
from equipoise.core.files import read_json_file
from equipoise.core.locking import LACKING, hold
from equipoise.core.writing import (
    flush_tree,
    is_temporary,
    make_folder,
    replace,
    temporary,
    translated,
    visible_path,
    write,
)
from equipoise.data.problems import listed
from equipoise.evidence.run_labels import LABELS, LOCK, changing, copy_labels
from equipoise.models.info import sha256_of

LIST = "files.json"
_TO_DO = "To do: choose another folder, or free space there"


def write_list(folder: Path) -> None:
    """Write `files.json`: the SHA-256 of every file in a folder, by relative path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    digests = {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}
    _write_facts(folder, {name: digest for name, digest in digests.items() if name != LIST})


def rewrite(run: Path, name: str, data: bytes) -> None:
    """Replace a file of a run, and its digest in the list.

    The list has the digest of the new file first, beside the old one: a run whose writer was
    killed in between can be replaced, too.

    Raises
    ------
    RunError
        When it cannot be written; names the file.
    """
    digest = sha256(data).hexdigest()
    with translated(run / name), changing(run):
        files = read_list(run)
        if files is not None:
            _write_facts(run, files, {name: digest})
        write(run / name, data)
        if files is not None:
            _write_facts(run, {**files, name: digest})


def _write_facts(
    folder: Path, files: Mapping[str, str], coming: Mapping[str, str] | None = None
) -> None:
    facts = {"written_by": "equipoise", "files": files} | ({"coming": coming} if coming else {})
    write(folder / LIST, f"{json.dumps(facts, indent=1)}\n".encode())


def read_list(folder: Path) -> Mapping[str, str] | None:
    """Return the digests of `files.json`; None unless equipoise wrote it."""
    facts = _read_facts(folder)
    return None if facts is None else facts["files"]


def _read_facts(folder: Path) -> dict[str, dict[str, str]] | None:
    path = folder / LIST
    try:
        content = None if path.is_symlink() else read_json_file(path)
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("written_by") != "equipoise":
        return None
    parts = {part: content.get(part, {}) for part in ("files", "coming")}
    sound = "files" in content and all(isinstance(part, dict) for part in parts.values())
    return parts if sound else None


def foreign_files(folder: Path) -> list[str]:
    """Return files that equipoise did not write, or that have changed since.

    Links are never followed.
    """
    files, coming = (_read_facts(folder) or {"files": {}, "coming": {}}).values()
    parent_names = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    foreign = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            is_ours = False
        elif path.is_dir():
            is_ours = name in parent_names or name == LABELS
        else:
            # Labels survive, whoever wrote them.
            is_ours = name in (LIST, LOCK) or path.parent == folder / LABELS
            is_ours = is_ours or (path.parent == folder and _is_unfinished(name, files))
            is_ours = is_ours or (
                name in files and sha256_of(path) in (files[name], coming.get(name))
            )
        if not is_ours:
            foreign.append(name)
    return sorted(foreign)


def _is_unfinished(name: str, files: Mapping[str, str]) -> bool:
    """Return whether a name is a temporary name of a listed file, or of the list."""
    return is_temporary(name) and visible_path(Path(name)).name in (LIST, *files)


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it until the block or the process ends."""
    folder.mkdir(exist_ok=True)
    descriptor = None
    with suppress(OSError):  # a file system without locks
        descriptor = _hold_folder(folder, wait=True)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _hold_folder(folder: Path, *, wait: bool) -> int | None:
    """Return a descriptor that locks a folder, or None without locks.

    Raises
    ------
    OSError
        When another process has locked it (without `wait`), or it cannot be locked.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if hold(descriptor, wait=wait):
            return descriptor
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def sweep(target: Path) -> None:
    """Remove hidden folders that killed runs left next to a target.

    A run that was moved aside for another to take its place, which then was killed, is put back.

    Parameters
    ----------
    target : Path
        Path of a run.
    """
    name = f".{glob.escape(target.name)}.????????"
    for partial in target.parent.glob(f"{name}.partial"):
        with suppress(OSError):  # held by a run at work
            descriptor = _hold_folder(partial, wait=False)
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


def is_run(path: Path) -> bool:
    """Return whether a directory lists the files that equipoise wrote into it."""
    return read_list(path) is not None


def check_place(out: str | Path, *, overwrite: bool = False, inputs: Sequence[Path] = ()) -> Path:
    """Return the path that `new_run` would write; raise if it could not.

    Raises
    ------
    RunError
        When `out` exists already, is one of the `inputs`, or is no usable path; says what to do.
    """
    try:
        str(out).encode()
        target = Path(out).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError(f"{out}: not a usable path ({error}). To do: choose another") from None
    try:
        problem = _find_problem(target, overwrite, inputs) if target.exists() else ""
    except OSError as error:
        problem = f"{error.strerror}. {_TO_DO}"
    if problem:
        raise RunError(f"{out}: {problem}")
    return target


@contextmanager
def new_run(
    out: str | Path, *, overwrite: bool = False, inputs: Sequence[Path] = ()
) -> Iterator[Path]:
    """Make a run directory that appears only when it is complete.

    Yields a hidden directory beside `out` to write into. It becomes `out` when the block ends,
    and is removed when the block fails or is interrupted. What a run of this name left that was
    killed, and could not remove its own, is removed first.

    Parameters
    ----------
    out : str or Path
        Path of the run; missing parents are made. It may be an empty directory.
    overwrite : bool
        Replace an existing run, if it has no files but the ones that equipoise wrote, as it
        wrote them. Anything else is never touched.
    inputs : sequence of Path
        Runs that the new run is made of, which it never replaces.

    Raises
    ------
    RunError
        When `out` exists already, is one of the `inputs`, or cannot be written; says what to do.
    """
    target = check_place(out, overwrite=overwrite, inputs=inputs)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    new = [folder for folder in target.parents if not folder.exists()]
    try:
        with _translated(out, partial, target):
            make_folder(target.parent)
            sweep(target)
            with held_folder(partial):
                yield partial
                write_list(partial)
                flush_tree(partial)
                with _lock_target(target):
                    check_place(target, overwrite=overwrite)
                    copy_labels(target, partial)
                    _replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # of a run that came about, these are not empty
            for folder in new:
                folder.rmdir()


@contextmanager
def _translated(out: str | Path, partial: Path, target: Path) -> Iterator[None]:
    """Raise a RunError if the run cannot be written; pass errors of other files."""
    try:
        yield
    except OSError as error:
        path = Path(error.filename or partial).absolute()
        ours = path.is_relative_to(partial) or target.is_relative_to(path)
        if not (error.errno and ours):  # an error without a number is not of the system
            raise
        raise RunError(f"{out}: cannot be written: {error.strerror or error}. {_TO_DO}") from error


def _find_problem(target: Path, overwrite: bool, inputs: Sequence[Path]) -> str:
    if not target.is_dir():
        return "a file has this name. To do: choose another folder"
    if target in {path.resolve() for path in inputs}:
        return "the comparison would replace this run. To do: choose another folder"
    if target in (Path.cwd(), *Path.cwd().parents):
        return "this is the folder you work in. To do: choose a folder inside it"
    if not any(target.iterdir()):
        return ""
    if not is_run(target):
        return (
            "holds files, and no files.json that says that equipoise wrote them. "
            "To do: choose another folder, or move the files away"
        )
    if not overwrite:
        return "holds a run already. To do: choose another folder or pass --overwrite"
    if foreign := foreign_files(target):
        return (
            f"holds files that equipoise did not write, or that have changed since: "
            f"{listed(foreign)}. To do: choose another folder, or move them away"
        )
    return ""


@contextmanager
def _lock_target(target: Path) -> Iterator[None]:
    """Lock a run during its replacement, while its labels are copied."""
    with ExitStack() as stack:
        if is_run(target):
            try:
                stack.enter_context(changing(target))
            except OSError as error:
                if error.errno not in LACKING:  # without locks nobody adds labels
                    raise
        yield


def _replace(partial: Path, target: Path) -> None:
    if not is_run(target):
        replace(partial, target)
        return
    old = partial.with_suffix(".old")
    replace(target, old)
    try:
        replace(partial, target)
    except BaseException:
        if not target.exists():
            replace(old, target)
        raise
    # Under this name the next run removes it, if this one is killed meanwhile.
    with suppress(OSError):
        old = old.rename(temporary(target))
    shutil.rmtree(old, ignore_errors=True)
