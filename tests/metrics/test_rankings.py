"""Rankings: goldens, plain loops, chance levels, nulls, intervals, vectors, bad input."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core import Groups, InputError
from equipoise.metrics import (
    bias_at_k,
    cosine_scores,
    expected_max_skew,
    max_skew,
    min_skew,
    ndkl,
    normalized_similarity_mad,
    query_distribution,
    retrieval_curves,
    retrieval_entropy,
    retrieval_mad,
    retrieval_measures,
    skew_at_k,
)
from equipoise.metrics.rankings.statistics import max_skew_distribution
from equipoise.stats import Bootstrap, Permutation
from equipoise.stats.intervals import mean_t
from goldens import Golden, cases

TABLE_1 = Golden("chen_dou_table_1.json")
FEW = Bootstrap(replicates=50, permutations=50, resolution=0.05)
MEASURED = (max_skew, min_skew, skew_at_k, ndkl, bias_at_k, retrieval_mad, retrieval_entropy)
ALL = {function.__name__: function for function in MEASURED}


def parts(estimate, metric=None, variant=""):
    metric_and_variant = metric or estimate.metric, variant
    return [
        row
        for row in estimate.by.to_pylist()
        if (row["metric"], row["variant"]) == metric_and_variant
    ]


def shown(part):
    return [group["value"] for group in part["by_group"]]


@pytest.mark.parametrize("golden", cases("retrieval.json"))
def test_goldens(golden):
    data = golden["scores"], golden["groups"]
    k, n = golden["k"], len(golden["scores"])
    for name, metric, extra in [
        ("max_skew_pool", max_skew, {}),
        ("max_skew_uniform", max_skew, {"desired": "uniform"}),
        ("ndkl_pool", ndkl, {"k": n}),
        ("ndkl_uniform", ndkl, {"k": n, "desired": "uniform"}),
        ("ndkl_pool_prefix_k", ndkl, {}),
        ("retrieval_mad", retrieval_mad, {}),
        ("bias_at_k", bias_at_k, {}),
    ]:
        if name in golden:
            estimate = metric(*data, **{"k": k, "resampling": None} | extra)
            assert estimate.value == pytest.approx(golden[name], abs=1e-12)
    skews = [-math.inf if s is None else s for s in golden["skew_pool"]]
    estimate = skew_at_k(*data, k=k, resampling=None)
    assert shown(parts(estimate)[0]) == pytest.approx(skews, abs=1e-12)
    assert [p["value"] for p in parts(estimate, "group_skew")] == pytest.approx(skews, abs=1e-12)
    least = min_skew(*data, k=k, resampling=None)
    assert least.value == pytest.approx(min(skews), abs=1e-12)
    assert shown(parts(least)[0]) == pytest.approx(golden["share"], abs=1e-12)


@pytest.mark.parametrize("index", range(5))
def test_retrieval_mad_of_chen_and_dou(index):
    _, _, _, male, female, _, mad = TABLE_1["rows"][index]
    groups = ["male"] * round(100 * male) + ["female"] * round(100 * female) + ["male", "female"]
    scores = [1.0 - i / 1000 for i in range(100)] + [0.0, 0.0]
    assert retrieval_mad(scores, groups, k=100, resampling=None).value == pytest.approx(
        mad, abs=1e-12
    )
    bias = bias_at_k(scores, groups, k=100, resampling=None)
    assert bias.value == pytest.approx(male - female, abs=1e-12)
    assert (bias.params["first"], bias.params["second"]) == ("male", "female")


@given(
    st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 19), st.booleans(),
    st.sampled_from(["pool", "uniform"]),
)  # fmt: skip
def test_agrees_with_plain_loops(seed, n_groups, k, ties, target):
    scores, groups = plain.world(seed, 20, n_groups, ties=ties)
    arguments = {"k": k, "desired": target, "resampling": None}
    skews = plain.skews(scores, groups, k, n_groups, target)
    values = [
        function(scores, groups, **arguments).value for function in (max_skew, min_skew, ndkl)
    ]
    divergence = plain.ndkl(scores, groups, k, n_groups, target)
    expected = [max(skews.values()), min(skews.values()), divergence]
    assert values == pytest.approx(expected, abs=1e-12)
    counts = plain.expected_counts(scores, groups, k, n_groups)
    assert retrieval_mad(scores, groups, k=k, resampling=None).value == pytest.approx(
        plain.mad([c / k for c in counts]), abs=1e-12
    )
    shares = [c / k for c in counts if c]
    assert retrieval_entropy(scores, groups, k=k, resampling=None).value == pytest.approx(
        -sum(p * math.log(p) for p in shares) / math.log(n_groups), abs=1e-12
    )
    a, b = counts[:2]
    bias = bias_at_k(scores, groups, k=k, first="0", second="1", resampling=None)
    assert bias.value == pytest.approx((a - b) / (a + b) if a + b else 0.0, abs=1e-12)


@given(st.integers(0, 10**6), st.booleans())
def test_many_queries_are_each_as_alone_and_their_mean(seed, ties):
    rng = np.random.default_rng(seed)
    worlds = [plain.world(seed + i, 30, 3, ties=ties and i % 2 == 0) for i in range(4)]
    groups = worlds[0][1]
    scores = np.stack([row for row, _ in worlds])
    for metric in ALL.values():
        extra = {"first": "0", "second": "1"} if metric is bias_at_k else {}
        estimate = metric(scores, groups, k=7, resampling=None, **extra)
        alone = [metric(row, groups, k=7, resampling=None, **extra).value for row in scores]
        assert [p["value"] for p in parts(estimate)] == pytest.approx(alone, abs=1e-13)
        assert [p["subject"] for p in parts(estimate)] == ["0", "1", "2", "3"]
        if metric is not skew_at_k:
            assert estimate.value == pytest.approx(np.mean(alone), abs=1e-13)
    # The long form: each item in the pool of its own query.
    owner = np.repeat(["a", "b", "c", "d"], 30)
    order = rng.permutation(120)
    long = ndkl(
        scores.ravel()[order], np.tile(groups, 4)[order], k=9, queries=owner[order],
        resampling=None,
    )  # fmt: skip
    short = ndkl(scores, groups, k=9, queries=["a", "b", "c", "d"], resampling=None)
    assert str(parts(long)) == str(parts(short))


def test_ties_share_the_places_left_and_are_counted():
    scores = [3, 2, 2, 2, 2, 1, 1]
    groups = ["a", "a", "b", "b", "b", "a", "a"]
    estimate = retrieval_mad(scores, groups, k=3, resampling=None)
    # One place for the first, two for the four that tie: half each.
    assert shown(parts(estimate)[0]) == pytest.approx([1.5 / 3, 1.5 / 3])
    assert (estimate.params["tied_items"], estimate.params["queries_with_ties"]) == (4, 1)
    fits = retrieval_mad(scores, groups, k=5, resampling=None)
    assert fits.params["tied_items"] == 0


def test_both_targets_stand_beside_each_other_where_they_differ():
    scores, groups = plain.world(1, 60, 3, ties=False)
    for metric in (max_skew, min_skew, ndkl):
        estimate = metric([scores, -scores], groups, k=9, resampling=FEW)
        other = metric([scores, -scores], groups, k=9, desired="uniform", resampling=FEW)
        uniform = parts(estimate, variant="uniform_target")
        assert uniform[0]["value"] == pytest.approx(other.value, abs=1e-12)
        assert [p["value"] for p in uniform[1:]] == pytest.approx(
            [p["value"] for p in parts(other)], abs=1e-12
        )
        assert not math.isnan(uniform[0]["chance_high"])
    even = max_skew(np.arange(20), ["a", "b"] * 10, k=5, resampling=None)
    assert not parts(even, variant="uniform_target")


def test_a_pool_of_k_items_is_not_estimable_but_its_order_is():
    scores, groups = plain.world(2, 12, 3, ties=False)
    for k in (12, 13):
        estimate = max_skew(scores, groups, k=k, resampling=FEW)
        assert math.isnan(estimate.value)
        assert estimate.reason
        assert (estimate.chance, estimate.p_value) == (None, None)
        assert estimate.excluded == {"queries with too small a pool for k": 1}
    assert ndkl(scores, groups, k=12, resampling=None).value > 0
    assert math.isnan(ndkl(scores, groups, k=13, resampling=None).value)


def test_items_without_a_group_or_query_leave_the_pool_and_are_counted():
    scores, groups = plain.world(3, 40, 3, ties=False)
    labels = [None if i < 4 else str(g) for i, g in enumerate(groups)]
    estimate = max_skew(scores, labels, k=6, resampling=None)
    without_small = max_skew(scores[4:], groups[4:], k=6, resampling=None)
    assert estimate.value == without_small.value
    assert estimate.excluded == {"items without a group": 4}
    small = Groups.of([*groups, 9], min_size=5)
    estimate = max_skew([*scores, 9], small, k=6, resampling=FEW)
    assert estimate.excluded["items without a group of 5 or more"] == 1
    owner = ["" if i > 35 else "q" for i in range(40)]
    long = max_skew(scores, labels, k=6, queries=owner, resampling=None)
    assert long.excluded == {"items without a group": 4, "items without a query": 4}
    assert long.value == max_skew(scores[4:36], groups[4:36], k=6, resampling=None).value


def test_marginals_restrict_the_pool_to_one_value():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((2, 80))
    race, gender = rng.integers(0, 4, 80), np.tile(["f", "m"], 40)
    estimate = max_skew(scores, race, k=6, within=gender, queries=["x", "y"], resampling=FEW)
    assert [p["subject"] for p in parts(estimate)] == ["x | f", "x | m", "y | f", "y | m"]
    for place, part in enumerate(parts(estimate)):
        in_pool = gender == "fm"[place % 2]
        alone = max_skew(scores[place // 2][in_pool], race[in_pool], k=6, resampling=None)
        assert part["value"] == pytest.approx(alone.value, abs=1e-13)
        assert part["n"] == 40


def test_bias_needs_two_groups_and_says_which():
    scores, groups = [4, 3, 2, 1, 0, -1], ["man", "man", "woman", "neutral", "neutral", "woman"]
    estimate = bias_at_k(scores, groups, k=3, first="woman", second="man", resampling=None)
    assert estimate.value == pytest.approx((1 - 2) / 3)
    none = bias_at_k(scores, groups[::-1], k=1, first="man", second="neutral", resampling=None)
    assert none.value == 0.0
    assert estimate.params["at_desired_shares"] == 0.0
    swapped = bias_at_k(scores, ["b", "b", "b", "a", "a", "a"], k=2, resampling=None)
    assert (swapped.value, swapped.params["first"]) == (-1.0, "a")


def query_distribution_of(**change):
    return query_distribution(max_skew(**change, resampling=None))


SIX = {"scores": [1, 2, 3, 4, 5, 6], "groups": ["a", "b"] * 3, "k": 2}
MASKED = np.ma.masked_array([3.0, 2.0, 1.0, 0.0, 5.0, 4.0], mask=[True] + [False] * 5)


@pytest.mark.parametrize(
    ("metric", "change", "argument"),
    [
        (max_skew, {"scores": [[1.0, 2.0], [3.0]]}, "scores"),
        (max_skew, {"scores": list("abcdef")}, "scores"),
        (max_skew, {"scores": [0, 1, math.nan, 2, math.inf, 3]}, "scores, item 3"),
        (max_skew, {"scores": [[0.0] * 6, [1, 2, 3, 4, -math.inf, 5]]}, "scores, query 2, item 5"),
        (max_skew, {"scores": MASKED}, "scores"),
        (max_skew, {"groups": [None] * 6}, "no item has a group"),
        (max_skew, {"sets": [1, 2]}, "sets"),
        (max_skew, {"scores": np.zeros((2, 6)), "queries": ["a", "a"]}, "queries"),
        (max_skew, {"queries": ["q"] * 6, "subjects": ["u"] * 5 + ["v"]}, "subjects: query 'q'"),
        (max_skew, {"k": 0}, "k=0"),
        (max_skew, {"desired": "equal"}, "desired='equal'"),
        (max_skew, {"desired": {"a": 1.0}}, "desired: 'b' has no share"),
        (
            max_skew,
            {"desired": {"a": 0.5, "bb": 0.5}},
            "desired: 'bb' isn't a group; .* of a, b; did you mean 'b'\\?$",
        ),
        (max_skew, {"desired": {"a": 0.5, "b": 0.6}}, r"desired: shares sum to 1\.1"),
        (max_skew, {"first": "a", "second": "b"}, "first and second: max_skew"),
        (bias_at_k, {"groups": ["a", "b", "c"] * 2}, "first=None"),
        (bias_at_k, {"first": "a", "second": "a"}, "first='a', second='a'"),
        (retrieval_curves, {"k": 6}, "k=6"),
        (retrieval_measures, {"measures": ["skew"]}, "measures: 'skew'"),
        (query_distribution_of, {"k": 6}, "max_skew: no query has a value"),
        (cosine_scores, {"items": [[1, 2]], "queries": [[1, 2, 3]]}, "queries"),
        (cosine_scores, {"items": [[1, 2]], "queries": [[1, 2], [0, 0]]}, "queries: vector 2"),
        (cosine_scores, {"items": [1, 2], "queries": [[1, 2]]}, "items"),
    ],
)
def test_bad_input(metric, change, argument):
    with pytest.raises(InputError, match=f"^{argument}"):
        metric(**(change if metric is cosine_scores else SIX | change))


@pytest.mark.parametrize("sets", [None, np.arange(60) // 4])
def test_each_is_what_its_function_returns(sets):
    scores = np.stack([plain.world(seed, 60, 3, ties=seed == 1)[0] for seed in range(3)])
    common = {"groups": np.arange(60) % 3, "sets": sets, "resampling": FEW}
    named = {"bias_at_k": {"first": "0", "second": "2"}}
    measured = retrieval_measures(
        scores, **common, k=6, prefixes=12, measures=[*ALL], first="0", second="2"
    )
    assert [*measured] == [*ALL]
    for name, estimate in measured.items():
        alone = ALL[name](scores, **common, k=12 if name == "ndkl" else 6, **named.get(name, {}))
        assert (str(estimate), str(estimate.by)) == (str(alone), str(alone.by))


def counterfactual(seed, subjects, sets, within, groups=12):
    """Subjects with counterfactual sets: one member per group, correlated within the set."""
    rng = np.random.default_rng(seed)
    n_items = subjects * sets
    shared = np.repeat(rng.standard_normal(n_items), groups)
    noise = rng.standard_normal(n_items * groups)
    return {
        "scores": np.sqrt(within) * shared + np.sqrt(1 - within) * noise,
        "groups": np.tile(np.arange(groups), n_items),
        "queries": np.repeat([f"s{i}" for i in range(subjects)], sets * groups),
        "sets": np.repeat(np.arange(n_items), groups),
    }


def every_max_skew(codes, k, desired):
    """MaxSkew@K of every selection of k items."""
    return [
        max(math.log(chosen.count(g) / k / desired[g]) for g in {*chosen})
        for chosen in combinations(codes, k)
    ]


@pytest.mark.parametrize("golden", cases("chance.json"))
def test_exact_chance_levels(golden):
    expected = expected_max_skew([golden["per_group"]] * golden["groups"], golden["k"])
    assert expected == pytest.approx(golden["expected_max_skew"], abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.integers(1, 5), st.booleans())
def test_exact_chance_is_the_mean_over_all_selections(sizes, k, uniform):
    codes = [g for g, size in enumerate(sizes) for _ in range(size)]
    if not k < len(codes):
        return
    target = "uniform" if uniform else "pool"
    desired = plain.desired_of(codes, len(sizes), target)
    all_values = every_max_skew(codes, k, desired)
    if not uniform:
        assert expected_max_skew(sizes, k) == pytest.approx(np.mean(all_values), abs=1e-12)
    values, mass = max_skew_distribution(tuple(sizes), k, tuple(desired)) or ((), ())
    assert np.dot(values, mass) == pytest.approx(np.mean(all_values), abs=1e-12)
    for value, probability in zip(values, mass, strict=True):
        share = np.mean([abs(possible - value) < 1e-9 for possible in all_values])
        assert probability == pytest.approx(share, abs=1e-12)


def test_one_query_gets_the_exact_band_and_p():
    scores, groups = plain.world(0, 12, 3, ties=False)
    estimate = max_skew(scores, groups, k=4)
    all_values = every_max_skew(groups.tolist(), 4, plain.desired_of(groups, 3, "pool"))
    assert estimate.chance.mean == pytest.approx(np.mean(all_values), abs=1e-12)
    assert estimate.p_value == pytest.approx(
        np.mean([possible >= estimate.value - 1e-12 for possible in all_values]), abs=1e-12
    )
    assert math.isnan(estimate.interval().low)


@pytest.mark.parametrize("metric", [max_skew, min_skew, ndkl, retrieval_mad, retrieval_entropy])
def test_permutations_agree_with_all_orders(metric):
    scores, groups = np.array([6.0, 5, 4, 3, 2, 1]), np.array([0, 0, 0, 1, 1, 2])
    estimate = metric(scores, groups, k=3, resampling=Permutation(replicates=20_000))
    all_values = np.array([
        metric(scores, groups[list(order)], k=3, resampling=None).value
        for order in permutations(range(6))
    ])  # fmt: skip
    sign = -1 if metric in (min_skew, retrieval_entropy) else 1
    extreme = sign * all_values >= sign * estimate.value - 1e-12
    assert estimate.p_value == pytest.approx(extreme.mean(), abs=0.012)
    if np.isfinite(all_values).all():
        assert estimate.chance.mean == pytest.approx(np.mean(all_values), abs=0.01)


def test_sets_lower_the_chance_level_that_pool_order_overstates():
    data = counterfactual(0, subjects=100, sets=40, within=0.9)
    estimate = max_skew(**data, k=12, resampling=Permutation(replicates=200))
    pool_order = expected_max_skew([40] * 12, 12)
    # 6000 simulated subjects: 0.738 (standard error 0.003) for 40 sets, 0.756 for 50.
    assert estimate.chance.mean == pytest.approx(0.74, abs=0.03)
    assert 0.01 < estimate.p_value < 0.99
    assert estimate.params["null"] == "order within sets"
    secondary = estimate.by.to_pylist()[-1]
    assert secondary["variant"] == "pool_order"
    assert secondary["value"] == estimate.value
    assert secondary["chance"] == pytest.approx(pool_order, abs=0.02)
    assert secondary["p_value"] == 1.0
    alone = max_skew(**{**data, "sets": None}, k=12, resampling=Permutation(replicates=50))
    assert alone.chance.mean == pytest.approx(pool_order, abs=1e-12)


@pytest.mark.parametrize("metric", [max_skew, ndkl, retrieval_mad, retrieval_entropy])
def test_p_values_are_valid_within_sets(metric):
    resampling = Permutation(replicates=99, resolution=0.1)
    worlds = [counterfactual(seed, 4, 8, 0.8, groups=4) for seed in range(200)]
    bounds = np.array([
        metric(**world, k=8, resampling=resampling, rng=seed).p_value
        for seed, world in enumerate(worlds)
    ])  # fmt: skip
    for level in (0.05, 0.2, 0.5):
        # Three standard errors of a share of 200.
        assert np.mean(bounds <= level) <= level + 3 * math.sqrt(level * (1 - level) / 200)
    assert np.mean(bounds <= 0.6) > 0.3


def test_the_interval_resamples_queries_and_their_subjects():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((40, 100))
    groups = rng.integers(0, 3, 100)
    estimate = max_skew(scores, groups, k=10, resampling=Bootstrap(2000, 50))
    distribution = query_distribution(estimate)
    half = 1.96 * distribution["sd"] / math.sqrt(40)
    low, high = estimate.interval().low, estimate.interval().high
    assert (high - low) / 2 == pytest.approx(half, rel=0.15)
    values = [part["value"] for part in parts(estimate)]
    summary = [distribution[name] for name in ("mean", "sd", "first_quartile", "highest")]
    quartile = np.quantile(values, 0.25)
    expected = [np.mean(values), np.std(values, ddof=1), quartile, max(values)]
    assert summary == pytest.approx(expected)
    assert str(np.argmax(values)) in distribution["highest_queries"]
    twice = max_skew(
        np.repeat(scores, 2, axis=0), groups, k=10, subjects=np.repeat(np.arange(40), 2),
        resampling=Bootstrap(2000, 50),
    )  # fmt: skip
    wide = twice.interval()
    assert (wide.high - wide.low) / 2 == pytest.approx(half, rel=0.15)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sets", [False, True])
def test_curves_are_the_metric_at_every_k(ties, sets):
    scores = np.stack([plain.world(seed, 30, 3, ties=ties)[0] for seed in range(3)])
    groups = plain.world(0, 30, 3, ties=False)[1]
    members = np.repeat(np.arange(10), 3) if sets else None
    table = retrieval_curves(scores, groups, k=12, sets=members, resampling=FEW).to_pylist()
    for metric in (max_skew, min_skew, ndkl):
        rows = [row for row in table if row["metric"] == metric.__name__ and not row["query"]]
        assert [row["k"] for row in rows] == list(range(1, 13))
        for row in rows:
            estimate = metric(scores, groups, k=row["k"], resampling=None)
            assert row["value"] == pytest.approx(estimate.value, abs=1e-12)
            assert row["chance_low"] <= row["chance_high"]
            assert row["low"] <= row["value"] <= row["high"]


def unit(rows):
    double = rows.astype(np.float64)
    return double / np.linalg.norm(double, axis=1, keepdims=True)


def vectors(seed, n, d=24, queries=3):
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, (n, 1))
    return images.astype(np.float32), rng.standard_normal((queries, d)).astype(np.float32)


def expected(scores, k):
    """Items among the k best, all that tie with the k-th included."""
    return np.flatnonzero(scores >= np.sort(scores)[-k])


def is_best(images, queries, k, rows=None):
    ranked_rows = np.arange(len(images)) if rows is None else rows
    best_items = cosine_scores(images, queries).best(range(len(queries)), ranked_rows, k)
    for query, (items, scores) in enumerate(best_items):
        plain = unit(images)[ranked_rows] @ unit(queries)[query]
        best = ranked_rows[expected(plain, k)]
        assert np.sort(items).tolist() == best.tolist()
        order = np.argsort(items)
        assert scores[order] == pytest.approx(plain[expected(plain, k)], abs=1e-15)


@pytest.mark.parametrize("k", [1, 7, 500, 4_999, 5_000])
def test_the_best_are_those_of_float64(k):
    is_best(*vectors(k, 5_000), k)


@pytest.mark.parametrize(("dimension", "kind"), [(70, np.float16), (37, np.float32), (64, float)])
def test_scores_of_all_queries_are_those_of_each(dimension, kind):
    images, queries = vectors(3, 3_000, dimension)
    cosines = cosine_scores(images.astype(kind), queries)
    table = cosines.table()
    rows = np.arange(3_000)
    for query, row in enumerate(table):
        assert row.tobytes() == cosines.of_query(query, rows).tobytes()
    assert table == pytest.approx(unit(queries) @ unit(images.astype(kind)).T, abs=1e-12)
    images[17] = 0.0
    with pytest.raises(InputError, match="^items: vector 18"):
        cosine_scores(images.astype(kind), queries).table()


def test_sorted_images_set_a_low_bar_first_and_none_is_lost():
    images, queries = vectors(2, 40_000, queries=1)
    order = np.argsort(unit(images) @ unit(queries)[0])
    is_best(images[order], queries, 50)
    is_best(images[order[::-1]], queries, 50)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_vectors_of_any_type_and_length(kind):
    images, queries = vectors(4, 3_000, d=37)
    scaled = np.clip(np.round(3 * images), -100, 100) if kind is np.int8 else images
    nonzero = np.flatnonzero(np.abs(scaled).sum(axis=1) > 0)
    is_best(scaled[nonzero].astype(kind), queries, 11)
    is_best((images.astype(np.float64) * 1e120)[:200], queries, 5)
    is_best(images * np.float32(1e-22), queries, 5)
    is_best(images * np.float32(1e20), queries, 5)


def test_scores_closer_than_float32_can_tell_are_told_apart():
    rng = np.random.default_rng(5)
    query = rng.standard_normal(64)
    images = query + 1e-4 * rng.standard_normal((6_000, 64))
    is_best(images, query[None], 10)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_metrics_are_those_of_the_table_of_scores(seed, per_query):
    images, queries = vectors(seed, 90, d=5)
    rng = np.random.default_rng(seed)
    groups = np.array(["x", "y", None], dtype=object)[rng.integers(0, 3, 90)]
    owner = np.array(["q", "r", ""], dtype=object)[rng.integers(0, 3, 90)]
    names, table = ["q", "r", "s"], unit(queries) @ unit(images).T
    embedded = {"scores": cosine_scores(images, queries, names=names)}
    plain_ = {"scores": table, "queries": names}
    if per_query:
        # A query of the scores that no image belongs to has no pool.
        short = table[[[*names[:2], ""].index(name) for name in owner], np.arange(90)]
        embedded = {"scores": cosine_scores(images, queries[:2], names=names[:2])}
        embedded["queries"], plain_ = owner, {"scores": short, "queries": owner}
    for extra in ({}, {"within": np.arange(90) % 2}, {"sets": np.arange(90) // 5}):
        first_result, second_result = (
            ndkl(**score_table, groups=groups, k=6, resampling=FEW, **extra)
            for score_table in (embedded, plain_)
        )
        assert str(first_result) == str(second_result)
        assert str(first_result.by) == str(second_result.by)


def test_the_same_bytes_on_any_number_of_threads(monkeypatch):
    images, queries = vectors(7, 30_000, d=16, queries=5)
    groups = np.arange(30_000) % 4
    texts = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("EQUIPOISE_THREADS", threads)
        scores = cosine_scores(images, queries)
        pooled = ndkl(scores, groups, k=30, resampling=FEW)
        per_query = ndkl(scores, groups, k=30, queries=np.arange(30_000) % 5, resampling=FEW)
        spread = normalized_similarity_mad(scores, groups, resampling=FEW)
        texts.append(str([(estimate, estimate.by) for estimate in (pooled, per_query, spread)]))
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_ranked_vectors_without_a_cosine_are_named(per_query, value):
    images, queries = vectors(9, 40)
    images[7] = value
    groups = np.array(["a", "b"] * 20, dtype=object)
    scores = cosine_scores(images, queries)
    owner = np.arange(40) % 3 if per_query else None
    with pytest.raises(InputError, match="^items: vector 8 "):
        max_skew(scores, groups, k=3, queries=owner, resampling=None)
    # An item that is in no pool is not ranked.
    groups[7] = None
    assert max_skew(scores, groups, k=3, queries=owner, resampling=None).value > 0
    with pytest.raises(InputError, match="^queries: 'z' isn't a query"):
        max_skew(scores, groups, k=3, queries=["z"] * 40, resampling=None)


def test_ties_of_one_query_do_not_count_an_image_without_a_group_in_another():
    scores = np.array([[6.0, 5, 4, 3, 2, 1], [1, 1, 1, 1, 1, 1]])
    estimate = bias_at_k(scores, ["a", "b", "a", "b", "a", None], k=2, resampling=FEW)
    assert [part["value"] for part in parts(estimate)] == pytest.approx([0.0, 0.2])


@pytest.mark.parametrize("per_query", [False, True])
def test_units_exchange_groups_as_wholes(per_query):
    """Four images each of 30 persons that rank alike: one permutation of persons, not of images."""
    rng, p = np.random.default_rng(2), {True: [], False: []}
    person = np.repeat(np.arange(30), 4)
    subject = np.tile([*"pq"], 60) if per_query else None
    for seed in range(80):
        groups = np.array([*"ab"])[np.arange(30) % 2][rng.permutation(30)][person]
        scores = rng.standard_normal(30)[person] + 0.4 * rng.standard_normal(120)
        for units, estimates in p.items():
            options = {"queries": subject, "resampling": Permutation(99), "rng": seed}
            skew = max_skew(scores, groups, k=12, units=person if units else None, **options)
            estimates.append(skew.p_value)
    assert np.mean(np.array(p[True]) <= 0.05) <= 0.1
    assert np.mean(np.array(p[False]) <= 0.05) >= 0.15


@pytest.mark.parametrize("metric", MEASURED)
def test_one_query_has_no_interval_for_a_reason_that_names_no_python(metric):
    scores, groups = np.arange(40.0), ["man", "woman"] * 20
    for resampling, reason in (
        (FEW, "none: needs several independent queries or subjects"),
        (Permutation(50), "none: add bootstrap replicates"),
    ):
        estimate = metric(scores, groups, k=10, resampling=resampling)
        assert np.isnan(estimate.interval().low)
        assert estimate.method == reason


def test_the_interval_of_a_mean_over_queries_is_the_score_interval():
    """Its ends are as far from the value as Student's t allows with the variance at that end."""
    rng = np.random.default_rng(3)
    estimate = bias_at_k(rng.standard_normal((8, 60)), np.tile([*"ab"], 30), k=10, resampling=FEW)
    values = [part.value for part in estimate.parts if part.metric == "bias_at_k"]
    low, high = mean_t(values)
    value, squares = estimate.value, ((high - low) / 2) ** 2
    for end in (estimate.interval().low, estimate.interval().high):
        assert (value - end) ** 2 == pytest.approx(squares * (1 - end**2) / (1 - value**2))


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_the_interval_of_a_few_queries_stays_in_the_range_of_its_metric(queries):
    scores = np.random.default_rng(queries).standard_normal((queries, 40))
    for metric, least, most in (
        (bias_at_k, -1, 1), (retrieval_mad, 0, 2), (retrieval_entropy, 0, 1),
        (max_skew, 0, math.log(2)), (ndkl, 0, math.log(2)), (min_skew, -math.inf, 0),
    ):  # fmt: skip
        estimate = metric(scores, np.tile([*"ab"], 20), k=8, resampling=FEW)
        low, high = estimate.ends(0.95)
        assert least <= low <= estimate.value <= high <= most
