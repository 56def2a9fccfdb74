"""A metric gives the same numbers from Python and in an audit, with the same defaults."""

from functools import cache, partial

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise import metrics as m
from equipoise.audits.kind import audit_of
from equipoise.core import Family
from equipoise.discovery import KINDS
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.metrics.numbers.means import mean_difference, mean_value
from equipoise.stats import Bootstrap

FEW = {"resampling": Bootstrap(40, 200, 0.95, 0.005)}
N, SMALL = 320, 12
RNG = np.random.default_rng(6)
IDS, NAMES = [f"i{row:03d}" for row in range(N)], [f"t{row:02d}" for row in range(12)]
GROUP = np.where(np.arange(N) < SMALL, "few", np.where(RNG.random(N) < 0.5, "men", "women"))
CLASSES = ["cat", "dog", "owl"]
TRUTH = RNG.choice(CLASSES, N)
FIRST, SECOND = np.where(RNG.random((2, N)) < 0.6, TRUTH, RNG.choice(CLASSES, (2, N)))
VECTORS = RNG.normal(size=(N, 6)).astype(np.float32)
TEXTS = RNG.normal(size=(12, 6)).astype(np.float32)
SCORES, MAPS = RNG.normal(size=(N, 3)), RNG.random((N, 4, 4)).astype(np.float32)
YEARS = RNG.integers(18, 80, N).astype(float)
GUESSED = YEARS + RNG.normal(size=N) * np.where(GROUP == "men", 4.0, 8.0)
SHOWN = np.stack([class_name == TRUTH for class_name in CLASSES], 1)
BOXES = {"left": 0, "top": 0, "right": 2, "bottom": 3}
KNOWN = np.where(RNG.random(N) < 0.5, "yes", "no")
ROWS = pl.DataFrame({"id": IDS, "g": GROUP, "truth": TRUTH, "one": FIRST, "two": SECOND,
                     "known": KNOWN}
                    | {name: [str(end)] * N for name, end in BOXES.items()})  # fmt: skip
CHOSEN = pl.concat([ROWS.with_columns(order=pl.lit("ABC")),
                    ROWS.with_columns(one=pl.col("two"), order=pl.lit("BCA"))])  # fmt: skip
LISTS = np.repeat(["men", "women", "x", "y"], 3)
RANKINGS = (
    "max_skew",
    "min_skew",
    "skew_at_k",
    "ndkl",
    "retrieval_mad",
    "retrieval_entropy",
    "bias_at_k",
)
CONCEPTS = ("average_precision", "auroc", "true_positive_rate", "precision", "f1")


def of(ids, values, **more):
    columns = values if isinstance(values, dict) else {"v": values}
    named = {} if isinstance(values, dict) else {"column": "v"}
    return {"file": pl.DataFrame({"id": ids, **columns}), "id": "id", **named, **more}


