"""`equipoise audit`: run an audit."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    config_argument,
    json_option,
    open_option,
    open_report,
    out_option,
    overwrite_run,
    say_json,
)


@click.command("audit", epilog="Example: equipoise audit audit.yaml --out runs/first")
@config_argument
@out_option("runs/ and the name of CONFIG")
@overwrite_run
@open_option
@json_option
def audit_command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Run an audit, and write findings and a report.

    CONFIG names the data, the models and the groups; docs/config.md explains it. An interrupted
    audit leaves no run behind, and keeps model outputs for the next try.
    """
    from equipoise.cli.runs import facts, load_audit_config, run_audit, show

    run = out or Path("runs", config.stem)
    result = run_audit(
        load_audit_config(config), config.parent, run, config.read_bytes(), overwrite
    )
    open_report(run)
    if as_json:
        say_json(facts(result, run))
    else:
        show(result, run)
