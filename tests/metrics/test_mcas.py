"""MCAS, xMCAS, diffusion bias and amplification: goldens, parts, draws, bad input."""

import math
from itertools import combinations

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import (
    PairScores,
    association_score,
    bias_amplification,
    diffusion_bias,
    mcas,
    offset,
    xmcas,
)
from equipoise.stats import Bootstrap, Permutation
from goldens import Golden
from prediction_rows import part

GOLDEN = Golden("mcas.json")
NAMES = ("target_images", "target_texts", "a_images", "a_texts", "b_images", "b_texts")
FEW = Bootstrap(replicates=200, permutations=200)


def golden_sets():
    return {name: np.array(GOLDEN[name]) for name in NAMES}


def sets(seed, strength=0.0, images=20, texts=12, dimension=8):
    rng = np.random.default_rng(seed)
    sizes = {name: texts if name.endswith("texts") else images for name in NAMES}
    named_sets = {name: rng.normal(size=(size, dimension)) for name, size in sizes.items()}
    for name, sign in (("target", 1), ("a", 1), ("b", -1)):
        for kind in ("images", "texts"):
            named_sets[f"{name}_{kind}"][:, 0] += sign * strength
    return named_sets


def test_goldens():
    estimate = mcas(**golden_sets())
    for component in estimate.parts:
        assert component.value == pytest.approx(GOLDEN[component.metric], abs=1e-12)
    assert estimate.value == pytest.approx(GOLDEN["mcas"], abs=1e-12)
    assert diffusion_bias(estimate).value == pytest.approx(GOLDEN["diffusion_bias"], abs=1e-12)
    amplified = bias_amplification(estimate)
    assert amplified.value == pytest.approx(GOLDEN["bias_amplification"], abs=1e-12)
    third = np.array(GOLDEN["c_images"]), np.array(GOLDEN["c_texts"])
    angle = xmcas(*golden_sets().values(), *third, offset=GOLDEN["theta_offset"])
    assert angle.value == pytest.approx(GOLDEN["theta"], abs=1e-12)
    assert part(angle.by, "euclidean", "")["value"] == pytest.approx(GOLDEN["euclidean"], abs=1e-12)
    near = part(angle.by, "similarity", "c")["value"]
    assert near == pytest.approx(GOLDEN["third_similarity"], abs=1e-12)


@pytest.mark.parametrize("dimension", [8, 50])
def test_components_are_association_scores(dimension):
    """More dimensions than targets are resampled as similarities."""
    named_sets = sets(1, 0.4, dimension=dimension)
    estimate = mcas(**named_sets, resample_texts=True, resampling=FEW, rng=3)
    for name, kind, target in (
        ("II", "images", "target_images"),
        ("ITP", "images", "target_texts"),
        ("ITA", "texts", "target_images"),
        ("TT", "texts", "target_texts"),
    ):
        alone = association_score(
            named_sets[target],
            named_sets[f"a_{kind}"],
            named_sets[f"b_{kind}"],
            resampling=FEW,
            rng=3,
        )
        component = part(estimate.by, name, "")
        assert component["value"] == pytest.approx(alone.value, abs=1e-13)
        similarities = [group["value"] for group in component["by_group"]]
        assert similarities == pytest.approx([group.value for group in alone.parts[0].by_group])
        width = alone.interval().high - alone.interval().low
        assert component["high"] - component["low"] == pytest.approx(width, rel=0.3)
    up = np.array([[1.0, 0.0]])
    assert mcas(up, up, up, up, -up, -up, resampling=None).value == 8.0


