"""The commands `quick`, `plan`, `audit`, `report`, `check` and `compare`."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.outputs import JUNIT, check_output, config_text, write_output
from equipoise.cli.questions import on_terminal
from equipoise.cli.terminal import (
    PATH,
    Steps,
    config_argument,
    json_option,
    note,
    out_option,
    overwrite_run,
    say,
    say_json,
    say_values,
)

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig
    from equipoise.core import AuditResult

_REPORT = b'<meta name="generator" content="equipoise">'


def _load_config(path: Path) -> AuditConfig:
    """Read the configuration of an audit.

    Raises
    ------
    ConfigError
        When it is wrong, or configures another command, which the error names.
    """
    import yaml

    from equipoise.audits.config import load_config
    from equipoise.audits.studies.study import command_of
    from equipoise.core import ConfigError

    try:
        return load_config(path)
    except ConfigError:
        try:
            values = yaml.safe_load(path.read_bytes())
        except (OSError, ValueError, yaml.YAMLError):
            values = None
        if not isinstance(values, dict) or "audit" in values:
            raise
        command, _ = command_of(values)
        if command == "audit":
            raise
        raise ConfigError(
            f"{path}: no configuration of an audit. To do: run 'equipoise {command} {path}'"
        ) from None


@click.command("plan", epilog="Example: equipoise plan audit.yaml")
@config_argument
@click.option(
    "--error-rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="How often models err, for what their mistakes can show [default: 0.2].",
)
@click.option(
    "--kept-sets",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Share of generated sets that pass the filters.",
)
@json_option
def plan_command(
    config: Path, error_rate: float | None, kept_sets: float | None, as_json: bool
) -> None:
    """Print the size of an audit and the effects it can detect.

    Nothing is measured and no model is loaded. Where models are to be run: images, those that
    the store has, those that failed before, those to do, those whose files are missing, and bytes
    to write.
    Counts of rows and groups, groups that are too small, the smallest effects that the data could
    show, what the data can't give at all, the number of tests, and about how long it takes.
    """
    from equipoise import audits
    from equipoise.audits.limits import ERROR_RATE

    planned = audits.plan(
        _load_config(config), base=config.parent, error_rate=error_rate or ERROR_RATE,
        kept_share=kept_sets,
    )  # fmt: skip
    if as_json:
        say_json(planned.values)
    else:
        say_values({**planned.values, "limits": [limit.text for limit in planned.limits]})


@click.command("audit", epilog="Example: equipoise audit audit.yaml --out runs/first")
@config_argument
@out_option("runs/ and the name of CONFIG")
@overwrite_run
@json_option
def audit_command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Measure, and write findings and a report.

    CONFIG says which tables to read, see docs/config.md. The run appears when it is whole: a
    failure or Ctrl-C leaves nothing behind.
    """
    from equipoise.cli.runs import facts, show

    run = out or Path("runs", config.stem)
    result = _audit(_load_config(config), config.parent, run, config.read_bytes(), overwrite)
    if as_json:
        say_json(facts(result, run))
    else:
        show(result, run)


def _names(context: click.Context, option: click.Parameter, value: str | None) -> list[str]:  # noqa: ARG001
    parts = (value or "").split(",")
    return [*dict.fromkeys(name for part in parts if (name := part.strip()))]


