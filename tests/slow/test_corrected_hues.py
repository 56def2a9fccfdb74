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
    texts = [[p for one in SUBJECTS for p in attributed_prompts(one, hue)] for hue in HUES]
    classes = embed_groups(clip, texts)

    def said(images):
        return hues[zero_shot(embed_images(clip, images), classes, scale=100.0).top[:, 0]]

    rng = np.random.default_rng(0)
    place = np.arange(LABELLED)
    hue, frame = (rng.integers(len(names), size=LABELLED) for names in (HUES, FRAMES))
    scenes = render(draw_poses(place % len(SUBJECTS), hue, frame, rng))
    labels = said(dimmed(scenes, 1))
    known, _ = Confusion.of_labels(hues[hue], labels, outcomes=HUES)
    # It errs, and can be corrected.
    assert 0.5 < (labels == hues[hue]).mean() < 0.97
    assert known.condition < 10

    plain = neutral()[1.0].images
    by_subject = plain.reshape(len(SUBJECTS), -1, *plain.shape[1:])
    favourites, shown, called, every = [], [], [], []
    for run in range(RUNS):
        images = np.concatenate(by_subject[:, run * EACH : (run + 1) * EACH])
        seen, named = hues[hue_of(images)], said(dimmed(images, 10 + run))
        shown.append(seen)
        called.append(named)
        for number, subject in enumerate(SUBJECTS):
            here = slice(number * EACH, (number + 1) * EACH)
            found = corrected_shares(
                named[here], known, classes=HUES, resampling=Bootstrap(500, 50), name=subject
            )
            covered = {
                one.subject: one.low <= (seen[here] == one.subject).mean() <= one.high
                for one in found.parts
                if one.metric == "corrected_share"
            }
            every += covered.values()
            favourites.append(covered[HUES[WORLDS["biased"].hue[number]]])
    assert np.mean(favourites) >= 0.85
    assert np.mean(every) >= 0.85

    # Over all images, where chance is small, the correction shows: what was said is far off.
    whole = corrected_shares(
        np.concatenate(called), known, classes=HUES, resampling=Bootstrap(500, 50)
    )
    pixels = np.concatenate(shown)
    apart = {
        kind: np.mean(
            [
                abs(one.value - (pixels == one.subject).mean())
                for one in whole.parts
                if one.metric == kind
            ]
        )
        for kind in ("corrected_share", "raw_share")
    }
    assert apart["corrected_share"] < 0.6 * apart["raw_share"]
