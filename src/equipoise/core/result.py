"""An audit's outcome: findings, the tables behind them, and how they were reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from equipoise.core.conclusion import Conclusion
from equipoise.core.finding import Finding
from equipoise.core.types import Facts, FileFacts, Strings

SCHEMA_VERSION = 3
WORKSHEET = "worksheet"
"""Table that people fill in: a run has it as CSV, too."""


@dataclass(frozen=True)
class Manifest:
    """How a run was made, complete enough to repeat it.

    Attributes
    ----------
    config, resolved : mapping
        The configuration as passed, and with every default filled in.
    versions : mapping
        equipoise, Python and the libraries that decide numbers; and the package of each plugin that
        the run used, such as "metric wrong_gap": "my-bias 1.0".
    commit, dirty : str, bool
        Git commit of the working directory ("" outside a repository), and whether it had
        changes.
    inputs : mapping
        Per input file its path as given, SHA-256 and size.
    counts : mapping
        Rows read, matched, used and dropped, by reason.
    seed : int
    started, seconds, machine : str, float, mapping
        When, for how long and where the run was made.
    warnings : tuple of str
        What makes findings say little, shown first: a model with one answer to everything, ...
    notes : tuple of str
        What a reader must know: attributes that determine the target, groups too small, ...
    models : mapping
        What each model that was run is, by name: its weights' digest, preprocessing, device, ...;
        empty where their outputs were given.
    base : str
        Folder that relative paths of the configuration start from: absolute, and in a run relative
        to it; "" where that is unknown.
    """

    config: Facts
    resolved: Facts
    versions: Mapping[str, str]
    commit: str
    dirty: bool
    inputs: Mapping[str, FileFacts]
    counts: Facts
    seed: int
    started: str
    seconds: float
    machine: Facts
    warnings: Strings = ()
    notes: Strings = ()
    models: Facts = field(default_factory=dict)
    base: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class AuditResult:
    """Findings with the tables a report draws on.

    Attributes
    ----------
    findings : tuple of Finding
    manifest : Manifest
    tables : mapping of str to pyarrow.Table
        Counts and series behind the findings, by name (see docs/run-directory.md).
    conclusions : tuple of Conclusion
        What the findings come to, made once after their verdicts; by model, the leading one first.
    """

    findings: tuple[Finding, ...]
    manifest: Manifest
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    conclusions: tuple[Conclusion, ...] = ()
