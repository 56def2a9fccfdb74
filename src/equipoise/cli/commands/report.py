"""`equipoise report`: write the page of a run again."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from equipoise.cli.terminal import json_option, say, say_json


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to write it [default: RUN/report.html]."
)
@json_option
def command(run: Path, out: Path | None, as_json: bool) -> None:
    """Write the report of a run again.

    It is made from the findings of RUN; nothing is measured.
    """
    from equipoise.report import read, render

    page = out or run / "report.html"
    text = render(read(run))
    replace_text(page, text)
    if as_json:
        say_json({"run": run, "report": page})
    else:
        say(f"report: {page}")


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: under a temporary name, then renamed."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
