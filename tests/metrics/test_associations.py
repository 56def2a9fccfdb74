"""Association scores, WEAT, SC-WEAT, totals: goldens, invariances, null validity, bad input."""

import math
from itertools import product

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import (
    PairScores,
    association_score,
    differential_association,
    encoder_difference,
    sc_weat,
    score_summary,
    total_absolute_association,
    weat,
)
from equipoise.metrics.building import SPREAD
from equipoise.metrics.vectors.resampling import exchange
from equipoise.stats import Bootstrap, Permutation
from goldens import cases
from prediction_rows import part

FEW = Bootstrap(replicates=100, permutations=100)


def sets(seed=0, n=6, m=5, d=7):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(n if name in "xy" else m, d)) for name in "xyab"}


def cosine(first, second):
    """An independent, plain implementation."""
    u, v = np.asarray(first, float), np.asarray(second, float)
    return np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in v] for a in u])


def scores(w, a, b):
    return np.asarray(cosine(w, a).mean(axis=1) - cosine(w, b).mean(axis=1))


def test_differential_association_is_held_against_every_exchange_of_images():
    c1, c2 = np.random.default_rng(1).normal(size=(2, 3, 5))
    first, second = np.random.default_rng(2).normal(size=(2, 4, 5)) + 0.3 * c1.mean(axis=0)
    scores = [
        cosine(images, c1).mean(axis=1) - cosine(images, c2).mean(axis=1)
        for images in (first, second)
    ]
    estimate = differential_association(c1, c2, first, second, resampling=Permutation())
    tested = exchange(*(column[:, None] for column in scores), Permutation(), 0, "images")
    assert estimate.value == pytest.approx(scores[0].mean() - scores[1].mean(), abs=1e-12)
    assert estimate.p_value == tested.p_value("either").value


@pytest.mark.parametrize("case", cases("weat.json"))
def test_goldens(case):
    sets_given = [case[name] for name in "xyab"]
    estimate = weat(*sets_given, resampling=FEW)
    assert estimate.value == pytest.approx(case["effect_size_ddof1"], abs=1e-12)
    assert weat(*sets_given, ddof=0).value == pytest.approx(case["effect_size_ddof0"], abs=1e-12)
    assert estimate.parts[1].value == pytest.approx(case["statistic"], abs=1e-12)
    assert f"all {case['partitions']} partitions enumerated" in estimate.null_drawn
    score = association_score(sets_given[0], *sets_given[2:], resampling=FEW).value
    assert score == pytest.approx(case["association_score_x"], abs=1e-12)
    single = sc_weat(sets_given[0][0], *sets_given[2:], resampling=FEW).value
    assert single == pytest.approx(case["sc_weat_x0"], abs=1e-12)
    for alternative in ("greater", "less", "two-sided"):
        p = weat(*sets_given, alternative=alternative, resampling=Permutation()).p_value
        assert p == case[f"p_{alternative.replace('-', '_')}"]
    assert estimate.p_value == case["p_two_sided"]


def targets_and_attributes(rng, n, m, gap=0.0, spread=1.0):
    """Targets with a first number of unequal mean and spread, and two attributes."""
    x, y = np.full((n, 3), 9.0), np.full((m, 3), 9.0)
    x[:, 0], y[:, 0] = spread * rng.normal(size=n) + gap, rng.normal(size=m)
    x[:, 1], y[:, 1] = 0.0, 0.0
    return x, y, np.array([[1.0, 0.0, 0.0]]), np.array([[-1.0, 0.0, 0.0]])


