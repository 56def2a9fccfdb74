"""A page as a browser shows it."""

import subprocess
from pathlib import Path

from equipoise.core import AuditResult, Manifest
from equipoise.report import render

MANIFEST = Manifest({}, {}, {"equipoise": "0"}, "", False, {}, {}, 0, "", 0.0, {})


def seen(result: AuditResult, width: int, chromium: str, folder: Path) -> str:
    """Return the elements of a result's page, drawn in a window of a width in pixels."""
    path = folder / "report.html"
    path.write_text(render(result), encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               f"--window-size={width},4000", "--virtual-time-budget=20000", "--dump-dom",
               f"--user-data-dir={folder / str(width)}")  # fmt: skip
    done = subprocess.run(
        [chromium, *options, path.as_uri()], capture_output=True, text=True, check=True, timeout=180
    )
    return done.stdout.split('<script type="application/json"')[0]
