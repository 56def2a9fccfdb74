"""Measure when fine-tuning on counterfactual sets helps subjects that it didn't see.

Run as ``python -m tools.planted.transfer --out DIR``; needs the extra ``train``. It trains a CLIP
in a world whose subjects share one favourite hue and frame, and fine-tunes it and the shipped one,
in folds, by what captions name, how long, by how many sets, and of how many subjects.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.cli.mitigation_world import image_sets, retrieval_set, subject_texts, zero_shot_set
from equipoise.mitigate import running
from equipoise.mitigate.measuring import Test
from equipoise.mitigate.trained import Contrastive
from equipoise.planted.scenes.embed import CLIPS, WEIGHTS, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import World
from tools.planted.clips import ClipRecipe, continue_from
from tools.planted.training import need
from tools.planted.worlds import biased_world

FILE = "transfer.json"
LINE = (
    "  {measure} {about}: {before:.3f} to {after:.3f}, {share:.2f} of the way to the null model "
    "[{share_low:.2f}, {share_high:.2f}]"
)
CELLS = (
    # Sets of a subject, passes over them, share of subjects that a loss is watched on, folds.
    (4, 4, 0.2, 4),
    (4, 16, 0.0, 4),
    (4, 16, 0.0, 2),
    (16, 4, 0.0, 4),
)
"""The first two are run in both worlds; the others vary one thing of the second."""


def shared_world(seed: int) -> World:
    """Make the biased world, with one favourite hue and frame for all subjects."""
    biased, first = biased_world("biased", seed=seed), np.zeros(len(SUBJECTS), dtype=np.int64)
    return World("shared", first, biased.hue_strength, first, biased.frame_strength)


def train_shared(folder: Path, seed: int) -> None:
    """Write ``clip-biased`` of the shared world, which continues from the null one, and this."""
    shutil.copytree(WEIGHTS / "clip-null", folder / "clip-null")
    continue_from(WEIGHTS / "clip-null", shared_world(seed), folder / "clip-biased", ClipRecipe())


def measured(
    models: Path, captions: Any, cell: tuple[int, int, float, int], seed: int
) -> Iterator[dict[str, Any]]:
    """Fine-tune in folds, and yield what became of the subjects that were withheld."""
    sets, epochs, validation, count = cell
    base, floor = (load_clip(name, weights=models) for name in CLIPS)
    texts = {subject: subject_texts(subject) for subject in SUBJECTS}
    balanced, seed_base = render_balanced(1, seed=100 * seed + 1), 100 * seed
    test = Test(
        image_sets(render_sets(8, seed=seed_base + 2), seed=seed_base + 2), texts,
        (zero_shot_set(balanced),), (retrieval_set(balanced),),
    )  # fmt: skip
    recipe = Contrastive(epochs=epochs, learning_rate=1e-4, captions=captions)
    images = image_sets(render_sets(sets, seed=seed_base + 11), seed=seed_base + 11)
    result = running.cross_fit(
        base, (recipe,), texts, images, test,
        floor=floor, validation=validation, count=count, seed=seed,
    )  # fmt: skip
    for row in result.rows:
        if row.role == "bias" or row.measure == "accuracy":
            yield {
                name: getattr(row, name)
                for name in ("measure", "about", "before", "after", "floor", "low", "high",
                             "p_value", "share", "share_low", "share_high")
            }  # fmt: skip


def main() -> None:
    """Train what is missing, run every combination that is missing, and print all of them."""
    parser = argparse.ArgumentParser(prog="tools.planted.transfer", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    need("train", "torch", "transformers")
    folder, seed = arguments.out, arguments.seed
    if not folder.exists():
        train_shared(folder, seed)
    path = folder / FILE
    done = json.loads(path.read_text("utf-8")) if path.exists() else {}
    plan = [*product(("own", "shared"), ("given", "neutral"), CELLS[:2])]
    plan += [*product(("own",), ("neutral",), CELLS[2:])]
    for world, captions, cell in plan:
        sets, epochs, validation, count = cell
        stop = "early stop" if validation else "no early stop"
        name = f"{world}, {captions} captions, {sets} sets, {epochs} epochs, {stop}, {count} folds"
        if name not in done:
            models = WEIGHTS if world == "own" else folder
            done[name] = [*measured(models, captions, cell, seed)]
            path.write_text(json.dumps(done, indent=1), encoding="utf-8")
        print(name)  # noqa: T201 - a report
        for row in done[name]:
            print(LINE.format(**row))  # noqa: T201


if __name__ == "__main__":
    main()