@pytest.mark.parametrize(("n", "m", "gap"), [(8, 8, 0.0), (15, 35, 0.8), (25, 25, 1.5)])
def test_the_interval_of_weat_is_about_targets_like_these(n, m, gap):
    rng, inside, agree, n_repeats = np.random.default_rng(n), 0, 0, 400
    truth = np.concatenate(
        [set_of_targets[:, 0] for set_of_targets in targets_and_attributes(rng, 60_000, 60_000)]
    )
    cosines = lambda first: first / np.sqrt(first**2 + 81.0)  # noqa: E731
    x, y = cosines(truth[:60_000] + gap), cosines(truth[60_000:])
    share = n / (n + m)
    middle = share * x.mean() + (1 - share) * y.mean()
    squares = share * ((x - middle) ** 2).mean() + (1 - share) * ((y - middle) ** 2).mean()
    population = (x.mean() - y.mean()) / squares**0.5
    for seed in range(n_repeats):
        targets_and_sets = targets_and_attributes(rng, n, m, gap)
        estimate = weat(*targets_and_sets, resampling=Permutation(999), rng=seed)
        low, high = estimate.interval().low, estimate.interval().high
        inside += low <= population <= high
        agree += (low > 0 or high < 0) == (estimate.p_value <= 0.05)
    assert inside / n_repeats >= 0.92
    # The interval is of what the test exchanges.
    assert agree / n_repeats >= 0.9


def leaning(rng, n, spread):
    out = np.full((n, 3), 9.0)
    out[:, 0], out[:, 1] = spread * rng.normal(size=n), 0.0
    return out


