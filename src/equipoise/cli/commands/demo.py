"""`equipoise demo`: audit the shipped planted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult

_DEFAULT = {
    "colours": Path("runs", "demo"),
    "scenes": Path("runs", "demo-scenes"),
    "mitigation": Path("runs", "demo-mitigation"),
}
_SCENES = ("retrieval", "associations", "similarity")


@click.command("demo")
@click.option(
    "--world",
    type=click.Choice([*_DEFAULT]),
    default="colours",
    show_default=True,
    help="colours: classifiers of shapes. scenes: CLIP models; needs torch and transformers. "
    "mitigation: every recipe tried on a CLIP of the scenes; some minutes.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write it [default: runs/demo; of others runs/demo-WORLD].",
)
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With mitigation: CLIP models of your own training, in place of the shipped ones.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="With mitigation: of images, folds, training and resampling [default: 0].",
)
@click.option("--overwrite", is_flag=True, help="Replace the runs that lie there.")
@json_option
def command(
    world: str,
    out: Path | None,
    models: Path | None,
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Audit small models whose bias was planted.

    Shows what each metric found beside what was planted. Needs no data and no network.
    """
    if world != "mitigation" and not (models is None and seed is None):
        given = "--seed" if models is None else "--models"
        raise click.UsageError(f"{given} is an option of --world mitigation, not of {world}")
    run = out or _DEFAULT[world]
    if world == "scenes":
        _scenes(run, overwrite=overwrite, as_json=as_json)
    elif world == "mitigation":
        chosen = {} if models is None else {"models": models}
        _mitigation(run, {**chosen, "seed": seed or 0}, overwrite=overwrite, as_json=as_json)
    else:
        _colours(run, overwrite=overwrite, as_json=as_json)


def _colours(run: Path, *, overwrite: bool, as_json: bool) -> None:
    from equipoise import audits
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts, show_end
    from equipoise.evidence import new_run, write_predictions

    with new_run(run, overwrite=overwrite) as folder:
        with Steps() as progress:
            result, data = audits.demo(progress=progress)
        write(result, folder)
        write_predictions(folder, data)
    if as_json:
        say_json(facts(result, run) | {"planted": result.tables["planted"].to_pylist()})
    else:
        _show_planted(result)
        show_end(result, run)


def _mitigation(run: Path, options: Mapping[str, Any], *, overwrite: bool, as_json: bool) -> None:
    from equipoise.cli.commands.mitigate import show
    from equipoise.cli.mitigation_world import demonstrated
    from equipoise.cli.pages import write
    from equipoise.evidence import new_run

    with new_run(run, overwrite=overwrite) as folder:
        with Steps() as progress:
            result = demonstrated(**options, progress=progress)
        write(result, folder)
    show(result, run, as_json=as_json)


def _scenes(run: Path, *, overwrite: bool, as_json: bool) -> None:
    from equipoise import audits
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts, show_end
    from equipoise.evidence import check_place, new_run

    for kind in _SCENES:
        check_place(run / kind, overwrite=overwrite)
    with Steps() as progress:
        results = audits.demo_scenes(progress=progress)
    for kind, result in results.items():
        with new_run(run / kind, overwrite=overwrite) as folder:
            write(result, folder)
    tables = results["retrieval"].tables
    planted = tables["planted_scenes"].to_pylist()
    over_subjects = tables["planted_over_subjects"].to_pylist()
    if as_json:
        said = {kind: facts(result, run / kind) for kind, result in results.items()}
        say_json(said | {"planted": planted, "over_subjects": over_subjects})
        return
    _show_scenes(planted)
    _show_over_subjects(over_subjects)
    for kind, result in results.items():
        say(f"\n{kind}")
        show_end(result, run / kind)


_SCENE_COLUMNS = ("model", "attribute", "subject", "favourite", "planted", "gap", "NDKL")


def _show_scenes(planted: Sequence[Mapping[str, Any]]) -> None:
    from equipoise.report.text import number

    shown = sorted(planted, key=lambda row: (row["model"], row["attribute"], -row["strength"]))
    names = ("model", "attribute", "subject", "favourite")
    figures = ("strength", "gap", "ndkl")
    rows = [
        (*(row[name] for name in names), *(number(row[name]) for name in figures)) for row in shown
    ]
    say_table(_SCENE_COLUMNS, rows)


_OVER_SUBJECTS = (
    "model", "attribute", "gap of favourites", "p", "rank of gap", "rank of NDKL", "mean gap",
    "largest gap", "beyond chance",
)  # fmt: skip


def _show_over_subjects(found: Sequence[Mapping[str, Any]]) -> None:
    from equipoise.report.text import number, p_value

    say("\nover subjects: do preferences follow what was planted in the biased model?")
    figures = ("rank_gap", "rank_ndkl", "mean_gap", "largest_gap", "largest_excess")
    rows = [
        (
            row["model"],
            row["attribute"],
            number(row["favourite_gap"]),
            p_value(row["p_value"]),
            *(number(row[name]) for name in figures),
        )
        for row in found
    ]
    say_table(_OVER_SUBJECTS, rows)


_COLUMNS = ("model", "class", "planted", "effect size", "interval", "in the paper", "worst group")


def _show_planted(result: AuditResult) -> None:
    from equipoise.report.text import interval, number

    rows = [
        (
            row["model"],
            row["class"],
            row["removed"] if row["planted"] else "",
            number(row["found_effect_size"]),
            interval(row["low"], row["high"]),
            number(row["paper_effect_size"]),
            number(row["worst_group_accuracy"]),
        )
        for row in result.tables["planted"].to_pylist()
    ]
    say_table(_COLUMNS, rows)
    say()
