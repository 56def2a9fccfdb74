"""`equipoise compare`: differences between models, paired, with their certainty."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult


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
    """Compare models, paired by image or by subject.

    The models are those of one RUN, or of several runs about the same images.

    Paired differences with intervals and tests, a ranking with its uncertainty, and the metrics
    that disagree about who is better. Runs of kinds other than predictions are compared subject by
    subject, with the disparities that went and came; runs of several kinds make one report.
    """
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts
    from equipoise.evidence import new_run

    target = out or Path("runs", "compare")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            result = _compared(runs, progress)
        write(result, folder)
    if as_json:
        say_json(facts(result, target) | _tables(result))
    else:
        _show(result, target)


def _compared(runs: tuple[Path, ...], progress: Steps) -> AuditResult:
    """Compare runs of predictions image by image, those of other kinds subject by subject."""
    from equipoise import audits
    from equipoise.audits.comparison import check_kinds

    read = _read_all(runs)
    check_kinds(read)
    kinds = dict.fromkeys(str(run.manifest.resolved.get("audit")) for run in read.values())
    compared = []
    folders = dict(zip(read, runs, strict=True))
    for kind in kinds:
        own = {name: run for name, run in read.items() if run.manifest.resolved["audit"] == kind}
        compared.append(audits.compare_runs(own, folders, progress))
    return audits.together(compared)


def _read_all(runs: tuple[Path, ...]) -> dict[str, AuditResult]:
    from equipoise.core.errors import RunError
    from equipoise.report import read

    names = [
        path.name if [p.name for p in runs].count(path.name) == 1 else str(path) for path in runs
    ]
    if len(set(names)) < len(names):
        raise RunError("the same run is given twice; expected different runs")
    found = {name: read(path) for name, path in zip(names, runs, strict=True)}
    for name, run in found.items():
        if any(one.audit == "comparison" for one in run.findings):
            raise RunError(f"{name}: a comparison; expected runs of `equipoise audit`")
    return found


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


def _tables(result: AuditResult) -> dict[str, list[dict[str, Any]]]:
    names = (*_SHOWN, "disagreements", "changes")
    found = {name: result.tables[name].to_pylist() for name in names if name in result.tables}
    for row in found.get("differences", []):
        row["verdict"] = _cell("verdict", row["verdict"])
    return found


def _show(result: AuditResult, run: Path) -> None:
    from equipoise.report.comparison import changed, leading
    from equipoise.report.words import sentence

    for finding in leading(result.findings):
        say(f"- {sentence(finding)}")
    for text in (*changed(result), *_disagreements(result)):
        say(f"- {text}")
    say()
    for name, columns in _SHOWN.items():
        if name not in result.tables:
            continue
        rows = [row for row in result.tables[name].to_pylist() if not row.get("subject")]
        say(f"{name}:")
        say_table(columns, [[_cell(column, row[column]) for column in columns] for row in rows])
        say()
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {run / 'report.html'}")


def _disagreements(result: AuditResult) -> list[str]:
    if "disagreements" not in result.tables:
        return []
    found = result.tables["disagreements"].to_pylist()
    return [f"disagreement: {row['sentence']}" for row in found]


def _cell(column: str, value: object) -> str:
    from equipoise.cli.commands.plan import cell
    from equipoise.core import Verdict
    from equipoise.report.names import verdict_word

    if column == "verdict":
        return verdict_word(Verdict(str(value)), comparison=True)
    if column.startswith("rank") and isinstance(value, float) and math.isfinite(value):
        return str(round(value))
    return cell(value)
