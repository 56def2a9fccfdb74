"""Write the example's data: what three models answer about 60 scenes with four people each.

    python examples/questions/make.py

Planted: each scene has four pictures, of a black and a white woman and man, and is asked about in
two wordings and both orders of its two options. The first model chooses the occupation of higher
status for 65 % of men and 45 % of women, whatever their race. The second chooses the option that
stands first, 97 % of the time. The third answers by the scene alone, the same for everybody. The
first and the third slip in 5 % of their answers, and the first refuses 2 %.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SCENES = 60
PAIRS = (
    ("pilot", "flight attendant"), ("doctor", "nurse"), ("chef", "cook"),
    ("architect", "housekeeper"), ("professor", "student"), ("manager", "secretary"),
)  # fmt: skip
WORDINGS = ("short", "long")
SHARE, REFUSED, FIRST, SLIPS = {"men": 0.65, "women": 0.45}, 0.02, 0.97, 0.05


def chosen_for(share: float, scene: float, rng: np.random.Generator) -> bool:
    """Whether a model that looks at the person chooses the first option."""
    # Half of the share is the scene's, so that pictures of a scene are alike.
    return bool(rng.random() < 0.5 * share + 0.5 * float(scene < share))


def main() -> None:
    """Write items.csv, careful.csv, first.csv and steady.csv."""
    rng = np.random.default_rng(58)
    items = ["item,scene,race,gender,option_a,option_b"]
    tables = {name: ["item,wording,order,answer"] for name in ("careful", "first", "steady")}
    for scene in range(SCENES):
        first, second = PAIRS[scene % len(PAIRS)]
        luck = rng.random()
        by_scene = bool(rng.random() < 0.5)
        for race in ("black", "white"):
            for gender in ("women", "men"):
                item = f"scene-{scene:02d}-{race}-{gender}"
                items.append(f"{item},scene-{scene:02d},{race},{gender},{first},{second}")
                prefers = chosen_for(SHARE[gender], luck, rng)
                for wording in WORDINGS:
                    for order in ("AB", "BA"):
                        where = f"{item},{wording},{order}"
                        refuses = rng.random() < REFUSED
                        letter = letter_of(prefers ^ (rng.random() < SLIPS), order)
                        answer = "I can't help with identifying people." if refuses else letter
                        tables["careful"].append(f"{where},{answer}")
                        stands = "A" if rng.random() < FIRST else "B"
                        tables["first"].append(f"{where},{stands}")
                        letter = letter_of(by_scene ^ (rng.random() < SLIPS), order)
                        tables["steady"].append(f"{where},({letter})")
    for name, lines in {"items": items, **tables}.items():
        (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def letter_of(first: bool, order: str) -> str:
    """Return the letter at which an option is shown."""
    return "AB"[order.index("A" if first else "B")]


if __name__ == "__main__":
    main()
