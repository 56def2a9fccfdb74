"""What every metric owes: whatever the order of rows and the names of groups, the same bytes."""

import inspect
from functools import cache
from itertools import chain
from typing import get_args, get_type_hints

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import Aggregate, Estimate
from equipoise.metrics.spec import spec_for
from equipoise.stats import Bootstrap

N = 720
RNG = np.random.default_rng(11)
FEW = Bootstrap(40, 40, resolution=0.5)
TRUTH = RNG.integers(0, 3, N)
LABEL = np.where(RNG.random(N) < 0.6, TRUTH, RNG.integers(0, 3, N))
GROUP = RNG.choice(["a", "b", "c"], N, p=[0.4, 0.3, 0.3])
UNITS = RNG.integers(0, 90, N)
RIGHT = RNG.random(N) < 0.7
# Rows without a unit are drawn by their place: another order gives other draws of the same value.
BY_PLACE = {
    *("association_score", "differential_association", "weat", "sc_weat", "mcas", "xmcas"),
    *("total_absolute_association", "activation_share", "iss_cross", "rejection_gap"),
    *("concept_disparity", "frechet_distance", "inception_score", "directional_amplification"),
}
NAMES = {"a": "z", "b": "m", "c": "k"}


def cloud(n, d=6):
    return RNG.normal(size=(n, d))


def unordered(*names, n=12):
    return {name: cloud(n + 2 * place) for place, name in enumerate(names)}


def confusion(right):
    return m.Confusion(("a", "b"), ("a", "b"), np.array([[right, 100 - right], [20, 80]]))


@cache
def shares(seed=3):
    labels = np.random.default_rng(seed).choice(["a", "b"], 80)
    return m.corrected_shares(labels, confusion(90), resampling=FEW, name=str(seed))


