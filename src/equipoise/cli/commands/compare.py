"""`equipoise compare`: compare models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    open_option,
    open_report,
    out_option,
    overwrite_run,
    say_json,
)

if TYPE_CHECKING:
    from equipoise.core import AuditResult


@click.command("compare", epilog="Example: equipoise compare runs/first runs/second")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@out_option("runs/compare")
@overwrite_run
@open_option
@json_option
def compare_command(
    runs: tuple[Path, ...], out: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Compare models, paired by image or by subject.

    Give one RUN with several models, or several runs about the same images.

    The report has paired differences with intervals and tests, a ranking of the models, and
    metrics that disagree about the better model. Other kinds than predictions are paired by
    subject, with disparities that went or came. Runs of several kinds make one report.
    """
    from equipoise.audits.runs import compare
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import new_run

    target = out or Path("runs", "compare")
    with new_run(target, overwrite=overwrite, inputs=runs) as folder:
        with Steps() as progress:
            result = compare(*runs, progress=progress)
        write(result, folder, target)
    open_report(target)
    if as_json:
        say_json(facts(result, target) | _tables(result))
    else:
        show(result, target)


def _tables(result: AuditResult) -> dict[str, list[dict[str, Any]]]:
    names = ("ranking", "disagreements", "changes")
    return {name: result.tables[name].to_pylist() for name in names if name in result.tables}
