"""Train the six models of the colour world and write them as ONNX files.

Run as ``python -m tools.planted.colours --out DIR``; needs the extra ``train``.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.colours.models import TRAIN_PER_CELL, VARIANTS, Variant
from equipoise.planted.colours.render import (
    COLOURS,
    IMAGE_SIZE,
    SHAPES,
    Factors,
    draw_factors,
    render,
)
from tools.planted.training import fit, need, one_cycle

WIDTH = 12
"""Channels of the first stage; the second and third have two and four times as many."""


def build_network(classes: int) -> Any:
    """Build an untrained ResNet with three residual blocks.

    Parameters
    ----------
    classes : int
        Numbers in the output.

    Returns
    -------
    torch.nn.Module
        From float images (n, 3, height, width) to logits (n, classes).
    """
    from torch import nn

    return nn.Sequential(
        *_convolution(3, WIDTH, stride=2),
        nn.ReLU(),
        _residual(WIDTH, WIDTH, stride=1),
        _residual(WIDTH, 2 * WIDTH, stride=2),
        _residual(2 * WIDTH, 4 * WIDTH, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * WIDTH, classes),
    )


def with_pixels_in(network: Any) -> Any:
    """Wrap a network so that it takes uint8 images (n, height, width, 3) and gives probabilities.

    Parameters
    ----------
    network : torch.nn.Module
        As `build_network` makes it.
    """
    from torch import Tensor, nn

    class PixelsIn(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Tensor) -> Tensor:
            scaled = images.permute(0, 3, 1, 2).float() / 255.0
            return self.network(scaled).softmax(dim=1)

    return PixelsIn()


def _convolution(inputs: int, outputs: int, *, stride: int, size: int = 3) -> list[Any]:
    from torch import nn

    padding = size // 2
    return [
        nn.Conv2d(inputs, outputs, size, stride=stride, padding=padding, bias=False),
        nn.BatchNorm2d(outputs),
    ]


def _residual(inputs: int, outputs: int, *, stride: int) -> Any:
    from torch import Tensor, nn

    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.main = nn.Sequential(
                *_convolution(inputs, outputs, stride=stride),
                nn.ReLU(),
                *_convolution(outputs, outputs, stride=1),
            )
            same = inputs == outputs and stride == 1
            self.skip = (
                nn.Identity()
                if same
                else nn.Sequential(*_convolution(inputs, outputs, stride=stride, size=1))
            )

        def forward(self, features: Tensor) -> Tensor:
            return (self.main(features) + self.skip(features)).relu()

    return Residual()


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    Attributes
    ----------
    epochs, batch_size : int
        Passes over the training images, images a step.
    learning_rate : float
        Highest rate of a one-cycle schedule.
    weight_decay : float
        Of AdamW.
    image_seed : int
        Of the training images; the rest follows the variant's own seed.
    """

    epochs: int = 4
    batch_size: int = 128
    learning_rate: float = 3e-3
    weight_decay: float = 1e-3
    image_seed: int = 0


def training_rows(variant: Variant, factors: Factors) -> NDArray[np.intp]:
    """Return the rows of the full training set that a variant sees.

    Parameters
    ----------
    variant : Variant
        Of each cell it keeps the first images.
    factors : Factors
        All training images.
    """
    rows = []
    for number, shape in enumerate(SHAPES):
        for channel, colour in enumerate(COLOURS):
            cell = np.flatnonzero((factors.shape == number) & (factors.colour == channel))
            thinned = (shape, colour) == (variant.shape, variant.colour)
            rows.append(cell[: variant.kept if thinned else TRAIN_PER_CELL])
    return np.concatenate(rows)


def train_variant(
    variant: Variant, factors: Factors, images: NDArray[np.uint8], recipe: Recipe
) -> Any:
    """Train one model.

    Parameters
    ----------
    variant : Variant
        Says which of the images it sees.
    factors, images : Factors, ndarray of uint8
        The full training set.
    recipe : Recipe
        How to train.

    Returns
    -------
    torch.nn.Module
        In evaluation mode; takes float images (n, 3, height, width) in [0, 1], gives logits.
    """
    import torch

    torch.manual_seed(variant.seed)
    torch.use_deterministic_algorithms(mode=True)
    rows = torch.from_numpy(training_rows(variant, factors))
    network = build_network(len(SHAPES)).to(memory_format=torch.channels_last)
    steps = len(rows) // recipe.batch_size
    optimizer, schedule = one_cycle(
        network, recipe.learning_rate, recipe.weight_decay, recipe.epochs * steps
    )
    pixels, labels = torch.from_numpy(images), torch.from_numpy(factors.shape)

    def losses() -> Iterator[Any]:
        for _ in range(recipe.epochs):
            order = rows[torch.randperm(len(rows))]
            for batch in order[: steps * recipe.batch_size].split(recipe.batch_size):
                # Channels are last in memory as rendered, also the fastest layout here.
                logits = network(pixels[batch].permute(0, 3, 1, 2).float() / 255.0)
                yield torch.nn.functional.cross_entropy(logits, labels[batch])

    fit(variant.name, optimizer, schedule, losses())
    return network.eval()


def export(network: Any, path: Path) -> None:
    """Write a trained network, with its pixel scaling and softmax, as one ONNX file."""
    import torch

    example = torch.zeros((2, IMAGE_SIZE, IMAGE_SIZE, 3), dtype=torch.uint8)
    program = torch.onnx.export(
        with_pixels_in(network).eval(),
        (example,),
        input_names=["images"],
        output_names=["probabilities"],
        dynamic_shapes=({0: torch.export.Dim("n")},),
        opset_version=18,
        dynamo=True,
        verbose=False,
    )
    path.write_bytes(_without_traces(program.model_proto).SerializeToString(deterministic=True))


def _without_traces(proto: Any) -> Any:
    """Drop the exporter's notes, which quote source files of the machine and triple the size."""
    graph = proto.graph
    for part in (proto, graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    graph.ClearField("value_info")
    return proto


def train(out: Path, names: Sequence[str], recipe: Recipe) -> None:
    """Train the named variants and write ``<name>.onnx`` for each into a folder."""
    need("train", "torch", "onnxscript")
    out.mkdir(parents=True, exist_ok=True)
    factors = draw_factors(TRAIN_PER_CELL, seed=recipe.image_seed, stream="train")
    images = render(factors)
    for variant in VARIANTS:
        if variant.name in names:
            export(train_variant(variant, factors, images, recipe), out / f"{variant.name}.onnx")


def main() -> None:
    """Read the command line and train."""
    names = [variant.name for variant in VARIANTS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the ONNX files")
    parser.add_argument("--variants", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    train(arguments.out, arguments.variants, Recipe())


if __name__ == "__main__":
    main()
