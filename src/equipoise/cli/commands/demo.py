"""`equipoise demo`: audit the shipped planted models."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import Steps, json_option, say_json

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
    from equipoise.cli.summary import facts, show
    from equipoise.evidence import new_run, write_predictions

    run = out or _DEFAULT
    with new_run(run, overwrite=overwrite or out is None) as folder:
        with Steps() as progress:
            result, data = audits.demo(progress=progress)
        report.write(result, folder)
        write_predictions(folder, data)
    if as_json:
        say_json(facts(result, run))
    else:
        show(result, run)
