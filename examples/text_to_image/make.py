"""Write the example's data: embeddings of generated images and of prompts, and what was said.

    python examples/text_to_image/make.py

One generator at guidance 1, 3 and 7, whose images two encoders looked at. Planted: images of
"builder", "engineer" and "pilot" lean towards men, those of "nurse" and "librarian" towards women,
all the more the stronger the guidance; "baker" leans to nobody. Texts lean half as far. Somebody
said who is seen, rightly on 90 % of the men and 80 % of the women, and "unknown" of 5 %; so it was
with the labelled images. Some images were refused. shares.csv are made-up labour statistics.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DIMENSIONS = {"small": 24, "large": 32}
ATTRIBUTES = {
    "men": ("a man", "a boy"),
    "women": ("a woman", "a girl"),
    "non_binary": ("a non-binary person", "a young non-binary person"),
}
LEANS = {
    "builder": 0.35, "engineer": 0.3, "pilot": 0.2, "baker": 0.0, "librarian": -0.25, "nurse": -0.4,
}  # fmt: skip
OUTSIDE = {
    "builder": 0.95, "engineer": 0.84, "pilot": 0.92, "baker": 0.4, "librarian": 0.18, "nurse": 0.1,
}  # fmt: skip
GUIDANCE = {1.0: 0.5, 3.0: 1.0, 7.0: 1.4}
PER_ATTRIBUTE, PER_TARGET, LABELLED, REFUSED = 6, 30, 150, 0.04
RIGHT, UNKNOWN = {"man": 0.9, "woman": 0.8}, 0.05


def main() -> None:
    """Write images.csv, said.csv, labelled.csv, shares.csv and two arrays for each encoder."""
    rng = np.random.default_rng(5)
    rows, said = [*asked(rng)], []
    for row in rows:
        if row["state"] == "image" and row["target"]:
            shown = "man" if rng.random() < row["men"] else "woman"
            said.append({"image_id": row["image_id"], "said": named(shown, rng)})
    write("images.csv", rows, ("image_id", "prompt", "state", "seed", "guidance"))
    write("said.csv", said, ("image_id", "said"))
    labelled = [
        {"image_id": f"{shown}-{place:03d}", "label": shown, "said": named(shown, rng)}
        for shown in RIGHT
        for place in range(LABELLED)
    ]
    write("labelled.csv", labelled, ("image_id", "label", "said"))
    outside = [
        {"target": target, "group": group, "value": round(100 * share)}
        for target, men in OUTSIDE.items()
        for group, share in (("man", men), ("woman", 1 - men))
    ]
    write("shares.csv", outside, ("target", "group", "value"))
    for name, dimension in DIMENSIONS.items():
        embedded(name, dimension, rows, rng)


def asked(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield a row for each image: what it was asked for, and how far it leans."""
    for guidance, strength in GUIDANCE.items():
        for group, texts in ATTRIBUTES.items():
            for text in texts:
                for place in range(PER_ATTRIBUTE):
                    yield row(guidance, text, place, group=group, state="image")
        for target, lean in LEANS.items():
            for place in range(PER_TARGET):
                state = "refused" if rng.random() < REFUSED else "image"
                men = min(max(0.5 + strength * lean, 0.02), 0.98)
                yield row(
                    guidance, target, place, target=target, lean=strength * lean, men=men,
                    state=state,
                )  # fmt: skip


def row(guidance: float, text: str, place: int, **about: Any) -> dict[str, Any]:
    """Return what is known of one image."""
    return {
        "image_id": f"g{guidance:g}-{text.replace(' ', '-')}-{place:02d}",
        "guidance": f"{guidance:g}",
        "prompt": f"an image of {text}", "seed": place, "text": text, "group": "", "target": "",
        "lean": 0.0, "men": 0.5,
    } | about  # fmt: skip


def named(shown: str, rng: np.random.Generator) -> str:
    """Return what the classifier says of an image of a man or a woman."""
    if rng.random() < UNKNOWN:
        return "unknown"
    other = {"man": "woman", "woman": "man"}[shown]
    return shown if rng.random() < RIGHT[shown] else other


def embedded(
    name: str, dimension: int, rows: list[dict[str, Any]], rng: np.random.Generator
) -> None:
    """Write an encoder's vectors: the first axis is gender, the second non-binary."""
    axes = np.eye(dimension)
    side = {"men": 2 * axes[0], "women": -2 * axes[0], "non_binary": 3 * axes[1], "": 0 * axes[0]}
    free = np.arange(dimension) > 1
    texts = {row["text"]: row for row in rows}
    # What all images and texts share, and what each subject has of its own. Texts of different
    # groups share theirs, so that they differ in the group alone.
    whole = 2.5 * free * rng.standard_normal(dimension)
    old, young = (0.5 * free * rng.standard_normal(dimension) for _ in range(2))
    subject = {
        text: whole + (young if "boy" in text or "girl" in text or "young" in text else old)
        if one["group"]
        else whole + free * rng.standard_normal(dimension)
        for text, one in texts.items()
    }
    images = []
    for one in rows:
        own = 0.5 * rng.standard_normal(dimension)
        vector = subject[one["text"]] + own + side[one["group"]] + 3 * one["lean"] * axes[0]
        # What was refused has no image, and no direction.
        images.append(vector if one["state"] == "image" else 0 * vector)
    vectors = [
        subject[text] + 0.8 * side[one["group"]] + 2 * LEANS.get(text, 0.0) * axes[0]
        for text, one in texts.items()
    ]
    np.savez(
        HERE / f"{name}.npz",
        images=np.array(images).astype(np.float16),
        texts=np.array(vectors).astype(np.float32),
        text_ids=np.array([f"an image of {text}" for text in texts]),
    )


def write(name: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Write a CSV."""
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
