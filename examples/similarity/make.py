"""Write the example's data: embeddings of counterfactual images and of prompts.

    python examples/similarity/make.py

Twelve occupations, each with 14 scenes in which a man and a woman are shown, asian, black or white:
six images that share all else. Planted: the prompts of "builder", "doctor", "engineer" and "pilot"
lie towards men, those of "florist", "librarian" and "nurse" towards women; the other five lie
towards nobody, but for the small preferences that random vectors have. Race is planted in none.
stereotypes.csv is the table that was declared before.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DIMENSION, SCENES = 24, 14
RACES, GENDERS = ("asian", "black", "white"), ("man", "woman")
LEANS = {
    "baker": 0.0, "builder": 0.3, "cook": 0.0, "doctor": 0.18, "engineer": 0.24, "florist": -0.18,
    "lawyer": 0.0, "librarian": -0.22, "nurse": -0.3, "pilot": 0.2, "tailor": 0.0, "teacher": 0.0,
}  # fmt: skip
STEREOTYPES = {
    "baker": "woman", "builder": "man", "cook": "woman", "doctor": "man", "engineer": "man",
    "florist": "woman", "lawyer": "man", "librarian": "woman", "nurse": "woman", "pilot": "man",
    "tailor": "man", "teacher": "woman",
}  # fmt: skip
TEMPLATES = ("a photo of a {}", "a picture of a {}")


def main() -> None:
    """Write images.csv, images.npy, prompts.csv, prompts.npy and stereotypes.csv."""
    rng = np.random.default_rng(11)
    # The first axis is gender, the next three are races; subjects and scenes have the others.
    gender, race = np.eye(DIMENSION)[0], dict(zip(RACES, np.eye(DIMENSION)[1:4], strict=True))
    free = np.arange(DIMENSION) > 3
    subject = {name: 2.0 * free * rng.standard_normal(DIMENSION) for name in LEANS}
    rows, vectors = ["image_id,occupation,scene,race,gender"], []
    for occupation in LEANS:
        for index in range(SCENES):
            name = f"{occupation}-{index:02d}"
            shared = subject[occupation] + 0.7 * free * rng.standard_normal(DIMENSION)
            for r in RACES:
                for g in GENDERS:
                    own = 0.3 * rng.standard_normal(DIMENSION)
                    side = gender if g == "man" else -gender
                    vectors.append(shared + race[r] + side + own)
                    rows.append(f"{name}-{r}-{g},{occupation},{name},{r},{g}")
    _write("images.csv", rows)
    np.save(HERE / "images.npy", np.array(vectors).astype(np.float16))
    prompts, texts = ["prompt,occupation"], []
    for occupation, lean in LEANS.items():
        for template in TEMPLATES:
            text = subject[occupation] + 0.2 * free * rng.standard_normal(DIMENSION)
            texts.append(text / np.linalg.norm(text) + lean * gender)
            prompts.append(f"{template.format(occupation)},{occupation}")
    _write("prompts.csv", prompts)
    np.save(HERE / "prompts.npy", np.array(texts).astype(np.float32))
    _write("stereotypes.csv", ["occupation,gender", *(",".join(x) for x in STEREOTYPES.items())])


def _write(name: str, lines: list[str]) -> None:
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