@pytest.mark.parametrize("repeat", [1, 2])
def test_unequal_spread_alone_is_no_finding(repeat):
    """Equal means: 20 members of spread 3 against 120 of spread 1, alone or in pairs."""
    rng, n_repeats, covered = np.random.default_rng(repeat), 200, np.zeros(4)
    a, b = np.array([[1.0, 0.0, 0.0]]), np.array([[-1.0, 0.0, 0.0]])
    names = {"first": np.arange(20 * repeat) // repeat, "second": 20 + np.arange(120 * repeat) // 2}

    def units(*sets):
        named_sets = zip(sets, names.values(), strict=True)
        return (
            None
            if repeat == 1
            else {name: [f"u{i}" for i in members] for name, members in named_sets}
        )

    for seed in range(n_repeats):
        x, y = (np.repeat(leaning(rng, n, s), repeat, axis=0) for n, s in ((20, 3.0), (120, 1.0)))
        options = {"resampling": Permutation(299), "rng": seed}
        classic = weat(x, y, a, b, units=units("x", "y"), **options)
        covered += [
            weat(x, y, a, b, studentized=True, units=units("x", "y"), **options).p_value <= 0.05,
            association_score(a, x, y, units=units("a", "b"), **options).p_value <= 0.05,
            differential_association(
                a, b, x, y, units=units("m_images", "f_images"), **options
            ).p_value
            <= 0.05,
            classic.p_value <= 0.05,
        ]
    assert classic.params["spread_ratio"] > 1.5
    assert (covered[:3] / n_repeats <= 0.11).all()
    assert covered[3] / n_repeats > 0.15


def test_other_attributes_widen_the_interval_of_weat():
    """A simulation with words drawn anew: d is a function of chance in attributes, too."""
    rng, n_repeats = np.random.default_rng(2), 300
    base = np.concatenate([np.full(1, 3.0), np.zeros(5)])

    def drawn(n, lean):
        return base + rng.normal(size=(n, 6)) * 0.6 + lean * np.eye(6)[1]

    x, y = drawn(40_000, 0.3), drawn(40_000, -0.3)
    a, b = drawn(40_000, 0.5), drawn(40_000, -0.5)
    truth = weat(x, y, a, b, resampling=None).value
    inside = np.zeros(2)
    for _ in range(n_repeats):
        clouds = drawn(25, 0.3), drawn(25, -0.3), drawn(8, 0.5), drawn(8, -0.5)
        estimate = weat(*clouds, resampling=Permutation(19))
        varied = estimate.parts[2]
        assert varied.subject == "attributes vary"
        inside += [
            estimate.interval().low <= truth <= estimate.interval().high,
            varied.low <= truth <= varied.high,
        ]
    assert inside[1] / n_repeats >= 0.92
    assert inside[0] < inside[1]


def test_against_a_plain_implementation_of_every_number():
    clouds = sets(3, n=5, m=4)
    x, y = (scores(clouds[name], clouds["a"], clouds["b"]) for name in "xy")
    estimate = weat(**clouds, resampling=FEW)
    groups = [part.value for part in estimate.parts[0].by_group]
    assert groups == pytest.approx([x.mean(), y.mean()], abs=1e-12)
    near = cosine(clouds["x"][:1], clouds["a"])[0], cosine(clouds["x"][:1], clouds["b"])[0]
    single = sc_weat(clouds["x"][:1], clouds["a"], clouds["b"], ddof=0, resampling=None).value
    expected = (near[0].mean() - near[1].mean()) / np.concatenate(near).std()
    assert single == pytest.approx(expected, abs=1e-12)
    difference = differential_association(*clouds.values(), resampling=FEW)
    assert [part.value for part in difference.parts] == pytest.approx(
        [x.mean(), y.mean()], abs=1e-12
    )
    assert difference.value == pytest.approx(x.mean() - y.mean(), abs=1e-12)
    assert difference.interval().low < difference.value < difference.interval().high
    score = association_score(clouds["x"], clouds["a"], clouds["b"], resampling=FEW)
    groups = [part.value for part in score.parts[0].by_group]
    means = [cosine(clouds["x"], clouds[name]).mean() for name in "ab"]
    assert groups == pytest.approx(means, abs=1e-12)


METRICS = {
    "association_score": lambda x, y, a, b, **k: association_score(x, a, b, **k),
    "weat": weat,
    "sc_weat": lambda x, y, a, b, **k: sc_weat(x[:1], a, b, **k),
    "differential_association": differential_association,
}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


@each_metric
def test_scale_of_embeddings_and_swapped_attributes(metric):
    clouds = sets(5)
    scale = np.random.default_rng(1).uniform(1e-3, 1e3, size=(6, 1))
    scaled = clouds | {"x": clouds["x"] * scale, "a": clouds["a"] * 1e-100}
    first, second = (metric(*named.values(), resampling=FEW) for named in (clouds, scaled))
    assert second.value == pytest.approx(first.value, abs=1e-12)
    assert second.p_value == first.p_value
    x, y, a, b = clouds.values()
    turned = metric(x, y, b, a, resampling=FEW)
    assert turned.value == pytest.approx(-first.value, abs=1e-14)
    assert first.harm != "either" or turned.p_value == first.p_value


@each_metric
def test_precomputed_scores_of_pairs_give_the_same(metric):
    x, y, a, b = sets(9).values()
    matrix = cosine(np.concatenate([x, y]), np.concatenate([a, b]))
    places = np.arange(6), np.arange(6, 12), np.arange(5), np.arange(5, 10)
    plain = metric(x, y, a, b, resampling=FEW)
    estimate = metric(*places, similarity=PairScores(matrix), resampling=FEW)
    assert estimate.value == pytest.approx(plain.value, abs=1e-12)
    assert estimate.p_value == plain.p_value
    assert estimate.interval().low == pytest.approx(plain.interval().low, abs=1e-9)


@each_metric
def test_p_values_are_valid_on_exchangeable_embeddings(metric):
    draws = [
        metric(*sets(seed, n=7, m=7).values(), resampling=Permutation(99), rng=seed).p_value
        for seed in range(1000, 1120)
    ]
    for level in (0.05, 0.1, 0.5):
        largest = level + 4 * (level * (1 - level) / len(draws)) ** 0.5
        assert np.mean(np.array(draws) <= level) <= largest


def test_clustered_targets_exchange_whole_units():
    rng = np.random.default_rng(12)
    names = np.repeat([f"p{i}" for i in range(8)], 6)
    units = {"x": names[:24], "y": names[24:]}
    four = *rng.normal(size=(2, 24, 6)), *rng.normal(size=(2, 8, 6))
    first = weat(*four, units=units)
    backwards = {name: labels[::-1] for name, labels in units.items()}
    second = weat(four[0][::-1], four[1][::-1], *four[2:], units=backwards)
    assert first.p_value == second.p_value
    assert first.interval().low == pytest.approx(second.interval().low, abs=1e-9)
    assert "exchanges of units" in first.null_drawn
    assert first.unit == "unit"


def test_unusable_and_repeated_vectors_are_counted():
    clouds = sets(14)
    clouds["b"][0] = 3 * clouds["a"][1]
    spoiled = np.concatenate([clouds["x"], np.zeros((2, 7)), np.full((1, 7), np.nan)])
    estimate = weat(spoiled, clouds["y"], clouds["a"], clouds["b"], resampling=FEW)
    assert estimate.value == weat(**clouds, resampling=None).value
    assert estimate.excluded == {"x: not a number or infinite": 1, "x: zero vector": 2}
    assert estimate.n["x"] == 6
    assert estimate.params["in_both"] == {"a and b": 1}


def test_unequal_sizes_sets_of_one_and_fixed_sets():
    clouds = sets(15)
    estimate = weat(clouds["x"][:1], clouds["y"], clouds["a"], clouds["b"][:1])
    assert estimate.method.endswith("over y; x, a, b fixed")
    assert "all 7 partitions enumerated" in estimate.null_drawn
    lone = weat(*(cloud_rows[:1] for cloud_rows in clouds.values()))
    assert lone.p_value == 1.0
    assert math.isnan(lone.interval().low)
    still = weat(**clouds, fixed=("x", "y", "a", "b"))
    assert still.method.startswith("none: ")
    partly, free = weat(**clouds), weat(**clouds, fixed=())
    assert partly.interval().high - partly.interval().low < free.parts[0].high - free.parts[0].low
    assert (partly.parts[2].low, partly.parts[2].high) == (free.parts[0].low, free.parts[0].high)
    assert len(free.parts) == 2


def test_equal_scores_have_no_effect_size():
    clouds = sets(16)
    estimate = weat(clouds["x"][[0, 0]], clouds["x"][[0, 0]], clouds["a"], clouds["b"])
    assert np.isnan(estimate.value)
    assert estimate.reason
    assert estimate.p_value is None


GOOD = sets(20)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"x": GOOD["x"][0]}, "x: shape"),
        ({"x": np.zeros((0, 7))}, "x: "),
        ({"a": [[1.0, 2.0], [1.0]]}, "a: "),
        ({"a": GOOD["a"][:, :3]}, "dimensions"),
        ({"b": np.zeros((2, 7))}, "b: none"),
        ({"alternative": "more"}, "alternative='more'"),
        ({"fixed": ("c",)}, "fixed: .*'c'"),
        ({"units": {"z": ["1"]}}, "units: .*'z'"),
        ({"units": {"x": ["1"]}}, r"units\['x'\]: 1"),
        ({"units": {"x": [*"abcde", ""]}}, r"units\['x'\]: 6"),
        ({"units": {"x": [*"abcdef"]}}, "units: only 'x'"),
    ],
)
def test_bad_input(change, where):
    with pytest.raises(InputError, match=f"^.*{where}"):
        weat(**(GOOD | change))


