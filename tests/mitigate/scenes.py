"""A few subjects of the scenes, small enough to train on in a second."""

import numpy as np

from equipoise.cli.mitigation_world import image_sets, subject_texts
from equipoise.mitigate import Training
from equipoise.mitigate.measuring import Test
from equipoise.planted.scenes.embed import load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_sets

LEARNED, WATCHED, WITHHELD = SUBJECTS[:4], SUBJECTS[4:6], SUBJECTS[6:9]
TEXTS = {subject: subject_texts(subject) for subject in SUBJECTS}


def base():
    return load_clip("biased")


def sets(seed=11, per_subject=1):
    return image_sets(render_sets(per_subject, seed=seed), seed=seed)


def training(images=True):
    sides = (LEARNED, WATCHED)
    texts = (tuple(TEXTS[name] for name in side) for side in sides)
    return Training(*texts, *(sets().of(side) if images else None for side in sides))


def test_data():
    return Test(sets(seed=2, per_subject=3).of((*LEARNED, *WITHHELD)), TEXTS)


test_data.__test__ = False


def weights(folder):
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[k], second[k]) for k in first)