IMAGES = {"images": {"table": ROWS, "id": "id"}, "groups": ["g"]}
LABELLED = {"table": ROWS, "id": "id", "target": "truth", "groups": ["g"]}
RANKED = {
    "data": IMAGES, "queries": {"table": pl.DataFrame({"id": NAMES}), "id": "id"},
    "models": {"m": {"images": of(IDS, VECTORS), "queries": of(NAMES, TEXTS)}},
}  # fmt: skip
SHARES = {"few": 0.1, "men": 0.45, "women": 0.45}
PAIR = {"attributes": ["men", "women"]}
CONFIGS = {
    "predictions": {"data": LABELLED, "models": {"m": {"table": ROWS, "top": ["one", "two"]}}},
    "answers": {
        "data": LABELLED, "models": {"m": {"table": ROWS, "answer": "one"}},
        "metrics": {"label_concentration": {"k": 1}},
    },
    "concepts": {
        "data": IMAGES | {"labels": {"file": ROWS, "id": "id", "concept": "truth"}},
        "models": {"m": of(IDS, dict(zip(CLASSES, SCORES.T, strict=True)), all_classes=True)},
        "metrics": CONCEPTS, "hit_rate": 2,
    },
    "retrieval": RANKED | {
        "metrics": (*RANKINGS, "normalized_similarity_mad"),
        "ranking": {"k": 9, "first": "men", "second": "women"},
    },
    "similarity": RANKED,
    "diversity": {
        "data": {"images": IMAGES["images"], "sets": ["g"]}, "models": {"m": of(IDS, VECTORS)}
    },
    "dataset": {
        "data": IMAGES | {"labels": ["one"]},
        "reference": {"shares": {"g": SHARES}},
    },
    "regression": {
        "data": {"table": ROWS.with_columns(number=YEARS), "id": "id", "target": "number",
                 "groups": ["g"]},
        "models": {"m": {"table": ROWS.with_columns(guess=GUESSED), "prediction": "guess"}},
    },
    "questions": {
        "data": {"table": ROWS, "id": "id", "groups": ["g"], "question": "Which?",
                 "options": CLASSES, "outcome": "cat", "right": "{truth}", "decidable": "known",
                 "undecided": "owl"},
        "models": {"m": {"table": CHOSEN, "answer": "one", "order": "order"}},
    },
    "activations": {
        "data": IMAGES | {"regions": {"tool": {name: name for name in BOXES}}},
        "models": {"m": {"maps": of(IDS, MAPS.reshape(N, -1)),
                         "frames": of(IDS, np.tile(np.float32([0, 0, 4, 4]), (N, 1)))}},
    },
    "associations": {
        "data": {"people": IMAGES["images"] | {"kind": "image"},
                 "words": {"table": pl.DataFrame({"id": NAMES, "list": LISTS}), "id": "id",
                           "kind": "text"}},
        "models": {"m": {"embeddings": {"people": of(IDS, VECTORS), "words": of(NAMES, TEXTS)}}},
        "sets": {name: {"words": {"list": name}} for name in ("x", "y")}
        | {name: {"people": {"g": name}, "words": {"list": name}} for name in ("men", "women")}
        | {"few": {"people": {"g": "few"}, "words": {"list": "x"}}},
        "measure": [
            {"metric": "weat", "targets": ["x", "y"], "modalities": ["TT"]} | PAIR,
            {"metric": "sc_weat", "targets": ["x"], "modalities": ["ITP"]} | PAIR,
            {"metric": "association_score", "targets": ["few"], "modalities": ["II"]} | PAIR,
            {"metric": "differential_association", "targets": ["x", "y"],
             "modalities": ["ITP"]} | PAIR,
            {"metric": "total_absolute_association", "targets": ["x", "y"],
             "modalities": ["TT"]} | PAIR,
            {"metric": "mcas", "targets": ["few"], "generated": True} | PAIR,
        ],
    },
}  # fmt: skip
ROWWISE = TRUTH, FIRST, GROUP
RANK = m.cosine_scores(VECTORS, TEXTS, names=NAMES), GROUP
TOOL = MAPS, np.tile([0, 0, 0.5, 0.75], (N, 1)), GROUP
SETS = {name: VECTORS[name == GROUP] for name in ("few", "men", "women")}
WORDS = {name: TEXTS[name == LISTS] for name in ("men", "women", "x", "y")}
ATTRIBUTES = WORDS["men"], WORDS["women"]
MCAS = partial(m.mcas, SETS["few"], WORDS["x"], SETS["men"], ATTRIBUTES[0], SETS["women"],
               ATTRIBUTES[1])  # fmt: skip
CONCENTRATION = partial(m.label_concentration, FIRST, GROUP, k=1)
# Options as numbers: the first answers are to ABC, the second to BCA.
ANSWERS = np.stack([np.searchsorted(CLASSES, labels) for labels in (FIRST, SECOND)], 1)
MEANS = {
    m.outcome_share: (CLASSES.index("cat") == ANSWERS).mean(1),
    m.unsound_rate: np.where((KNOWN == "no") | (TRUTH == "owl"),
                             (CLASSES.index("owl") != ANSWERS).mean(1), np.nan),
}  # fmt: skip
# "cat" stands first in ABC and last in BCA.
CAT_BY_POSITION = (CLASSES.index("cat") == ANSWERS)[:, None, :]
# What gives each kind's numbers from Python, and metrics of it that other names have there.
UNANSWERED = [partial(m.unanswered_rate.difference, TRUTH, FIRST, GROUP),
              partial(m.unanswered_rate, TRUTH, FIRST)]  # fmt: skip
NO_STATE = [partial(call, np.full(N, "answered"), *groups)
            for metric in (m.unknown_rate, m.refused_rate, m.empty_rate)
            for call, groups in ((metric, ()), (metric.difference, (GROUP,)))]  # fmt: skip
