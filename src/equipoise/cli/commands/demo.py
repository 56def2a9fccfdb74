"""`equipoise demo`: audit the shipped planted models, or published ones."""

from pathlib import Path

import click

from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    note,
    open_option,
    open_report,
    out_option,
    overwrite_run,
    say,
    say_json,
)

_SCENES = ("retrieval", "associations", "similarity")


@click.command("demo", epilog="Example: equipoise demo --world scenes")
@click.option(
    "--world",
    type=click.Choice(["colours", "scenes", "mitigation", "people"]),
    default="colours",
    show_default=True,
    help="colours: classifiers of shapes. scenes: CLIP models; needs the extra hf. mitigation: "
    "every recipe on a CLIP model, in minutes. people: published models on pictures of people; "
    "needs the extra people.",
)
@out_option("runs/demo, or runs/demo-WORLD")
@click.option(
    "--models",
    type=PATH,
    metavar="DIR",
    help="With mitigation: folder of your own CLIP models, instead of the shipped ones.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="With mitigation: random seed [default: 0].",
)
@overwrite_run
@open_option
@json_option
def demo_command(
    world: str,
    out: Path | None,
    models: Path | None,
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Audit models with a planted bias, or published models.

    The report compares each result with the planted bias. You need no data and no network.
    """
    if world != "mitigation" and not (models is None and seed is None):
        option = "--seed" if models is None else "--models"
        raise click.BadParameter(
            f"goes with --world mitigation. To do: add --world mitigation, or leave {option} out",
            param_hint=f"'{option}'",
        )
    from equipoise.cli.commands.mitigate import show
    from equipoise.cli.runs import write
    from equipoise.evidence import new_run

    run = out or Path("runs", "demo" if world == "colours" else f"demo-{world}")
    if world == "scenes":
        _scenes(run, overwrite=overwrite, as_json=as_json)
    elif world == "people":
        _people(run, overwrite=overwrite, as_json=as_json)
    elif world == "mitigation":
        from equipoise.cli.mitigation_world import run_demonstration

        with new_run(run, overwrite=overwrite) as folder:
            with Steps() as progress:
                result = run_demonstration(models=models, seed=seed or 0, progress=progress)
            write(result, folder, run)
        show(result, run, as_json=as_json)
    else:
        _colours(run, overwrite=overwrite, as_json=as_json)
    if world in ("colours", "mitigation"):
        open_report(run)


def _colours(run: Path, *, overwrite: bool, as_json: bool) -> None:
    from equipoise import audits
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import new_run, write_predictions

    with new_run(run, overwrite=overwrite) as folder:
        with Steps() as progress:
            result, data = audits.demo(progress=progress)
        write(result, folder, run)
        write_predictions(folder, data)
    if as_json:
        say_json(facts(result, run) | {"planted": result.tables["planted"].to_pylist()})
    else:
        show(result, run)


def _scenes(run: Path, *, overwrite: bool, as_json: bool) -> None:
    from equipoise import audits
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import check_place, new_run

    for kind in _SCENES:
        check_place(run / kind, overwrite=overwrite)
    with Steps() as progress:
        results = audits.demo_scenes(progress=progress)
    for kind, result in results.items():
        with new_run(run / kind, overwrite=overwrite) as folder:
            write(result, folder, run / kind)
        open_report(run / kind)
    planted = results["retrieval"].tables["planted_scenes"].to_pylist()
    if as_json:
        summaries = {kind: facts(result, run / kind) for kind, result in results.items()}
        say_json(summaries | {"planted": planted})
        return
    for kind, result in results.items():
        say(f"\n{kind}")
        show(result, run / kind)


def _people(run: Path, *, overwrite: bool, as_json: bool) -> None:
    from equipoise.cli.people_world import run_demonstration
    from equipoise.cli.runs import facts, show

    results, missing = run_demonstration(run, overwrite=overwrite)
    for name in results:
        open_report(run / name)
    if as_json:
        say_json({name: facts(result, run / name) for name, result in results.items()})
    else:
        for name, result in results.items():
            say(f"\n{name}")
            show(result, run / name)
    if missing is not None:
        note(f"left out: whether a classifier names the same class in each scene. {missing}")
