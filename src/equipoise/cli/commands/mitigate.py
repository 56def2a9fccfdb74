"""`equipoise mitigate`: lower a disparity of a dual encoder, and say what it cost."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import (
    Steps,
    config_argument,
    json_option,
    say,
    say_json,
    say_rows,
    say_values,
)

if TYPE_CHECKING:
    from equipoise.core import AuditResult


@click.command("mitigate")
@config_argument
@click.option("--plan", is_flag=True, help="Say what would be done; no model is loaded.")
@json_option
def command(config: Path, plan: bool, as_json: bool) -> None:
    """Lower a disparity of a dual encoder, and say what it cost.

    Fits every recipe of the configuration on some subjects, writes a model for each, and measures
    the subjects that were withheld, before and after, with the price in accuracy and recall beside
    it. Nothing is written over a model; what was interrupted goes on where it stopped.
    """
    from equipoise.cli.mitigating import load_config, result_of
    from equipoise.cli.pages import write
    from equipoise.evidence import new_run
    from equipoise.mitigate import loading, running

    checked, base = load_config(config), config.parent
    if plan:
        (say_json if as_json else say_values)(running.plan(checked, base=base))
        return
    run, began = base / checked.output / loading.REPORT, perf_counter()
    with Steps() as progress:
        loaded = loading.load(checked, base=base)
        assessment = running.run(checked, base=base, loaded=loaded, progress=progress)
    result = result_of(
        assessment,
        config=checked.model_dump(mode="json", exclude_unset=True),
        resolved=checked.model_dump(mode="json"),
        inputs=loaded.inputs,
        counts=loaded.counts,
        seconds=perf_counter() - began,
    )
    with new_run(run) as folder:
        write(result, folder)
    show(result, run, as_json=as_json)


def show(result: AuditResult, run: Path, *, as_json: bool) -> None:
    """Print what each recipe did, what it cost, and where the report is."""
    from equipoise.mitigate.page import by_conclusion, conclusion

    rows = result.tables["mitigation"].to_pylist()
    recipes = result.tables["mitigation_recipes"].to_pylist()
    if as_json:
        said = {"run": run, "report": run / "report.html", "notes": result.manifest.notes}
        say_json(said | {"recipes": recipes, "rows": rows})
        return
    columns = "recipe measure about before after difference low high q_value floor"
    say_rows(rows, columns.split())
    say()
    for row in by_conclusion(recipes):
        say(conclusion(row))
    say_values({"notes": result.manifest.notes})
    say(f"report: {run / 'report.html'}")