CALLS = {
    "predictions": [
        *(partial(metric, *ROWWISE)
          for metric in (m.accuracy, m.accuracy_gap, m.worst_group_accuracy, m.demographic_parity,
                      m.equalized_odds, m.rates, m.effect_sizes, m.skewsize)),
        *(partial(metric, *ROWWISE, null="class")
          for metric in (m.accuracy_gap, m.worst_group_accuracy)),
        *(partial(m.accuracy_gap, *ROWWISE, versus="best", null=null)
          for null in ("rows", "class")),
        *(partial(metric, TRUTH, np.stack([FIRST, SECOND], 1), GROUP, k=2)
          for metric in (m.hit_rate, m.hit_rate.difference)),
        *UNANSWERED,
    ],
    "answers": [
        *UNANSWERED, *NO_STATE,
        *(partial(metric, *ROWWISE) for metric in (m.accuracy, m.accuracy_gap)),
        partial(m.accuracy_gap, *ROWWISE, versus="best"),
        partial(m.effect_sizes, FIRST, FIRST, GROUP, formulation="independence"),
        partial(m.demographic_parity, None, FIRST, GROUP), CONCENTRATION,
    ],
    "concepts": [
        *(partial(m.concept_disparity, SCORES, SHOWN, GROUP, metric=name, concepts=CLASSES,
                  replicates=40) for name in CONCEPTS),
        partial(m.concept_hit_rate, SCORES, SHOWN, GROUP, k=2),
    ],
    "retrieval": [
        *(partial(getattr(m, name), *RANK, k=81 if name == "ndkl" else 9)
          for name in RANKINGS[:-1]),
        partial(m.bias_at_k, *RANK, k=9, first="men", second="women"),
        partial(m.normalized_similarity_mad, *RANK), partial(m.systematic_preference, *RANK, k=9),
    ],
    "similarity": [partial(m.systematic_preference, *RANK, k=100),
                   partial(m.similarity_gap, *RANK), partial(m.normalized_similarity_mad, *RANK)],
    "diversity": [*(partial(m.iss_intra, vectors) for vectors in SETS.values()),
                  partial(m.iss_cross, SETS), partial(m.iss_difference, SETS)],
    "dataset": [
        partial(m.representation_gap, {"g": GROUP}, SHARES),
        partial(m.effect_sizes, FIRST, FIRST, GROUP, formulation="independence"),
        partial(m.demographic_parity, None, FIRST, GROUP),
        partial(m.missing_rate.difference, FIRST, GROUP),
    ],
    "regression": [
        *(partial(metric, YEARS, GUESSED, GROUP)
          for metric in (m.mean_absolute_error, m.mean_error, m.share_within_tolerance)),
        *(partial(metric.difference, YEARS, GUESSED, GROUP)
          for metric in (m.mean_absolute_error, m.mean_error, m.share_within_tolerance)),
    ],
    "questions": [
        *(partial(metric, numbers, GROUP) for metric, numbers in MEANS.items()),
        *(partial(metric.difference, numbers, GROUP) for metric, numbers in MEANS.items()),
        partial(m.order_inconsistency, ANSWERS, 3, GROUP),
        lambda resampling: mean_difference(
            "order_inconsistency", ANSWERS[:, 0] != ANSWERS[:, 1], GROUP, resampling=resampling
        ),
        *(partial(call, "accuracy", (np.argmax(SHOWN, 1)[:, None] == ANSWERS).mean(1), GROUP)
          for call in (mean_value, mean_difference)),
        partial(m.variance_share, CAT_BY_POSITION, units=IDS), *UNANSWERED, *NO_STATE,
    ],
    "activations": [partial(metric, *TOOL)
                    for metric in (m.activation_share, m.activation_share_gap)],
    "associations": [
        partial(m.weat, WORDS["x"], WORDS["y"], *ATTRIBUTES),
        *(partial(m.sc_weat, word, SETS["men"], SETS["women"]) for word in WORDS["x"]),
        partial(m.association_score, SETS["few"], SETS["men"], SETS["women"]),
        partial(m.differential_association, WORDS["x"], WORDS["y"], SETS["men"], SETS["women"]),
        partial(m.total_absolute_association, {f"target {name}": WORDS[name] for name in "xy"},
                *ATTRIBUTES),
        MCAS,
        *(lambda metric=metric, **resampling: metric(MCAS(**resampling))
          for metric in (m.diffusion_bias, m.bias_amplification)),
    ],
}  # fmt: skip
RATE_NAMES = {*rates_of_classes()}
VERSIONS = ("default", "normalised", "TT", "II", "ITP")
RENAMED = {
    ("predictions", "effect_size_mean"): "effect_sizes",
    ("answers", "cramers_v"): "effect_sizes",
    ("answers", "answer_gap"): "demographic_parity",
    ("dataset", "cramers_v"): "effect_sizes",
    ("dataset", "label_gap"): "demographic_parity",
    ("retrieval", "skew_at_k"): "group_skew",
    # No text is without an option, as none is without an answer.
    ("questions", "unresolved_rate"): "unanswered_rate",
    **{("concepts", name): "concept_disparity" for name in CONCEPTS},
}


