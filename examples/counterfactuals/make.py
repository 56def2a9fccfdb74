"""Write the example's data: embeddings of planted scenes by the two CLIP models that are shipped.

    python examples/counterfactuals/make.py

Eight subjects, each with five counterfactual sets: one glyph in one pose on one background, in six
hues and with two frames. Planted in the model "biased": each subject goes with a hue and a frame,
some strongly, some not at all. The model "null" was trained on without. Needs the extra hf.
"""

from pathlib import Path

import numpy as np

from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.embed import CLIPS, embed_images, load_clip
from equipoise.planted.scenes.sets import render_sets

HERE = Path(__file__).resolve().parent
SETS, SEED = 5, 4
SUBJECTS = (
    "solid square", "solid triangle", "solid cross", "hollow house",
    "solid circle", "hollow heart", "solid hourglass", "hollow bolt",
)  # fmt: skip
COLUMNS = ("image_id", "subject", "set", "hue", "frame")


def main() -> None:
    """Write images.csv, prompts.csv, and for each model images and prompts as .npy."""
    scenes = render_sets(SETS, seed=SEED)
    table = scenes.table()
    kept = np.isin(table["subject"], SUBJECTS)
    columns = [table[name][kept].tolist() for name in COLUMNS]
    columns[0] = [f"s{number:03d}" for number in range(len(columns[0]))]
    _write("images.csv", [COLUMNS, *zip(*columns, strict=True)])
    prompts = [(text, subject) for subject in SUBJECTS for text in neutral_prompts(subject)]
    _write("prompts.csv", [("prompt", "subject"), *prompts])
    for name in CLIPS:
        clip = load_clip(name)
        np.save(
            HERE / f"{name}_images.npy", embed_images(clip, scenes.images[kept]).astype(np.float16)
        )
        texts = clip.embed_texts([text for text, _ in prompts])
        np.save(HERE / f"{name}_prompts.npy", texts.astype(np.float32))


def _write(name: str, rows: list[tuple[str, ...]]) -> None:
    text = "\n".join(",".join(row) for row in rows) + "\n"
    (HERE / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
