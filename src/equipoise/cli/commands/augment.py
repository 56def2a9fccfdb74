"""`equipoise augment`: test whether mixing or covering faces helps training."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    open_option,
    open_report,
    out_option,
    overwrite_run,
    refuse_open,
    say_json,
    say_values,
)


@click.command("augment", epilog="Example: equipoise augment augment.yaml")
@click.argument("config", required=False, metavar="[CONFIG]", type=PATH)
@out_option("runs/augment")
@overwrite_run
@click.option(
    "--networks",
    default="cnn,vit",
    show_default=True,
    metavar="NAMES",
    help="Without CONFIG: networks to train, with commas between.",
)
@click.option(
    "--images",
    type=click.IntRange(min=40),
    default=1600,
    show_default=True,
    metavar="N",
    help="Without CONFIG: images of each set, a multiple of 4.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Without CONFIG: training runs of each arm.",
)
@click.option(
    "--plan", is_flag=True, help="Count trainings and images of CONFIG; nothing is trained."
)
@open_option
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

    The command trains on biased images, on the same images with mixed or noisy faces, and on
    balanced images. It compares the models on the same test images, with intervals. CONFIG names
    your own images. Without CONFIG it draws faces, and trains a small convolutional network and a
    small ViT in minutes. Trained models are kept, so an interrupted experiment resumes.
    """
    from equipoise.cli.augmentation import (
        AugmentConfig,
        plan_configured,
        run_configured,
        run_synthetic,
    )
    from equipoise.cli.runs import facts, load_for, show, write
    from equipoise.evidence import new_run

    _check_options(config, plan=plan)
    if plan:
        refuse_open("--plan")
    if images % 4:
        raise click.BadParameter(
            f"given {images}; expected a multiple of 4. To do: write {images // 4 * 4}",
            param_hint="'--images'",
        )
    if plan and config is not None:
        planned = plan_configured(load_for(config, AugmentConfig, "augment"), config.parent)
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
                checked = load_for(config, AugmentConfig, "augment")
                result = run_configured(checked, config.parent, progress, overwrite=overwrite)
        write(result, folder, target)
    open_report(target)
    if as_json:
        say_json(
            facts(result, target) | {"augmentation": result.tables["augmentation"].to_pylist()}
        )
        return
    show(result, target)


_OF_DRAWN_FACES = ("networks", "images", "repeats")


def _check_options(config: Path | None, *, plan: bool) -> None:
    """Refuse options that don't go with CONFIG, or need it."""
    if plan and config is None:
        raise click.BadParameter(
            "needs a CONFIG. To do: write it as in: equipoise augment augment.yaml --plan",
            param_hint="'--plan'",
        )
    source_of = click.get_current_context().get_parameter_source
    for name in _OF_DRAWN_FACES:
        if config is not None and source_of(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                f"can't go with CONFIG, which says it. To do: leave --{name} out",
                param_hint=f"'--{name}'",
            )
