"""The page of a run: that of its kind of audit, of a comparison or of a mitigation."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from equipoise.report.comparison import compares

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.core import AuditResult
    from equipoise.report import Page


def page_of(result: AuditResult) -> Page:
    """Return the page of a result."""
    from equipoise.report import kind_pages

    name = f"equipoise.audits.{result.manifest.resolved.get('audit')}.page"
    if compares(result) or "mitigation_recipes" in result.tables or not find_spec(name):
        return kind_pages.page_of(result)
    return cast("Page", import_module(name).PAGE)


def write(result: AuditResult, folder: Path) -> None:
    """Write a run with the page of its kind; see `report.write`."""
    from equipoise import report

    report.write(result, folder, page_of(result))
