"""MCAS, xMCAS, diffusion bias and amplification: goldens, parts, draws, bad input."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from equipoise.core.errors import InputError
from equipoise.metrics.associations.amplification import bias_amplification, diffusion_bias
from equipoise.metrics.associations.mcas import components_of, mcas, resampled_components
from equipoise.metrics.associations.scores import association_score
from equipoise.metrics.associations.space import PairScores, embed
from equipoise.metrics.associations.xmcas import estimate_offset, xmcas
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from goldens import Golden
from prediction_rows import part

GOLDEN = Golden("mcas.json")
NAMES = ("target_images", "target_texts", "a_images", "a_texts", "b_images", "b_texts")
FEW = Bootstrap(replicates=200, permutations=200)
Sets = dict[str, npt.NDArray[np.float64]]


def golden_sets() -> Sets:
    return {name: np.array(GOLDEN[name]) for name in NAMES}


def sets(seed: int, strength: float = 0.0, images: int = 20, texts: int = 12) -> Sets:
    rng = np.random.default_rng(seed)
    sizes = {name: texts if name.endswith("texts") else images for name in NAMES}
    found = {name: rng.normal(size=(size, 8)) for name, size in sizes.items()}
    push = strength * np.eye(8)[0]
    for name, sign in (("target", 1), ("a", 1), ("b", -1)):
        for kind in ("images", "texts"):
            found[f"{name}_{kind}"] += sign * push
    return found


def test_goldens() -> None:
    found = mcas(**golden_sets())
    for name in ("II", "ITP", "ITA", "TT"):
        assert part(found.by, name, "")["value"] == pytest.approx(GOLDEN[name], abs=1e-12)
    assert found.value == pytest.approx(GOLDEN["mcas"], abs=1e-12)
    assert diffusion_bias(found).value == pytest.approx(GOLDEN["diffusion_bias"], abs=1e-12)
    amplified = bias_amplification(found)
    assert amplified.value == pytest.approx(GOLDEN["bias_amplification"], abs=1e-12)
    third = np.array(GOLDEN["c_images"]), np.array(GOLDEN["c_texts"])
    angle = xmcas(*golden_sets().values(), *third, offset=GOLDEN["theta_offset"])
    assert angle.value == pytest.approx(GOLDEN["theta"], abs=1e-12)
    assert part(angle.by, "euclidean", "")["value"] == pytest.approx(GOLDEN["euclidean"], abs=1e-12)
    assert part(angle.by, "similarity", "c")["value"] == pytest.approx(
        GOLDEN["third_similarity"], abs=1e-12
    )


def test_components_are_association_scores() -> None:
    given = sets(1, 0.4)
    found = mcas(**given, resampling=FEW)
    for name, attributes, targets in (
        ("II", "images", "target_images"),
        ("ITP", "images", "target_texts"),
        ("ITA", "texts", "target_images"),
        ("TT", "texts", "target_texts"),
    ):
        alone = association_score(
            given[targets], given[f"a_{attributes}"], given[f"b_{attributes}"], resampling=None
        )
        assert part(found.by, name, "")["value"] == pytest.approx(alone.value, abs=1e-13)


def test_the_range_exceeds_what_the_source_prints() -> None:
    up = np.array([[1.0, 0.0]])
    assert mcas(up, up, up, up, -up, -up, resampling=None).value == 8.0


def test_exact_p_is_that_of_all_exchanges() -> None:
    given = sets(2, images=3, texts=2)
    found = mcas(**given, resampling=Exact())
    unit = {name: v / np.linalg.norm(v, axis=1)[:, None] for name, v in given.items()}
    centre = unit["target_images"].mean(axis=0) + unit["target_texts"].mean(axis=0)
    totals = [0.0]
    for kind, n in (("images", 3), ("texts", 2)):
        pooled = np.concatenate([unit[f"a_{kind}"], unit[f"b_{kind}"]]) @ centre
        differences = [
            pooled[list(some)].mean() - np.delete(pooled, some).mean()
            for some in combinations(range(2 * n), n)
        ]
        totals = [one + other for one in totals for other in differences]
    above = np.mean(np.array(totals) >= found.value - 1e-12)
    below = np.mean(np.array(totals) <= found.value + 1e-12)
    assert len(totals) == 20 * 6
    assert found.p_value == pytest.approx(min(1.0, 2 * min(above, below)), abs=1e-15)
    assert "all 120 enumerated; exact" in found.null


def test_swapping_groups_negates_and_the_direction_is_named() -> None:
    given = sets(3, 0.5)
    swapped = dict(
        zip(NAMES, (given[n] for n in (*NAMES[:2], *NAMES[4:], *NAMES[2:4])), strict=True)
    )
    first, second = (mcas(**one, resampling=None) for one in (given, swapped))
    assert second.value == pytest.approx(-first.value, abs=1e-14)
    assert (first.params["leans_to"], second.params["leans_to"]) == ("a", "b")


def test_prompts_are_fixed_unless_asked_for() -> None:
    found = mcas(**sets(4, 0.3), resampling=FEW)
    assert found.method.endswith("; target_texts, a_texts, b_texts fixed")
    text = part(found.by, "TT", "")
    assert text["low"] == pytest.approx(text["value"], abs=1e-9)
    wide = mcas(**sets(4, 0.3), resample_texts=True, resampling=FEW)
    assert part(wide.by, "TT", "")["high"] > text["high"]
    with pytest.raises(InputError, match="a_texts has 4 texts; expected at least 10 to draw infer"):
        mcas(**golden_sets(), resample_texts=True)


def test_planted_strength_is_recovered_in_order_and_chance_is_valid() -> None:
    values = [mcas(**sets(5, s), resampling=None).value for s in (0.0, 0.2, 0.5, 1.0)]
    assert values == sorted(values)
    draws = [mcas(**sets(100 + s), resampling=Permutation(99), rng=s).p_value for s in range(150)]
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 150) ** 0.5


def test_bias_amplification_is_not_estimable_where_texts_may_have_no_association() -> None:
    found = mcas(**sets(6), resample_texts=True, resampling=FEW)
    low, high = part(found.by, "TT", "")["low"], part(found.by, "TT", "")["high"]
    assert low < 0 < high
    amplified = bias_amplification(found)
    assert math.isnan(amplified.value)
    assert amplified.reason == f"the 95 % interval of TT, {low:.3g} to {high:.3g}, contains 0"
    assert math.isnan(amplified.interval().low)
    strong = bias_amplification(mcas(**sets(6, 1.5), resample_texts=True, resampling=FEW))
    assert strong.interval().low < strong.value < strong.interval().high


def test_amplification_divides_by_the_texts() -> None:
    given = {"II": 0.1, "ITP": 0.2, "ITA": -0.5, "TT": -0.1}
    assert bias_amplification(given).value == pytest.approx(1.5)
    assert diffusion_bias(given).value == pytest.approx(0.0)
    nothing = bias_amplification(given | {"TT": 0.0})
    assert nothing.reason == "the association of the texts (TT) is 0"


def test_diffusion_bias_has_chance_and_interval_of_its_components() -> None:
    found = diffusion_bias(mcas(**sets(7, 0.6), resampling=FEW))
    assert found.chance is not None
    assert found.chance.low >= 0
    assert found.interval().low <= found.value <= found.interval().high
    # Without resampling there are components and no draws.
    bare = diffusion_bias(mcas(**sets(7, 0.6), resampling=None))
    assert bare.value == found.value
    assert bare.p_value is None


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({"II": 1.0}, "components: no 'ITP'; expected II, ITP, ITA, TT"),
        ({"II": 1, "ITP": 1, "ITA": 1, "TT": math.nan}, r"\[1.0, 1.0, 1.0, nan\] are not all fin"),
        (estimate_offset([1.0]), "components: offset has none; pass what mcas returned"),
    ],
)
def test_bad_components(components: Any, message: str) -> None:
    for metric in (diffusion_bias, bias_amplification):
        with pytest.raises(InputError, match=message):
            metric(components)


def test_neutral_point_of_three_groups() -> None:
    """mcas 0 and n = 1/3 give atan(1/3) = 18.43 degrees and no distance."""
    scores = np.array([[0.2, 0.2, 1 / 3]])
    a, b, c = [0], [1], [2]
    found = xmcas([0], [0], a, a, b, b, c, c, similarity=PairScores(scores), resampling=None)
    assert math.degrees(found.value) == pytest.approx(18.43, abs=0.005)
    assert part(found.by, "euclidean", "")["value"] == pytest.approx(0.0, abs=1e-9)


def test_erratum_of_table_9_3() -> None:
    """CEO: mcas 0.08 and theta 0.46 with k = 0.0227 give a distance of 0.156, printed 0.50."""
    third = math.tan(0.46) * (1 - 0.08 + 0.0227)
    assert third == pytest.approx(0.467, abs=5e-4)
    scores = np.array([[0.02, 0.0, third]])
    a, b, c = [0], [1], [2]
    pairs = PairScores(scores)
    found = xmcas([0], [0], a, a, b, b, c, c, offset=0.0227, similarity=pairs, resampling=None)
    assert found.value == pytest.approx(0.46, abs=1e-9)
    assert part(found.by, "euclidean", "")["value"] == pytest.approx(0.156, abs=1e-3)


def test_several_further_groups() -> None:
    given = golden_sets()
    more = {"c": np.array(GOLDEN["c_images"]), "d": np.array(GOLDEN["b_images"])}
    texts = {"c": np.array(GOLDEN["c_texts"]), "d": np.array(GOLDEN["b_texts"])}
    found = xmcas(*given.values(), more, texts, resampling=FEW)
    n = [part(found.by, "similarity", name)["value"] for name in "cd"]
    assert n[0] == pytest.approx(GOLDEN["third_similarity"], abs=1e-12)
    composite = GOLDEN["mcas"]
    distance = math.sqrt(sum((one - 0.25) ** 2 for one in n) + composite**2)
    assert part(found.by, "euclidean", "")["value"] == pytest.approx(distance, abs=1e-12)
    assert found.value == pytest.approx(math.atan2(sum(n) / 2, 1 - abs(composite)), abs=1e-12)
    assert found.chance is None
    assert found.no_chance.startswith("an angle between similarities")


@pytest.mark.parametrize(
    ("images", "texts", "offset", "message"),
    [
        (np.ones((1, 12)), np.ones((1, 12)), math.inf, "offset=inf: expected a finite number"),
        ({"c": 1}, np.ones((1, 12)), 0.0, "expected two mappings of groups, or two arrays"),
        ({"c": 1}, {"d": 1}, 0.0, r"c_images has groups \['c'\], c_texts \['d'\]; expected the sa"),
        ({"a": 1}, {"a": 1}, 0.0, "c_images: a group may not be called 'a'; choose another name"),
    ],
)
def test_bad_further_groups(images: Any, texts: Any, offset: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        xmcas(*golden_sets().values(), images, texts, offset=offset)


def test_offset_is_the_mean_size_of_neutral_scores() -> None:
    found = estimate_offset([0.01, -0.03, 0.02])
    assert found.value == pytest.approx(0.02)
    assert found.interval().low < 0.02 < found.interval().high
    assert estimate_offset([0.1]).method == "none: use Bootstrap()"
    with pytest.raises(InputError, match="expected finite numbers, one per neutral target"):
        estimate_offset([])


def test_similarities_resampled_are_those_of_resampled_vectors() -> None:
    rng = np.random.default_rng(4)
    given = {name: rng.standard_normal((3 + k, 40)) for k, name in enumerate(NAMES)}
    found = embed({n: given[n] for n in NAMES[:2]}, {n: given[n] for n in NAMES[2:]})
    weights = {n: rng.integers(1, 4, (5, len(one))).astype(float) for n, one in given.items()}
    means = {n: (weights[n] @ found[n].vectors) / weights[n].sum(1)[:, None] for n in NAMES}
    drawn = resampled_components(found)(weights)
    np.testing.assert_allclose(drawn, components_of(means), atol=1e-12)
