"""Write the example's data: portraits of people at work, with embeddings and a population.

    python examples/dataset/make.py

Planted: 4 % of the images show women with dark skin, 15 % of the population are women with dark
skin. Women are labelled nurse three times as often as men. The occupation is missing five times as
often for dark skin. Embeddings of images of women are more alike. The weather in the picture, and
the shares of chefs, go with nothing.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
GROUPS = {("female", "dark"): 40, ("female", "light"): 460, ("male", "dark"): 140,
          ("male", "light"): 360}  # fmt: skip
POPULATION = {("female", "dark"): 15, ("female", "light"): 36, ("male", "dark"): 14,
              ("male", "light"): 35}  # fmt: skip
OCCUPATIONS = ("chef", "nurse", "pilot", "teacher")
SHARES = {"female": (0.2, 0.45, 0.1, 0.25), "male": (0.2, 0.15, 0.4, 0.25)}
MISSING = {"dark": 0.25, "light": 0.05}
SPREAD = {"female": 0.6, "male": 0.9}
DIMENSION = 12


def main() -> None:
    """Write images.csv, population.csv and embeddings.npy."""
    rng = np.random.default_rng(30)
    rows, vectors = ["image_id,gender,skin,occupation,weather"], []
    for (gender, skin), n in GROUPS.items():
        for number in range(n):
            occupation = rng.choice(OCCUPATIONS, p=SHARES[gender])
            occupation = "" if rng.random() < MISSING[skin] else occupation
            weather = rng.choice(["cloud", "rain", "sun"])
            rows.append(f"{gender}-{skin}-{number:03d},{gender},{skin},{occupation},{weather}")
            centre = np.eye(DIMENSION)[0] * 2.0
            vectors.append(centre + SPREAD[gender] * rng.standard_normal(DIMENSION))
    (HERE / "images.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    people = [f"{gender},{skin},{n}" for (gender, skin), n in POPULATION.items()]
    population = "\n".join(["gender,skin,people", *people])
    (HERE / "population.csv").write_text(f"{population}\n", encoding="utf-8")
    np.save(HERE / "embeddings.npy", np.array(vectors, dtype=np.float16))


if __name__ == "__main__":
    main()
