"""Configurations of recipes and of augmentation, and the record of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from equipoise.audits.config import read_values, validated
from equipoise.audits.provenance import machine, versions
from equipoise.core.errors import ConfigError
from equipoise.core.result import AuditResult, Manifest

if TYPE_CHECKING:
    from equipoise.mitigate.config import Config
    from equipoise.mitigate.running import Assessment

Schema = TypeVar("Schema", bound=BaseModel)


def parse(path: Path, schema: type[Schema], *, new: str) -> Schema:
    """Read and check a configuration file; `new` says what to start from.

    Raises
    ------
    ConfigError
        When it cannot be read; names each key that is wrong, and what is allowed.
    """
    fix = f"start from {new}"
    if not path.exists():
        raise ConfigError(f"{path}: no such file. To do: {fix}")
    values, source, node = read_values(path)
    return validated(values, schema, source, node, fix=fix)


def load_config(path: Path) -> Config:
    """Read and check the configuration of a mitigation; see `parse`."""
    from equipoise.mitigate.config import Config

    return parse(path, Config, new="the example in docs/mitigation.md")


def manifest_of(
    *,
    config: Mapping[str, Any],
    resolved: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, Any],
    seconds: float,
    notes: tuple[str, ...],
) -> Manifest:
    """Return the record of a run that has just ended."""
    return Manifest(
        config=config,
        resolved=resolved,
        versions=versions(),
        commit="",
        dirty=False,
        inputs=inputs,
        counts=counts,
        seed=int(resolved["seed"]),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        machine=machine(),
        notes=notes,
    )


def result_of(assessment: Assessment, *, notes: tuple[str, ...] = (), **record: Any) -> AuditResult:
    """Return findings, tables and the record of a run; keywords as of `manifest_of`."""
    from equipoise.mitigate.result import findings_of, notes_of, tables_of

    manifest = manifest_of(**record, notes=(*notes_of(assessment), *notes))
    return AuditResult(findings_of(assessment), manifest, tables_of(assessment))
