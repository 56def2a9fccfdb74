"""`equipoise mitigate`: lower a disparity of a dual encoder, and say what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult


@click.command("mitigate")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--plan", is_flag=True, help="Say what would be done; no model is loaded.")
@json_option
def command(config: Path, plan: bool, as_json: bool) -> None:
    """Lower a disparity of a dual encoder, and say what it cost.

    Fits every recipe of the configuration on some subjects, writes a model for each, and measures
    the subjects that were withheld, before and after, with the price in accuracy and recall beside
    it. Nothing is written over a model; what was interrupted goes on where it stopped.
    """
    from equipoise.cli.commands.plan import show_values
    from equipoise.cli.mitigating import load_config
    from equipoise.mitigate import running

    checked, base = load_config(config), config.parent
    if plan:
        planned = running.plan(checked, base=base)
        return say_json(planned) if as_json else show_values(planned)
    result, run = _run(checked, base)
    show(result, run, as_json=as_json)
    return None


def _run(config: Any, base: Path) -> tuple[AuditResult, Path]:
    from equipoise.cli.mitigating import result_of
    from equipoise.cli.pages import write
    from equipoise.core.errors import RunError
    from equipoise.evidence import new_run
    from equipoise.mitigate import loading, running

    run = base / config.output / loading.REPORT
    if run.exists():
        raise RunError(
            f"{run}: exists already; nothing is written over. To do: choose another `output`"
        )
    began = perf_counter()
    with Steps() as progress:
        loaded = loading.load(config, base=base)
        assessment = running.run(config, base=base, loaded=loaded, progress=progress)
    result = result_of(
        assessment,
        config=config.model_dump(mode="json", exclude_unset=True),
        resolved=config.model_dump(mode="json"),
        inputs=loaded.inputs,
        counts=loaded.counts,
        seconds=perf_counter() - began,
    )
    with new_run(run) as folder:
        write(result, folder)
    return result, run


def show(result: AuditResult, run: Path, *, as_json: bool) -> None:
    """Print what each recipe did, what it cost, and where the report is."""
    from equipoise.mitigate.page import by_conclusion, conclusion

    rows = result.tables["mitigation"].to_pylist()
    recipes = result.tables["mitigation_recipes"].to_pylist()
    if as_json:
        said = {"run": run, "report": run / "report.html", "notes": result.manifest.notes}
        say_json(said | {"recipes": recipes, "rows": rows})
        return
    say_table(_COLUMNS, [_cells(row) for row in rows])
    say()
    for one in by_conclusion(recipes):
        model = f" ({one['model']})" if one["model"] else ""
        say(f"{conclusion(one)}{model}")
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {run / 'report.html'}")


_COLUMNS = ("recipe", "measure", "of", "before", "after", "difference", "interval", "q", "floor")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    from equipoise.report.text import interval, number, p_value

    return (
        row["recipe"],
        row["measure"].replace("_", " "),
        row["about"],
        *(number(row[name]) for name in ("before", "after", "difference")),
        interval(row["low"], row["high"]),
        p_value(row["q_value"]),
        number(row["floor"]),
    )
