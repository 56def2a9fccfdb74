"""Frozen types that every room shares."""

from equipoise.core.arrays import (
    AnyArray,
    Booleans,
    Bytes,
    Floats,
    Floats32,
    Integers,
    Integers32,
    Objects,
    Positions,
    Words,
    Words32,
    floats,
    integers,
    nans,
    numbered,
    ranks,
    tally,
    unwarned,
)
from equipoise.core.columns import schema_of, table_of
from equipoise.core.errors import (
    ConfigError,
    DataError,
    EquipoiseError,
    InputError,
    MissingExtraError,
    ModelError,
    RunError,
)
from equipoise.core.estimate import Chance, Ends, Estimate, Harm, Interval, no_ends
from equipoise.core.finding import TESTED, Excluded, Family, Finding, GroupValue, Verdict
from equipoise.core.groups import MIN_SIZE, GroupLabels, Groups
from equipoise.core.labels import Labels, encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.core.progress import with_progress
from equipoise.core.records import record
from equipoise.core.result import AuditResult, Manifest
from equipoise.core.types import Facts, Fields, Progress, Span, Strings

__all__ = [
    "MIN_SIZE",
    "TESTED",
    "AnyArray",
    "AuditResult",
    "Booleans",
    "Bytes",
    "Chance",
    "ConfigError",
    "DataError",
    "Ends",
    "EquipoiseError",
    "Estimate",
    "Excluded",
    "Facts",
    "Family",
    "Fields",
    "Finding",
    "Floats",
    "Floats32",
    "GroupLabels",
    "GroupValue",
    "Groups",
    "Harm",
    "InputError",
    "Integers",
    "Integers32",
    "Interval",
    "Labels",
    "Manifest",
    "MissingExtraError",
    "ModelError",
    "Objects",
    "Part",
    "Positions",
    "Progress",
    "RunError",
    "Span",
    "Strings",
    "Verdict",
    "Words",
    "Words32",
    "encode",
    "floats",
    "integers",
    "nans",
    "no_ends",
    "numbered",
    "parts_to_table",
    "ranks",
    "record",
    "schema_of",
    "table_of",
    "tally",
    "unwarned",
    "with_progress",
]
