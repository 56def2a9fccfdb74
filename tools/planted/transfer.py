"""Measure when fine-tuning on counterfactual sets helps subjects that it didn't see.

Run as ``python -m tools.planted.transfer --out DIR``; needs the extra ``train``. It trains a CLIP
in a world whose subjects share one favourite hue and frame, and fine-tunes it and the shipped one,
in four folds, by combinations of what captions name, how many sets there are, and how long.
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
SETS, EPOCHS = (4, 16), (4, 16)
"""Counterfactual sets of a subject, and passes over four of them: both take as many steps."""


def shared_world(seed: int) -> World:
    """Make the biased world, with one favourite hue and frame for all subjects."""
    own, first = biased_world("biased", seed=seed), np.zeros(len(SUBJECTS), dtype=np.int64)
    return World("shared", first, own.hue_strength, first, own.frame_strength)


def train_shared(folder: Path, seed: int) -> None:
    """Write ``clip-biased`` of the shared world, which continues from the null one, and this."""
    shutil.copytree(WEIGHTS / "clip-null", folder / "clip-null")
    continue_from(WEIGHTS / "clip-null", shared_world(seed), folder / "clip-biased", ClipRecipe())


def measured(
    models: Path, captions: Any, sets: int, epochs: int, *, validation: float, seed: int
) -> Iterator[dict[str, Any]]:
    """Fine-tune in four folds, and yield what became of the subjects that were withheld."""
    base, floor = (load_clip(name, weights=models) for name in CLIPS)
    texts = {subject: subject_texts(subject) for subject in SUBJECTS}
    balanced, apart = render_balanced(1, seed=100 * seed + 1), 100 * seed
    test = Test(
        image_sets(render_sets(8, seed=apart + 2), seed=apart + 2), texts,
        (zero_shot_set(balanced),), (retrieval_set(balanced),),
    )  # fmt: skip
    recipe = Contrastive(epochs=epochs, learning_rate=1e-4, captions=captions)
    images = image_sets(render_sets(sets, seed=apart + 11), seed=apart + 11)
    found = running.cross_fit(
        base, (recipe,), texts, images, test, floor=floor, validation=validation, seed=seed
    )
    for row in found.rows:
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
    given = parser.parse_args()
    need("train", "torch", "transformers")
    folder, seed = given.out, given.seed
    if not folder.exists():
        train_shared(folder, seed)
    path = folder / FILE
    done = json.loads(path.read_text("utf-8")) if path.exists() else {}
    steps = [*zip(SETS, (max(EPOCHS), max(EPOCHS) * SETS[0] // SETS[1]), strict=True)]
    cells = product(("own", "shared"), ("given", "neutral"), [(SETS[0], EPOCHS[0]), *steps])
    for world, captions, (sets, epochs) in cells:
        for validation in (0.2, 0.0) if epochs == EPOCHS[0] else (0.0,):
            cell = f"{world}, {captions} captions, {sets} sets, {epochs} epochs, " + (
                "early stop" if validation else "no early stop"
            )
            if cell not in done:
                models = WEIGHTS if world == "own" else folder
                rows = measured(models, captions, sets, epochs, validation=validation, seed=seed)
                done[cell] = [*rows]
                path.write_text(json.dumps(done, indent=1), encoding="utf-8")
            print(cell)  # noqa: T201 - a report
            for row in done[cell]:
                print(LINE.format(**row))  # noqa: T201


if __name__ == "__main__":
    main()
