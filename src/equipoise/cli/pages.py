"""The page of a run: that of its kind of audit, of a comparison or of a mitigation."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from equipoise.audits.kinds import home
from equipoise.report.comparison import compares
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.core import AuditResult


def page_of(result: AuditResult) -> Page:
    """Return the page of a result."""
    if "augmentation" in result.tables:
        from equipoise.mitigate.page import AUGMENTATION

        return AUGMENTATION
    if "mitigation_recipes" in result.tables:
        name = "equipoise.mitigate.page"
    else:
        name = f"{home(str(result.manifest.resolved.get('audit')))}.page"
        if compares(result) or not find_spec(name):
            return _demonstrated(result, COMPARISON if compares(result) else Page())
    return _demonstrated(result, cast("Page", import_module(name).PAGE))


def _demonstrated(result: AuditResult, page: Page) -> Page:
    """Return the page of a demonstration with scenes, which shows the ground truth first."""
    if "planted_scenes" not in result.tables:
        return page
    from equipoise.audits.planted_scenes_page import planted_scenes

    return replace(page, sections=(planted_scenes, *page.sections))


def write(result: AuditResult, folder: Path) -> None:
    """Write a run with the page of its kind; see `report.write`."""
    from equipoise import report

    report.write(result, folder, page_of(result))
