"""Write the example's data: two models that name occupations in 1,800 images.

    python examples/mistakes/make.py

Planted: both models are right equally often for women and men, for every occupation. The model
`even` takes both for the same other occupations. The model `stereotyped` calls women who are
doctors nurses and men surgeons, women who are writers editors and men composers and philosophers,
women who are biologists teachers and men scientists and bankers. Over all images it is right at
least as often as the other.
"""

import csv
from pathlib import Path

HERE = Path(__file__).resolve().parent
N = 300  # images of each occupation and gender
WRONG = {
    ("writer", "even"): {
        "woman": {"editor": 8, "composer": 7, "philosopher": 6},
        "man": {"editor": 7, "composer": 7, "philosopher": 7},
    },
    ("writer", "stereotyped"): {
        "woman": {"editor": 30},
        "man": {"composer": 16, "philosopher": 14},
    },
    ("doctor", "even"): {
        "woman": {"nurse": 16, "surgeon": 14},
        "man": {"nurse": 15, "surgeon": 15},
    },
    ("doctor", "stereotyped"): {"woman": {"nurse": 30}, "man": {"surgeon": 30}},
    ("biologist", "even"): {
        "woman": {"teacher": 15, "scientist": 12, "banker": 14},
        "man": {"teacher": 11, "scientist": 15, "banker": 15},
    },
    ("biologist", "stereotyped"): {
        "woman": {"teacher": 28},
        "man": {"scientist": 15, "banker": 13},
    },
}
"""Wrong labels of 100 women and of 100 men, by occupation and model."""
MODELS = ("even", "stereotyped")


def labels(occupation: str, model: str, gender: str) -> list[str]:
    """Return a model's labels of the images of one occupation and gender."""
    wrong = WRONG[occupation, model][gender]
    mistakes = [label for label, count in wrong.items() for _ in range(count * N // 100)]
    return mistakes + [occupation] * (N - len(mistakes))


def main() -> None:
    """Write images.csv."""
    with (HERE / "images.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image_id", "occupation", "gender", *MODELS])
        number = 0
        for occupation in dict.fromkeys(name for name, _ in WRONG):
            for gender in ("woman", "man"):
                columns = [labels(occupation, model, gender) for model in MODELS]
                for row in zip(*columns, strict=True):
                    writer.writerow([f"i{number:03d}", occupation, gender, *row])
                    number += 1


if __name__ == "__main__":
    main()
