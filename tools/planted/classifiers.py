"""Train the classifiers of the scenes: convolutional networks and a ViT that name the subject."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.onnx import labels_path
from equipoise.planted.scenes.render import SUBJECTS, degrade, render
from equipoise.stats.streams import stream
from tools.planted.colours import export
from tools.planted.networks import build_cnn, build_image_processor, build_vit, save_half
from tools.planted.training import fit, one_cycle
from tools.planted.worlds import draw_world, make_worlds


@dataclass(frozen=True)
class ClassifierRecipe:
    """How a classifier is trained.

    Half the images are degraded: where the subject is hard to see, the attributes decide, and
    mistakes carry the bias. On clear images they would not.

    Attributes
    ----------
    images, batch_size, cnn_steps, vit_steps : int
    learning_rate : float
        Highest of a one-cycle schedule.
    weight_decay : float
        Of AdamW.
    seed : int
        Of images, weights and order.
    """

    images: int = 36_000
    batch_size: int = 128
    cnn_steps: int = 1000
    vit_steps: int = 2500
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    seed: int = 0


def train_classifiers(out: Path, recipe: ClassifierRecipe) -> None:
    """Write ``cnn-<world>.onnx``, its labels and ``vit-<world>`` into a folder."""
    import torch

    for name in ("biased", "null"):
        torch.manual_seed(recipe.seed)
        network = build_cnn()
        _fit(network, name, recipe, recipe.cnn_steps)
        graph = out / f"cnn-{name}.onnx"
        export(network.eval(), graph)
        write_labels(graph)
    torch.manual_seed(recipe.seed)
    vit, folder = build_vit(), out / "vit-biased"
    _fit(_Logits(vit), "biased", recipe, recipe.vit_steps)
    save_half(vit.eval(), folder)
    build_image_processor("ViT").save_pretrained(folder)


def write_labels(graph: Path) -> None:
    """Write the names of the subjects beside a graph, one a line, as ``onnx:`` reads them."""
    text = "".join(f"{name}\n" for name in SUBJECTS)
    labels_path(graph).write_text(text, encoding="utf-8", newline="\n")


class _Logits:
    """A ViT called as the plain network is: on pixels from 0 to 1, for logits."""

    def __init__(self, vit: Any) -> None:
        self.vit = vit

    def __call__(self, pixels: Any) -> Any:
        return self.vit(pixel_values=2.0 * pixels - 1.0).logits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.vit, name)


def training_images(name: str, recipe: ClassifierRecipe) -> tuple[NDArray[np.uint8], Any]:
    """Return images of a world, every second one degraded, and their subjects."""
    factors = draw_world(make_worlds(recipe.seed)[name], recipe.images, seed=recipe.seed + 1)
    images = render(factors)
    images[::2] = degrade(images[::2], seed=recipe.seed)
    return images, factors.subject


def _fit(network: Any, name: str, recipe: ClassifierRecipe, steps: int) -> None:
    import torch

    images, subject = training_images(name, recipe)
    pixels, labels = torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(subject)
    optimizer, schedule = one_cycle(network, recipe.learning_rate, recipe.weight_decay, steps)
    choice = stream(recipe.seed, "scenes", "classifier", name)

    def losses() -> Iterator[Any]:
        for _ in range(steps):
            rows = choice.integers(recipe.images, size=recipe.batch_size)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = network(pixels[rows].float() / 255.0)
            yield torch.nn.functional.cross_entropy(logits.float(), labels[rows])

    network.train()
    fit(name, optimizer, schedule, losses())
