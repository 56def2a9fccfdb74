from collections import Counter

import click


@click.command("tally", epilog="Example: equipoise tally runs/first")
@click.argument("run")
def tally_command(run):
    """Count the findings of RUN by verdict."""
    import equipoise

    for verdict, n in Counter(finding.verdict for finding in equipoise.load(run).findings).items():
        click.echo(f"{verdict}: {n}")
