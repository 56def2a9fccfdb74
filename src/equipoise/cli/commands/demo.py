"""`equipoise demo`: audit the shipped planted models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult

_DEFAULT = Path("runs", "demo")


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write it [default: runs/demo].",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that lies there.")
@json_option
def command(out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Audit small models whose bias was planted.

    Shows what each metric found beside what was planted. Needs no data and no network. The run in
    the default place is replaced each time.
    """
    from equipoise import audits, report
    from equipoise.cli.summary import facts, show_end
    from equipoise.evidence import new_run, write_predictions

    run = out or _DEFAULT
    with new_run(run, overwrite=overwrite or out is None) as folder:
        with Steps() as progress:
            result, data = audits.demo(progress=progress)
        report.write(result, folder)
        write_predictions(folder, data)
    if as_json:
        say_json(facts(result, run) | {"planted": result.tables["planted"].to_pylist()})
    else:
        _show_planted(result)
        show_end(result, run)


_COLUMNS = ("model", "class", "planted", "effect size", "interval", "in the paper", "worst group")


def _show_planted(result: AuditResult) -> None:
    from equipoise.report.text import interval, number

    rows = [
        (
            row["model"],
            row["class"],
            row["removed"] if row["planted"] else "",
            number(row["found_effect_size"]),
            interval(row["low"], row["high"]),
            number(row["paper_effect_size"]),
            number(row["worst_group_accuracy"]),
        )
        for row in result.tables["planted"].to_pylist()
    ]
    say_table(_COLUMNS, rows)
    say()
