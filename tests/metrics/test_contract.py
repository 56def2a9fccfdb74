"""What every metric owes: whatever the order of rows and the names of groups, the same bytes."""

import inspect
from functools import cache
from itertools import chain
from typing import get_args, get_type_hints

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import Aggregate, Estimate
from equipoise.metrics.labels.effect_profile import EffectCorrelation
from equipoise.metrics.labels.effect_sizes import TableEffect
from equipoise.metrics.labels.part import PartMetric
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
    *("weat_statistic", "xmcas_distance"),
    *("total_absolute_association", "activation_share", "iss_cross", "rejection_gap"),
    *("rejected_share", "concept_disparity", "frechet_distance", "inception_score"),
    "directional_amplification",
    *("concept_difference", "f1"),
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
QUERIED = {**TOP, "queries": RNG.choice([*"pqrstuvw"], N)}
PAIRS = {"x": RNG.normal(size=30), "y": RNG.normal(size=30)}
LABELLED = {"labels": LABEL.astype(str), "groups": GROUP}
TARGETS = {"one": cloud(10), "two": cloud(10)}
MCAS = ("target_images", "target_texts", "a_images", "a_texts", "b_images", "b_texts")
COMPONENTS = {"components": m.mcas(*(RNG.normal(size=(6, 4)) for _ in MCAS), resampling=None)}
TABLE = {"table": np.array([[20, 10, 5], [11, 14, 3], [4, 6, 9]])}
CONCEPTS = {"scores": RNG.normal(size=(N, 3)), "labels": RNG.random((N, 3)) < 0.5, "groups": GROUP}
TWO_GROUPS = {**CONCEPTS, "groups": np.where(RIGHT, "a", "b")}
TWO_GROUPS |= {"choices": m.Choices(min_positives=5)}
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
PAIRED = {"differences": MORE.random(N) - 0.3, "groups": GROUP, "units": UNITS}
SETS = {"sets": {"one": cloud(20), "two": cloud(15)}}
REJECTED = {"rejected": RIGHT, "groups": GROUP}
SAMPLED = {"outcome": np.where(RIGHT, TRUTH == 0, np.nan), "strata": LABEL}
NAMED = {"predicted": np.where(RIGHT, "a", "b"), "confusion": confusion(90), "units": UNITS}
# Every function that returns an estimate, with inputs of a few rows.
CASES = {
    **dict.fromkeys(("accuracy_gap", "worst_group_accuracy", "equalized_odds", "rates"), ROWS),
    **dict.fromkeys(("demographic_parity", "effect_sizes", "skewsize"), ROWS),
    "accuracy_difference": {
        "y_true": TRUTH,
        "y_pred_unbiased": LABEL,
        "y_pred_biased": np.where(RIGHT, LABEL, 0),
    },
    "concept_difference": {**TWO_GROUPS, "first": "b", "second": "a"},
    # The rows that tune thresholds are drawn by their units.
    "f1": {**TWO_GROUPS, "units": np.array([f"u{row}" for row in range(N)])},
    **dict.fromkeys(("corrected_shares", "share_mad"), NAMED),
    "share_difference": {
        "shares": shares(),
        "outside": {"a": 0.5, "b": 0.5},
        "subject": "a",
    },
    "share_gap": {"shares": shares(), "outside": {"a": 0.5, "b": 0.5}},
    "mean_share_mad": {"estimates": {"one": shares(3), "two": shares(4)}},
    "association_score": unordered("targets", "a", "b"),
    "differential_association": unordered("c1", "c2", "m_images", "f_images"),
    **dict.fromkeys(("weat", "weat_statistic"), unordered("x", "y", "a", "b")),
    "sc_weat": {**unordered("a", "b"), "w": tuple(RNG.normal(size=6))},
    "mcas": unordered(*MCAS),
    **dict.fromkeys(("xmcas", "xmcas_distance"), unordered(*MCAS, "c_images", "c_texts")),
    **dict.fromkeys(("diffusion_bias", "bias_amplification"), COMPONENTS),
    "offset": {"mcas_values": RNG.normal(size=20)},
    "total_absolute_association": {"targets": TARGETS, **unordered("a", "b")},
    "encoder_difference": {"encoders": ENCODERS},
    "alignment": {"preferences": RNG.normal(size=30), "hypothesis": RNG.normal(size=30)},
    **dict.fromkeys(("correlation", "spearman"), PAIRS),
    "score_summary": {"scores": {"p": 0.1, "q": -0.2}, "categories": {"p": "job", "q": "job"}},
    "dominant_answer": {"answers": LABEL.astype(str), "truth": TRUTH.astype(str)},
    **dict.fromkeys(("label_concentration", "label_kurtosis", "label_skewness"), LABELLED),
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
    **dict.fromkeys(("activation_share", "activation_share_gap", "region_area"), MAPS),
    **dict.fromkeys(
        ("paired_share_difference", "occlusion_difference"),
        PAIRED,
    ),
    "concept_disparity": {**CONCEPTS, "min_positives": 10},
    "concept_hit_rate": {**CONCEPTS, "k": 2},
    "iss_intra": {"embeddings": cloud(20)},
    **dict.fromkeys(("iss_cross", "iss_difference", "mean_distance"), SETS),
    **dict.fromkeys(
        ("max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "retrieval_entropy"), TOP
    ),
    "bias_at_k": {**TOP, "first": "a", "second": "b"},
    **dict.fromkeys(("systematic_preference", "preference_strength"), QUERIED),
    **dict.fromkeys(("normalized_similarity_mad", "similarity_gap"), RANKED),
    "logit_gap": {**RANKED, "scale": 2.0},
    "group_effect": {**RANKED, "group": "a"},
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
    **dict.fromkeys(("rejection_gap", "rejected_share"), REJECTED),
    "kept_share": {"kept": RIGHT, "captions": UNITS},
    "threshold_accuracy": {"values": UNITS, "labels": UNITS >= 45, "size": 90, "clusters": UNITS},
    "inception_score": {
        "probabilities": np.full((40, 4), 0.1) + 0.6 * np.eye(4)[np.arange(40) % 4]
    },
    "frechet_distance": {"features": cloud(30, 3), "reference": cloud(40, 3)},
    "answer_level": {"answers": GROUP, "expected": {"a": 0.2, "b": 0.3, "c": 0.5}},
    "representation_gap": {"groups": GROUP, "reference": {"a": 0.2, "b": 0.3, "c": 0.5}},
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
    "order_inconsistency": {
        "answers": MORE.integers(0, 2, (N, 2)),
        "groups": GROUP,
        "units": UNITS,
    },
    "unusable_share": {"values": RIGHT, "groups": GROUP, "units": UNITS},
    "paired_outcome_gap": {"shares": RIGHT, "groups": GROUP, "units": UNITS},
    "variance_share": {"answers": MORE.integers(0, 2, (N, 2, 2))},
    "bias_regression": {"bias": MORE.normal(size=30), "cooccurrence": MORE.random(30)},
}
OF_CLASS = {**ROWS, "positive": "1"}
STATES = {
    "states": MORE.choice(["unknown", "refused", "empty", "answered", "unresolved"], N),
    "groups": GROUP,
}
GUESSES = {"y_pred": LABEL, "groups": GROUP}
ONE = {**NAMED, "subject": "a"}
CLASSES = {"statistic": "cramers_v", "min_expected": 1.0, **ROWS}
# Metrics that a form makes of a statistic.
OF_FORMS = {
    "accuracy": ROWS,
    **dict.fromkeys(
        ("true_positive_rate", "false_positive_rate", "true_negative_rate", "false_negative_rate",
         "precision", "negative_predictive_value", "selection_rate", "average_odds"), OF_CLASS,
    ),
    "hit_rate": {
        "y_true_sets": TRUTH,
        "top_predictions": np.stack([LABEL, (LABEL + 1) % 3], 1),
        "groups": GROUP,
        "k": 2,
    },
    **dict.fromkeys(("unanswered_rate", "right_rate", "wrong_rate"), ROWS),
    **dict.fromkeys(("unknown_rate", "unresolved_rate", "refused_rate", "empty_rate"), STATES),
    "missing_rate": {"values": np.where(RIGHT, "a", ""), "groups": GROUP},
    "image_defect_rate": {"marks": RIGHT, "groups": GROUP},
    "mistake_rate": {**ROWS, "of": "1", "label": "2"},
    **dict.fromkeys(("answer_gap", "label_gap"), GUESSES),
    "effect_size_mean": ROWS,
    **dict.fromkeys(
        (f"effect_{name}_correlation" for name in ("accuracy", "gap", "odds", "parity")), CLASSES
    ),
    **dict.fromkeys(
        (f"{name}{end}" for name in ("cramers_v", "phi", "tschuprows_t")
         for end in ("", "_corrected")), TABLE,
    ),
    **dict.fromkeys(("corrected_share", "raw_share"), ONE),
    "representation": {
        "groups": GROUP, "reference": {"a": 0.2, "b": 0.3, "c": 0.5}, "subject": "a",
    },
}  # fmt: skip
FUNCTIONS = {name: getattr(m, name) for name in CASES | OF_FORMS}


def called(metric):
    """The function that a call of a metric runs: its own, or that of its form."""
    return type(metric).__call__ if isinstance(metric, m.RankingMetric) else metric


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
COUNTED = [name for name, case in CASES.items() if case is ROWS] + ["accuracy", "precision"]
EVERY = pytest.mark.parametrize("name", CASES)
ALL = CASES | OF_FORMS
EVERY_METRIC = pytest.mark.parametrize("name", ALL)


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
        if inspect.isfunction(called(function))
        and get_type_hints(called(function))["return"] is Estimate
    }
    assert returns == {*CASES}
    forms = (m.RateMetric, PartMetric, TableEffect, EffectCorrelation)
    of_forms = {name for name, function in functions.items() if isinstance(function, forms)}
    assert of_forms == {*OF_FORMS}


