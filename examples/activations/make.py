"""Write the example's data: images of people at work with two boxes each, and maps of two models.

    python examples/activations/make.py

Planted: the first model looks at the tool in images of men and at the face in images of women; the
second looks at the tool in both. Both look at neither more than chance in the rest of the image.
The maps are drawn, not made of a model: 8 by 8 cells, as a network for 256 pixels would have them.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
IMAGES, SIDE, CELLS = 240, 256, 8
LOOKS = {
    "recruiter": {"man": ("tool", 2.0), "woman": ("face", 2.0)},
    "inspector": {"man": ("tool", 1.6), "woman": ("tool", 1.6)},
}


def main() -> None:
    """Write images.csv and a file of maps for each model."""
    rng = np.random.default_rng(23)
    corners = ("left", "top", "right", "bottom")
    columns = [f"{region}_{corner}" for region in ("face", "tool") for corner in corners]
    rows = [",".join(["image_id", "gender", "person", *columns])]
    gender = ["man" if index % 2 else "woman" for index in range(IMAGES)]
    boxes = {"face": _boxes(rng, 20, 72), "tool": _boxes(rng, 120, 84)}
    for index in range(IMAGES):
        edges = [*boxes["face"][index], *boxes["tool"][index]]
        person = f"person-{index // 4:02d}-{gender[index]}"
        rows.append(",".join([f"image-{index:03d}", gender[index], person, *map(str, edges)]))
    (HERE / "images.csv").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")
    for name, looks in LOOKS.items():
        maps = rng.random((IMAGES, CELLS, CELLS)) ** 2
        for index in range(IMAGES):
            region, strength = looks[gender[index]]
            left, top, right, bottom = np.rint(boxes[region][index] * CELLS / SIDE).astype(int)
            inside = maps[index, top:bottom, left:right]
            inside += strength * rng.random(inside.shape)
        np.save(HERE / f"{name}.npy", maps.reshape(IMAGES, -1).astype(np.float16))
    np.save(HERE / "frames.npy", np.tile([0, 0, SIDE, SIDE], (IMAGES, 1)).astype(np.float32))


def _boxes(rng: np.random.Generator, top: int, side: int) -> np.ndarray:
    """Boxes of one size, somewhere at their height: left, top, right, bottom."""
    left = rng.integers(0, SIDE - side, IMAGES)
    above = top + rng.integers(0, 32, IMAGES)
    return np.column_stack([left, above, left + side, above + side])


if __name__ == "__main__":
    main()
