"""The manifest of a run: everything needed to repeat it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from equipoise import __version__
from equipoise.core.result import Manifest

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig

_LIBRARIES = ("numpy", "scipy", "numba", "polars", "pyarrow", "narwhals", "pydantic", "onnxruntime")


class Loaded(Protocol):
    """The data of a run, with what the manifest keeps of them."""

    @property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Per file "sha256", "bytes", "rows"."""

    @property
    def counts(self) -> Mapping[str, Any]:
        """Rows read, matched and left out."""


def manifest_of(
    config: AuditConfig,
    data: Loaded,
    base: Path,
    *,
    seconds: float,
    notes: tuple[str, ...] = (),
) -> Manifest:
    """Describe a run that has just ended."""
    commit, dirty = _commit(base)
    return Manifest(
        config=config.model_dump(mode="json", exclude_unset=True),
        resolved=config.resolved,
        versions=versions(),
        commit=commit,
        dirty=dirty,
        inputs=data.inputs,
        counts=data.counts,
        seed=config.resampling.seed,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        machine=machine(),
        notes=notes,
    )


def versions() -> Mapping[str, str]:
    """Return the versions of equipoise, Python and the libraries that decide numbers."""
    found = {"equipoise": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> Mapping[str, Any]:
    """Return what the run was made on; no names of hosts or users."""
    return {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}


def _commit(base: Path) -> tuple[str, bool]:
    """Return the git commit of a folder and whether it has changes; "" outside a repository."""
    try:
        commit = _git(base, "rev-parse", "HEAD")
        return commit, bool(_git(base, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return "", False


def _git(base: Path, *arguments: str) -> str:
    # The user's own git, asked about the user's own folder.
    command = ["git", *arguments]
    output = subprocess.check_output(  # noqa: S603
        command, cwd=base, stderr=subprocess.DEVNULL, text=True, timeout=10
    )
    return output.strip()
