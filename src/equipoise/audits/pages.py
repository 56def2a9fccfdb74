"""The page of a kind of audit."""

from dataclasses import replace
from importlib.util import find_spec

from equipoise.discovery import KINDS
from equipoise.report import Page

TRAINABLE = ("hf:", "open_clip:")
"""How names of dual encoders begin that `equipoise mitigate` trains and saves."""


def kind_page(audit: str, study: object = None) -> Page | None:
    """Return the page of a kind of audit, of a study with its tables; None without a page."""
    place = KINDS.get(audit)
    if place is None or not find_spec(f"{place.value}.page"):
        return None
    page = place.load(Page, "page:PAGE")
    if study is None:
        return page
    from equipoise.studies.page import source_tables

    return replace(page, front=(*page.front, source_tables))
