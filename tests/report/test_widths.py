"""No page is wider than its window: wide tables scroll within themselves."""

from equipoise.report import render
from report.browser import reaches
from report.synthetic import (
    augmentation,
    comparison,
    faces,
    hostile,
    many_classes,
)

WIDTHS = (1280, 420)


def test_no_page_is_wider_than_its_window(chromium, tmp_path):
    made = (faces(), comparison(), augmentation(), hostile(), many_classes(20))
    for reached in reaches([*map(render, made)], WIDTHS, chromium, tmp_path):
        assert all(found <= width for found, width in zip(reached, WIDTHS, strict=True)), reached
