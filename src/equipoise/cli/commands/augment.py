"""`equipoise augment`: whether mixing or covering faces in training images helps."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    note,
    out_option,
    overwrite_run,
    say,
    say_json,
    say_table,
)


@click.command("augment")
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
def command(
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
    from equipoise.cli.augmenting.config import AugmentConfig
    from equipoise.cli.augmenting.running import run_configured, run_drawn
    from equipoise.cli.mitigating import parse
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts
    from equipoise.evidence import new_run
    from equipoise.mitigate.augmentation import ARMS
    from equipoise.mitigate.page import accuracies, conclusions

    if images % 4:
        raise click.BadParameter(f"{images} is no multiple of 4", param_hint="'--images'")
    target = out or Path("runs", "augment")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            if config is None:
                names = tuple(name.strip() for name in networks.split(",") if name.strip())
                kept = target.with_name(f"{target.name}-trained")
                result = run_drawn(
                    kept, images=images, repeats=repeats, networks=names, seed=0, progress=progress
                )
            else:
                checked = parse(config, AugmentConfig, new="the example in docs/augmentation.md")
                result = run_configured(checked, config.parent, progress, note)
        write(result, folder)
    if as_json:
        say_json(
            facts(result, target) | {"augmentation": result.tables["augmentation"].to_pylist()}
        )
        return
    say("accuracy on the test images, by training images:")
    say_table(("network", *ARMS), accuracies(result))
    say()
    for text in conclusions(result):
        say(f"- {text}")
    say()
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {target / 'report.html'}")
