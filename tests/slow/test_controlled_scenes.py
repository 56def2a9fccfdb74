"""Control keeps scenes of a set alike: more than one noise alone does, on the planted pipeline."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import wilcoxon

from equipoise.counterfactuals.control import generate_controlled
from equipoise.counterfactuals.parts import Candidate, Group
from equipoise.models import Sampling
from equipoise.planted.scenes.captions import caption
from equipoise.planted.scenes.diffusion import load_generator
from equipoise.planted.scenes.render import HUES, SUBJECTS
from tools.planted.judging import hue_of
from tools.planted.measures import load_cnn

SETS = 36
SAMPLING = Sampling(steps=25, guidance=3.0)

# One worker makes the images for all of them.
pytestmark = [pytest.mark.slow(whole=True), pytest.mark.xdist_group("controlled scenes")]


def glyph(image):
    """The places of the glyph: it alone has colour."""
    colour = image.astype(float).max(axis=2) - image.min(axis=2)
    return colour > 0.4 * colour.max()


def centre(mask):
    return np.array(np.nonzero(mask)).mean(axis=1)


def likeness(images):
    """Mean over pairs of a set: intersection over union of glyphs, distance of their centres."""
    masks = [glyph(image) for image in images]
    pairs = [*combinations(masks, 2)]
    overlap = [(first & second).sum() / (first | second).sum() for first, second in pairs]
    distances = [np.linalg.norm(centre(first) - centre(second)) for first, second in pairs]
    return float(np.mean(overlap)), float(np.mean(distances))


@cache
def image_sets(share):
    """Sets of six hues, shape (sets, hues, height, width, 3), from the same noise at any share."""
    model = load_generator(device="cpu")
    sets = []
    for number in range(SETS):
        prompts = tuple(caption(SUBJECTS[number % len(SUBJECTS)], hue) for hue in HUES)
        group = Group("", prompts, prompts, (None,) * len(prompts))
        candidate = Candidate(group, 0, 1000 + number, number % len(HUES), share, share)
        images = generate_controlled(model, [candidate], SAMPLING)
        sets.append(np.stack([image for image in images if image is not None]))
    return np.stack(sets)


@pytest.mark.parametrize("share", [0.8, 0.6])
def test_sets_are_more_alike_than_by_one_noise_alone(share):
    alone, shared = (
        np.array([likeness(image_set) for image_set in image_sets(level)]) for level in (0.0, share)
    )
    overlap, distances = (shared - alone).T
    assert overlap.mean() > 0
    assert distances.mean() < 0
    assert wilcoxon(overlap, alternative="greater").pvalue < 0.01
    assert wilcoxon(distances, alternative="less").pvalue < 0.05


# Where all is shared in every step, some images take the hue of the base.
@pytest.mark.parametrize("share", [0.8, 0.0, 0.2, 0.4, 0.6])
def test_the_attribute_is_shown_all_the_same(share):
    images, judge = image_sets(share), load_cnn("null")
    shown_hues = np.array([hue_of(image_set) for image_set in images])
    assert (shown_hues == np.arange(len(HUES))).mean() >= 0.9
    subjects = judge.predict_proba(images.reshape(-1, *images.shape[2:])).argmax(axis=1)
    expected = np.repeat(np.arange(SETS) % len(SUBJECTS), len(HUES))
    assert (subjects == expected).mean() >= 0.85
