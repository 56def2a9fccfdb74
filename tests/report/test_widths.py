"""No page is wider than its window: wide tables scroll within themselves."""

import pytest

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


@pytest.mark.parametrize(
    "make",
    [
        faces,
        comparison,
        augmentation,
        hostile,
        many_classes,
    ],
)
def test_a_page_is_no_wider_than_its_window(make, chromium, tmp_path):
    reached = reaches(render(make()), WIDTHS, chromium, tmp_path)
    assert all(found <= width for found, width in zip(reached, WIDTHS, strict=True))
