"""`equipoise audit`: measure, and write a run."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.commands.check import gate_facts, gate_line, gate_rules
from equipoise.cli.terminal import (
    config_argument,
    json_option,
    out_option,
    overwrite_run,
    say,
    say_json,
)


@click.command("audit")
@config_argument
@out_option("runs/ and the name of CONFIG")
@overwrite_run
@json_option
def command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Measure, and write findings and a report.

    CONFIG says which tables to read, see docs/config.md. The run appears when it is whole: a
    failure or Ctrl-C leaves nothing behind.
    """
    from equipoise import audits, report
    from equipoise.audits.config import load_config
    from equipoise.cli.measure import measure
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts, show
    from equipoise.evidence import new_run

    checked = load_config(config)
    run = out or Path("runs", config.stem)
    with new_run(run, overwrite=overwrite) as folder:
        result, data = measure(checked, config.parent)
        write(result, folder)
        audits.save(checked, folder, data)
        (folder / "config.yaml").write_bytes(config.read_bytes())
    outcome = report.gate(result, gate_rules(checked.gate)) if checked.gate else None
    if as_json:
        gate = None if outcome is None else gate_facts(outcome)
        say_json(facts(result, run) | {"gate": gate})
        return
    show(result, run)
    if outcome is not None:
        say(f"{gate_line(outcome)} 'equipoise check {run}' names them.")