@EVERY_METRIC
def test_it_returns_an_estimate_with_a_record_and_its_reference(name: str) -> None:
    estimate = measured(name, ALL[name])
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
    text = inspect.getdoc(called(FUNCTIONS[name])) or ""
    assert len((inspect.getdoc(FUNCTIONS[name]) or "").splitlines()[0]) <= 100
    for section in ("Parameters", "Returns", "Raises"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text


@EVERY_METRIC
def test_the_order_of_rows_changes_no_number(name: str) -> None:
    data = {key: moved(value, permuted) for key, value in ALL[name].items()}
    estimate, expected = measured(name, data), measured(name, ALL[name])
    assert (estimate.null_drawn, estimate.excluded) == (expected.null_drawn, expected.excluded)
    compared = [estimate.value] if name in BY_PLACE else every_number(estimate)
    same = every_number(expected)[: len(compared)]
    np.testing.assert_allclose(compared, same, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in ALL.items() if "groups" in case])
def test_the_names_of_groups_change_no_number(name):
    renamed = np.array([NAMES[group] for group in ALL[name]["groups"]])
    ends = {key: NAMES[ALL[name][key]] for key in ("first", "second", "group") if key in ALL[name]}
    if "reference" in ALL[name]:  # The reference and the subject are groups.
        ends |= {key: NAMES[ALL[name][key]] for key in ("subject",) if key in ALL[name]}
        ends["reference"] = {NAMES[group]: n for group, n in ALL[name]["reference"].items()}
    estimate = measured(name, {**ALL[name], "groups": renamed, **ends})
    compared = [estimate.value] if name in BY_PLACE else numbers(estimate)
    same = numbers(measured(name, ALL[name]))[: len(compared)]
    np.testing.assert_allclose(compared, same, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", DRAWN)
def test_the_seed_decides_the_draws_and_none_leaves_the_value_alone(name):
    first, again = (measured(name, ALL[name]) for _ in range(2))
    assert str(numbers(first)) == str(numbers(again))
    assert first.by == again.by or str(first.parts) == str(again.parts)
    generator, seed = np.random.default_rng(8), int(np.random.default_rng(8).integers(1 << 63))
    expected = str(numbers(measured(name, ALL[name], rng=seed)))
    assert [str(numbers(measured(name, ALL[name], rng=generator))) for _ in range(2)] == [
        expected
    ] * 2
    bare = measured(name, ALL[name], resampling=None)
    assert bare.value == first.value
    assert (bare.chance, bare.p_value) == (None, None)
    assert (
        np.isnan([bare.interval().low, bare.interval().high]).all()
        if name in COUNTED
        else bare.method
    )


@pytest.mark.parametrize("name", COUNTED)
def test_units_of_one_row_keep_the_value_and_widen_nothing(name):
    estimate = measured(name, ALL[name], units=np.arange(N))
    alone = measured(name, ALL[name])
    assert estimate.value == pytest.approx(alone.value, abs=1e-12)
    assert (alone.unit, estimate.unit) == ("row", "unit")
