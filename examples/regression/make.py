"""Write the example's data: ages of people on pictures, and those that two models estimate.

    python examples/regression/make.py

Planted: the first model misses the age of people under 40 by 3 years on average, of older men by 5,
and of older women by 8, mostly too low. The second misses all ages by 4, whoever is shown.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PEOPLE, PICTURES = 160, 2


def main() -> None:
    """Write people.csv, with a row for each picture."""
    rng = np.random.default_rng(31)
    age = np.repeat(rng.integers(18, 80, PEOPLE), PICTURES)
    woman = np.repeat(rng.random(PEOPLE) < 0.5, PICTURES)
    older = age >= 40
    person = np.repeat(rng.normal(size=PEOPLE), PICTURES)
    noise = 0.5 * person + 0.85 * rng.normal(size=age.size)
    first = age + noise * np.where(older, 6.0, 3.75) - 7.0 * (older & woman)
    second = age + 5.0 * (0.5 * person + 0.85 * rng.normal(size=age.size))
    lines = ["image_id,person,gender,band,age,first_age,second_age"]
    for index, years in enumerate(age.tolist()):
        gender = "woman" if woman[index] else "man"
        band = "40 and over" if older[index] else "under 40"
        lines.append(
            f"image-{index:04d},person-{index // PICTURES:03d},{gender},{band},{years},"
            f"{first[index]:.1f},{second[index]:.1f}"
        )
    (HERE / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
