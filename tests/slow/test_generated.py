"""The shipped text-to-image model: balanced prompts halve the share gap of withheld prompts."""

import pytest

from equipoise.cli.mitigation_world import image_sets, subject_texts
from equipoise.mitigate import BalancedPrompts, GeneratedTest, cross_fit
from equipoise.models import Sampling, load_generator
from equipoise.planted.scenes import diffusion, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_sets

pytestmark = pytest.mark.slow(whole=True)


def test_balanced_prompts_transfer_at_guidance_three(tmp_path):
    texts = {subject: subject_texts(subject) for subject in SUBJECTS}
    images = image_sets(render_sets(8, seed=3), seed=3)
    sampling = Sampling(steps=25, guidance=3.0)
    test = GeneratedTest(images, texts, load_clip("null"), sampling, 8, tmp_path, seed=11)
    base = load_generator(f"diffusers:{diffusion.WEIGHTS}", device="cpu")
    result = cross_fit(base, [BalancedPrompts()], texts, images, test, count=4)
    assert result.outcomes[0].conclusion == "transfers"
    rows = {(row.measure, row.about): row for row in result.rows}
    for attribute in ("hue", "frame"):
        gap = rows["share_gap", attribute]
        assert gap.after <= gap.before / 2
        assert gap.share_low > 0.5
    assert rows["accuracy", "generated images"].difference >= -0.02
