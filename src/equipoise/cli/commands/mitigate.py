"""The commands `mitigate`, `train` and `augment`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

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
    from equipoise.core import AuditResult


@click.command("mitigate", epilog="Example: equipoise mitigate mitigate.yaml --plan")
@config_argument
@click.option("--plan", is_flag=True, help="Say what would be done; no model is loaded.")
@json_option
def mitigate_command(config: Path, plan: bool, as_json: bool) -> None:
    """Lower a dual encoder's disparity, and measure the cost.

    Fits every recipe of the configuration on some subjects, writes a model for each, and measures
    the subjects that were withheld, before and after, with the price in accuracy and recall beside
    it. Nothing is written over a model; what was interrupted goes on where it stopped.
    """
    from equipoise.audits.config import load_as
    from equipoise.cli.runs import result_of, write
    from equipoise.evidence import new_run
    from equipoise.mitigate import loading, running
    from equipoise.mitigate.config import Config

    checked, base = load_as(config, Config), config.parent
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
        write(result, folder, run)
    show(result, run, as_json=as_json)


def show(result: AuditResult, run: Path, *, as_json: bool) -> None:
    """Print the effect and cost of each recipe, and the report's path."""
    from equipoise.cli import runs

    if not as_json:
        runs.show(result, run)
        return
    rows = result.tables["mitigation"].to_pylist()
    recipes = result.tables["mitigation_recipes"].to_pylist()
    say_json(runs.facts(result, run) | {"recipes": recipes, "rows": rows})


@click.command("train", epilog="Example: equipoise train train.yaml")
@config_argument
@overwrite_run
@json_option
def train_command(config: Path, overwrite: bool, as_json: bool) -> None:
    """Train image classifiers, and save their predictions.

    Trains every network of the configuration on every set of images, and writes each as a model
    that audits load, with one table of the predictions for the test images. A killed training
    goes on where it was.
    """
    from equipoise.audits.config import load_as
    from equipoise.cli.training import TrainConfig, run_training

    checked = load_as(config, TrainConfig)
    with Steps() as progress:
        facts = run_training(checked, config.parent, progress, overwrite=overwrite)
    out = config.parent / checked.output
    if as_json:
        say_json({"folder": out, "predictions": out / "predictions.parquet", **facts})
        return
    for name in checked.networks:
        for arm in checked.trainings:
            say(f"wrote {out / f'{name}, {arm}'}")
    say(f"wrote {out / 'predictions.parquet'}")
    note("next: audit this table. Each network and training has a column of predictions.")


@click.command("augment", epilog="Example: equipoise augment augment.yaml")
@click.argument("config", required=False, metavar="[CONFIG]", type=PATH)
@out_option("runs/augment")
@overwrite_run
@click.option(
    "--networks",
    default="cnn,vit",
    show_default=True,
    metavar="NAMES",
    help="Of drawn faces: networks to train, by comma.",
)
@click.option(
    "--images",
    type=click.IntRange(min=40),
    default=1600,
    show_default=True,
    help="Of drawn faces: images of each set, a multiple of 4.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Of drawn faces: training runs of each arm.",
)
@json_option
def augment_command(
    config: Path | None,
    out: Path | None,
    overwrite: bool,
    networks: str,
    images: int,
    repeats: int,
    as_json: bool,
) -> None:
    """Test whether mixing or covering faces helps training.

    Trains on biased images, on the same with mixed or noisy faces, and on balanced ones, and says
    with intervals what helped on the same test images. CONFIG names your own images; without
    it faces are drawn, and a small convolutional network and a small ViT are trained, in minutes.
    What is trained is kept beside the run, so that a killed experiment goes on where it was.
    """
    from equipoise.audits.config import load_as
    from equipoise.cli.augmentation import AugmentConfig, run_configured, run_synthetic
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import new_run

    if images % 4:
        raise click.BadParameter(f"{images} is no multiple of 4", param_hint="'--images'")
    target = out or Path("runs", "augment")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            if config is None:
                names = tuple(map(str.strip, networks.split(",")))
                training_folder = target.with_name(f"{target.name}-trained")
                result = run_synthetic(
                    training_folder,
                    images=images,
                    repeats=repeats,
                    networks=names,
                    seed=0,
                    progress=progress,
                )
            else:
                checked = load_as(config, AugmentConfig)
                result = run_configured(checked, config.parent, progress, overwrite=overwrite)
        write(result, folder, target)
    if as_json:
        say_json(
            facts(result, target) | {"augmentation": result.tables["augmentation"].to_pylist()}
        )
        return
    show(result, target)