def test_exact_p_is_that_of_all_exchanges():
    named_sets = sets(2, images=3, texts=2)
    estimate = mcas(**named_sets, resampling=Permutation())
    unit = {name: v / np.linalg.norm(v, axis=1)[:, None] for name, v in named_sets.items()}
    centre = unit["target_images"].mean(axis=0) + unit["target_texts"].mean(axis=0)

    def apart(kind):
        """Differences in means and their variances, of the sets as they are and of all others."""
        pooled = np.concatenate([unit[f"{g}_{kind}"] @ centre for g in "ab"])
        size = len(pooled) // 2
        halves = [
            (pooled[[*chosen]], np.delete(pooled, chosen))
            for chosen in combinations(range(len(pooled)), size)
        ]
        return np.array(
            [(x.mean() - y.mean(), (x.var(ddof=1) + y.var(ddof=1)) / size) for x, y in halves]
        ).T

    def p_of(ratios):
        above, below = (ratios >= ratios[0] - 1e-9).mean(), (ratios <= ratios[0] + 1e-9).mean()
        return min(1.0, 2 * min(above, below))

    images, texts = apart("images"), apart("texts")
    assert estimate.p_value == pytest.approx(p_of(images[0] / np.sqrt(images[1])), abs=1e-15)
    assert "all 20 partitions enumerated" in estimate.null_drawn
    # Texts as given give the same part of MCAS whatever images are exchanged.
    assert estimate.chance.mean == pytest.approx(texts[0, 0], abs=1e-12)
    pairs = (images[:, :, None] + texts[:, None]).reshape(2, -1)
    varied = estimate.parts[4]
    assert (varied.metric, varied.subject) == ("mcas", "texts resampled")
    assert varied.p_value == pytest.approx(p_of(pairs[0] / np.sqrt(pairs[1])), abs=1e-15)
    estimate = mcas(**sets(2, images=3, texts=12), resample_texts=True, resampling=FEW)
    assert estimate.null_drawn.startswith("images and texts of a and b are exchangeable")


@pytest.mark.parametrize("resampled", [False, True])
def test_interval_and_p_of_mcas_answer_one_question(resampled):
    """Leaning texts that stay fixed add no evidence about images."""
    hits = np.zeros(2)
    for seed in range(60):
        named_sets = sets(seed, images=15, texts=10)
        for kind, sign in (("a_texts", 1), ("b_texts", -1)):
            named_sets[kind][:, 0] += sign * 2.0
            named_sets["target_texts"][:, 0] += 1.0
        estimate = mcas(**named_sets, resampling=Bootstrap(200, 199), rng=seed)
        tested = estimate.parts[4] if resampled else estimate
        low, high = (
            (tested.low, tested.high)
            if resampled
            else (tested.interval().low, tested.interval().high)
        )
        middle = tested.chance if resampled else tested.chance.mean
        hits += [tested.p_value <= 0.05, not low <= middle <= high]
    if resampled:
        assert hits.min() >= 50
    else:
        assert hits.max() <= 8


def test_swapped_groups_and_valid_p_values():
    named_sets = sets(3, 0.5)
    swapped = [named_sets[n] for n in (*NAMES[:2], *NAMES[4:], *NAMES[2:4])]
    first, second = mcas(**named_sets, resampling=None), mcas(*swapped, resampling=None)
    assert second.value == pytest.approx(-first.value, abs=1e-14)
    assert (first.params["leans_to"], second.params["leans_to"]) == ("a", "b")
    draws = [mcas(**sets(100 + s), resampling=Permutation(99), rng=s).p_value for s in range(100)]
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 100) ** 0.5


def test_prompts_are_fixed_unless_asked_for():
    estimate = mcas(**sets(4, 0.3), resampling=FEW)
    assert estimate.method.endswith("; target_texts, a_texts, b_texts fixed")
    text = part(estimate.by, "TT", "")
    assert text["low"] == pytest.approx(text["value"], abs=1e-9)
    wide = mcas(**sets(4, 0.3), resample_texts=True, resampling=FEW)
    assert part(wide.by, "TT", "")["high"] > text["high"]
    with pytest.raises(InputError, match="^resample_texts: a_texts has 9"):
        mcas(**sets(4, texts=9), resample_texts=True)


def test_only_results_of_mcas_have_components():
    for metric in (diffusion_bias, bias_amplification):
        with pytest.raises(InputError, match="^components: offset"):
            metric(offset([1.0]))


def test_amplification_divides_by_the_texts_where_they_have_an_association():
    up = np.array([[1.0, 0.0]])
    assert bias_amplification(mcas(up, up, up, up, up, up, resampling=None)).reason
    estimate = mcas(**sets(6), resample_texts=True, resampling=FEW)
    amplified = bias_amplification(estimate)
    assert part(estimate.by, "TT", "")["low"] < 0 < part(estimate.by, "TT", "")["high"]
    assert amplified.reason.startswith("the 95 % interval of TT")
    assert math.isnan(amplified.value)
    assert math.isnan(amplified.interval().low)
    strong = bias_amplification(mcas(**sets(6, 1.5), resample_texts=True, resampling=FEW))
    assert strong.interval().low < strong.value < strong.interval().high


