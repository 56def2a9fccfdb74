"""The kinds of audit, each a package of its own with a schema and three steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.audits.audit import Audit
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.findings import Draft
    from equipoise.audits.running.prepared import Prepared
    from equipoise.audits.running.runner import Runner

KINDS = (
    "predictions", "associations", "retrieval", "similarity", "concepts", "diversity", "answers",
    "counterfactuals", "text_to_image", "generation", "activations",
)  # fmt: skip

Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done, and what there is to do."""

# Seconds before the first number: libraries and kernels are loaded.
_START = 0.5


def estimated_seconds(measuring: float) -> float:
    """Return about how long an audit takes: its start and what it measures, rounded up to 0.1."""
    return math.ceil(10 * (_START + measuring)) / 10


PERCEIVED = (
    "Groups are as the data label them: perceived attributes, not identities. The findings "
    "say nothing about groups that the labels do not name."
)
"""The first note of every audit of groups of people."""

Item = TypeVar("Item")


def with_progress(items: Sequence[Item], progress: Progress | None, step: str) -> Iterator[Item]:
    """Yield items; before each, call `progress` with the number done."""
    for done, item in enumerate(items):
        if progress is not None:
            progress(step, done, len(items))
        yield item


told = with_progress


class Loaded(Protocol):
    """What a kind reads: its own type, with what the manifest keeps of every input."""

    @property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Per file as given: `sha256`, `bytes`, `rows`."""

    @property
    def counts(self) -> Mapping[str, Any]:
        """Everything read, matched and left out."""


@dataclass(frozen=True)
class Measured:
    """What a kind measured, before correction for the number of tests and verdicts.

    Attributes
    ----------
    drafts : tuple of Draft
    tables : mapping of str to pyarrow.Table
        What the report draws on beside the findings, by name.
    notes : tuple of str
        What a reader must know, in sentences.
    """

    drafts: tuple[Draft, ...]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Found(Protocol):
    """What one design of a kind gave: its own type, with the findings that it drafted."""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """Findings before correction and verdicts."""


def drafts_of(measured: Iterable[Found]) -> tuple[Draft, ...]:
    """Return the drafts of all that was measured, in its order."""
    return tuple(draft for found in measured for draft in found.drafts)


class Kind(Protocol):
    """The module `kind` of a kind's package."""

    def load(self, config: Any, *, base: Path) -> Any:
        """Read everything that the configuration names."""

    def measure(self, config: Any, data: Any, progress: Progress | None) -> Measured:
        """Measure everything that the configuration asks for."""

    def plan(self, config: Any, data: Any) -> Any:
        """Say what `measure` would do, as a dataclass; nothing is measured."""


def kind(audit: str) -> Kind:
    """Return the three steps of a kind of audit."""
    return cast(Kind, import_module(f"equipoise.audits.{audit}.kind"))


def prepares(audit: str) -> Callable[[Any, Runner], Prepared]:
    """Return the step before the three: models that are named become tables of what they said."""
    found = import_module(f"equipoise.audits.{audit}.running")
    return cast("Callable[[Any, Runner], Prepared]", found.prepare)


_REGISTERED: dict[str, Audit[Any, Any, Any]] = {}


def register(name: str, audit: Audit[Any, Any, Any]) -> None:
    """Register a kind of audit; see `audit_kind`."""
    _REGISTERED[name] = audit


def names() -> tuple[str, ...]:
    """Return the names of all kinds: those of the package, then those that were registered."""
    return tuple(dict.fromkeys((*KINDS, *_REGISTERED)))


def audit_of(name: str) -> Audit[Any, Any, Any] | None:
    """Return a kind of audit; None for one of the package that has no `audit.py` yet."""
    if name not in _REGISTERED and find_spec(f"equipoise.audits.{name}.audit") is not None:
        import_module(f"equipoise.audits.{name}.audit")
    return _REGISTERED.get(name)


def schema(audit: str) -> type[AuditConfig]:
    """Return the schema of the configuration of a kind of audit: `Config` beside it."""
    kind = _REGISTERED.get(audit)
    home = f"equipoise.audits.{audit}" if kind is None else kind.__module__.rpartition(".")[0]
    found: type[AuditConfig] = import_module(f"{home}.config").Config
    return found
