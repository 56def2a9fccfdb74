"""Tiny dual encoders of open_clip and SigLIP, and people of four kinds to train them on."""

import json
from itertools import product

import numpy as np

from equipoise.mitigate import ImageSets, SubjectTexts, Training

OPEN_CLIP = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
    "text_cfg": {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}
PREPARE = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
WEIGHTS = "open_clip_model.safetensors"

# Words that the tiny SigLIP knows.
SUBJECTS = ("doctor", "nurse", "person", "photo")
VALUES = {"gender": ("man", "woman"), "hue": ("red", "blue")}


def open_clip_folder(folder, **more):
    """Write a CLIP of open_clip as a folder; with `init_logit_bias`, one of sigmoids."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(3)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"model_cfg": OPEN_CLIP | more, "preprocess_cfg": PREPARE}
    (folder / "open_clip_config.json").write_text(json.dumps(settings))
    weights = open_clip.CLIP(**OPEN_CLIP, **more).state_dict()
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / WEIGHTS)
    return folder


def texts(subject):
    every = [*product(*VALUES.values())]
    return SubjectTexts(
        subject,
        (f"a photo of a {subject}", f"the {subject}"),
        tuple(f"a {hue} {gender} {subject}" for gender, hue in every),
        tuple(dict(zip(VALUES, values, strict=True)) for values in every),
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
    subject, own, caption, gender, hue = (
        np.array(column, dtype=object) for column in zip(*rows, strict=True)
    )
    return ImageSets(images, subject, own, caption, {"gender": gender, "hue": hue})


def training(watched=True):
    """Return three subjects to learn from, and one whose loss is watched, or none."""
    learned = SUBJECTS[:3]
    if not watched:
        return Training(tuple(map(texts, learned)), (), sets(learned), None)
    last = SUBJECTS[3:]
    return Training(tuple(map(texts, learned)), tuple(map(texts, last)), sets(learned), sets(last))
