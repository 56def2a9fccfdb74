"""Writes the data of this example: one concept for each thing that choices can do.

python examples/concepts/make.py
"""

from pathlib import Path

import numpy as np

CONCEPTS = ("chef", "wheelchair", "nurse", "guitar", "laptop", "bicycle")
N = 1500


def main(folder: Path = Path(__file__).parent) -> None:
    """Write images.csv, labels.csv, ours.csv and older.npy into a folder."""
    rng = np.random.default_rng(20)
    term = rng.choice(["man", "boy", "woman", "girl"], N, p=[0.32, 0.18, 0.32, 0.18])
    female, child = np.isin(term, ["woman", "girl"]), np.isin(term, ["boy", "girl"])
    box = np.round(rng.uniform(0.01, 0.12, N), 3)
    large = box >= 0.09
    labels = rng.random((N, len(CONCEPTS))) < 0.3
    # Fewer women among the chefs, recognised just as well.
    labels[:, 0] = rng.random(N) < np.where(female, 0.13, 0.4)
    scores = rng.standard_normal((N, 7)) + 2.0 * np.column_stack([labels, labels[:, 4]])
    # In a wheelchair women are recognised less well, whatever the choices.
    scores[:, 1] -= 1.1 * (female & labels[:, 1])
    # Nurses: women less well in small boxes, men in large ones.
    scores[:, 2] -= 1.8 * (labels[:, 2] & (female ^ large))
    # Guitars: girls less well, women as well as men.
    scores[:, 3] -= 2.4 * (labels[:, 3] & female & child)
    # Laptops of women score as notebooks, the seventh column.
    missed = rng.random(N) < np.where(female, 0.75, 0.25)
    scores[labels[:, 4] & missed, 4] -= 2.0
    scores[labels[:, 4] & ~missed, 6] -= 2.0
    older = scores + 0.7 * rng.standard_normal((N, 7))
    # The older model finds bicycles and laptops of women less well, whatever they are called.
    older[:, 5] -= 1.6 * (female & labels[:, 5])
    older[:, [4, 6]] = rng.standard_normal((N, 2)) + 2.0 * labels[:, [4, 4]]
    older[:, [4, 6]] -= 0.7 * (female & labels[:, 4])[:, None]
    _write(folder, term, box, labels, scores, older)


def _write(
    folder: Path,
    term: np.ndarray,
    box: np.ndarray,
    labels: np.ndarray,
    scores: np.ndarray,
    older: np.ndarray,
) -> None:
    ids = [f"i{place:04d}" for place in range(N)]
    people = [f"{i},{t},{b:g}" for i, t, b in zip(ids, term, box, strict=True)]
    _csv(folder / "images.csv", "image_id,term,box_share", people)
    shown = [f"{ids[row]},{CONCEPTS[column]}" for row, column in np.argwhere(labels)]
    _csv(folder / "labels.csv", "image_id,concept", shown)
    ours = [",".join([i, *(f"{v:.2f}" for v in row)]) for i, row in zip(ids, scores, strict=True)]
    _csv(folder / "ours.csv", ",".join(["image_id", *CONCEPTS, "notebook"]), ours)
    np.save(folder / "older.npy", older.astype(np.float16))


def _csv(path: Path, header: str, rows: list[str]) -> None:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
