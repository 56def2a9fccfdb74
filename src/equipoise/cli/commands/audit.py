"""`equipoise audit`: run an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import (
    config_argument,
    json_option,
    out_option,
    overwrite_run,
    say_json,
)

if TYPE_CHECKING:
    pass


@click.command("audit", epilog="Example: equipoise audit audit.yaml --out runs/first")
@config_argument
@out_option("runs/ and the name of CONFIG")
@overwrite_run
@json_option
def audit_command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Measure, and write findings and a report.

    CONFIG says which tables to read, see docs/config.md. The run appears when it is whole: a
    failure or Ctrl-C leaves nothing behind.
    """
    from equipoise.audits.config import load_config
    from equipoise.cli.runs import facts, run_audit, show

    run = out or Path("runs", config.stem)
    result = run_audit(load_config(config), config.parent, run, config.read_bytes(), overwrite)
    if as_json:
        say_json(facts(result, run))
    else:
        show(result, run)
