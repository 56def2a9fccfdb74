"""Retrieval: goldens, plain loops, ties, invariances, what is not estimable, bad input."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.diversity.iss import iss_intra
from equipoise.metrics.retrieval.measures import (
    bias_at_k,
    max_skew,
    min_skew,
    ndkl,
    retrieval_mad,
    skew_at_k,
)
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from goldens import Golden, cases

TABLE_1 = Golden("chen_dou_table_1.json")
FEW = Bootstrap(replicates=50, permutations=50, resolution=0.05)
ALL = (max_skew, min_skew, skew_at_k, ndkl, bias_at_k, retrieval_mad)


def parts(estimate: Estimate, metric: str | None = None) -> list[dict[str, Any]]:
    assert estimate.by is not None
    rows = estimate.by.to_pylist()
    return [row for row in rows if row["metric"] == (metric or estimate.metric)]


def shown(part: dict[str, Any]) -> list[float]:
    return [group["value"] for group in part["by_group"]]


@pytest.mark.parametrize("golden", cases("retrieval.json"))
@pytest.mark.parametrize("desired", ["pool", "uniform"])
def test_goldens(golden: dict[str, Any], desired: Any) -> None:
    data = golden["scores"], golden["groups"]
    k, n = golden["k"], len(golden["scores"])
    found = max_skew(*data, k=k, desired=desired, resampling=None)
    assert found.value == pytest.approx(golden[f"max_skew_{desired}"], abs=1e-12)
    assert shown(parts(found)[0]) == pytest.approx(golden["share"], abs=1e-12)
    if f"ndkl_{desired}" in golden:
        whole = ndkl(*data, k=n, desired=desired, resampling=None)
        assert whole.value == pytest.approx(golden[f"ndkl_{desired}"], abs=1e-12)


@pytest.mark.parametrize("golden", cases("retrieval.json"))
def test_goldens_of_the_pool(golden: dict[str, Any]) -> None:
    data, k = (golden["scores"], golden["groups"]), golden["k"]
    skews = [-math.inf if s is None else s for s in golden["skew_pool"]]
    found = skew_at_k(*data, k=k, resampling=None)
    assert shown(parts(found)[0]) == pytest.approx(skews, abs=1e-12)
    assert [p["value"] for p in parts(found, "group_skew")] == pytest.approx(skews, abs=1e-12)
    assert min_skew(*data, k=k, resampling=None).value == pytest.approx(min(skews), abs=1e-12)
    mad = retrieval_mad(*data, k, resampling=None)
    assert mad.value == pytest.approx(golden["retrieval_mad"], abs=1e-12)
    if "ndkl_pool_prefix_k" in golden:
        prefix = ndkl(*data, k=k, resampling=None)
        assert prefix.value == pytest.approx(golden["ndkl_pool_prefix_k"], abs=1e-12)
    if "bias_at_k" in golden:
        bias = bias_at_k(*data, k=k, resampling=None)
        assert bias.value == pytest.approx(golden["bias_at_k"], abs=1e-12)


@pytest.mark.parametrize("index", range(5))
def test_retrieval_mad_of_chen_and_dou(index: int) -> None:
    _, _, _, male, female, _, mad = TABLE_1["rows"][index]
    groups = ["male"] * round(100 * male) + ["female"] * round(100 * female) + ["male", "female"]
    scores = [1.0 - i / 1000 for i in range(100)] + [0.0, 0.0]
    assert retrieval_mad(scores, groups, resampling=None).value == pytest.approx(mad, abs=1e-12)
    bias = bias_at_k(scores, groups, k=100, resampling=None)
    assert bias.value == pytest.approx(male - female, abs=1e-12)
    assert (bias.params["first"], bias.params["second"]) == ("male", "female")


@given(
    st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 19), st.booleans(),
    st.sampled_from(["pool", "uniform"]),
)  # fmt: skip
def test_agrees_with_plain_loops(seed: int, many: int, k: int, ties: bool, target: Any) -> None:
    scores, groups = plain.world(seed, 20, many, ties=ties)
    arguments = {"k": k, "desired": target, "resampling": None}
    skews = plain.skews(scores, groups, k, many, target)
    assert max_skew(scores, groups, **arguments).value == pytest.approx(
        max(skews.values()), abs=1e-12
    )
    assert min_skew(scores, groups, **arguments).value == pytest.approx(
        min(skews.values()), abs=1e-12
    )
    assert ndkl(scores, groups, **arguments).value == pytest.approx(
        plain.ndkl(scores, groups, k, many, target), abs=1e-12
    )
    counts = plain.expected_counts(scores, groups, k, many)
    assert retrieval_mad(scores, groups, k, resampling=None).value == pytest.approx(
        plain.mad([c / k for c in counts]), abs=1e-12
    )
    a, b = counts[:2]
    bias = bias_at_k(scores, groups, k=k, first="0", second="1", resampling=None)
    assert bias.value == pytest.approx((a - b) / (a + b) if a + b else 0.0, abs=1e-12)


@given(st.integers(0, 10**6), st.booleans())
def test_many_queries_are_each_as_alone_and_their_mean(seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    worlds = [plain.world(seed + i, 30, 3, ties=ties and i % 2 == 0) for i in range(4)]
    groups = worlds[0][1]
    scores = np.stack([one for one, _ in worlds])
    for metric in ALL:
        extra = {"first": "0", "second": "1"} if metric is bias_at_k else {}
        whole = metric(scores, groups, k=7, resampling=None, **extra)
        alone = [metric(one, groups, k=7, resampling=None, **extra).value for one in scores]
        assert [p["value"] for p in parts(whole)] == pytest.approx(alone, abs=1e-13)
        assert [p["subject"] for p in parts(whole)] == ["0", "1", "2", "3"]
        if metric is not skew_at_k:
            assert whole.value == pytest.approx(np.mean(alone), abs=1e-13)
    # The long form: each item in the pool of its own query.
    owner = np.repeat(["a", "b", "c", "d"], 30)
    order = rng.permutation(120)
    long = ndkl(
        scores.ravel()[order], np.tile(groups, 4)[order], k=9, queries=owner[order],
        resampling=None,
    )  # fmt: skip
    short = ndkl(scores, groups, k=9, queries=["a", "b", "c", "d"], resampling=None)
    assert str(parts(long)) == str(parts(short))


def test_ties_share_the_places_left_and_are_counted() -> None:
    scores = [3, 2, 2, 2, 2, 1, 1]
    groups = ["a", "a", "b", "b", "b", "a", "a"]
    found = retrieval_mad(scores, groups, 3, resampling=None)
    # One place for the first, two for the four that tie: half each.
    assert shown(parts(found)[0]) == pytest.approx([1.5 / 3, 1.5 / 3])
    assert (found.params["tied_items"], found.params["queries_with_ties"]) == (4, 1)
    assert parts(found)[0]["shows"] == "share of the first 3; 4 items tie for its last places"
    fits = retrieval_mad(scores, groups, 5, resampling=None)
    assert fits.params["tied_items"] == 0
    assert parts(fits)[0]["shows"] == "share of the first 5"


def test_all_scores_equal_is_the_pool_and_never_a_disparity() -> None:
    groups = np.repeat(["a", "b", "c"], [10, 20, 30])
    for metric in (max_skew, min_skew, ndkl):
        found = metric(np.zeros(60), groups, k=12, resampling=FEW)
        assert found.value == pytest.approx(0.0, abs=1e-12)
        assert found.p_value == pytest.approx(1.0)
        assert found.chance is not None
        assert found.chance.mean == pytest.approx(0.0, abs=1e-12)
        assert found.params["tied_items"] == 60


@given(st.integers(0, 10**6))
def test_permuted_items_and_monotone_scores_change_nothing(seed: int) -> None:
    scores, groups = plain.world(seed, 40, 4, ties=False)
    order = np.random.default_rng(seed).permutation(40)
    for metric in ALL:
        extra = {"first": "0", "second": "1"} if metric is bias_at_k else {}
        arguments = {"k": 10, "resampling": FEW, "rng": 3, **extra}
        one = metric(scores, groups, **arguments)
        other = metric(np.exp(3 * scores[order]) - 7, groups[order], **arguments)
        assert str(one) == str(other)
        assert str(parts(one)) == str(parts(other))


@given(st.integers(0, 10**6), st.booleans())
def test_renamed_groups_change_names_only(seed: int, ties: bool) -> None:
    scores, groups = plain.world(seed, 40, 4, ties=ties)
    names = np.array(["d", "b", "c", "a"])
    for metric in (max_skew, min_skew, ndkl, retrieval_mad):
        one = metric(scores, groups, k=10, resampling=None)
        other = metric(scores, names[groups], k=10, resampling=None)
        assert one.value == pytest.approx(other.value, abs=1e-13)


def test_float16_integers_and_frames_rank_as_they_are() -> None:
    scores, groups = plain.world(5, 50, 3, ties=True)
    expected = max_skew(scores, groups, k=9, resampling=None).value
    for kind in (np.float16, np.float32, np.int8):
        assert max_skew(scores.astype(kind), groups, k=9, resampling=None).value == expected
    assert max_skew(scores.tolist(), groups.tolist(), k=9, resampling=None).value == expected


def test_a_group_outside_the_best_is_minus_infinity() -> None:
    groups = ["a"] * 5 + ["b"] * 5
    found = min_skew(np.arange(10)[::-1], groups, k=4, resampling=FEW)
    assert found.value == -math.inf
    assert max_skew(np.arange(10)[::-1], groups, k=4, resampling=None).value == math.log(2)
    mean = min_skew([np.arange(10), [9, 0] * 5], groups, k=4, resampling=FEW)
    assert mean.value == -math.inf
    assert parts(mean)[0]["value"] == -math.inf


def test_a_group_absent_from_a_pool_is_listed_and_not_desired() -> None:
    groups = {"gender": ["f", "m"] * 10, "race": ["x"] * 10 + ["y"] * 5 + ["x"] + ["y"] * 4}
    labels = Groups.of(groups)
    keep = labels.codes != labels.names.index("m, y")
    scores = np.arange(20.0)[keep]
    inside = {name: np.array(values)[keep] for name, values in groups.items()}
    found = max_skew(scores, inside, k=5, desired="uniform", resampling=FEW)
    assert found.n["m, y"] == 0
    assert found.excluded == {"empty groups": 1}
    absent = parts(found)[0]["by_group"][labels.names.index("m, y")]
    assert (absent["n"], absent["note"]) == (0, "not in the pool")
    # The desired share of the three that are there is a third each.
    shares = shown(parts(found)[0])
    assert found.value == pytest.approx(math.log(3 * max(shares)))


def test_given_shares_may_want_a_group_that_is_absent() -> None:
    groups = np.repeat(["a", "b"], 10)
    codes = Groups(("group",), (("a",), ("b",), ("c",)), np.repeat([0, 1], 10).astype(np.int32))
    scores = np.tile([1.0, 0.0], 10) + np.arange(20) / 100
    wanted = {"a": 0.5, "b": 0.25, "c": 0.25}
    found = min_skew(scores, codes, k=4, desired=wanted, resampling=FEW)
    assert found.value == -math.inf
    top = max_skew(scores, codes, k=4, desired=wanted, resampling=FEW)
    plain_shares = retrieval_mad(scores, groups, 4, resampling=None)
    assert top.value == pytest.approx(math.log(shown(parts(plain_shares)[0])[1] / 0.25))
    assert top.params["desired"] == wanted
    assert not parts(top, "max_skew_uniform")


def test_both_targets_stand_beside_each_other_where_they_differ() -> None:
    scores, groups = plain.world(1, 60, 3, ties=False)
    for metric in (max_skew, min_skew, ndkl):
        name = metric.__name__
        found = metric([scores, -scores], groups, k=9, resampling=FEW)
        other = metric([scores, -scores], groups, k=9, desired="uniform", resampling=FEW)
        beside = parts(found, f"{name}_uniform")
        assert beside[0]["value"] == pytest.approx(other.value, abs=1e-12)
        assert [p["value"] for p in beside[1:]] == pytest.approx(
            [p["value"] for p in parts(other)], abs=1e-12
        )
        assert not math.isnan(beside[0]["chance_high"])
    even = max_skew(np.arange(20), ["a", "b"] * 10, k=5, resampling=None)
    assert not parts(even, "max_skew_uniform")


def test_a_pool_of_k_items_is_not_estimable_but_its_order_is() -> None:
    scores, groups = plain.world(2, 12, 3, ties=False)
    for k in (12, 13):
        found = max_skew(scores, groups, k=k, resampling=FEW)
        assert math.isnan(found.value)
        assert found.reason == (
            f"no query can be estimated: k={k}, and the pool has 12 items: "
            "nothing is left to choose"
        )
        assert (found.chance, found.p_value, found.no_chance) == (None, None, "not estimable")
        assert found.excluded == {"queries with too small a pool for k": 1}
    assert ndkl(scores, groups, k=12, resampling=None).value > 0
    assert math.isnan(ndkl(scores, groups, k=13, resampling=None).value)


def test_small_pools_and_pools_of_one_group_are_counted() -> None:
    owner = np.repeat(["large", "small", "one"], [20, 5, 20])
    groups = ["a", "b"] * 12 + ["a"] * 21
    found = max_skew(np.arange(45), groups, k=5, queries=owner, resampling=FEW)
    assert found.excluded == {
        "queries with one group in the pool": 1,
        "queries with too small a pool for k": 1,
    }
    values = {p["subject"]: p for p in parts(found)}
    assert found.value == values["large"]["value"]
    assert values["small"]["reason"].startswith("k=5, and the pool has 5 items")
    assert values["one"]["reason"] == "fewer than two groups in the pool"
    assert math.isnan(values["one"]["value"])


def test_groups_too_small_are_reported_and_not_compared() -> None:
    codes = np.array(["a"] * 20 + ["b"] * 20 + ["c"] * 2)
    scores = np.concatenate([np.arange(40) % 7, [100, 101]])
    found = max_skew(scores, Groups.of(codes, min_size=5), k=6, resampling=FEW)
    shares = parts(found)[0]["by_group"]
    assert shares[2]["note"] == "fewer than 5 rows"
    assert found.value == pytest.approx(
        max(math.log(share["value"] / (20 / 42)) for share in shares[:2])
    )


def test_items_without_a_group_or_query_leave_the_pool_and_are_counted() -> None:
    scores, groups = plain.world(3, 40, 3, ties=False)
    labels = [None if i < 4 else str(g) for i, g in enumerate(groups)]
    found = max_skew(scores, labels, k=6, resampling=None)
    rest = max_skew(scores[4:], groups[4:], k=6, resampling=None)
    assert found.value == rest.value
    assert found.excluded == {"items without a group": 4}
    owner = ["" if i > 35 else "q" for i in range(40)]
    long = max_skew(scores, labels, k=6, queries=owner, resampling=None)
    assert long.excluded == {"items without a group": 4, "items without a query": 4}
    assert long.value == max_skew(scores[4:36], groups[4:36], k=6, resampling=None).value


def test_marginals_restrict_the_pool_to_one_value() -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((2, 80))
    race, gender = rng.integers(0, 4, 80), np.tile(["f", "m"], 40)
    found = max_skew(scores, race, k=6, within=gender, queries=["x", "y"], resampling=FEW)
    assert [p["subject"] for p in parts(found)] == ["x | f", "x | m", "y | f", "y | m"]
    for part, (row, level) in zip(parts(found), [(0, "f"), (0, "m"), (1, "f"), (1, "m")],
                                  strict=True):  # fmt: skip
        held = gender == level
        alone = max_skew(scores[row][held], race[held], k=6, resampling=None)
        assert part["value"] == pytest.approx(alone.value, abs=1e-13)
        assert part["n"] == 40
    two = max_skew(
        scores[0], race, k=3, within={"gender": gender, "half": [0] * 40 + [1] * 40},
        resampling=None,
    )  # fmt: skip
    assert [p["subject"] for p in parts(two)] == ["f, 0", "f, 1", "m, 0", "m, 1"]


@pytest.mark.parametrize("sets", [False, True])
def test_items_of_no_pool_exchange_with_none(sets: bool) -> None:
    scores, groups = plain.world(9, 60, 3, ties=False)
    within = np.array(["", "x", "y"] * 20, dtype=object)
    owner = np.array(["p", "q", "p", "q", ""] * 12, dtype=object)
    members = np.arange(60) % 7
    kept = (within != "") & (owner != "")
    labels = [within, owner, members if sets else None]
    all_rows, rest = (
        retrieval_mad(
            scores[rows],
            groups[rows],
            4,
            within=labels[0][rows],
            queries=labels[1][rows],
            sets=None if labels[2] is None else labels[2][rows],
            resampling=FEW,
        )
        for rows in (np.ones(60, dtype=bool), kept)
    )
    assert str(parts(all_rows)) == str(parts(rest))
    assert all_rows.chance == rest.chance
    assert sum(all_rows.excluded.values()) == (~kept).sum()


def test_bias_needs_two_groups_and_says_which() -> None:
    scores, groups = [4, 3, 2, 1, 0, -1], ["man", "man", "woman", "neutral", "neutral", "woman"]
    found = bias_at_k(scores, groups, k=3, first="woman", second="man", resampling=None)
    assert found.value == pytest.approx((1 - 2) / 3)
    none = bias_at_k(scores, groups[::-1], k=1, first="man", second="neutral", resampling=None)
    assert none.value == 0.0
    assert found.params["at_desired_shares"] == 0.0
    swapped = bias_at_k(scores, ["b", "b", "b", "a", "a", "a"], k=2, resampling=None)
    assert (swapped.value, swapped.params["first"]) == (-1.0, "a")


def test_skew_of_one_group_is_two_sided() -> None:
    scores, groups = np.arange(60)[::-1], np.repeat(["a", "b", "c"], 20)
    down = skew_at_k(scores[::-1], groups, k=30, group="a", resampling=FEW)
    up = skew_at_k(scores, groups, k=30, group="a", resampling=FEW)
    assert (down.harm, down.value) == ("either", -math.inf)
    assert up.value == pytest.approx(math.log(2))
    assert up.p_value is not None
    assert up.p_value < 0.05
    assert down.p_value is not None
    assert down.p_value < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0, 2.0], [3.0]]}, r"^scores: rows of different lengths; expected \(n,\)"),
        ({"scores": list("abcdef")}, r"^scores: values of type <U1; expected real numbers$"),
        ({"scores": np.zeros((1, 2, 3))}, r"^scores: shape \(1, 2, 3\); expected \(n,\) or \(q"),
        ({"scores": []}, r"^scores: shape \(0,\); expected \(n,\) or \(queries, n\), not empty$"),
        (
            {"scores": [0, 1, math.nan, 2, math.inf, 3]},
            r"^scores, item 3: nan is no finite number \(2 such scores\)\. Leave these items out",
        ),
        (
            {"scores": [[0.0] * 6, [1, 2, 3, 4, -math.inf, 5]]},
            r"^scores, query 2, item 5: -inf is no finite number \(1 such scores\)",
        ),
        ({"groups": ["a", "b"]}, r"^groups: 2 items; expected 6, as in scores$"),
        ({"groups": [None] * 6}, r"^no item has a group and a query; expected at least one$"),
        ({"sets": [1, 2]}, r"^sets: 2 items; expected 6, as in scores$"),
        ({"within": [1, 2]}, r"^within: 2 items; expected 6, as in scores$"),
        ({"queries": ["a"]}, r"^queries: 1 items; expected 6, as in scores$"),
        (
            {"scores": np.zeros((2, 6)), "queries": ["a", "a"]},
            r"^queries: 2 names, 1 of them distinct; expected 2 distinct ones, as scores has rows$",
        ),
        ({"units": ["u", "v"]}, r"^units: 2 names; expected 1, one per query$"),
        (
            {"queries": ["q"] * 6, "units": ["u"] * 5 + ["v"]},
            r"^units: query 'q' has 2 units; expected one$",
        ),
        ({"k": 0}, r"^k=0: expected a whole number of at least 1$"),
        ({"k": 2.5}, r"^k=2\.5: expected a whole number of at least 1$"),
        ({"desired": "equal"}, r"^desired='equal': expected 'pool', 'uniform' or shares by group$"),
        ({"desired": {"a": 1.0, "z": 0}}, r"^desired: 'z' is no group; expected some of a, b$"),
        ({"desired": {"a": 1.0}}, r"^desired: no share for 'b'; expected one for every group$"),
        (
            {"desired": {"a": 0.5, "b": 0.6}},
            r"^desired: shares sum to 1\.1; expected 1, none negative$",
        ),
        (
            {"resampling": Exact(), "sets": [0, 0, 0, 1, 1, 1]},
            r"^resampling=Exact: only for max_skew of one query without sets, without a tie",
        ),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    given = {"scores": [1, 2, 3, 4, 5, 6], "groups": ["a", "b"] * 3, "k": 2, **change}
    with pytest.raises(InputError, match=message):
        max_skew(given.pop("scores"), given.pop("groups"), **given)


def test_bad_names_of_groups() -> None:
    with pytest.raises(InputError, match=r"^group='c': no such group; expected one of a, b$"):
        skew_at_k([1, 2, 3], ["a", "b", "a"], k=1, group="c")
    with pytest.raises(InputError, match=r"^first=None: no such group; expected one of a, b, c$"):
        bias_at_k([1, 2, 3], ["a", "b", "c"], k=1)
    with pytest.raises(InputError, match=r"^second='z': no such group; expected one of a, b, c$"):
        bias_at_k([1, 2, 3], ["a", "b", "c"], k=1, first="a", second="z")
    with pytest.raises(InputError, match=r"^first and second are both 'a'; expected two different"):
        bias_at_k([1, 2, 3], ["a", "b", "c"], k=1, first="a", second="a")


def test_permutation_gives_chance_without_interval() -> None:
    scores, groups = plain.world(4, 60, 3, ties=False)
    found = max_skew([scores, -scores], groups, k=6, resampling=Permutation(replicates=20))
    assert found.chance is not None
    assert found.method == "none: use Bootstrap()"
    assert math.isnan(found.interval().low)


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array([3.0, 2.0, 1.0, 0.0], mask=[True, False, False, False])
    groups = np.ma.masked_array(["a", "b", "a", "b"], mask=[True, False, False, False])
    why = "the array is masked, and what is masked would count; expected an array without a mask"
    with pytest.raises(InputError, match=f"^scores: {why}"):
        max_skew(masked, [*"abab"], k=2, resampling=None)
    with pytest.raises(InputError, match=rf"^groups\['group'\]: {why}"):
        max_skew(masked.data, groups, k=2, resampling=None)
    with pytest.raises(InputError, match=f"^embeddings: {why}"):
        iss_intra(masked.reshape(2, 2), resampling=None)
