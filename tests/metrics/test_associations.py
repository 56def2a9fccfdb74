"""Association scores, WEAT, SC-WEAT, differential association: goldens, invariances, bad input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.associations.partitions import Alternative
from equipoise.metrics.associations.scores import association_score, differential_association
from equipoise.metrics.associations.space import PairScores, embed, exact_mean
from equipoise.metrics.associations.weat import sc_weat, weat
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from goldens import cases

GOLDEN = cases("weat.json")
FEW = Bootstrap(replicates=100, permutations=100)
Sets = dict[str, npt.NDArray[np.float64]]


def sets(seed: int = 0, n: int = 6, m: int = 5, d: int = 7) -> Sets:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(n if name in "xy" else m, d)) for name in "xyab"}


def cosine(first: Any, second: Any) -> npt.NDArray[np.float64]:
    """An independent, plain implementation."""
    u, v = np.asarray(first, float), np.asarray(second, float)
    return np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in v] for a in u])


def scores(w: Any, a: Any, b: Any) -> npt.NDArray[np.float64]:
    return np.asarray(cosine(w, a).mean(axis=1) - cosine(w, b).mean(axis=1))


@pytest.mark.parametrize("case", GOLDEN)
def test_goldens(case: dict[str, Any]) -> None:
    given = [case[name] for name in "xyab"]
    found = weat(*given, resampling=FEW)
    assert found.value == pytest.approx(case["effect_size_ddof1"], abs=1e-12)
    assert weat(*given, ddof=0).value == pytest.approx(case["effect_size_ddof0"], abs=1e-12)
    assert found.by is not None
    assert found.by["value"][1].as_py() == pytest.approx(case["statistic"], abs=1e-12)
    assert f"all {case['partitions']} partitions enumerated" in found.null
    score = association_score(given[0], *given[2:], resampling=FEW).value
    assert score == pytest.approx(case["association_score_x"], abs=1e-12)
    single = sc_weat(given[0][0], *given[2:], resampling=FEW).value
    assert single == pytest.approx(case["sc_weat_x0"], abs=1e-12)


@pytest.mark.parametrize(
    ("alternative", "key"),
    [("greater", "p_greater"), ("less", "p_less"), ("two-sided", "p_two_sided")],
)
@pytest.mark.parametrize("case", GOLDEN)
def test_golden_p_values_are_equal_not_close(
    case: dict[str, Any], alternative: Alternative, key: str
) -> None:
    given = (case[name] for name in "xyab")
    assert weat(*given, alternative=alternative, resampling=Exact()).p_value == case[key]


def test_eight_a_side_are_enumerated_exactly() -> None:
    given = sets(n=8)
    found = weat(**given)
    all_scores = np.concatenate([scores(given[name], given["a"], given["b"]) for name in "xy"])
    assert "all 12870 partitions enumerated; exact" in found.null
    assert found.p_value is not None
    assert found.p_value * 12_870 == pytest.approx(round(found.p_value * 12_870), abs=1e-9)
    assert found.chance is not None
    spread = all_scores.std(ddof=1)
    assert found.chance.high <= (
        np.sort(all_scores)[8:].mean() - np.sort(all_scores)[:8].mean()
    ) / (spread)


def test_against_a_plain_implementation_of_every_number() -> None:
    given = sets(3, n=5, m=4)
    x, y = (scores(given[name], given["a"], given["b"]) for name in "xy")
    expected = (x.mean() - y.mean()) / np.concatenate([x, y]).std(ddof=1)
    found = weat(**given, resampling=FEW)
    assert found.value == pytest.approx(expected, abs=1e-12)
    groups = found.by["by_group"][0].as_py()
    assert [one["value"] for one in groups] == pytest.approx([x.mean(), y.mean()], abs=1e-12)
    near = cosine(given["x"][:1], given["a"])[0], cosine(given["x"][:1], given["b"])[0]
    pooled = np.concatenate(near).std(ddof=0)
    single = sc_weat(given["x"][:1], given["a"], given["b"], ddof=0, resampling=None).value
    assert single == pytest.approx((near[0].mean() - near[1].mean()) / pooled, abs=1e-12)


def test_differential_association_is_the_difference_of_its_parts() -> None:
    given = sets(4)
    found = differential_association(*given.values(), resampling=FEW)
    t = [(cosine(given[c], given["a"]).mean() - cosine(given[c], given["b"]).mean()) for c in "xy"]
    assert found.by["value"].to_pylist() == pytest.approx(t, abs=1e-12)
    assert found.value == pytest.approx(t[0] - t[1], abs=1e-12)
    assert found.interval().low < found.value < found.interval().high
    assert found.method.endswith("; c1, c2 fixed")


METRICS: dict[str, Callable[..., Estimate]] = {
    "association_score": lambda x, y, a, b, **k: association_score(x, a, b, **k),
    "weat": weat,
    "sc_weat": lambda x, y, a, b, **k: sc_weat(x[:1], a, b, **k),
    "differential_association": differential_association,
}
every = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


@every
def test_scaling_embeddings_changes_nothing(metric: Callable[..., Estimate]) -> None:
    given = sets(5)
    scale = np.random.default_rng(1).uniform(1e-3, 1e3, size=(6, 1))
    scaled = given | {"x": given["x"] * scale, "a": given["a"] * 1e-200}
    first, second = (metric(*one.values(), resampling=FEW) for one in (given, scaled))
    assert second.value == pytest.approx(first.value, abs=1e-12)
    assert second.p_value == first.p_value


@every
def test_swapping_a_and_b_negates(metric: Callable[..., Estimate]) -> None:
    given = sets(6)
    x, y, a, b = given.values()
    first, second = metric(x, y, a, b, resampling=FEW), metric(x, y, b, a, resampling=FEW)
    assert second.value == pytest.approx(-first.value, abs=1e-14)
    if first.harm == "either":
        assert second.p_value == first.p_value


@every
def test_order_of_rows_changes_no_byte(metric: Callable[..., Estimate]) -> None:
    given = sets(7, n=1 if metric is METRICS["sc_weat"] else 30, m=40)
    rng = np.random.default_rng(2)
    mixed = {name: rng.permutation(rows) for name, rows in given.items()}
    first, second = (metric(*one.values(), resampling=Permutation(200)) for one in (given, mixed))
    assert (first.value, first.p_value, first.chance) == (
        second.value,
        second.p_value,
        second.chance,
    )


@every
def test_same_seed_same_bytes_and_another_seed_not(metric: Callable[..., Estimate]) -> None:
    given = sets(8, n=30, m=30).values()
    first, again, other = (metric(*given, resampling=FEW, rng=seed) for seed in (1, 1, 2))
    assert first.interval() == again.interval()
    assert repr(first.by.to_pylist()) == repr(again.by.to_pylist())
    assert first.interval() != other.interval()


@every
def test_precomputed_scores_of_pairs_give_the_same(metric: Callable[..., Estimate]) -> None:
    given = sets(9)
    matrix = cosine(
        np.concatenate([given["x"], given["y"]]), np.concatenate([given["a"], given["b"]])
    )
    places = np.arange(6), np.arange(6, 12), np.arange(5), np.arange(5, 10)
    plain = metric(*given.values(), resampling=FEW)
    found = metric(*places, similarity=PairScores(matrix), resampling=FEW)
    assert found.value == pytest.approx(plain.value, abs=1e-12)
    assert found.p_value == plain.p_value
    assert found.interval().low == pytest.approx(plain.interval().low, abs=1e-9)
    assert found.params["similarity"] == "scores of pairs"


@every
def test_no_resampling_gives_the_value_alone(metric: Callable[..., Estimate]) -> None:
    given = sets(10).values()
    found = metric(*given, resampling=None)
    assert found.value == metric(*given, resampling=FEW).value
    assert (found.chance, found.p_value) == (None, None)
    assert np.isnan(found.interval().low)
    assert found.method == "none: resampling=None gives the value alone"


@every
def test_p_values_are_valid_on_exchangeable_embeddings(metric: Callable[..., Estimate]) -> None:
    draws = [
        metric(*sets(seed, n=7, m=7).values(), resampling=Permutation(99), rng=seed).p_value
        for seed in range(1000, 1200)
    ]
    for level in (0.05, 0.1, 0.5):
        # Four standard errors above the level.
        most = level + 4 * (level * (1 - level) / 200) ** 0.5
        assert np.mean(np.array(draws) <= level) <= most


@pytest.mark.parametrize("metric", ["association_score", "weat", "differential_association"])
def test_planted_strengths_are_recovered_in_order(metric: str) -> None:
    values = []
    for strength in (0.0, 0.5, 1.0, 2.0):
        given = sets(11, n=40, m=40, d=16)
        push = np.zeros(16)
        push[0] = strength
        given |= {"a": given["a"] + push, "b": given["b"] - push, "x": given["x"] + push}
        values.append(METRICS[metric](*given.values(), resampling=None).value)
    assert values == sorted(values)


def test_clustered_targets_exchange_whole_units() -> None:
    rng = np.random.default_rng(12)
    rejected = {"plain": 0, "units": 0}
    for trial in range(60):
        centres = rng.normal(size=(8, 6))
        repeated = np.repeat(centres, 6, axis=0) + 0.1 * rng.normal(size=(48, 6))
        a, b = rng.normal(size=(2, 8, 6))
        names = np.repeat([f"p{i}" for i in range(8)], 6)
        units = {"x": names[:24], "y": names[24:]}
        for kind, given in (("plain", None), ("units", units)):
            p = weat(
                repeated[:24],
                repeated[24:],
                a,
                b,
                units=given,
                resampling=Permutation(200),
                rng=trial,
            ).p_value
            rejected[kind] += p is not None and p <= 0.05
    assert rejected["plain"] > 15
    assert rejected["units"] <= 8


def test_units_drawn_together_whatever_their_order() -> None:
    given = sets(13, n=12)
    units = {name: [f"{name}{i // 3}" for i in range(12)] for name in "xy"}
    turned = dict(given) | {name: given[name][::-1] for name in "xy"}
    back = {name: units[name][::-1] for name in "xy"}
    first, second = weat(**given, units=units), weat(**turned, units=back)
    assert first.p_value == second.p_value
    assert first.interval().low == pytest.approx(second.interval().low, abs=1e-9)
    assert first.unit == "unit"


def test_unusable_vectors_are_left_out_and_counted() -> None:
    given = sets(14)
    spoiled = np.concatenate([given["x"], np.zeros((2, 7)), np.full((1, 7), np.nan)])
    found = weat(spoiled, given["y"], given["a"], given["b"], resampling=FEW)
    assert found.value == weat(**given, resampling=None).value
    assert found.excluded == {"x: not a number or infinite": 1, "x: zero vector": 2}
    assert found.n["x"] == 6


def test_float16_and_unequal_sizes_and_sets_of_one() -> None:
    given = sets(15)
    halves = {name: rows.astype(np.float16) for name, rows in given.items()}
    exact = weat(*(rows.astype(float) for rows in halves.values()), resampling=None).value
    assert weat(**halves, resampling=None).value == exact
    found = weat(given["x"][:1], given["y"], given["a"], given["b"][:1])
    assert found.method.endswith("replicates; x, b fixed")
    assert "all 7 partitions enumerated" in found.null
    pair = weat(given["x"][:1], given["y"][:1], given["a"][:1], given["b"][:1])
    assert pair.p_value in (0.5, 1.0)


def test_equal_scores_have_no_effect_size() -> None:
    given = sets(16)
    found = weat(given["x"][[0, 0]], given["x"][[0, 0]], given["a"], given["b"])
    assert np.isnan(found.value)
    assert found.reason == "all scores are equal: their standard deviation is 0"
    assert found.p_value is None


def test_members_of_both_sets_stay_and_are_told() -> None:
    given = sets(17)
    given["b"][0] = 3 * given["a"][1]
    found = weat(**given, resampling=None)
    assert found.params["in_both"] == {"a and b": 1}


def test_fixed_sets_are_not_resampled() -> None:
    given = sets(18)
    found = weat(**given, fixed=("x", "y", "a", "b"))
    assert found.method == "none: every set is fixed or has one member"
    partly = weat(**given, fixed=("a", "b")).interval()
    free = weat(**given).interval()
    assert partly.high - partly.low < free.high - free.low


def test_sums_do_not_depend_on_order() -> None:
    rows = np.random.default_rng(0).normal(size=(999, 3))
    assert (exact_mean(rows) == exact_mean(rows[::-1])).all()
    assert exact_mean(rows) == pytest.approx(rows.mean(axis=0), abs=1e-14)
    assert (exact_mean(np.zeros((2, 3))) == 0).all()


def test_embedding_keeps_inner_products() -> None:
    given = sets(19)
    found = embed({"x": given["x"]}, {"a": given["a"]})
    assert found["x"].vectors @ found["a"].vectors.T == pytest.approx(
        cosine(given["x"], given["a"]), abs=1e-14
    )


GOOD = sets(20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": GOOD["x"][0]}, r"x: shape \(7,\); expected \(n, d\), one vector per row"),
        ({"x": np.zeros((0, 7))}, "x: an empty set; expected at least one vector"),
        ({"a": [[1.0, 2.0], [1.0]]}, r"a: expected numbers of shape \(n, d\); got vectors of dif"),
        ({"a": GOOD["a"][:, :3]}, "different dimensions: x 7, y 7, a 3, b 7; embed all with one"),
        ({"b": np.zeros((2, 7))}, "b: none of its 2 vectors can be used; zero vector: 2"),
        ({"alternative": "more"}, r"alternative='more': expected one of \['greater', 'less'"),
        ({"ddof": 2}, "ddof=2: expected 0 or 1"),
        ({"fixed": ("c",)}, "fixed: no set is called 'c'; expected some of"),
        ({"units": {"z": ["1"]}}, "units: no set is called 'z'; expected one of"),
        ({"units": {"x": ["1"]}}, r"units\['x'\]: 1 names; expected 6, one per member"),
        ({"units": {"x": [*"abcde", ""]}}, r"units\['x'\]: 1 names are missing"),
        ({"units": {"x": [*"abcdef"]}}, "units: 'y' has none; x and y exchange members, so name"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        weat(**(GOOD | change))


@pytest.mark.parametrize(
    ("scores_", "a", "message"),
    [
        ([1.0, 2.0], [0], r"scores: shape \(2,\); expected \(targets, attributes\)"),
        (np.ones((2, 2)), [5], "attributes: an index outside the 2 columns of the scores"),
        (np.ones((2, 2)), [0.5], "attributes: expected indices of columns of the scores"),
        (np.full((2, 2), np.nan), [0], "similarity: 2 of 2 scores of targets and a are not finite"),
        (np.ones((2, 2)), [], "a: an empty set; expected at least one member"),
    ],
)
def test_bad_scores_of_pairs(scores_: Any, a: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        association_score([0, 1], a, [1], similarity=PairScores(scores_))


def test_scores_of_another_shape() -> None:
    with pytest.raises(InputError, match=r"targets and a have shape \(1, 1\); expected \(2, 1\)"):
        association_score([0, 1], [0], [1], similarity=lambda _t, _a: [[1.0]])


def test_sc_weat_takes_one_target() -> None:
    with pytest.raises(InputError, match="w: 6 targets; expected one, call sc_weat for each"):
        sc_weat(GOOD["x"], GOOD["a"], GOOD["b"])
