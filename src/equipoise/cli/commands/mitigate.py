"""`equipoise mitigate`: lower a dual encoder's disparity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.cli.terminal import (
    Steps,
    config_argument,
    json_option,
    open_option,
    open_report,
    refuse_open,
    say_json,
    say_values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.core import AuditResult

_Value = TypeVar("_Value")


@click.command("mitigate", epilog="Example: equipoise mitigate mitigate.yaml --plan")
@config_argument
@click.option("--plan", is_flag=True, help="Print the steps; no model is loaded.")
@open_option
@json_option
def mitigate_command(config: Path, plan: bool, as_json: bool) -> None:
    """Lower a dual encoder's disparity, and measure the cost.

    The command fits every recipe of CONFIG on some subjects and writes a model for each. It
    measures withheld subjects before and after, and the cost in accuracy and recall. Models are
    never overwritten. An interrupted run resumes. docs/mitigation.md explains CONFIG.
    """
    from equipoise.cli.mitigation import mitigate, unfinished
    from equipoise.cli.runs import load_for
    from equipoise.mitigate import running
    from equipoise.mitigate.config import Config
    from equipoise.report import read

    base = config.parent
    parts = load_for(config, Config, "mitigate").by_model()
    waiting = unfinished(parts, base)
    if plan:
        refuse_open("--plan")
        plans = {name: running.plan(part, base=base) for name, part in waiting.items()}
        if as_json:
            say_json(_single(plans))
            return
        for name, planned in plans.items():
            say_values({"model": name, **planned} if name else planned)
        return
    printed = {}
    for name, part in parts.items():
        run = part.report(base)
        with Steps() as progress:
            result = mitigate(part, base, progress) if name in waiting else read(run)
        open_report(run)
        if as_json:
            printed[name] = _facts(result, run)
        else:
            show(result, run, as_json=False)
    if as_json:
        say_json(_single(printed))


def show(result: AuditResult, run: Path, *, as_json: bool) -> None:
    """Print the effect and cost of each recipe, and the report's path."""
    from equipoise.cli import runs

    if as_json:
        say_json(_facts(result, run))
    else:
        runs.show(result, run)


def _single(by_model: Mapping[str, _Value]) -> _Value | Mapping[str, _Value]:
    """Return what belongs to the only model, which has no name, or to each of several."""
    return by_model.get("", by_model)


def _facts(result: AuditResult, run: Path) -> dict[str, Any]:
    """Return a run with the effect and cost of each recipe."""
    from equipoise.cli.runs import facts

    rows = result.tables["mitigation"].to_pylist()
    recipes = result.tables["mitigation_recipes"].to_pylist()
    return facts(result, run) | {"recipes": recipes, "rows": rows}
