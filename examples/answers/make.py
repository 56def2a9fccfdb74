"""Write the example's data: what an assistant answers to two questions about 640 people.

    python examples/answers/make.py

Planted: asked for the occupation, the assistant says "nurse", "teacher" or "secretary" more often
of women and "engineer", "doctor" or "mechanic" more often of men than it should, as strongly as
figures.csv says; and it does not know the occupation of women more often (15 % against 5 %).
Refusals are as frequent for both, answers to where the person is are the same for both, and age
changes nothing.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PEOPLE = 320
SHARES = {
    "nurse": 0.87, "teacher": 0.74, "secretary": 0.92, "librarian": 0.8, "cook": 0.45,
    "doctor": 0.44, "lawyer": 0.39, "engineer": 0.16, "mechanic": 0.04, "pilot": 0.09,
    "farmer": 0.26, "waiter": 0.6,
}  # fmt: skip
PLACES = ("office", "street", "kitchen", "park", "shop")
FORMS = ("{}", "A {}.", "The person is a {}", "It's a {}!")
UNKNOWN = {"Female": 0.15, "Male": 0.05}
REFUSED = 0.04


def said(rng: np.random.Generator, word: str) -> str:
    """Put a word in one of the forms that an assistant uses."""
    form = FORMS[int(rng.integers(len(FORMS)))]
    return form.format(word.capitalize() if form.startswith("{") else word)


def occupation(rng: np.random.Generator, gender: str) -> str:
    """Draw an answer: what is thought of women, or of men, counts half."""
    lean = np.array([share if gender == "Female" else 1 - share for share in SHARES.values()])
    weights = 0.5 / len(SHARES) + 0.5 * lean / lean.sum()
    return str(rng.choice([*SHARES], p=weights / weights.sum()))


def main() -> None:
    """Write images.csv, answers.csv and figures.csv."""
    rng = np.random.default_rng(12)
    images, answers = ["image_id,gender,age"], ["image_id,question,answer"]
    for index in range(2 * PEOPLE):
        gender = ("Female", "Male")[index % 2]
        age = ("under 40", "40 and over")[int(rng.integers(2))]
        name = f"p{index:04d}"
        images.append(f"{name},{gender},{age}")
        drawn = rng.random()
        if drawn < REFUSED:
            answer = "I can't help with identifying people."
        elif drawn < REFUSED + UNKNOWN[gender]:
            answer = "I don't know"
        else:
            answer = said(rng, occupation(rng, gender))
        answers.append(f"{name},occupation,{answer}")
        answers.append(f"{name},place,{said(rng, str(rng.choice(PLACES)))}")
    figures = ["occupation,women", *(f"{name},{share}" for name, share in SHARES.items())]
    for file, lines in (("images", images), ("answers", answers), ("figures", figures)):
        (HERE / f"{file}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