def test_bad_scores_of_pairs():
    unit_rows = np.ones((2, 2))
    wrong = [
        ([1.0, 2.0], [0]),
        (unit_rows, [5]),
        (unit_rows, [-1]),
        (unit_rows, [0.5]),
        (np.full((2, 2), np.nan), [0]),
        (unit_rows, []),
    ]
    for pairs, a in wrong:
        with pytest.raises(InputError, match=r"scores|an empty set"):
            association_score([0, 1], a, [1], similarity=PairScores(pairs))
    with pytest.raises(InputError, match="targets and a"):
        association_score([0, 1], [0], [1], similarity=lambda _t, _a: [[1.0]])
    with pytest.raises(InputError, match="w: 6 targets"):
        sc_weat(GOOD["x"], GOOD["a"], GOOD["b"])


def encoder(seed, d, strength=0.0):
    rng = np.random.default_rng(seed)
    push = strength * np.eye(d)[0]
    targets = {
        name: rng.normal(size=(8, d)) + sign * push
        for name, sign in (("chef", 1), ("nurse", -1), ("judge", 1), ("maid", -1))
    }
    a, b = rng.normal(size=(2, 10, d))
    return total_absolute_association(targets, a + push, b - push, resampling=FEW)


def test_total_is_the_sum_of_absolute_scores():
    clouds = sets(1, n=3, m=4)
    a, b = clouds["a"], clouds["b"]
    targets = {name: clouds[name] for name in "xy"}
    estimate = total_absolute_association(targets, a, b, resampling=FEW)
    alone = {n: association_score(t, a, b, resampling=FEW) for n, t in targets.items()}
    assert estimate.value == pytest.approx(
        sum(abs(estimate.value) for estimate in alone.values()), abs=1e-12
    )
    for target in estimate.parts:
        assert target.p_value == alone[target.subject].p_value
    assert estimate.chance.mean > 0
    assert encoder(2, 8, 1.5).p_value < 0.02


