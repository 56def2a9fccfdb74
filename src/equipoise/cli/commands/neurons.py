"""The command `neurons`."""

from pathlib import Path

import click

from equipoise.cli.terminal import (
    Steps,
    config_argument,
    json_option,
    open_option,
    open_report,
    say_json,
)


@click.command("neurons", epilog="Example: equipoise neurons neurons.yaml")
@config_argument
@open_option
@json_option
def neurons_command(config: Path, as_json: bool) -> None:
    """Find and change components that respond to a group.

    The command chooses units, attention heads or features of a sparse autoencoder on half of the
    images. It tests and changes them on the other half, and compares them with random components.
    It writes a report, and a file for each edit. Audits can load the edited models.
    """
    from equipoise.cli.runs import facts, load_for, show, write
    from equipoise.evidence import new_run
    from equipoise.mitigate.config import REPORT
    from equipoise.mitigate.neurons.config import Config
    from equipoise.mitigate.neurons.study import run

    checked, base = load_for(config, Config, "neurons"), config.parent
    with Steps() as progress:
        result = run(checked, base=base, progress=progress)
    folder = base / checked.output / REPORT
    with new_run(folder) as partial:
        write(result, partial, folder)
    open_report(folder)
    if as_json:
        tables = {
            name: result.tables[f"neurons_{name}"].to_pylist() for name in ("components", "sweep")
        }
        say_json(facts(result, folder) | tables)
    else:
        show(result, folder)
