"""Train the models of the scenes and write them with a record of what they are.

Run as ``python -m equipoise.planted.scenes.train --out DIR``; needs the extra ``train``.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from equipoise.core.errors import MissingExtraError
from equipoise.planted.scenes.classifiers import ClassifierRecipe, train_classifiers
from equipoise.planted.scenes.embed import CLIPS
from equipoise.planted.scenes.record import write_record
from equipoise.planted.scenes.train_clip import ClipRecipe, settle, train_clips
from equipoise.planted.scenes.variants import make_worlds

PARTS = ("clip", "settling", "classifiers")


def train(out: Path, parts: Sequence[str], clip: ClipRecipe, classifier: ClassifierRecipe) -> None:
    """Train models into a folder, then measure all that lie there.

    Parameters
    ----------
    out : Path
        Made where it is missing.
    parts : sequence of str
        Some of `PARTS`; "settling" trains the null CLIP that lies there further.
    clip, classifier : ClipRecipe, ClassifierRecipe
        How to train.

    Raises
    ------
    MissingExtraError
        If a library that training needs is not installed.
    """
    torch = _needed("torch")
    for name in ("transformers", "onnx", "onnxscript"):
        _needed(name)
    # Where cores are shared, two threads wait for each other more than they save.
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    if "clip" in parts:
        train_clips(out, CLIPS, clip)
    if "settling" in parts:
        null = make_worlds(clip.seed)["null"]
        settle(out / f"clip-{null.name}", null, clip)
    if "classifiers" in parts:
        train_classifiers(out, classifier)
    write_record(out, clip, classifier)


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, "train") from error


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of favourites, strengths, images, captions, weights and order; 0: as shipped",
    )
    arguments = parser.parse_args()
    if arguments.seed < 0:
        parser.error(f"--seed must not be negative, got {arguments.seed}")
    seed = arguments.seed
    train(arguments.out, arguments.parts, ClipRecipe(seed=seed), ClassifierRecipe(seed=seed))


if __name__ == "__main__":
    main()