def test_encoders_are_compared_target_by_target():
    weak, strong = encoder(3, 8), encoder(3, 8, 2.0)
    estimate = encoder_difference({"weak": weak, "strong": strong})
    assert estimate.value == pytest.approx(strong.value - weak.value, abs=1e-12)
    # All four targets differ in one direction: 2 of 16 swaps are as extreme.
    assert estimate.p_value == 2 / 16
    pair = part(estimate.by, "difference", "weak - strong")
    assert pair["value"] == pytest.approx(-estimate.value)
    assert pair["low"] < pair["value"] < pair["high"] < 0
    sizes = [np.abs([p.value for p in estimate.parts]) for estimate in (weak, strong)]
    swaps = np.array([*product((-1, 1), repeat=4)]) @ (sizes[1] - sizes[0])
    assert estimate.chance.mean == pytest.approx(np.abs(swaps).mean())
    three = encoder_difference({"weak": weak, "strong": strong, "other": encoder(4, 6)})
    assert "random swaps" in three.null_drawn
    assert len(three.parts) == 6
    same = encoder_difference({"first": weak, "second": weak})
    assert (same.value, same.p_value) == (0.0, 1.0)


def test_bad_encoders():
    single = encoder(1, 4)
    other = total_absolute_association({"x": np.eye(4)}, np.eye(4)[:2], np.eye(4)[2:])
    for encoders in (
        {"e": single},
        {"e": single, "f": score_summary({"t": 1.0}, {"t": "c"})},
        {"e": single, "f": other},
    ):
        with pytest.raises(InputError, match="^encoders: "):
            encoder_difference(encoders)
    with pytest.raises(InputError, match="^targets: "):
        total_absolute_association({"a": np.eye(4)}, np.eye(4), np.eye(4))


def test_summary_by_category_and_direction():
    values = {"chef": 0.2, "nurse": -0.4, "cook": 0.4, "gun": 0.1, "doll": math.nan}
    kinds = dict.fromkeys(("chef", "nurse", "cook"), "job") | {"gun": "thing", "doll": "thing"}
    estimate = score_summary(values, kinds)
    assert estimate.value == pytest.approx(0.075)
    assert estimate.excluded == {"no finite score": 1}
    assert part(estimate.by, "mean", "job, a")["value"] == pytest.approx(0.3)
    assert part(estimate.by, "sd", "job")["value"] == pytest.approx(
        np.std([0.2, -0.4, 0.4], ddof=1)
    )
    assert part(estimate.by, "mean", "thing, b")["reason"] == "no target"
    with pytest.raises(InputError, match="^categories: .*'chef'"):
        score_summary({"chef": 1.0}, {})
    with pytest.raises(InputError, match="^scores: "):
        score_summary({}, {})


@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_of_skewed_scores_is_called_a_spread(skewed):
    rng = np.random.default_rng(0)
    x, y = (rng.exponential(size=(30, 1)) if skewed else rng.random((30, 1)) for _ in "xy")
    a = np.full((2, 1), 0.5)

    def product(targets, attributes):
        return targets @ attributes.T

    estimate = weat(x, y, a, -a, similarity=product, resampling=FEW)
    assert estimate.method.startswith(SPREAD) is skewed
