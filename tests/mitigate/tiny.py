"""People of four kinds to train tiny dual encoders on."""

from itertools import product

import numpy as np

from equipoise.mitigate import ImageSets, SubjectTexts, Training

# Words that the tiny SigLIP knows.
SUBJECTS = ("doctor", "nurse", "person", "photo")
VALUES = {"gender": ("man", "woman"), "hue": ("red", "blue")}


def texts(subject):
    combinations = [*product(*VALUES.values())]
    return SubjectTexts(
        subject,
        (f"a photo of a {subject}", f"the {subject}"),
        tuple(f"a {hue} {gender} {subject}" for gender, hue in combinations),
        tuple(dict(zip(VALUES, values, strict=True)) for values in combinations),
    )


def sets(subjects, per_subject=2):
    """Stripes whose number says the subject, in a hue, brighter above or below by gender."""
    images, rows = [], []
    for name, number in product(subjects, range(per_subject)):
        random = np.random.default_rng([SUBJECTS.index(name), number])
        for values in product(*VALUES.values()):
            who, tint = values
            image = random.normal(90, 12, (32, 32, 3))
            image[:, :: 2 + 3 * SUBJECTS.index(name)] += 90
            image[..., 0 if tint == "red" else 2] += 60
            image[: 16 if who == "man" else 32] += 25
            images.append(np.clip(image, 0, 255).astype(np.uint8))
            rows.append((name, f"{name} {number}", f"a {tint} {who} {name}", *values))
    subject, set_names, caption, gender, hue = (
        np.array(column, dtype=object) for column in zip(*rows, strict=True)
    )
    return ImageSets(images, subject, set_names, caption, {"gender": gender, "hue": hue})


def training(watched=True):
    """Return three subjects to learn from, and one whose loss is watched, or none."""
    learned = SUBJECTS[:3]
    if not watched:
        return Training(tuple(map(texts, learned)), (), sets(learned), None)
    last = SUBJECTS[3:]
    return Training(tuple(map(texts, learned)), tuple(map(texts, last)), sets(learned), sets(last))
