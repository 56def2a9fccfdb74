"""The commands `mitigate`, `train` and `augment`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
    from collections.abc import Mapping

    from equipoise.core import AuditResult

_Value = TypeVar("_Value")


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
    from equipoise.cli.mitigation import mitigate, unfinished
    from equipoise.mitigate import running
    from equipoise.mitigate.config import Config
    from equipoise.report import read

    base = config.parent
    parts = load_as(config, Config).by_model()
    waiting = unfinished(parts, base)
    if plan:
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
@click.option("--plan", is_flag=True, help="Count trainings and images; nothing is trained.")
@json_option
def augment_command(
    config: Path | None,
    out: Path | None,
    overwrite: bool,
    networks: str,
    images: int,
    repeats: int,
    plan: bool,
    as_json: bool,
) -> None:
    """Test whether mixing or covering faces helps training.

    Trains on biased images, on the same with mixed or noisy faces, and on balanced ones, and says
    with intervals what helped on the same test images. CONFIG names your own images; without
    it faces are drawn, and a small convolutional network and a small ViT are trained, in minutes.
    What is trained is kept beside the run, so that a killed experiment goes on where it was.
    """
    from equipoise.audits.config import load_as
    from equipoise.cli.augmentation import (
        AugmentConfig,
        plan_configured,
        run_configured,
        run_synthetic,
    )
    from equipoise.cli.runs import facts, show, write
    from equipoise.evidence import new_run

    if images % 4:
        raise click.BadParameter(f"{images} is no multiple of 4", param_hint="'--images'")
    if plan:
        if config is None:
            raise click.BadParameter("needs a CONFIG", param_hint="'--plan'")
        planned = plan_configured(load_as(config, AugmentConfig), config.parent)
        (say_json if as_json else say_values)(planned)
        return
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
