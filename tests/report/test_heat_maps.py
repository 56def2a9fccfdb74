"""Heat maps of many columns: the width of the page, numbers where they fit, labels apart."""

from pathlib import Path

import pyarrow as pa
import pytest

from equipoise.core import AuditResult
from equipoise.report import render
from equipoise.report.blocks import Chart, Grid
from equipoise.report.charts_heat import WIDE, Scale, heat_map
from equipoise.report.sections.counterfactuals import proportions
from report.browser import MANIFEST, seen

SCALE = Scale("share", (0.0, 1.0), "share", ".0%")


def result(columns: int) -> AuditResult:
    rows = [
        {"model": "m", "groups": "race × gender", "version": "default",
         "attribute": "race × gender", "subject": subject, "group": f"group number {place}",
         "share": 1.0, "pool_share": 1 / columns, "n": 10}
        for subject in ("nurse", "pilot")
        for place in range(columns)
    ]  # fmt: skip
    return AuditResult((), MANIFEST, {"proportions": pa.Table.from_pylist(rows)})


def chart(columns: int) -> Chart:
    section = proportions(result(columns))
    assert section is not None
    (grid,) = [block for block in section.blocks if isinstance(block, Grid)]
    return grid.charts[0]


@pytest.mark.parametrize(("columns", "wide"), [(2, False), (WIDE - 1, False), (WIDE, True)])
def test_a_map_of_many_columns_takes_the_width_of_the_page(columns: int, wide: bool) -> None:
    assert chart(columns).wide is wide
    assert ('<figure class="wide">' in render(result(columns))) is wide


def test_labels_of_many_columns_stand_steeper() -> None:
    few, many = (
        heat_map("rows", ("a", [str(one) for one in range(n)]), ("b", None), SCALE, 100)
        for n in (WIDE - 1, WIDE)
    )
    angle = [spec["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] for spec in (few, many)]
    assert angle[1] < angle[0] < 0


def test_numbers_are_drawn_where_cells_have_room_for_them(chromium: str, tmp_path: Path) -> None:
    numbers = {
        width: seen(result(12), width, chromium, tmp_path).split("<table")[0].count(">100 %<")
        for width in (520, 1280)
    }
    assert numbers == {520: 0, 1280: 24}