ROWS = {"y_true": TRUTH, "y_pred": LABEL, "groups": GROUP}
RANKED = {"scores": RNG.normal(size=N), "groups": GROUP}
TOP = {**RANKED, "k": 20}
TARGETS = {"one": cloud(10), "two": cloud(10)}
MCAS = ("target_images", "target_texts", "a_images", "a_texts", "b_images", "b_texts")
COMPONENTS = {"components": m.mcas(*(RNG.normal(size=(6, 4)) for _ in MCAS), resampling=None)}
TABLE = {"table": np.array([[20, 10, 5], [11, 14, 3], [4, 6, 9]])}
CONCEPTS = {"scores": RNG.normal(size=(N, 3)), "labels": RNG.random((N, 3)) < 0.5, "groups": GROUP}
SIMILARITIES = m.ImageSimilarities(
    RNG.normal(size=(N, 3)), ["good", "fine", "bad"], np.where(TRUTH, "a", "b"), ["x"] * N
)
WORDS = {"similarities": SIMILARITIES, "positive": ["good", "fine"], "negative": ["bad"]}
BOXES = np.sort(RNG.random((N, 4)))
MAPS = {"maps": RNG.random((N, 4, 5)), "boxes": BOXES, "groups": GROUP}
ENCODERS = {
    name: m.total_absolute_association(TARGETS, cloud(8), cloud(8), resampling=FEW)
    for name in ("first", "second")
}
MORE = np.random.default_rng(12)
MARKS = MORE.random((N, 4)) < 0.4
TRAINING = m.Cooccurrence.of(MORE.random((N, 4)) < 0.5, GROUP)
AMPLIFIED = {
    name: m.cooccurrence_amplification(TRAINING, m.Cooccurrence.of(marks, GROUP), resampling=FEW)
    for name, marks in (("before", MARKS), ("after", MORE.random((N, 4)) < 0.5))
}
SAMPLED = {"outcome": np.where(RIGHT, TRUTH == 0, np.nan), "strata": LABEL}
# Every function that returns an estimate, with inputs of a few rows.
CASES = {
    **dict.fromkeys(
        ("accuracy", "accuracy_gap", "worst_group_accuracy", "equalized_odds", "rates"), ROWS
    ),
    **dict.fromkeys(("demographic_parity", "effect_sizes", "skewsize"), ROWS),
    "accuracy_difference": {
        "y_true": TRUTH,
        "y_pred_unbiased": LABEL,
        "y_pred_biased": np.where(RIGHT, LABEL, 0),
    },
    "hit_rate": {
        "y_true_sets": TRUTH,
        "top_predictions": np.stack([LABEL, (LABEL + 1) % 3], 1),
        "groups": GROUP,
        "k": 2,
    },
    **dict.fromkeys(("cramers_v", "phi", "tschuprows_t"), TABLE),
    "corrected_shares": {
        "predicted": np.where(RIGHT, "a", "b"),
        "confusion": confusion(90),
        "units": UNITS,
    },
    "share_gap": {"shares": shares(), "outside": {"a": 0.5, "b": 0.5}},
    "mean_share_mad": {"estimates": {"one": shares(3), "two": shares(4)}},
    "association_score": unordered("targets", "a", "b"),
    "differential_association": unordered("c1", "c2", "m_images", "f_images"),
    "weat": unordered("x", "y", "a", "b"),
    "sc_weat": {**unordered("a", "b"), "w": tuple(RNG.normal(size=6))},
    "mcas": unordered(*MCAS),
    "xmcas": unordered(*MCAS, "c_images", "c_texts"),
    **dict.fromkeys(("diffusion_bias", "bias_amplification"), COMPONENTS),
    "estimate_offset": {"mcas_values": RNG.normal(size=20)},
    "total_absolute_association": {"targets": TARGETS, **unordered("a", "b")},
    "compare_encoders": {"encoders": ENCODERS},
    "alignment": {"preferences": RNG.normal(size=30), "hypothesis": RNG.normal(size=30)},
    "correlation": {"x": RNG.normal(size=30), "y": RNG.normal(size=30)},
    "score_summary": {"scores": {"p": 0.1, "q": -0.2}, "categories": {"p": "job", "q": "job"}},
    "dominant_answer": {"answers": LABEL.astype(str), "truth": TRUTH.astype(str)},
    "label_concentration": {"labels": LABEL.astype(str), "groups": GROUP},
    "predicted_label_weat": {
        "labels": np.array([*"pqrstu"])[RNG.integers(0, 6, N)],
        "groups": np.where(RIGHT, "a", "b"),
        "vocabulary": [*"pqrstu"],
        "embeddings": tuple(cloud(6)),
        "a": cloud(8),
        "b": cloud(9),
        "first": "a",
    },
    **dict.fromkeys(("trend", "gender_difference"), WORDS),
    **dict.fromkeys(("activation_share", "activation_share_gap"), MAPS),
    "paired_share_difference": {
        "differences": MORE.random(N) - 0.3,
        "groups": GROUP,
        "units": UNITS,
    },
    "concept_disparity": {**CONCEPTS, "min_positives": 10},
    "concept_hit_rate": {**CONCEPTS, "k": 2},
    "iss_intra": {"embeddings": cloud(20)},
    "iss_cross": {"sets": {"one": cloud(20), "two": cloud(15)}},
    "iss_difference": {"sets": {"one": cloud(20), "two": cloud(15)}},
    **dict.fromkeys(
        ("max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "retrieval_entropy"), TOP
    ),
    "bias_at_k": {**TOP, "first": "a", "second": "b"},
    "systematic_preference": {**TOP, "queries": RNG.choice([*"pqrstuvw"], N)},
    "normalized_similarity_mad": RANKED,
    "similarity_gap": RANKED,
    "favourite_gap": {
        "effects": {name: {"a": RNG.normal(), "b": 0.0} for name in "pqrstuv"},
        "favourites": dict.fromkeys("pqrs", "a") | dict.fromkeys("tuv", "b"),
    },
    "onset": {
        "steps": np.array([1.0, 5.0, 10.0, 25.0]),
        "values": np.array([0.52, 0.47, 0.8, 0.9]),
        "chance": np.array([(0.5, 0.4, 0.6)] * 4),
        "replicates": np.array([[0.52], [0.47], [0.8], [0.9]]) + MORE.normal(0, 0.1, (4, 40)),
    },
    "rejection_gap": {"rejected": RIGHT, "groups": GROUP},
    "inception_score": {
        "probabilities": np.full((40, 4), 0.1) + 0.6 * np.eye(4)[np.arange(40) % 4]
    },
    "frechet_distance": {"features": cloud(30, 3), "reference": cloud(40, 3)},
    "representation": {"groups": GROUP, "reference": {"a": 0.2, "b": 0.3, "c": 0.5}},
    "labelled_share": SAMPLED,
    "labelled_share_gap": {**SAMPLED, "groups": GROUP},
    "explained_disparity": {"outcome": RIGHT, "cause": TRUTH, "groups": GROUP, "first": "a"},
    "krippendorff_alpha": {
        "labels": LABEL,
        "items": np.arange(N) // 3,
        "labellers": np.arange(N) % 3,
    },
    "cooccurrence_amplification": {
        "training": TRAINING,
        "predicted": m.Cooccurrence.of(MARKS, GROUP),
    },
    "directional_amplification": {
        "attributes": GROUP[:, None] == np.array(["a", "b", "c"]),
        "tasks": MARKS,
        "predicted": MORE.random((N, 4)) < 0.4,
    },
    "amplification_change": AMPLIFIED,
    "bias_regression": {"bias": MORE.normal(size=30), "cooccurrence": MORE.random(30)},
}
FUNCTIONS = {name: getattr(m, name) for name in CASES}


def parameters(function):
    """Names of a function's parameters."""
    names = inspect.signature(function).parameters
    hints = (
        get_type_hints(function)[name]
        for name, parameter in names.items()
        if parameter.kind is parameter.VAR_KEYWORD
    )
    return {*names, *chain.from_iterable(get_type_hints(get_args(hint)[0]) for hint in hints)}


DRAWN = {
    name: function for name, function in FUNCTIONS.items() if "resampling" in parameters(function)
}
COUNTED = [name for name, case in CASES.items() if case is ROWS]
EVERY = pytest.mark.parametrize("name", CASES)


def measured(name, data, **options):
    allowed = parameters(FUNCTIONS[name])
    arguments = {"resampling": FEW, "rng": 3} | options
    return FUNCTIONS[name](
        **data, **{key: value for key, value in arguments.items() if key in allowed}
    )


def numbers(estimate):
    """Everything of an estimate that has no part."""
    interval, chance = estimate.interval(0.9), estimate.chance
    band = [chance.mean, chance.low, chance.high] if chance else []
    p = [] if estimate.p_value is None else [estimate.p_value]
    return [estimate.value, interval.low, interval.high, *band, *p]


def every_number(estimate):
    names = ("value", "low", "high", "chance", "p_value")
    parts = sorted(([getattr(part, name) for name in names] for part in estimate.parts), key=str)
    return [*numbers(estimate), *chain.from_iterable(parts)]


def moved(value, take):
    """Permute the rows of arrays; arrays of one length keep belonging together."""
    if isinstance(value, np.ndarray):
        return take(value)
    if isinstance(value, m.ImageSimilarities):
        return value
    if isinstance(value, dict):
        return {key: moved(item, take) for key, item in value.items()}
    return value


def permuted(array):
    return array[np.random.default_rng(len(array)).permutation(len(array))]


def test_every_metric_has_a_case():
    functions = {name: getattr(m, name) for name in m.__all__}
    returns = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and get_type_hints(function)["return"] is Estimate
    }
    assert returns == {*CASES}


