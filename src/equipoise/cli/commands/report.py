"""`equipoise report`: write the report of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.outputs import check_output
from equipoise.cli.terminal import (
    PATH,
    json_option,
    open_option,
    open_report,
    say,
    say_json,
)

_REPORT = b'<meta name="generator" content="equipoise">'


@click.command("report", epilog="Example: equipoise report runs/first")
@click.argument("run", type=PATH)
@open_option
@json_option
def report_command(run: Path, as_json: bool) -> None:
    """Write the report of a run again, in its place.

    It uses the findings of RUN. Nothing is measured.
    """
    from equipoise.audits.plugins import check_plugins
    from equipoise.cli.runs import page_of, place_of
    from equipoise.evidence import rewrite
    from equipoise.report import read, render

    page, result = run / "report.html", read(run)
    check_plugins(result.manifest, config=False)
    check_output(page, _REPORT)
    rewrite(run, page.name, render(result, page_of(result), place_of(run)).encode())
    open_report(run)
    if as_json:
        say_json({"run": run, "report": page})
    else:
        say(f"report: {page}")
