"""A few subjects of the scenes, small enough to train on in a second."""

from pathlib import Path
from typing import Any

import numpy as np

from equipoise.cli.mitigation_world import image_sets, subject_texts
from equipoise.mitigate import ImageSets, SubjectTexts, Training
from equipoise.mitigate.measuring import Test
from equipoise.planted.scenes.embed import load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_sets

LEARNED, WATCHED, WITHHELD = SUBJECTS[:4], SUBJECTS[4:6], SUBJECTS[6:9]
TEXTS: dict[str, SubjectTexts] = {subject: subject_texts(subject) for subject in SUBJECTS}


def base() -> Any:
    return load_clip("biased")


def sets(seed: int = 11, per_subject: int = 1) -> ImageSets:
    return image_sets(render_sets(per_subject, seed=seed), seed=seed)


def training(images: bool = True) -> Training:
    every = sets() if images else None
    return Training(
        tuple(TEXTS[name] for name in LEARNED),
        tuple(TEXTS[name] for name in WATCHED),
        None if every is None else every.of(LEARNED),
        None if every is None else every.of(WATCHED),
    )


def test_data() -> Test:
    return Test(sets(seed=2, per_subject=3).of((*LEARNED, *WITHHELD)), TEXTS)


test_data.__test__ = False  # type: ignore[attr-defined]


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
