"""A configuration of recipes read and checked, and an assessment made a result with its record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import ConfigError
from equipoise.core.result import AuditResult, Manifest

if TYPE_CHECKING:
    from equipoise.mitigate.config import Config
    from equipoise.mitigate.crossfit import Assessment


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises
    ------
    ConfigError
        Naming each key that is wrong, what was given there and what is allowed.
    """
    from pydantic import ValidationError

    from equipoise.audits.config import read_values
    from equipoise.audits.config_yaml import explain, keys
    from equipoise.mitigate.config import Config

    values, source, node = read_values(path)
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{source}: {'empty' if values is None else 'not a mapping'}; expected the keys "
            f"{', '.join(keys(Config))}. To do: start from the example in docs/mitigation.md"
        )
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(explain(error, Config, source, node)) from None


def result_of(
    assessment: Assessment,
    *,
    config: Mapping[str, Any],
    resolved: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, Any],
    seed: int,
    seconds: float,
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Return findings, tables and the record of a run."""
    from equipoise.audits.provenance import machine, versions
    from equipoise.mitigate.result import findings_of, notes_of, tables_of

    manifest = Manifest(
        config=config,
        resolved=resolved,
        versions=versions(),
        commit="",
        dirty=False,
        inputs=inputs,
        counts=counts,
        seed=seed,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        machine=machine(),
        notes=(*notes_of(assessment), *notes),
    )
    return AuditResult(findings_of(assessment), manifest, tables_of(assessment))
