"""Corrected shares of hues, held against the hues that the pixels of the images have.

The small Stable Diffusion of the scenes paints; the small CLIP names hues, zero-shot, of pictures
that are dimmed and noisy, so that it errs. Its errors are counted on rendered scenes whose hue is
known, dimmed likewise: rendered, not painted, so transport is put to the test, too.
"""

import numpy as np
import pytest

from equipoise.evidence import zero_shot
from equipoise.metrics import Confusion, corrected_shares
from equipoise.planted.scenes.embed import embed_groups, embed_images, load_clip
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, draw_poses, render
from equipoise.stats import Bootstrap
from slow.planted_images import neutral
from tools.planted.judging import hue_of
from tools.planted.worlds import WORLDS, attributed_prompts

# One worker makes the images for all of them.
pytestmark = [pytest.mark.slow(whole=True), pytest.mark.xdist_group("planted pipeline")]

RUNS, EACH, LABELLED = 2, 12, 720
COLOUR, NOISE = 0.16, 30.0


def dimmed(images, seed):
    """Take most of the colour away, and add noise."""
    rng = np.random.default_rng(seed)
    pixels = images.astype(np.float64)
    grey = pixels.mean(axis=3, keepdims=True)
    noisy = grey + COLOUR * (pixels - grey) + NOISE * rng.standard_normal(pixels.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def test_intervals_cover_the_hues_in_the_pixels():
    clip, hues = load_clip("biased"), np.array(HUES)
    texts = [[p for subject in SUBJECTS for p in attributed_prompts(subject, hue)] for hue in HUES]
    classes = embed_groups(clip, texts)

    def classify(images):
        return hues[zero_shot(embed_images(clip, images), classes, scale=100.0).top[:, 0]]

    rng = np.random.default_rng(0)
    place = np.arange(LABELLED)
    hue, frame = (rng.integers(len(names), size=LABELLED) for names in (HUES, FRAMES))
    scenes = render(draw_poses(place % len(SUBJECTS), hue, frame, rng))
    labels = classify(dimmed(scenes, 1))
    confusion, _ = Confusion.of_labels(hues[hue], labels, outcomes=HUES)
    # It errs, and can be corrected.
    assert 0.5 < (labels == hues[hue]).mean() < 0.97
    assert confusion.condition < 10

    plain = neutral()[1.0].images
    by_subject = plain.reshape(len(SUBJECTS), -1, *plain.shape[1:])
    favourites, pixel_hues, called, hits = [], [], [], []
    for run in range(RUNS):
        images = np.concatenate(by_subject[:, run * EACH : (run + 1) * EACH])
        run_hues, named = hues[hue_of(images)], classify(dimmed(images, 10 + run))
        pixel_hues.append(run_hues)
        called.append(named)
        for number, subject in enumerate(SUBJECTS):
            rows = slice(number * EACH, (number + 1) * EACH)
            estimate = corrected_shares(
                named[rows], confusion, classes=HUES, resampling=Bootstrap(500, 50), name=subject
            )
            covered = {
                part.subject: part.low <= (run_hues[rows] == part.subject).mean() <= part.high
                for part in estimate.parts
                if part.metric == "corrected_share"
            }
            hits += covered.values()
            favourites.append(covered[HUES[WORLDS["biased"].hue[number]]])
    assert np.mean(favourites) >= 0.85
    assert np.mean(hits) >= 0.85

    # Over all images, where chance is small, the correction shows: what was said is far off.
    overall = corrected_shares(
        np.concatenate(called), confusion, classes=HUES, resampling=Bootstrap(500, 50)
    )
    pixels = np.concatenate(pixel_hues)
    errors = {
        kind: np.mean(
            [
                abs(part.value - (pixels == part.subject).mean())
                for part in overall.parts
                if part.metric == kind
            ]
        )
        for kind in ("corrected_share", "raw_share")
    }
    assert errors["corrected_share"] < 0.6 * errors["raw_share"]
