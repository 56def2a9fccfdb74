"""Faults of a disk: an operation that fails, a process that dies at it, a power cut.

`Disk` watches what this process does to files in a folder: it makes, writes, flushes, renames,
links and removes them, and makes and removes folders. It lets any of these operations fail, or
ends the process there. It knows which bytes and names were flushed, and can lose the others.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, Literal

Kind = Literal["count", "fail", "kill", "torn", "cut", "stop"]
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
# A full disk takes no more bytes and names.
_GROWING = frozenset({"create", "write", "flush", "folder"})
_WATCHED = ("open", "fsync", "rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir")
END = 0
"""Place of a fault after the last operation."""


@dataclass(frozen=True)
class Fault:
    """What happens at which operation.

    Attributes
    ----------
    kind : str
        ``count``: nothing. ``fail``: the operation raises. ``kill``: the process dies; ``torn``:
        and the disk loses bytes that were not flushed; ``cut``: and names, too. ``stop``: the
        process waits until it is continued.
    at : int
        Number of the operation, from 1; 0: the end.
    error : int
        Number of the error. A disk that is full or read-only stays so.
    """

    kind: Kind = "count"
    at: int = END
    error: int = errno.EIO

    def __str__(self) -> str:
        name = errno.errorcode[self.error] if self.kind == "fail" else self.kind
        return f"{name} at {self.at or 'the end'}"


@dataclass
class _Change:
    """A change of a folder's names that was not flushed.

    `source` is the name before, `target` the name after; `content` is what was removed.
    """

    folder: Path
    source: Path | None
    target: Path | None
    content: Path | None = None


class _File(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, disk: Disk, path: Path, mode: str) -> None:
        super().__init__(os.fspath(path), mode.replace("b", "").replace("t", ""))
        self._disk, self._path = disk, path

    def write(self, data: Any) -> int:
        """Write bytes, or half of them before the process dies."""
        view = memoryview(data)

        def half() -> None:
            super(_File, self).write(view[: view.nbytes // 2])
            self._disk.wrote(self.fileno())

        self._disk.step("write", self._path, half)
        self._disk.wrote(self.fileno())
        return int(super().write(data) or 0)


@dataclass
class Disk:
    """The disk under a folder.

    Parameters
    ----------
    root : Path
    spare : Path
        Folder beside it, for what was removed.
    fault : Fault
    """

    root: Path
    spare: Path
    fault: Fault = Fault()
    operations: list[str] = field(default_factory=list)
    versions: dict[str, list[str]] = field(default_factory=dict)
    _unflushed: set[int] = field(default_factory=set)
    _changes: list[_Change] = field(default_factory=list)
    _lock: Any = field(default_factory=RLock)
    _real: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def install(self) -> None:
        """Take the place of functions of `os`, `io` and safetensors in this process."""
        self.spare.mkdir(parents=True, exist_ok=True)
        for name in _WATCHED:
            self._real[name] = getattr(os, name)
            setattr(os, name, getattr(self, f"_{name}"))
        self._real["io"] = io.open
        io.open = builtins.open = self._io_open
        for library in ("numpy", "torch"):
            self._watch_weights(importlib.import_module(f"safetensors.{library}"))

    def _watch_weights(self, module: Any) -> None:
        """Watch a function that writes weights without Python."""
        from safetensors import SafetensorError

        real = module.serialize_file

        def serialize_file(tensors: Any, name: Any, **more: Any) -> None:
            path = self._inside(name)
            if path is None:
                real(tensors, name, **more)
                return
            try:
                self._appear("create", path)
                self.step("write", path)
            except OSError as error:
                why = f"I/O error: {error.strerror} (os error {error.errno})"
                raise SafetensorError(f"Error while serializing: {why}") from None
            real(tensors, name, **more)
            self._unflushed.add(path.stat().st_ino)

        module.serialize_file = serialize_file

    def finish(self) -> None:
        """Let a fault of the end happen."""
        if self.fault.kind in ("kill", "torn", "cut") and self.fault.at == END:
            self._die()

    def step(self, name: str, path: Path, half: Callable[[], None] = lambda: None) -> None:
        """Count an operation, and let its fault happen."""
        with self._lock:
            self.operations.append(f"{name} {path.relative_to(self.root)}")
            number, fault = len(self.operations), self.fault
            if fault.kind == "count" or fault.at == END or number < fault.at:
                return
            if fault.kind == "stop":
                self.fault = Fault()
                os.kill(os.getpid(), signal.SIGSTOP)
                return
            if fault.kind != "fail":
                half()
                self._die()
            lasting = {errno.EROFS: True, errno.ENOSPC: name in _GROWING}
            if lasting.get(fault.error, number == fault.at):
                raise OSError(fault.error, os.strerror(fault.error), str(path))

    def wrote(self, descriptor: int) -> None:
        """Take note of bytes that are not flushed."""
        with self._lock:
            self._unflushed.add(os.fstat(descriptor).st_ino)

    def _die(self) -> None:
        kind, self.fault = self.fault.kind, Fault()
        if kind == "cut":
            for change in reversed(self._changes):
                self._undo(change)
        if kind in ("torn", "cut"):
            self._lose_bytes()
        os.kill(os.getpid(), signal.SIGKILL)

    def _lose_bytes(self) -> None:
        for path in self.root.rglob("*"):
            if path.is_file() and path.stat().st_ino in self._unflushed:
                os.truncate(path, 0)

    def _undo(self, change: _Change) -> None:
        if change.target is not None and os.path.lexists(change.target):
            if change.source is not None:
                self._real["rename"](change.target, change.source)
            elif change.target.is_dir():
                shutil.rmtree(change.target, ignore_errors=True)
            else:
                self._real["unlink"](change.target)
        lost = change.target or change.source
        if change.content is not None and lost is not None and lost.parent.is_dir():
            self._real["rename"](change.content, lost)

    # What is watched.

    def _inside(self, name: Any, folder: int | None = None) -> Path | None:
        """Return the path of a name where that is inside the folder."""
        if isinstance(name, int):
            return None
        path = Path(os.fsdecode(name))
        if folder is not None:
            path = Path(f"/proc/self/fd/{folder}").readlink() / path
        path = path.absolute()
        return path if path.is_relative_to(self.root) else None

    def _spared(self, path: Path) -> Path | None:
        """Return a copy of what has a name, or None."""
        if not path.is_file():
            return None
        spare = self.spare / f"{len(self._changes)}-{len(self.operations)}"
        shutil.copyfile(path, spare)
        return spare

    def _appear(self, name: str, path: Path) -> None:
        """Count an operation that gives a new name."""
        with self._lock:
            self.step(name, path)
            content = self._spared(path)
            if content is not None or not os.path.lexists(path):
                self._changes.append(_Change(path.parent, None, path, content))

    def _io_open(self, file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        path = self._inside(file) if not isinstance(file, int) else None
        if path is None or not set(mode) & set("wxa+"):
            return self._real["io"](file, mode, *more, **named)
        self._appear("create", path)
        raw = _File(self, path, mode)
        # Libraries write into an open file without Python, too.
        self.wrote(raw.fileno())
        both = "+" in mode
        buffered: Any = io.BufferedRandom(raw) if both else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        text = {key: named[key] for key in ("encoding", "errors", "newline") if key in named}
        return io.TextIOWrapper(buffered, **text)

    def _open(self, name: Any, flags: int, *more: Any, **named: Any) -> int:
        path = self._inside(name, named.get("dir_fd"))
        if path is not None and flags & os.O_CREAT:
            self._appear("create", path)
        return int(self._real["open"](name, flags, *more, **named))

    def _fsync(self, descriptor: int) -> None:
        path = self._inside(Path(f"/proc/self/fd/{descriptor}").readlink())
        if path is not None:
            with self._lock:
                self.step("flush", path)
                self._changes = [one for one in self._changes if one.folder != path]
                self._unflushed.discard(os.fstat(descriptor).st_ino)
        # What is flushed is known here, and the disk itself need not wait.

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        before, after = self._inside(source), self._inside(target)
        if before is None or after is None:
            self._real["rename"](source, target, **named)
            return
        with self._lock:
            self.step("rename", after)
            content = self._spared(after)
            self._real["rename"](before, after)
            self._changes.append(_Change(after.parent, before, after, content))
            for change in self._changes[:-1]:
                self._follow(change, before, after)
            if after.is_file():
                digest = sha256(after.read_bytes()).hexdigest()
                self.versions.setdefault(str(after.relative_to(self.root)), []).append(digest)

    _replace = _rename

    @staticmethod
    def _follow(change: _Change, before: Path, after: Path) -> None:
        """Have a change inside a renamed folder know its new place."""
        for name in ("folder", "source", "target"):
            path = getattr(change, name)
            if path is not None and change.folder.is_relative_to(before):
                setattr(change, name, after / path.relative_to(before))

    def _link(self, source: Any, target: Any, **named: Any) -> None:
        path = self._inside(target)
        if path is not None:
            self._appear("link", path)
        self._real["link"](source, target, **named)
        if path is not None:
            digest = sha256(path.read_bytes()).hexdigest()
            self.versions.setdefault(str(path.relative_to(self.root)), []).append(digest)

    def _unlink(self, name: Any, *, dir_fd: int | None = None) -> None:
        path = self._inside(name, dir_fd)
        if path is not None and os.path.lexists(path):
            with self._lock:
                self.step("remove", path)
                self._changes.append(_Change(path.parent, path, None, self._spared(path)))
        self._real["unlink"](name, dir_fd=dir_fd)

    _remove = _unlink

    def _mkdir(self, name: Any, *more: Any, **named: Any) -> None:
        path = self._inside(name, named.get("dir_fd"))
        if path is not None and not path.exists():
            self._appear("folder", path)
        self._real["mkdir"](name, *more, **named)

    def _rmdir(self, name: Any, **named: Any) -> None:
        path = self._inside(name, named.get("dir_fd"))
        if path is not None:
            self.step("remove", path)
        self._real["rmdir"](name, **named)
