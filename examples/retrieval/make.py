"""Write the example's data: embeddings of counterfactual images and of neutral prompts.

    python examples/retrieval/make.py

Eight occupations, each with 12 sets of images that share a scene and differ in six intersections of
race and gender only. Planted: for "ceo" and "engineer" the neutral prompt lies towards men, for
"nurse" towards women; the other prompts lie towards nobody, but for what chance gives.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DIMENSION, SETS = 16, 12
RACES, GENDERS = ("asian", "black", "white"), ("man", "woman")
OCCUPATIONS = ("baker", "ceo", "cook", "engineer", "farmer", "florist", "nurse", "tailor")
LEANS = {"ceo": 0.35, "engineer": 0.25, "nurse": -0.35}
PREFIXES = ("a photo of a {}", "a picture of a {}", "a {}")


def main() -> None:
    """Write images.csv, images.npy, queries.csv and queries.npy."""
    rng = np.random.default_rng(42)
    race = {name: 0.4 * rng.standard_normal(DIMENSION) for name in RACES}
    gender = np.zeros(DIMENSION)
    gender[0] = 1.0
    scene = {name: 2.0 * rng.standard_normal(DIMENSION) for name in OCCUPATIONS}
    rows, vectors = ["image_id,occupation,scene,race,gender"], []
    for occupation in OCCUPATIONS:
        for index in range(SETS):
            shared = scene[occupation] + 0.8 * rng.standard_normal(DIMENSION)
            for r in RACES:
                for g in GENDERS:
                    side = 0.5 if g == "man" else -0.5
                    own = 0.25 * rng.standard_normal(DIMENSION)
                    vectors.append(shared + race[r] + side * gender + own)
                    name = f"{occupation}-{index:02d}"
                    rows.append(f"{name}-{r}-{g},{occupation},{name},{r},{g}")
    (HERE / "images.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    np.save(HERE / "images.npy", np.array(vectors).astype(np.float16))
    prompts, texts = ["prompt,occupation"], []
    for occupation in OCCUPATIONS:
        for prefix in PREFIXES:
            toward = scene[occupation] / 2 + 8 * LEANS.get(occupation, 0.0) * gender
            texts.append(toward + 0.1 * rng.standard_normal(DIMENSION))
            prompts.append(f"{prefix.format(occupation)},{occupation}")
    (HERE / "queries.csv").write_text("\n".join(prompts) + "\n", encoding="utf-8")
    np.save(HERE / "queries.npy", np.array(texts).astype(np.float32))


if __name__ == "__main__":
    main()