def numbers(estimate):
    """Yield a metric with the value, interval, chance, p and n of an estimate and its parts."""
    ends, chance = estimate.interval(), estimate.chance
    chance = (chance.mean, chance.low, chance.high) if chance else (np.nan,) * 3
    p = np.nan if estimate.p_value is None else estimate.p_value
    n = sum(estimate.n.values())
    yield estimate.metric, (estimate.value, ends.low, ends.high, *chance, p, n)
    for part in estimate.parts:
        chance_range = part.chance, part.chance_low, part.chance_high
        yield part.metric, (part.value, part.low, part.high, *chance_range, part.p_value, part.n)


@cache
def audited(kind):
    settings = {"resampling": {"replicates": 40, "permutations": 200}}
    return audits.run(audits.parse_config({"audit": kind, **CONFIGS[kind], **settings})).findings


@pytest.mark.parametrize("kind", CALLS)
def test_functions_give_the_numbers_of_the_audit(kind):
    expected = {}
    for call in CALLS[kind]:
        for metric, values in numbers(call(**FEW)):
            expected.setdefault(metric, []).append(values)
    for finding in audited(kind):
        if finding.group or finding.version not in VERSIONS:
            continue
        # Rates over all rows are in the parts of no function.
        if finding.metric in RATE_NAMES and not finding.groups:
            continue
        chance_range = finding.chance, finding.chance_low, finding.chance_high
        values = (
            finding.value,
            finding.ci_low,
            finding.ci_high,
            *chance_range,
            finding.p_value,
            finding.n,
        )
        # What an audit only describes has no chance and no p there.
        compared = 3 if finding.family is Family.DESCRIPTIVE else 8
        name = RENAMED.get((kind, finding.metric), finding.metric)
        candidates = expected[name] + expected.get(finding.version, [])
        same = [np.allclose(values[:compared], candidate[:compared], 1e-9, 1e-12, equal_nan=True)
                for candidate in candidates]  # fmt: skip
        assert any(same), (finding.metric, finding.subject, finding.null, values, candidates)


# Metrics that no audit above has, by the reason.
OTHERS = {
    "a part or another name of one above": (
        "concept_disparity", "effect_sizes", "rates", "group_effect",
        "region_area", "mean_distance", "logit_gap", "label_kurtosis", "spearman",
        "cramers_v_corrected",
        *(f"{name}{end}" for name in ("phi", "tschuprows_t") for end in ("", "_corrected")),
    ),
    "is of all images: measured of one answer to nearly all, or with expected answers": (
        "dominant_answer", "answer_level", "unusable_share",
    ),
    "of many classes, or of classes that the configuration names": (
        "mistake_rate",
        *(f"effect_{name}_correlation" for name in ("accuracy", "gap", "odds", "parity")),
    ),
    "compares models, or one model before and after": (
        "accuracy_difference", "encoder_difference",
    ),
    "no groups of images: numbers of subjects, regions or targets": (
        "alignment", "correlation", "favourite_gap", "score_summary", "offset", "onset", "xmcas",
        "xmcas_distance", "trend", "gender_difference", "predicted_label_weat",
    ),
    "within units, in tests of questions": ("paired_outcome_gap",),
    "compares people within images, in tests of activations": (
        "paired_share_difference", "occlusion_difference",
    ),
    "of scores, in tests of predictions with a score": (
        "brier_score", "equal_error_rate", "expected_calibration_error",
    ),
    "states of rows, which demographic_parity counts": (
        "right_rate", "wrong_rate", "image_defect_rate",
    ),
    "of files of pictures, candidates or labelled images, in tests of their kind": (
        "rejection_gap", "rejected_share", "kept_share", "threshold_accuracy", "frechet_distance",
        "inception_score",
        "share_mad", "share_gap", "corrected_share", "raw_share", "share_difference",
    ),
}  # fmt: skip


def test_every_metric_is_compared_or_has_a_reason():
    for kind in KINDS:
        audit_of(kind)
    measured = {finding.metric.removesuffix("_gap") for kind in CALLS for finding in audited(kind)}
    measured |= {finding.metric for kind in CALLS for finding in audited(kind)}
    excluded = [name for names in OTHERS.values() for name in names]
    assert not measured & {*excluded}
    kind_metrics = {
        name for name, spec in m.SPECS.items() if {*spec.kinds} & {*KINDS, "mitigation"}
    }
    assert kind_metrics <= measured | {*excluded}
