"""Make the small data sets and tiny models of the frozen runs, as the tests do, once.

    python -m tools.frozen_inputs FOLDER

`tools.frozen record` calls this where the folder of inputs is new. A comparison reads what was made
then, so it does not depend on the helpers of the tests.
"""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Write `worlds` and `models` into a folder."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    examples = import_module("audits.test_real_examples")
    for name, writer in examples.WRITERS.items():
        world = folder / "worlds" / name
        world.mkdir(parents=True)
        writer(world)
    models = folder / "models"
    checkpoints = import_module("model_checkpoints")
    labels = dict(enumerate(examples.imagenet_names()))
    checkpoints.clip(models / "clip")
    checkpoints.blip_2(models / "blip")
    checkpoints.vit(models / "vit", labels=labels)
    checkpoints.timm(models / "resnet", labels)
    import_module("diffusion_checkpoints").stable_diffusion(models / "diffusion", length=77)
    shipped = next((ROOT / "src").rglob("model_index.json")).parent
    shutil.copytree(shipped, models / "scenes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
