"""Frozen types that every room shares."""

from equipoise.core.errors import (
    ConfigError,
    DataError,
    EquipoiseError,
    InputError,
    MissingExtraError,
    ModelError,
    RunError,
)
from equipoise.core.estimate import Chance, Estimate, Interval
from equipoise.core.finding import Excluded, Family, Finding, GroupValue, Verdict
from equipoise.core.groups import Groups
from equipoise.core.result import AuditResult, Manifest

__all__ = [
    "AuditResult",
    "Chance",
    "ConfigError",
    "DataError",
    "EquipoiseError",
    "Estimate",
    "Excluded",
    "Family",
    "Finding",
    "GroupValue",
    "Groups",
    "InputError",
    "Interval",
    "Manifest",
    "MissingExtraError",
    "ModelError",
    "RunError",
    "Verdict",
]
