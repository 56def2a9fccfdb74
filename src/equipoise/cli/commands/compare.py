"""`equipoise compare`: differences between models, paired, with their certainty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    out_option,
    overwrite_run,
    say,
    say_json,
    say_rows,
)

if TYPE_CHECKING:
    from equipoise.core import AuditResult


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@out_option("runs/compare")
@overwrite_run
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
    from equipoise.core.errors import RunError
    from equipoise.report import read

    names = [
        path.name if [p.name for p in runs].count(path.name) == 1 else str(path) for path in runs
    ]
    if len(set(names)) < len(names):
        raise RunError("the same run is given twice; expected different runs")
    results = {name: read(path) for name, path in zip(names, runs, strict=True)}
    for name, run in results.items():
        if any(finding.audit == "comparison" for finding in run.findings):
            raise RunError(f"{name}: a comparison; expected runs of `equipoise audit`")
    by_kind: dict[str, dict[str, AuditResult]] = {}
    for name, run in results.items():
        by_kind.setdefault(str(run.manifest.resolved.get("audit")), {})[name] = run
    folders = dict(zip(names, runs, strict=True))
    return audits.together(
        [audits.compare_runs(own, folders, progress) for own in by_kind.values()]
    )


_SHOWN = {
    "ranking": "groups metric rank model value rank_low rank_high",
    "differences": "metric groups model_a model_b value_a value_b difference low high verdict",
}


def _tables(result: AuditResult) -> dict[str, list[dict[str, Any]]]:
    from equipoise.core import Verdict
    from equipoise.report.names import verdict_word

    names = (*_SHOWN, "disagreements", "changes")
    tables = {name: result.tables[name].to_pylist() for name in names if name in result.tables}
    for row in tables.get("differences", []):
        row["verdict"] = verdict_word(Verdict(row["verdict"]), comparison=True)
    return tables


def _show(result: AuditResult, run: Path) -> None:
    from equipoise.report.comparison import changed, leading
    from equipoise.report.words import sentence

    tables = _tables(result)
    disagreements = [row["sentence"] for row in tables.get("disagreements", [])]
    for text in (*map(sentence, leading(result.findings)), *changed(result), *disagreements):
        say(f"- {text}")
    say()
    for name, columns in _SHOWN.items():
        if name in tables:
            say(f"{name}:")
            say_rows([row for row in tables[name] if not row.get("subject")], columns.split())
            say()
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {run / 'report.html'}")
