"""The kinds of audit: those of the package by name, and others that are registered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from equipoise.core import Progress

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit
    from equipoise.audits.config import AuditConfig
    from equipoise.report import Page

KINDS = (
    "predictions", "associations", "retrieval", "similarity", "concepts", "diversity", "answers",
    "counterfactuals", "text_to_image", "generation", "activations", "dataset",
)  # fmt: skip

Item = TypeVar("Item")


def with_progress(items: Sequence[Item], progress: Progress | None, step: str) -> Iterator[Item]:
    """Yield items; before each, call `progress` with the number done."""
    for done, item in enumerate(items):
        if progress is not None:
            progress(step, done, len(items))
        yield item


AnyAudit: TypeAlias = "Audit[Any, Any, Any]"
"""Any kind of audit, whatever its config, data and designs."""

REGISTERED: dict[str, AnyAudit] = {}
"""Kinds by name; see `audit_kind`."""


def unregister(name: str) -> None:
    """Remove a kind of audit, to define it again."""
    del REGISTERED[name]


def names() -> tuple[str, ...]:
    """Return the names of all kinds: those of the package, then those that were registered."""
    return tuple(dict.fromkeys((*KINDS, *REGISTERED)))


def audit_of(name: str) -> AnyAudit:
    """Return a kind of audit."""
    if name not in REGISTERED:
        import_module(f"equipoise.audits.{name}.audit")
    return REGISTERED[name]


def schema(audit: str) -> type[AuditConfig]:
    """Return the schema of the configuration of a kind of audit: `Config` beside it."""
    found: type[AuditConfig] = import_module(f"{home(audit)}.config").Config
    return found


def kind_page(audit: str, study: object = None) -> Page | None:
    """Return the page of a kind of audit, of a study with its tables; None without a page."""
    name = f"{home(audit)}.page"
    if not find_spec(name):
        return None
    page = cast("Page", import_module(name).PAGE)
    if study is None:
        return page
    from equipoise.audits.studies.study import source_tables

    return replace(page, front=(*page.front, source_tables))


def home(audit: str) -> str:
    """Return the package of a kind of audit."""
    kind = REGISTERED.get(audit)
    return f"equipoise.audits.{audit}" if kind is None else kind.__module__.rpartition(".")[0]
