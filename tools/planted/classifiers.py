"""Train the classifiers of the scenes: convolutional networks and a ViT that name the subject."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.models.onnx_settings import labels_path
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
        _fit(network, network, name, recipe, recipe.cnn_steps)
        graph = out / f"cnn-{name}.onnx"
        export(network.eval(), graph)
        # As `onnx:` reads them: one a line.
        text = "".join(f"{subject}\n" for subject in SUBJECTS)
        labels_path(graph).write_text(text, encoding="utf-8", newline="\n")
    torch.manual_seed(recipe.seed)
    vit, folder = build_vit(), out / "vit-biased"

    def logits(pixels: Any) -> Any:
        return vit(pixel_values=2.0 * pixels - 1.0).logits

    _fit(vit, logits, "biased", recipe, recipe.vit_steps)
    save_half(vit.eval(), folder)
    build_image_processor("ViT").save_pretrained(folder)


def _fit(
    network: Any,
    logits: Callable[[Any], Any],
    name: str,
    recipe: ClassifierRecipe,
    steps: int,
) -> None:
    """Train on images of a world, every second one degraded."""
    import torch

    factors = draw_world(make_worlds(recipe.seed)[name], recipe.images, seed=recipe.seed + 1)
    images = render(factors)
    images[::2] = degrade(images[::2], seed=recipe.seed)
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2)
    labels = torch.from_numpy(factors.subject)
    optimizer, schedule = one_cycle(network, recipe.learning_rate, recipe.weight_decay, steps)
    choice = stream(recipe.seed, "scenes", "classifier", name)

    def losses() -> Iterator[Any]:
        for _ in range(steps):
            rows = choice.integers(recipe.images, size=recipe.batch_size)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs = logits(pixels[rows].float() / 255.0)
            yield torch.nn.functional.cross_entropy(outputs.float(), labels[rows])

    network.train()
    fit(name, optimizer, schedule, losses())
