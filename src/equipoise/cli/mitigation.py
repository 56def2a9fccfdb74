"""Configurations of recipes and of augmentation, and the record of their runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from equipoise.audits.config import read_values, validated
from equipoise.audits.findings import manifest_of
from equipoise.core.errors import ConfigError
from equipoise.core.result import AuditResult

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


def result_of(assessment: Assessment, *, notes: tuple[str, ...] = (), **record: Any) -> AuditResult:
    """Return findings, tables and the record of a run; keywords as of `manifest_of`."""
    from equipoise.mitigate.running import findings_of, notes_of, tables_of

    notes = (*notes_of(assessment), *notes)
    manifest = manifest_of(**record, seed=int(record["resolved"]["seed"]), notes=notes)
    return AuditResult(findings_of(assessment), manifest, tables_of(assessment))
