"""`equipoise compare`: differences between models, paired, with their certainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.core import AuditResult
    from equipoise.data import PredictionData


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write the comparison [default: runs/compare].",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that lies there.")
@json_option
def command(runs: tuple[Path, ...], out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Compare models, paired by image.

    The models are those of one RUN, or of several runs about the same images.

    Paired differences with intervals and tests, a ranking with its uncertainty, and the metrics
    that disagree about who is better.
    """
    from equipoise import audits, report
    from equipoise.cli.summary import facts
    from equipoise.evidence import new_run

    target = out or Path("runs", "compare")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            result = audits.compare(_read_all(runs), progress=progress)
        report.write(result, folder)
    if as_json:
        say_json(facts(result, target) | _tables(result))
    else:
        _show(result, target)


def _read_all(runs: tuple[Path, ...]) -> dict[str, tuple[Config, PredictionData]]:
    from equipoise.core.errors import RunError
    from equipoise.evidence import read_predictions
    from equipoise.report import read

    names = [
        path.name if [p.name for p in runs].count(path.name) == 1 else str(path) for path in runs
    ]
    if len(set(names)) < len(names):
        raise RunError("the same run is given twice; expected different runs")
    resolved = [read(path).manifest.resolved for path in runs]
    return {
        name: (_config(values, path), read_predictions(path))
        for name, path, values in zip(names, runs, resolved, strict=True)
    }


def _config(values: Mapping[str, Any], run: Path) -> Config:
    from equipoise.audits.config import parse_config
    from equipoise.audits.predictions.config import Config
    from equipoise.core.errors import RunError

    config = parse_config(values, source=str(run / "manifest.json"))
    if not isinstance(config, Config):
        raise RunError(
            f"{run}: an audit of {config.audit}; expected audits of predictions. To do: name all "
            "models in one configuration, whose report sets them side by side"
        )
    return config


_SHOWN = {
    "ranking": ("groups", "metric", "rank", "model", "value", "rank_low", "rank_high"),
    "differences": (
        "metric",
        "groups",
        "model_a",
        "model_b",
        "value_a",
        "value_b",
        "difference",
        "low",
        "high",
        "verdict",
    ),
}


def _tables(result: AuditResult) -> dict[str, object]:
    names = (*_SHOWN, "disagreements")
    return {name: result.tables[name].to_pylist() for name in names if name in result.tables}


def _show(result: AuditResult, run: Path) -> None:
    from equipoise.report.comparison import leading
    from equipoise.report.words import sentence

    for finding in leading(result.findings):
        say(f"- {sentence(finding)}")
    for row in result.tables["disagreements"].to_pylist():
        say(f"- disagreement: {row['sentence']}")
    say()
    for name, columns in _SHOWN.items():
        rows = [row for row in result.tables[name].to_pylist() if not row.get("subject")]
        say(f"{name}:")
        say_table(columns, [[_cell(column, row[column]) for column in columns] for row in rows])
        say()
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {run / 'report.html'}")


def _cell(column: str, value: object) -> str:
    from equipoise.cli.commands.plan import cell
    from equipoise.core import Verdict
    from equipoise.report.names import verdict_word

    if column == "verdict":
        return verdict_word(Verdict(str(value)), comparison=True)
    if column.startswith("rank") and isinstance(value, float) and math.isfinite(value):
        return str(round(value))
    return cell(value)