def _threshold(
    context: click.Context,  # noqa: ARG001
    option: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> float | str | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


@click.command(
    "quick",
    epilog="Example: equipoise quick predictions.csv --target label --pred pred --groups age,sex",
)
@click.argument("table", type=PATH)
@click.option("--target", required=True, metavar="COLUMN", help="Column of labels.")
@click.option(
    "--groups",
    required=True,
    metavar="COLUMNS",
    callback=_names,
    help="Columns of group attributes, with commas between. Numbers become bands.",
)
@click.option(
    "--pred",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of predicted labels, with commas between; a model each.",
)
@click.option(
    "--score",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of scores of the positive class; a model each.",
)
@click.option(
    "--threshold",
    metavar="NUMBER",
    callback=_threshold,
    help="Scores from it on are positive; or balanced_accuracy (default), prevalence or cost.",
)
@click.option("--model", metavar="MODEL", help="Model to run on the images, such as hf:ID.")
@click.option("--images", type=PATH, metavar="DIR", help="Folder of the images, for --model.")
@click.option("--positive", metavar="CLASS", help="Of two classes the one to report.")
@click.option("--id", metavar="COLUMN", help="Column that names the image.")
@click.option("--unit", metavar="COLUMN", help="Column of what repeats, such as a person.")
@out_option("runs/ and the name of TABLE")
@overwrite_run
@json_option
def quick_command(
    table: Path, out: Path | None, overwrite: bool, as_json: bool, **named: Any
) -> None:
    """Audit a table or a model without a configuration.

    The columns of predictions, scores, ids and units, the positive class, missing values, bands
    of numbers and the encoding are guessed. Each guess is printed, and the run holds the
    configuration to edit and to use again.
    """
    from equipoise.audits.config import parse_config
    from equipoise.audits.quick import guess_config
    from equipoise.cli.runs import facts, show

    run = out or Path("runs", table.stem)
    guess = guess_config(table, **named)
    if guess.guessed_unit and not as_json and on_terminal():
        text = f"{guess.guessed_unit} repeats. Do its rows belong together?"
        if not click.confirm(text, default=True, err=True):
            guess = guess_config(table, **{**named, "unit": ""})
    values = guess.config(table, run)
    text = config_text(values, guess.notes)
    config = parse_config(guess.config(table), source=str(table))
    result = _audit(config, Path(), run, text.encode(), overwrite)
    if as_json:
        say_json({**facts(result, run), "guesses": guess.notes, "config": values})
        return
    note(text)
    show(result, run)
    say(f"config: {run / 'config.yaml'}")


def _audit(config: AuditConfig, base: Path, run: Path, text: bytes, overwrite: bool) -> AuditResult:
    """Run the audit of a config, and write the run with the config's text."""
    from equipoise import audits
    from equipoise.audits.running import has_examples
    from equipoise.cli.runs import write
    from equipoise.core import writing
    from equipoise.evidence import new_run

    # What was imported stays: collecting garbage need not look at it again.
    gc.freeze()
    with new_run(run, overwrite=overwrite) as folder, ThreadPoolExecutor(1) as writer:
        with Steps() as progress:
            inputs = audits.prepare(config, base=base, progress=progress)
            # Models are done. Findings are many objects, and hardly any is garbage.
            gc.set_threshold(1 << 16)
            result = audits.run(inputs, base=base, progress=progress)
        # Measuring keeps all processors busy, and writing the page one.
        saved = writer.submit(audits.save, inputs, folder)
        write(result, folder, run, examples=has_examples(inputs))
        saved.result()
        writing.write(folder / "config.yaml", text)
    return result


@click.command("report", epilog="Example: equipoise report runs/first")
@click.argument("run", type=PATH)
@json_option
def report_command(run: Path, as_json: bool) -> None:
    """Write the report of a run again, in its place.

    It is made from the findings of RUN; nothing is measured.
    """
    from equipoise.cli.runs import page_of, place_of
    from equipoise.evidence import rewrite
    from equipoise.report import read, render

    page, result = run / "report.html", read(run)
    check_output(page, _REPORT)
    rewrite(run, page.name, render(result, page_of(result), place_of(run)).encode())
    if as_json:
        say_json({"run": run, "report": page})
    else:
        say(f"report: {page}")


@click.command("show", epilog="Example: equipoise show runs/first --all")
@click.argument("run", type=PATH)
@click.option("--all", "everything", is_flag=True, help="Print every finding and note.")
@json_option
def show_command(run: Path, everything: bool, as_json: bool) -> None:
    """Print what a run concludes."""
    from equipoise.audits.runs import load
    from equipoise.cli.runs import facts, show, show_all

    result = load(run)
    if as_json:
        say_json(facts(result, run))
    elif everything:
        show_all(result, run)
    else:
        show(result, run)


@click.command("export", epilog="Example: equipoise export runs/first --as latex")
@click.argument("run", type=PATH)
@click.option(
    "--as",
    "form",
    type=click.Choice(["card", "latex", "markdown"]),
    default="card",
    show_default=True,
    help="A section of a model card, or the table by group alone.",
)
@json_option
def export_command(run: Path, form: str, as_json: bool) -> None:
    """Print a run for a model card or a paper.

    A card has what the report says first, the results by group, and the limitations, in Markdown.
    """
    from equipoise.audits.runs import load
    from equipoise.report import card

    result = load(run)
    make = {
        "card": lambda: card(result),
        "latex": lambda: result.table().to_latex(),
        "markdown": lambda: result.table().to_markdown(),
    }
    text = make[form]()
    if as_json:
        say_json({"run": run, "as": form, "text": text})
    else:
        say(text.rstrip())


@click.command("check", epilog="Example: equipoise check runs/first --junit checks.xml")
@click.argument("run", type=PATH)
@click.option(
    "--junit",
    type=PATH,
    metavar="FILE",
    help="Also write JUnit XML there, over such a file of an earlier check.",
)
@json_option
@click.pass_context
def check_command(context: click.Context, run: Path, junit: Path | None, as_json: bool) -> None:
    """Enforce the gate rules of a run.

    The rules are held against the findings, or against a run that this one must not be worse
    than. Exit code 0: every rule holds; 1: a rule is breached, and named; 2: an error, or a rule
    that could not be checked.
    """
    from equipoise import report
    from equipoise.audits.config import parse_config
    from equipoise.audits.runs import compare_with
    from equipoise.core import ConfigError
    from equipoise.data.problems import counted

    if junit is not None:
        check_output(junit, JUNIT)
    result = report.read(run)
    config = parse_config(result.manifest.resolved, source=str(run / "manifest.json"))
    if not config.gate:
        raise ConfigError(f"{run}: no gate rules. To do: list them under 'gate' in the config")
    rules = [rule.as_rule for rule in config.gate]
    with Steps() as progress:
        baselines = {
            rule.worse_than: compare_with(rule.worse_than, run, progress)
            for rule in rules
            if rule.worse_than is not None
        }
    outcome = report.gate(result, rules, baselines=baselines)
    if junit is not None:
        write_output(junit, report.junit(outcome), JUNIT)
    if as_json:
        checks = [
            {
                "rule": str(check.rule),
                "outcome": check.outcome,
                "sentence": check.sentence,
                "conclusion": check.conclusion,
                "false_alarms": None if isnan(check.alarms) else check.alarms,
            }
            for check in outcome.checks
        ]
        say_json({"passed": outcome.passed, "checks": checks})
    else:
        for check in outcome.checks:
            say(f"{check.outcome.upper()}: {check.sentence}")
            if check.outcome == "breached" and check.conclusion:
                say(f"  {check.conclusion}")
        breached, unchecked = len(outcome.breaches), len(outcome.unchecked)
        number = counted(len(outcome.checks), "check")
        say(f"Gate: {number}, {breached} breached, {unchecked} could not be checked.")
    context.exit(outcome.exit_code)


@click.command("compare", epilog="Example: equipoise compare runs/first runs/second")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@out_option("runs/compare")
@overwrite_run
@json_option
def compare_command(
    runs: tuple[Path, ...], out: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Compare models, paired by image or by subject.

    The models are those of one RUN, or of several runs about the same images.

    Paired differences with intervals and tests, a ranking with its uncertainty, and the metrics
    that disagree about who is better. Runs of kinds other than predictions are compared subject by
    subject, with the disparities that went and came; runs of several kinds make one report.
    """
    from equipoise.audits.runs import compare
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import new_run

    target = out or Path("runs", "compare")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            result = compare(*runs, progress=progress)
        write(result, folder, target)
    if as_json:
        say_json(facts(result, target) | _tables(result))
    else:
        show(result, target)


def _tables(result: AuditResult) -> dict[str, list[dict[str, Any]]]:
    names = ("ranking", "disagreements", "changes")
    return {name: result.tables[name].to_pylist() for name in names if name in result.tables}
