"""`equipoise report`: write the page of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.outputs import REPORT, check_output, overwrite_option, write_output
from equipoise.cli.terminal import PATH, json_option, say, say_json


@click.command("report")
@click.argument("run", type=PATH)
@click.option("--out", type=PATH, help="Where to write it [default: RUN/report.html].")
@overwrite_option
@json_option
def command(run: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Write the report of a run again.

    It is made from the findings of RUN; nothing is measured.
    """
    from equipoise.cli.pages import page_of
    from equipoise.evidence import relist
    from equipoise.report import read, render

    page, replaced = out or run / "report.html", overwrite or out is None
    result = read(run)
    check_output(page, REPORT, overwrite=replaced)
    write_output(page, render(result, page_of(result)), REPORT, overwrite=replaced)
    relist(run, page)
    if as_json:
        say_json({"run": run, "report": page})
    else:
        say(f"report: {page}")
