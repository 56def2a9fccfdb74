"""Train the small Stable Diffusion of the scenes and write it with a record of what it is.

Run as ``python -m equipoise.planted.scenes.diffusion.train --out DIR --state DIR``; needs the extra
``diffusers``. Stopped and started again with the same folders, it goes on.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from equipoise.core.errors import MissingExtraError
from equipoise.planted.scenes.diffusion.pipeline import save_pipeline
from equipoise.planted.scenes.diffusion.record import Measured, write_record
from equipoise.planted.scenes.diffusion.train_unet import (
    DRAWS,
    SHARES,
    UnetRecipe,
    train_unet,
)
from equipoise.planted.scenes.diffusion.train_vae import VaeRecipe, train_vae
from equipoise.planted.scenes.variants import BIASED


def train(
    out: Path, state: Path, vae: VaeRecipe, unet: Sequence[UnetRecipe], measured: Measured
) -> None:
    """Train a pipeline of the biased world into a folder, then measure it.

    Parameters
    ----------
    out : Path
        For the weights; made where it is missing.
    state : Path
        For what training goes on from; what was trained there before is taken up.
    vae : VaeRecipe
    unet : sequence of UnetRecipe
        How to train.
    measured : Measured
        How much to measure.

    Raises
    ------
    MissingExtraError
        If a library that training needs is not installed.
    """
    for name in ("torch", "transformers", "diffusers"):
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtraError(name, "diffusers") from error
    import torch

    # A batch is cut into parts for threads: within an operator they wait for each other.
    torch.set_num_threads(1)
    autoencoder = train_vae(state, vae)
    save_pipeline(autoencoder, train_unet(state, autoencoder, BIASED, unet), out)
    write_record(out, BIASED, vae, unet, measured)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--state", type=Path, required=True, help="folder to go on from")
    arguments = parser.parse_args()
    train(arguments.out, arguments.state, VaeRecipe(), (DRAWS, SHARES), Measured())


if __name__ == "__main__":
    main()