@EVERY
def test_it_returns_an_estimate_with_a_record_and_its_reference(name: str) -> None:
    estimate = measured(name, CASES[name])
    spec = spec_for(estimate.metric, estimate.aggregate, estimate.compared_to)
    assert estimate.reference
    assert estimate.method
    assert estimate.estimable or estimate.reason
    assert len(estimate.to_frame()) == len(estimate.parts)
    levels = [part for part in estimate.parts if part.aggregate is not Aggregate.AGAINST_REST]
    groups = {group.group for part in levels for group in part.by_group}
    assert {*estimate.by_group["group"]} == groups
    assert {*estimate.by_class["class"]} <= {part.subject for part in estimate.parts}
    assert estimate.chance or estimate.no_chance or estimate.p_value is not None
    assert estimate.harm == (spec.harm or "either") or spec.harm == "either"
    narrow, wide = estimate.interval(0.5), estimate.interval(0.9)
    assert wide.low <= narrow.low <= narrow.high <= wide.high or np.isnan(wide.low)
    low, high = spec.bounds or (-np.inf, np.inf)
    assert low - 1e-12 <= estimate.value <= high + 1e-12


@EVERY
def test_its_docstring_has_every_section(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert len(text.splitlines()[0]) <= 100
    for section in ("Parameters", "Returns", "Raises"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text


@EVERY
def test_the_order_of_rows_changes_no_number(name: str) -> None:
    data = {key: moved(value, permuted) for key, value in CASES[name].items()}
    estimate, expected = measured(name, data), measured(name, CASES[name])
    assert (estimate.null_drawn, estimate.excluded) == (expected.null_drawn, expected.excluded)
    compared = [estimate.value] if name in BY_PLACE else every_number(estimate)
    same = every_number(expected)[: len(compared)]
    np.testing.assert_allclose(compared, same, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "groups" in case])
def test_the_names_of_groups_change_no_number(name):
    renamed = np.array([NAMES[group] for group in CASES[name]["groups"]])
    ends = {key: NAMES[CASES[name][key]] for key in ("first", "second") if key in CASES[name]}
    if name == "representation":  # The reference names its groups.
        ends["reference"] = {NAMES[group]: n for group, n in CASES[name]["reference"].items()}
    estimate = measured(name, {**CASES[name], "groups": renamed, **ends})
    compared = [estimate.value] if name in BY_PLACE else numbers(estimate)
    same = numbers(measured(name, CASES[name]))[: len(compared)]
    np.testing.assert_allclose(compared, same, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", DRAWN)
def test_the_seed_decides_the_draws_and_none_leaves_the_value_alone(name):
    first, again = (measured(name, CASES[name]) for _ in range(2))
    assert str(numbers(first)) == str(numbers(again))
    assert first.by == again.by or str(first.parts) == str(again.parts)
    generator, seed = np.random.default_rng(8), int(np.random.default_rng(8).integers(1 << 63))
    expected = str(numbers(measured(name, CASES[name], rng=seed)))
    assert [str(numbers(measured(name, CASES[name], rng=generator))) for _ in range(2)] == [
        expected
    ] * 2
    bare = measured(name, CASES[name], resampling=None)
    assert bare.value == first.value
    assert (bare.chance, bare.p_value) == (None, None)
    assert (
        np.isnan([bare.interval().low, bare.interval().high]).all()
        if name in COUNTED
        else bare.method
    )


@pytest.mark.parametrize("name", COUNTED)
def test_units_of_one_row_keep_the_value_and_widen_nothing(name):
    estimate = measured(name, CASES[name], units=np.arange(N))
    alone = measured(name, CASES[name])
    assert estimate.value == pytest.approx(alone.value, abs=1e-12)
    assert (alone.unit, estimate.unit) == ("row", "unit")
