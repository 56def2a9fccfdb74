"""The small ResNet of the colour world. torch is imported inside, so the package needs none."""

from typing import Any

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
