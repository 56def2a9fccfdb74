"""Write the example's data: two versions of a model name the occupation in 1,200 photos.

    python examples/jobs/make.py

Planted: both versions are right for about 92 % of the photos. The version `old` calls 45 % of the
women who are engineers or pilots nurses. The version `new` treats women and men alike. Skin tone
makes no difference.
"""

import csv
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
OCCUPATIONS = ("chef", "engineer", "nurse", "pilot")
N = 75  # photos of each occupation, gender and skin tone
ERROR, CALLED_NURSE = 0.08, 0.45


def predict(rng: np.random.Generator, occupation: str, gender: str, version: str) -> str:
    """Return the occupation that a version of the model names."""
    stereotyped = gender == "women" and occupation in ("engineer", "pilot")
    if version == "old" and stereotyped and rng.random() < CALLED_NURSE:
        return "nurse"
    if rng.random() < ERROR:
        return str(rng.choice([name for name in OCCUPATIONS if name != occupation]))
    return occupation


def main() -> None:
    """Write predictions.csv."""
    rng = np.random.default_rng(4)
    cells = product(OCCUPATIONS, ("women", "men"), ("lighter", "darker"), range(N))
    with (HERE / "predictions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image_id", "occupation", "gender", "skin_tone", "old", "new"])
        for number, (occupation, gender, tone, _) in enumerate(cells):
            predicted = [predict(rng, occupation, gender, version) for version in ("old", "new")]
            writer.writerow([f"{number:04d}.jpg", occupation, gender, tone, *predicted])


if __name__ == "__main__":
    main()
