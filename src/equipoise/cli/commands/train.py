"""`equipoise train`: train image classifiers."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    Steps,
    config_argument,
    json_option,
    note,
    overwrite_run,
    say,
    say_json,
)


@click.command("train", epilog="Example: equipoise train train.yaml")
@config_argument
@overwrite_run
@json_option
def train_command(config: Path, overwrite: bool, as_json: bool) -> None:
    """Train image classifiers, and save their predictions.

    The command trains every network of CONFIG on every set of images. It writes models that audits
    can load, and a table of their predictions for the test images. An interrupted training
    resumes.
    """
    from equipoise.cli.runs import load_for
    from equipoise.cli.training import TrainConfig, run_training

    checked = load_for(config, TrainConfig, "train")
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
    note("next: audit this table. It has a column of predictions for each network and training.")
