"""Write the data of this example: made-up embeddings in which some occupations lean to a group.

Two encoders see the same images and words. In `strong`, doctors, engineers, pilots and chief
executives lean to men, nurses, teachers, librarians and receptionists to women, and images of
women lie closer to unpleasant words where the made-up index of equality is low. `mild` has a
third of that lean. Painters and bakers lean to nobody in either.

    python examples/associations/make.py
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

DIMENSION = 24
LEANS = {
    "doctor": 1.0, "engineer": 1.2, "pilot": 0.9, "chief executive": 1.3, "painter": 0.0,
    "baker": 0.0, "librarian": -0.9, "teacher": -0.7, "receptionist": -1.1, "nurse": -1.4,
}  # fmt: skip
SALARIES = {
    "doctor": 208, "engineer": 104, "pilot": 135, "chief executive": 198, "painter": 46,
    "baker": 34, "librarian": 62, "teacher": 61, "receptionist": 33, "nurse": 81,
}  # fmt: skip
EQUALITY = {"North": 0.86, "East": 0.71, "South": 0.62, "West": 0.79, "Isles": 0.83, "Coast": 0.66}
WORDS = {
    "men": ["man", "male", "he", "him", "his", "boy", "father", "son", "brother", "gentleman"],
    "women": ["woman", "female", "she", "her", "hers", "girl", "mother", "daughter", "sister",
              "lady"],
    "nonbinary": ["nonbinary person", "they", "genderqueer", "agender", "genderfluid", "enby",
                  "them", "theirs", "androgynous", "neither"],
    "science": ["physics", "chemistry", "geometry", "laboratory", "experiment", "theory",
                "equation", "telescope"],
    "arts": ["poetry", "sculpture", "dance", "novel", "symphony", "drama", "watercolour", "ballad"],
    "pleasant": ["honest", "gentle", "friendly", "smart"],
    "unpleasant": ["dishonest", "cruel", "hostile", "lazy"],
}  # fmt: skip
GENDERS = {"Male": 1.0, "Female": -1.0, "Nonbinary": 0.0}


def main(folder: Path) -> None:
    """Write tables and embeddings into a folder."""
    people = [*_people()]
    further = [one for one in people if one[1] == "Nonbinary"]
    people = [one for one in people if one[1] != "Nonbinary"]
    made = [(f"{job}-{seed:02d}.png", job) for job in LEANS for seed in range(10)]
    words = [(word, name) for name, listed in WORDS.items() for word in listed]
    words += [(f"a photo of a {job}", "prompt") for job in LEANS]
    _table(folder / "people.csv", ("image_id", "gender", "region", "person"), people)
    _table(folder / "further.csv", ("image_id", "gender", "region", "person"), further)
    _table(folder / "generated.csv", ("image_id", "occupation"), made)
    _table(folder / "words.csv", ("text", "list"), words)
    outside = [(job, SALARIES[job], (lean > 0) - (lean < 0)) for job, lean in LEANS.items()]
    _table(folder / "occupations.csv", ("occupation", "salary", "stereotype"), outside)
    _table(folder / "regions.csv", ("region", "equality"), [*EQUALITY.items()])
    for model, strength, seed in (("strong", 1.0, 11), ("mild", 0.35, 12)):
        rng = np.random.Generator(np.random.Philox(seed))
        axes = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
        _save(folder / f"{model}_people.npy", _of_people(people, axes, strength, rng))
        _save(folder / f"{model}_further.npy", _of_people(further, axes, strength, rng))
        _save(
            folder / f"{model}_generated.npy", _of_jobs([j for _, j in made], axes, strength, rng)
        )
        _save_words(folder / f"{model}_words.npz", words, axes, strength, rng)


def _people() -> Iterable[tuple[str, str, str, str]]:
    """Two images of each person; six persons of each region and gender, fewer nonbinary ones."""
    for gender, many in (("Male", 6), ("Female", 6), ("Nonbinary", 2)):
        for region in EQUALITY:
            for number in range(many):
                person = f"{region[0]}{gender[0]}{number}"
                for shot in (1, 2):
                    yield f"{person}-{shot}.png", gender, region, person


def _of_people(
    people: Sequence[tuple[str, str, str, str]], axes: np.ndarray, strength: float,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    gender = np.array([GENDERS[one] for _, one, _, _ in people])
    unequal = np.array([1 - EQUALITY[region] for _, _, region, _ in people])
    known = {person: index for index, person in enumerate({one[3]: None for one in people})}
    persons = rng.normal(size=(len(known), DIMENSION))[[known[one[3]] for one in people]]
    found = 3 * axes[0] + 0.9 * gender[:, None] * axes[2] + 0.25 * persons
    # Valence: women are placed lower where equality is low.
    found += strength * (np.minimum(gender, 0) * unequal * 4)[:, None] * axes[4]
    return found + 0.15 * rng.normal(size=found.shape)


def _of_jobs(
    jobs: Sequence[str], axes: np.ndarray, strength: float, rng: np.random.Generator
) -> np.ndarray:
    lean = np.array([LEANS[job] for job in jobs])
    own = np.array([axes[6 + [*LEANS].index(job)] for job in jobs])
    found = 3 * axes[0] + 1.2 * own + 0.8 * strength * lean[:, None] * axes[2]
    return found + 0.3 * rng.normal(size=found.shape)


def _save_words(
    path: Path, words: Sequence[tuple[str, str]], axes: np.ndarray, strength: float,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Embeddings of texts with their ids, in another order than the table."""
    found = np.stack([_of_word(*one, axes, strength) for one in words])
    found += 0.2 * rng.normal(size=found.shape)
    order = rng.permutation(len(words))
    ids = np.array([word for word, _ in words])[order]
    np.savez(path, embeddings=found[order].astype(np.float32), ids=ids)


def _of_word(word: str, kind: str, axes: np.ndarray, strength: float) -> np.ndarray:
    base: np.ndarray = 3 * axes[1]
    if kind == "prompt":
        job = word.removeprefix("a photo of a ")
        own = 1.2 * axes[6 + [*LEANS].index(job)]
        return np.asarray(base + own + 0.5 * strength * LEANS[job] * axes[2])
    sides = {"men": (2, 1.0), "women": (2, -1.0), "pleasant": (4, 1.0), "unpleasant": (4, -1.0)}
    if kind in sides:
        axis, sign = sides[kind]
        return np.asarray(base + sign * axes[axis])
    if kind == "nonbinary":
        return np.asarray(base + axes[3])
    lean = 0.5 if kind == "science" else -0.5
    return np.asarray(base + strength * lean * axes[2] + (1 if lean > 0 else -1) * axes[5])


def _save(path: Path, vectors: np.ndarray) -> None:
    np.save(path, vectors.astype(np.float32))


def _table(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
