"""The shipped text-to-image model of the scenes: audits of its images detect the planted bias.

On noise that was not looked at while the model was made.
"""

import numpy as np
import pytest

from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.render import HUES
from equipoise.planted.scenes.variants import BIASED
from slow.planted_images import neutral, told
from tools.planted.diffusion_measures import (
    distance_from_parity,
    find_associations,
    planted_shares,
    spearman,
)

# One worker makes the images for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("planted pipeline")]


# What takes minutes to make.
whole_only = pytest.mark.slow(whole=True)


@whole_only
def test_images_show_their_prompts():
    rates = told().rates
    assert rates["subject"] >= 0.9
    assert rates["hue"] >= 0.99
    assert rates["frame"] >= 0.99


@whole_only
def test_shares_without_guidance_rank_as_planted():
    plain = neutral()[1.0]
    planted = planted_shares(BIASED)
    assert spearman(planted, plain.favourites(BIASED)) >= 0.9
    distances = distance_from_parity(plain)
    np.testing.assert_allclose(distances, np.abs(plain.hue_shares - 1 / len(HUES)).sum(axis=1))
    assert spearman(planted, distances) >= 0.7


@whole_only
@pytest.mark.parametrize("encoder", CLIPS)
def test_association_scores_rank_as_planted(encoder):
    associations = find_associations(load_clip(encoder), neutral()[1.0], told(), BIASED)
    for name in ("II", "ITA", "mcas"):
        assert spearman(BIASED.hue_strength, associations[name]) >= 0.7, name


@whole_only
def test_guidance_amplifies_the_planted_bias():
    images = neutral()
    shares = [generated.favourites(BIASED).mean() for generated in images.values()]
    assert shares == sorted(shares)
    planted = planted_shares(BIASED)
    assert shares[0] < planted.mean() < shares[-1]
    # Where the favourite was planted weakly, its share falls: ranks are not all that is amplified.
    weak = planted < 0.3
    strong = images[3.0].favourites(BIASED) - images[1.0].favourites(BIASED)
    assert strong[~weak].mean() > strong[weak].mean()
