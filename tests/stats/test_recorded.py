"""Recorded tables of docs/calibration: all are linked, the charts follow, promises hold."""

import re
from math import sqrt

import pytest

from slow.calibration_grid import P_VALUES
from stats.coverage_grid import SUMMARY, TABLES
from tools.calibration import audits, chart, rows
from tools.calibration.tables import FOLDER, read, write

PAGE = (FOLDER.parent / "calibration.md").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))


def test_the_page_links_every_table():
    assert sorted(re.findall(r"\(calibration/([\w-]+)\.csv\)", PAGE)) == NAMES
    assert {*TABLES} < {*NAMES}


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("p-values", P_VALUES),
        ("false-alarms", rows.ALARMS),
        ("rising", rows.RISES),
        ("sample-sizes", rows.POWERS),
        ("prevalence", rows.EFFECTS),
        ("audits", audits.AUDITS),
        ("audit-power", audits.POWERS),
        *((name, SUMMARY) for name in ("rates", "rates-of-units", "effect-sizes")),
    ],
)
def test_columns_are_those_of_the_writer(name, head):
    assert (*read(name)[0],) == tuple(head)


def test_a_table_is_read_as_written(tmp_path):
    for name in NAMES:
        recorded = read(name)
        write(name, [*recorded[0]], (row.values() for row in recorded), tmp_path)
        assert (tmp_path / f"{name}.csv").read_bytes() == (FOLDER / f"{name}.csv").read_bytes()


def test_the_charts_show_the_tables():
    assert chart.ALARMS.read_text(encoding="utf-8") == chart.alarms_chart()
    assert chart.COVERAGE.read_text(encoding="utf-8") == chart.coverage_chart()


def test_recorded_p_values_are_within_chance_of_their_level():
    for row in read("p-values"):
        samples, share = int(row["samples"]), float(row["p_0.05"])
        assert share <= 0.05 + 3 * sqrt(0.05 * 0.95 / samples) + 0.0005, row


def test_recorded_intervals_cover():
    for name in chart.INTERVALS:
        for row in read(name):
            assert float(row["coverage"]) >= 0.94
            assert float(row["least_coverage"]) >= 0.90
