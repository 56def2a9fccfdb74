"""The page in a browser: charts appear, nothing is refused, nothing goes wrong."""

import re
import subprocess

import pytest

from equipoise.report import render
from report.synthetic import comparison, faces, hostile, many_classes

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--window-size=1280,9000", "--virtual-time-budget=20000", "--enable-logging=stderr",
    "--dump-dom",
)  # fmt: skip


@pytest.mark.parametrize("make", [faces, comparison, hostile, many_classes])
def test_charts_are_drawn_and_the_console_stays_silent(make, chromium, tmp_path):
    assert callable(make)
    path = tmp_path / "report.html"
    path.write_text(render(make()), encoding="utf-8")
    done = subprocess.run(
        [chromium, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "could not be drawn" not in done.stdout.split('<script type="application/json"')[0]
    drawn = re.findall(r'<div class="chart[^>]*data-drawn="yes"[^>]*>(.{0,400})', done.stdout)
    assert len(drawn) >= 1
    assert all("<svg" in start for start in drawn)
