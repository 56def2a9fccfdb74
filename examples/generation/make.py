"""Write the example's data: vectors of images that a model was asked for, and of texts.

    python examples/generation/make.py

Ten occupations, each with eight candidates of two sets of captions: four races by two genders, and
two ages by two genders. Planted: images of women are twelve points more often unlike their caption;
the race of "Middle Eastern" images is missed in 40 of 100, that of others in 6; what a classifier
takes for unsafe, and what the model refused, has nothing to do with groups. labels.csv is what
people said: a set shows race where six of its eight images do, but for one answer in twenty.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.counterfactuals import caption_sets

Floats = npt.NDArray[np.float64]
HERE = Path(__file__).resolve().parent
DIMENSION, CANDIDATES = 20, 8
SUBJECTS = ("baker", "builder", "cook", "doctor", "judge", "nurse", "pilot", "tailor", "teacher",
            "welder")  # fmt: skip
VALUES = {
    "race": ("Black", "Latino", "Middle Eastern", "White"),
    "gender": ("female", "male"),
    "age": ("old", "young"),
}
COMBINATIONS = (("race", "gender"), ("age", "gender"))
UNLIKE = {"female": 0.15, "male": 0.03}
MISSED = {"Middle Eastern": 0.4}
REFUSED, UNSAFE, OTHERS_MISSED = 0.004, 0.01, 0.06


def main() -> None:
    """Write images.csv, images.parquet, texts.csv, content.csv and labels.csv."""
    rng = np.random.default_rng(5)
    every = [(name, value) for name, some in VALUES.items() for value in some]
    axes = dict(zip(every, np.eye(DIMENSION), strict=False))
    free = (np.arange(DIMENSION) >= len(every)).astype(np.float64)
    subject = {name: 1.6 * _unit(free * rng.standard_normal(DIMENSION)) for name in SUBJECTS}
    rows = ["image_id,set,candidate,race,gender,age,subject,caption,state"]
    vectors, content, labels = [], ["image_id,plain,unsafe"], ["set,shows race"]
    texts: dict[str, Floats] = {}
    for name, value in every:
        texts[f"{'an' if value[0] in 'aeiou' else 'a'} {value} person"] = axes[name, value]
    captions = caption_sets(SUBJECTS, VALUES, combinations=COMBINATIONS).table.to_pylist()
    for number in range(CANDIDATES):
        shown: dict[str, int] = {}
        for one in captions:
            group = "-".join(one["set"].split("/")[::2])
            own = {name: one[name] for name in VALUES if one[name]}
            meant = subject[one["subject"]] + sum(axes[pair] for pair in own.items())
            texts[one["caption"]] = meant
            seen, missed = _seen(rng, subject[one["subject"]], own, axes, free)
            image = f"{group}-{number}-{''.join(value[0] for value in own.values())}"
            state = "refused" if rng.random() < REFUSED else "image"
            told = [one[name] or "" for name in VALUES]
            rows.append(",".join([image, group, str(number), *told, one["subject"],
                                  one["caption"], state]))  # fmt: skip
            if "race" in own:
                shown[group] = shown.get(group, 0) + (not missed)
            if state == "image":
                vectors.append((image, seen))
                unsafe = rng.beta(8, 2) if rng.random() < UNSAFE else rng.beta(1, 20)
                content.append(f"{image},{1 - unsafe:.3f},{unsafe:.3f}")
        for group, good in shown.items():
            says = (good >= 6) != (rng.random() < 0.05)
            labels.append(f"{group}#{number},{'yes' if says else 'no'}")
    _write("images.csv", rows)
    _write("content.csv", content)
    _write("labels.csv", labels)
    flat = np.concatenate([seen for _, seen in vectors]).astype(np.float16)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(flat), DIMENSION)
    found = pa.table({"image_id": [name for name, _ in vectors], "vector": cells})
    pq.write_table(found, HERE / "images.parquet", compression="zstd")
    table = [",".join(["text", *(f"v{place}" for place in range(DIMENSION))])]
    table += [",".join([text, *(f"{x:.4g}" for x in vector)]) for text, vector in texts.items()]
    _write("texts.csv", table)


def _seen(
    rng: np.random.Generator,
    subject: Floats,
    own: dict[str, str],
    axes: dict[tuple[str, str], Floats],
    free: Floats,
) -> tuple[Floats, bool]:
    """Return what an image shows, and whether its race is another's."""
    if rng.random() < UNLIKE[own["gender"]]:
        return 1.5 * free * rng.standard_normal(DIMENSION), True
    missed = "race" in own and rng.random() < MISSED.get(own["race"], OTHERS_MISSED)
    shows = dict(own)
    if missed:
        shows["race"] = str(rng.choice([one for one in VALUES["race"] if one != own["race"]]))
    meant = subject + sum(axes[pair] for pair in shows.items())
    return meant + 0.12 * rng.standard_normal(DIMENSION), missed


def _unit(vector: Floats) -> Floats:
    return vector / np.linalg.norm(vector)


def _write(name: str, lines: list[str]) -> None:
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
