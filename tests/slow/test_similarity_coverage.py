"""The similarity gap on simulated data: tests keep their level, intervals cover."""

import math
from itertools import product

import numpy as np
import pytest

from equipoise.metrics import normalized_similarity_mad, similarity_gap
from equipoise.stats import Bootstrap, Permutation

pytestmark = pytest.mark.slow
# Of many concepts a case takes minutes.
WHOLE = pytest.mark.slow(whole=True)

SAMPLES = 600
COUNTS = {"sets": 12, "units": 40, "images": 60}
RESAMPLED = Bootstrap(400, 1, resolution=1.0)
# Of four groups, the first of which lies 1 above the others.
EFFECTS = {"a": 0.75, "b": -0.25, "c": -0.25, "d": -0.25}


def drawn(seed, kind, gap, *, groups=4):
    """Scores with a true gap: the first group lies above the others, which are alike."""
    rng = np.random.default_rng(seed)
    names = np.array([*"abcdefgh"[:groups]])
    count = COUNTS[kind]
    if kind == "sets":
        group, owner = np.tile(names, count), np.repeat(np.arange(count), groups)
    elif kind == "units":
        owner = np.repeat(np.arange(count), 5)
        group = names[owner % groups]
    else:
        owner, group = np.arange(count), names[np.arange(count) % groups]
    shared = 2.0 if kind != "images" else 0.0
    scores = shared * rng.standard_normal(owner.max() + 1)[owner]
    scores += rng.standard_normal(len(group)) + gap * (group == "a")
    keyword = {"sets": "sets", "units": "units"}.get(kind)
    return scores, group, {keyword: owner.astype(str)} if keyword else {}


@pytest.mark.parametrize("kind", COUNTS)
def test_without_a_gap_p_and_band_keep_their_level(kind):
    inside, ps = [], []
    for seed in range(SAMPLES):
        scores, groups, options = drawn(seed, kind, 0.0)
        estimate = similarity_gap(
            scores, groups, **options, resampling=Permutation(199, resolution=0.01), rng=seed
        )
        inside.append(estimate.chance.low <= estimate.value <= estimate.chance.high)
        ps.append(estimate.p_value)
    error = 3 * math.sqrt(0.05 * 0.95 / SAMPLES)
    assert np.mean(np.array(ps) <= 0.05) <= 0.05 + error
    assert abs(np.mean(inside) - 0.95) <= error + 0.005


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("groups", [2, 4])
def test_intervals_cover_the_true_gap(kind, gap, groups):
    covered = []
    for seed in range(SAMPLES):
        scores, group, options = drawn(seed, kind, gap, groups=groups)
        ends = similarity_gap(scores, group, **options, resampling=RESAMPLED, rng=seed).interval()
        covered.append(ends.low <= gap + 1e-12 and gap <= ends.high + 1e-12)
    assert np.mean(covered) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / SAMPLES) - 0.005


@pytest.mark.parametrize("kind", COUNTS)
def test_intervals_of_effects_cover(kind):
    hits = []
    for seed in range(SAMPLES):
        scores, groups, options = drawn(seed, kind, 1.0)
        estimate = similarity_gap(scores, groups, **options, resampling=RESAMPLED, rng=seed)
        parts = [p for p in estimate.parts if p.metric == "group_effect"]
        hits += [p.low <= EFFECTS[p.by_group[0].group] <= p.high for p in parts]
    # Freedom is that of the smallest group, so intervals of the others are a little wide.
    assert 0.94 <= np.mean(hits) <= 0.985


MEANS = [
    case
    for case in product((2, 4), (3, 10, 40), (0.0, 0.1, 0.3, 0.5), ("one", "all"))
    if case[2:] != (0.0, "all")
]


def mean_case(n_groups, concepts, gap, favour, samples, metric=similarity_gap):
    """Coverage of the mean over concepts, and its width over those of two references.

    50 images a group share half of their variance among all concepts, which favour the first
    group ("one") or each in turn ("all"). One reference knows which groups are farthest apart;
    the other is the mean of the ends of single concepts.
    """
    covered, widths, informed, single = [], [], [], []
    group = np.repeat(np.arange(n_groups), 50)
    top = np.arange(concepts) % n_groups if favour == "all" else np.zeros(concepts, dtype=int)
    low = (top + 1) % n_groups
    truth = gap * (1.0 if metric is similarity_gap else 2.0 * (n_groups - 1) / n_groups)
    for seed in range(samples):
        rng = np.random.default_rng([seed, n_groups, concepts, round(100 * gap)])
        shared = rng.standard_normal(len(group))
        noise = (rng.standard_normal((concepts, len(group))) + shared) / math.sqrt(2)
        scores = noise + gap * (group == top[:, None])
        estimate = metric(
            scores, group.astype(str), resampling=Bootstrap(200, 1, resolution=1.0), rng=seed
        )
        ends = estimate.interval()
        covered.append(ends.low <= truth + 1e-12 and truth <= ends.high + 1e-12)
        assert ends.low <= estimate.corrected <= ends.high
        parts = [part for part in estimate.parts if part.metric == estimate.metric]
        single.append(np.mean([part.high - part.low for part in parts]))
        widths.append(ends.high - ends.low)
        difference = ((group == top[:, None]) * noise - (group == low[:, None]) * noise).mean(
            axis=0
        )
        informed.append(2 * 1.96 * np.linalg.norm(difference) / 50)
    return np.mean(covered), *(
        np.mean(widths) / np.mean(reference_widths) for reference_widths in (informed, single)
    )


@pytest.mark.parametrize(
    ("n_groups", "concepts", "gap", "favour"),
    [pytest.param(*case, marks=WHOLE if case[1] > 3 else ()) for case in MEANS],
)
def test_the_interval_of_the_mean_over_concepts_covers(n_groups, concepts, gap, favour):
    samples = 60 if concepts < 40 else 25
    coverage, informed, single = mean_case(n_groups, concepts, gap, favour, samples)
    assert coverage >= 0.92 - 3 * math.sqrt(0.08 * 0.92 / samples)
    assert (informed if favour == "one" else single) <= 1.5


@pytest.mark.parametrize("gap", [0.0, 0.3])
@pytest.mark.parametrize("concepts", [3, pytest.param(10, marks=WHOLE)])
def test_the_interval_of_spreads_covers(concepts, gap):
    coverage, *_ = mean_case(4, concepts, gap, "one", 60, normalized_similarity_mad)
    assert coverage >= 0.92 - 3 * math.sqrt(0.08 * 0.92 / 60)