def test_diffusion_bias_has_chance_and_interval_of_its_components():
    estimate = diffusion_bias(mcas(**sets(7, 0.6), resampling=FEW))
    assert estimate.chance.low >= 0
    assert estimate.interval().low <= estimate.value <= estimate.interval().high


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_intervals_of_diffusion_bias_hold_value_and_truth(strength):
    rng, inside, n_repeats = np.random.default_rng(5), 0, 120
    texts = {name: rows for name, rows in sets(5, strength).items() if name.endswith("texts")}
    large = sets(6, strength, images=100_000) | texts
    truth = diffusion_bias(mcas(**large, resampling=None)).value
    for _ in range(n_repeats):
        named_sets = sets(int(rng.integers(1 << 30)), strength, images=30) | texts
        estimate = diffusion_bias(mcas(**named_sets, resampling=Bootstrap(200, 10)))
        ends = estimate.interval()
        assert ends.low <= estimate.value <= ends.high
        inside += ends.low <= truth <= ends.high
    assert inside / n_repeats >= 0.92


@pytest.mark.parametrize(
    ("scores", "offset", "theta", "distance"),
    [
        # Neutral: mcas 0 and n = 1/3 give atan(1/3) = 18.43 degrees.
        ([0.2, 0.2, 1 / 3], 0.0, math.radians(18.4349), 0.0),
        # Erratum of Table 9.3: CEO has a distance of 0.156, printed 0.50.
        ([0.02, 0.0, math.tan(0.46) * (1 - 0.08 + 0.0227)], 0.0227, 0.46, 0.156),
    ],
)
def test_angles_of_the_source(scores, offset, theta, distance):
    a, b, c = [0], [1], [2]
    pairs = PairScores([scores])
    estimate = xmcas([0], [0], a, a, b, b, c, c, offset=offset, similarity=pairs, resampling=None)
    assert estimate.value == pytest.approx(theta, abs=1e-5)
    assert part(estimate.by, "euclidean", "")["value"] == pytest.approx(distance, abs=1e-3)


def test_several_further_groups():
    more = {"c": np.array(GOLDEN["c_images"]), "d": np.array(GOLDEN["b_images"])}
    texts = {"c": np.array(GOLDEN["c_texts"]), "d": np.array(GOLDEN["b_texts"])}
    estimate = xmcas(*golden_sets().values(), more, texts, resampling=FEW)
    n = [part(estimate.by, "similarity", name)["value"] for name in "cd"]
    assert n[0] == pytest.approx(GOLDEN["third_similarity"], abs=1e-12)
    composite = GOLDEN["mcas"]
    distance = math.sqrt(sum((similarity - 0.25) ** 2 for similarity in n) + composite**2)
    assert part(estimate.by, "euclidean", "")["value"] == pytest.approx(distance, abs=1e-12)
    assert estimate.value == pytest.approx(math.atan2(sum(n) / 2, 1 - abs(composite)), abs=1e-12)
    assert estimate.chance is None
    single = [part(estimate.by, "theta", name)["value"] for name in "cd"]
    assert single == pytest.approx([math.atan2(similarity, 1 - abs(composite)) for similarity in n])


@pytest.mark.parametrize(
    ("images", "texts", "offset", "where"),
    [
        (np.ones((1, 12)), np.ones((1, 12)), math.inf, "offset=inf"),
        ({"c": 1}, {"d": 1}, 0.0, "c_images"),
        ({"a": 1}, {"a": 1}, 0.0, "c_images .*'a'"),
    ],
)
def test_bad_further_groups(images, texts, offset, where):
    with pytest.raises(InputError, match=where):
        xmcas(*golden_sets().values(), images, texts, offset=offset)


def test_offset_is_the_mean_size_of_neutral_scores():
    estimate = offset([0.01, -0.03, 0.02])
    assert estimate.value == pytest.approx(0.02)
    assert estimate.interval().low < 0.02 < estimate.interval().high
    assert math.isnan(offset([0.1]).interval().low)
    with pytest.raises(InputError, match="^mcas_values: "):
        offset([])
