"""Measure when fine-tuning on counterfactual sets helps subjects that it didn't see.

Run as ``python -m tools.planted.transfer --out DIR``; needs the extra ``train``. It trains a CLIP
in a world whose subjects share one favourite hue and frame, and fine-tunes it and the shipped one,
in folds, by what captions name, what batches hold, how long, by how many sets, and of how many
subjects. The control exchanges the captions of all images.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from equipoise.cli.mitigation_world import image_sets, retrieval_set, subject_texts, zero_shot_set
from equipoise.mitigate import running
from equipoise.mitigate.measuring import Test
from equipoise.mitigate.trained import Contrastive
from equipoise.planted.scenes.embed import CLIPS, WEIGHTS, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import World
from equipoise.stats.streams import stream
from tools.planted.clips import ClipRecipe, continue_from
from tools.planted.training import need
from tools.planted.worlds import biased_world

FILE = "transfer.json"
PRINTED_RATE = 7e-6
"""Of Howard et al. 2024 for a CLIP of 151 million weights; that of the scenes has one million."""
LINE = (
    "  {measure} {about}: {before:.3f} to {after:.3f}, {share:.2f} of the way to the null model "
    "[{share_low:.2f}, {share_high:.2f}]"
)

Favourites = Literal["own", "shared"]
WORLDS: tuple[Favourites, ...] = ("own", "shared")


@dataclass(frozen=True)
class Cell:
    """Settings of a fine-tuning in folds.

    Attributes
    ----------
    favourites : "own" or "shared"
        World whose biased CLIP is fine-tuned.
    captions, batches, epochs, learning_rate
        As of `Contrastive`.
    exchanged : bool
        Whether captions are exchanged at random among all images.
    sets : int
        Sets of a subject.
    validation : float
        Share of subjects that a loss is watched on.
    folds : int
    seed : int
        Of images, folds and training.
    """

    favourites: Favourites
    captions: Literal["given", "neutral"]
    batches: Literal["sets", "pairs"] = "sets"
    exchanged: bool = False
    sets: int = 4
    epochs: int = 16
    learning_rate: float = 1e-4
    validation: float = 0.0
    folds: int = 4
    seed: int = 0

    @property
    def name(self) -> str:
        """What a reader and the file call the cell."""
        captions = f"exchanged {self.captions}" if self.exchanged else self.captions
        return (
            f"{self.favourites}, {captions} captions, batches of {self.batches}, {self.sets} sets, "
            f"{self.epochs} epochs, {self.learning_rate:g}, "
            f"{'early stop' if self.validation else 'no early stop'}, {self.folds} folds, "
            f"seed {self.seed}"
        )


def cells(seed: int, printed_seeds: int) -> Iterator[Cell]:
    """Yield the cells: of whole sets by captions and length, and of pairs as printed."""
    for favourites in WORLDS:
        for captions in ("given", "neutral"):
            yield Cell(favourites, captions, epochs=4, validation=0.2, seed=seed)
            yield Cell(favourites, captions, seed=seed)
    yield Cell("own", "neutral", folds=2, seed=seed)
    yield Cell("own", "neutral", sets=16, epochs=4, seed=seed)
    for favourites in WORLDS:
        for number in range(seed, seed + printed_seeds):
            pairs = Cell(favourites, "given", "pairs", epochs=1, seed=number)
            yield pairs
            yield replace(pairs, learning_rate=PRINTED_RATE)
            yield replace(pairs, exchanged=True)
        yield Cell(favourites, "given", "pairs", seed=seed)


def shared_world(seed: int) -> World:
    """Make the biased world, with one favourite hue and frame for all subjects."""
    biased, first = biased_world("biased", seed=seed), np.zeros(len(SUBJECTS), dtype=np.int64)
    return World("shared", first, biased.hue_strength, first, biased.frame_strength)


def train_shared(folder: Path, seed: int) -> None:
    """Write ``clip-biased`` of the shared world, which continues from the null one, and this."""
    shutil.copytree(WEIGHTS / "clip-null", folder / "clip-null", dirs_exist_ok=True)
    continue_from(WEIGHTS / "clip-null", shared_world(seed), folder / "clip-biased", ClipRecipe())


def measured(models: Path, cell: Cell) -> Iterator[dict[str, object]]:
    """Fine-tune in folds, and yield what became of the subjects that were withheld."""
    base, floor = (load_clip(name, weights=models) for name in CLIPS)
    texts = {subject: subject_texts(subject) for subject in SUBJECTS}
    seed_base = 100 * cell.seed
    balanced = render_balanced(1, seed=seed_base + 1)
    test = Test(
        image_sets(render_sets(8, seed=seed_base + 2), seed=seed_base + 2), texts,
        (zero_shot_set(balanced),), (retrieval_set(balanced),),
    )  # fmt: skip
    recipe = Contrastive(
        epochs=cell.epochs, learning_rate=cell.learning_rate, captions=cell.captions,
        batches=cell.batches,
    )  # fmt: skip
    images = image_sets(render_sets(cell.sets, seed=seed_base + 11), seed=seed_base + 11)
    if cell.exchanged:
        order = stream(cell.seed, "exchanged").permutation(len(images))
        images = replace(images, caption=images.caption[order])
    result = running.cross_fit(
        base, (recipe,), texts, images, test,
        floor=floor, validation=cell.validation, count=cell.folds, seed=cell.seed,
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
    parser.add_argument("--printed-seeds", type=int, default=3, help="of the recipe as printed")
    parser.add_argument("--only", default="", help="cells whose name has this text")
    arguments = parser.parse_args()
    need("train", "torch", "transformers")
    folder, seed = arguments.out, arguments.seed
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    done = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for cell in cells(seed, arguments.printed_seeds):
        name = cell.name
        if arguments.only not in name:
            continue
        if name not in done:
            models = WEIGHTS if cell.favourites == "own" else folder
            if not (models / "clip-biased").exists():
                train_shared(folder, seed)
            done[name] = [*measured(models, cell)]
            path.write_text(json.dumps(done, indent=1), encoding="utf-8")
        print(name)  # noqa: T201 - a report
        for row in done[name]:
            print(LINE.format(**row))  # noqa: T201


if __name__ == "__main__":
    main()
