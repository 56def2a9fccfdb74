"""Images of two figures, and tiny dual encoders whose maps favour one of them by construction."""

import numpy as np
import polars as pl
import torch
from PIL import Image

from tools.planted.modules import module_encoder

SIDE, N = 64, 48
RED, BLUE = (230, 20, 20), (20, 20, 230)
TEXTS = {"a photo of a doctor": (1.0, 0.0, 0.0), "a photo of a nurse": (0.0, 1.0, 0.0),
         "a photo of two people": (0.7, 0.7, 0.0)}  # fmt: skip


def pictures(folder):
    """A red and a blue figure on noise: either side, one world or the other."""
    rng, rows = np.random.default_rng(11), []
    for row in range(N):
        pixels = rng.integers(90, 130, (SIDE, SIDE, 3), dtype=np.uint8)
        red_left, top = bool(rng.integers(2)), rng.integers(8, 32, 2)
        columns = {}
        for name, colour, left_edge, high in (
            ("red", RED, 4 if red_left else 40, top[0]),
            ("blue", BLUE, 40 if red_left else 4, top[1]),
        ):
            pixels[high : high + 20, left_edge : left_edge + 20] = colour
            box = (left_edge, high, left_edge + 20, high + 20)
            columns |= {
                f"{name}_{edge}": int(coordinate)
                for edge, coordinate in zip("ltrb", box, strict=True)
            }
        Image.fromarray(pixels).save(folder / f"{row:02d}.png")
        rows.append({"id": f"i{row:02d}", "file": f"{row:02d}.png",
                     "world": "NS"[row % 2], **columns})  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "images.csv")
    return folder


class Favours(torch.nn.Module):
    """Three numbers of an image: how red it is, how blue, and a constant.

    With `mix` 0.5 both are how red or blue it is: a prompt's map lies on both figures alike.
    `side` weighs left against right.
    """

    def __init__(self, mix=0.0, side=0.0):
        super().__init__()
        self.places = torch.nn.Conv2d(3, 2, 4, stride=4, bias=False)
        weights = torch.tensor([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])
        weights = (1 - mix) * weights + mix * weights.flip(0)
        self.places.weight.data = weights[:, :, None, None].expand(2, 3, 4, 4) / 16
        ramp = torch.linspace(1.0 + side, 1.0 - side, 16)
        self.register_buffer("ramp", ramp[None, None, None])
        self.seen = torch.nn.ReLU()

    def forward(self, pixels):
        features = self.seen(self.places(pixels) * self.ramp).mean(dim=(2, 3))
        return torch.nn.functional.pad(features, (0, 1), value=0.3)


def encoder(name, **options):
    def texts(prompts):
        return np.array([TEXTS[prompt] for prompt in prompts], dtype=np.float32)

    return module_encoder(Favours(**options), texts, name=name, dimension=3, scale=10.0)
