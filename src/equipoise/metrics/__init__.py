"""Metrics: arrays in, an `Estimate` out.

Data arrays come first, then `groups`, then keywords. The shared parameters mean the same in every
function that takes them:

groups : array-like (n,), mapping of attribute to labels, or Groups
    The intersections of several attributes are the groups. See `equipoise.core.groups.Groups.of`.
weights : array-like (n, k)
    Weight of each of the k predictions of a row; by default 1 / k.
units : array-like (n,)
    Names of the units that repeat, such as an image or a person: rows of a unit are resampled
    together. A row without a name is a unit of its own.
resampling : Bootstrap, Permutation or None
    How the interval, the chance level and the p-value are made; see `equipoise.stats`. None gives
    the value alone.
rng : int or numpy.random.Generator
    Seed of the random streams; of a generator the present state, which a call does not change.
    Results do not depend on the number of threads.

Groups with fewer rows than `min_size` of `Groups.of` (`min_group_size` in a config) are counted
among the excluded and not compared: by default 30, and 1 of images that are ranked. docs/audits has
definitions, ranges and references.
"""

from contextlib import suppress

from equipoise.metrics.concepts.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.concepts.disparity import (
    Choices,
    concept_disparity,
    concept_hit_rate,
    concept_metrics,
)
from equipoise.metrics.concepts.single import concept_difference, f1
from equipoise.metrics.evaluating import Evaluation, evaluate
from equipoise.metrics.labels import Counts, count
from equipoise.metrics.labels.accuracy import accuracy_gap, hit_rate, worst_group_accuracy
from equipoise.metrics.labels.agreement import krippendorff_alpha
from equipoise.metrics.labels.amplification import (
    Cooccurrence,
    amplification_change,
    cooccurrence_amplification,
    directional_amplification,
)
from equipoise.metrics.labels.answer_levels import answer_level, dominant_answer
from equipoise.metrics.labels.answer_rates import (
    answer_gap,
    empty_rate,
    image_defect_rate,
    label_gap,
    missing_rate,
    refused_rate,
    right_rate,
    unanswered_rate,
    unknown_rate,
    unresolved_rate,
    wrong_rate,
)
from equipoise.metrics.labels.causes import explained_disparity, rank_causes
from equipoise.metrics.labels.confusion_rates import (
    accuracy,
    average_odds,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    precision,
    selection_rate,
    true_negative_rate,
    true_positive_rate,
)
from equipoise.metrics.labels.effect_profile import (
    effect_accuracy_correlation,
    effect_gap_correlation,
    effect_odds_correlation,
    effect_parity_correlation,
    mistake_rate,
)
from equipoise.metrics.labels.effect_sizes import (
    cramers_v,
    cramers_v_corrected,
    effect_size_mean,
    effect_sizes,
    mev_sweep,
    phi,
    phi_corrected,
    skewsize,
    tschuprows_t,
    tschuprows_t_corrected,
)
from equipoise.metrics.labels.metric import CountMetric
from equipoise.metrics.labels.paired import accuracy_difference
from equipoise.metrics.labels.rate_comparisons import rate_comparisons
from equipoise.metrics.labels.rate_metric import RateMetric
from equipoise.metrics.labels.rates import demographic_parity, equalized_odds, rates
from equipoise.metrics.labels.representation import representation, representation_gap
from equipoise.metrics.labels.sampled import labelled_share, labelled_share_gap
from equipoise.metrics.labels.shares import (
    Confusion,
    corrected_share,
    corrected_shares,
    mean_share_mad,
    raw_share,
    share_difference,
    share_gap,
    share_mad,
)
from equipoise.metrics.measure import measure
from equipoise.metrics.naming import attribute_name
from equipoise.metrics.numbers import (
    NumberMetric,
    mean_absolute_error,
    mean_error,
    share_within_tolerance,
)
from equipoise.metrics.numbers.activation import (
    activation_share,
    activation_share_gap,
    occlusion_difference,
    paired_share_difference,
    region_area,
)
from equipoise.metrics.numbers.kept_share import kept_share
from equipoise.metrics.numbers.onset import onset
from equipoise.metrics.numbers.order_inconsistency import order_inconsistency
from equipoise.metrics.numbers.outcome_share import outcome_share
from equipoise.metrics.numbers.paired_outcome_gap import paired_outcome_gap
from equipoise.metrics.numbers.regression import bias_regression
from equipoise.metrics.numbers.rejections import rejected_share, rejection_gap
from equipoise.metrics.numbers.row_metric import RowMetric
from equipoise.metrics.numbers.threshold_accuracy import threshold_accuracy
from equipoise.metrics.numbers.unsound_rate import unsound_rate
from equipoise.metrics.numbers.unusable_share import unusable_share
from equipoise.metrics.numbers.variance_share import variance_share
from equipoise.metrics.rankings.cosines import CosineScores, cosine_scores
from equipoise.metrics.rankings.desired_shares import max_skew, min_skew, ndkl, skew_at_k
from equipoise.metrics.rankings.measures import (
    query_distribution,
    retrieval_curves,
    retrieval_measures,
)
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.opposed_groups import bias_at_k
from equipoise.metrics.rankings.preference import preference_strength, systematic_preference
from equipoise.metrics.rankings.retrieval_entropy import retrieval_entropy
from equipoise.metrics.rankings.retrieval_mad import retrieval_mad
from equipoise.metrics.rankings.similarity import (
    group_effect,
    logit_gap,
    normalized_similarity_mad,
    similarity_gap,
)
from equipoise.metrics.rankings.statistics import expected_max_skew, recall_hits
from equipoise.metrics.rankings.subjects import (
    alignment,
    correlation,
    favourite_gap,
    loess,
    score_summary,
    spearman,
)
from equipoise.metrics.registry import Function, function_of, metric
from equipoise.metrics.scores import (
    ScoreMetric,
    auroc,
    average_precision,
    brier_score,
    equal_error_rate,
    expected_calibration_error,
)
from equipoise.metrics.scoring import as_score
from equipoise.metrics.spec import ALIASES, SPECS, MetricSpec
from equipoise.metrics.vectors.associations import (
    association_score,
    differential_association,
    encoder_difference,
    sc_weat,
    total_absolute_association,
    weat,
    weat_statistic,
)
from equipoise.metrics.vectors.diversity import (
    iss_cross,
    iss_difference,
    iss_intra,
    mean_distance,
    mean_distances,
)
from equipoise.metrics.vectors.frechet import frechet_distance, inception_score
from equipoise.metrics.vectors.mcas import (
    bias_amplification,
    diffusion_bias,
    mcas,
    offset,
    xmcas,
    xmcas_distance,
)
from equipoise.metrics.vectors.metric import VectorMetric
from equipoise.metrics.vectors.predicted_labels import (
    label_concentration,
    label_kurtosis,
    label_skewness,
    predicted_label_weat,
)
from equipoise.metrics.vectors.sets import PairScores
from equipoise.metrics.vectors.trends import ImageSimilarities, gender_difference, trend

__all__ = [
    "SPECS",
    "Choices",
    "Confusion",
    "Cooccurrence",
    "CosineScores",
    "CountMetric",
    "Counts",
    "Evaluation",
    "ImageSimilarities",
    "MetricSpec",
    "NumberMetric",
    "PairScores",
    "RankingMetric",
    "RateMetric",
    "RowMetric",
    "ScoreMetric",
    "VectorMetric",
    "accuracy",
    "accuracy_difference",
    "accuracy_gap",
    "activation_share",
    "activation_share_gap",
    "alignment",
    "amplification_change",
    "answer_gap",
    "answer_level",
    "as_score",
    "association_score",
    "auroc",
    "average_odds",
    "average_precision",
    "bias_amplification",
    "bias_at_k",
    "bias_regression",
    "brier_score",
    "concept_difference",
    "concept_disparity",
    "concept_hit_rate",
    "concept_metrics",
    "cooccurrence_amplification",
    "corrected_share",
    "corrected_shares",
    "correlation",
    "cosine_scores",
    "count",
    "cramers_v",
    "cramers_v_corrected",
    "demographic_parity",
    "design_choices",
    "differential_association",
    "diffusion_bias",
    "directional_amplification",
    "dominant_answer",
    "effect_accuracy_correlation",
    "effect_gap_correlation",
    "effect_odds_correlation",
    "effect_parity_correlation",
    "effect_size_mean",
    "effect_sizes",
    "empty_rate",
    "encoder_difference",
    "equal_error_rate",
    "equalized_odds",
    "evaluate",
    "expected_calibration_error",
    "expected_max_skew",
    "explained_disparity",
    "f1",
    "false_negative_rate",
    "false_positive_rate",
    "favourite_gap",
    "frechet_distance",
    "function_of",
    "gender_difference",
    "group_effect",
    "hit_rate",
    "image_defect_rate",
    "inception_score",
    "iss_cross",
    "iss_difference",
    "iss_intra",
    "kept_share",
    "krippendorff_alpha",
    "label_concentration",
    "label_gap",
    "label_kurtosis",
    "label_skewness",
    "labelled_share",
    "labelled_share_gap",
    "loess",
    "logit_gap",
    "max_skew",
    "mcas",
    "mean_absolute_error",
    "mean_distance",
    "mean_distances",
    "mean_error",
    "mean_share_mad",
    "measure",
    "metric",
    "mev_sweep",
    "min_skew",
    "missing_rate",
    "mistake_rate",
    "model_order",
    "ndkl",
    "negative_predictive_value",
    "normalized_similarity_mad",
    "occlusion_difference",
    "offset",
    "onset",
    "order_inconsistency",
    "outcome_share",
    "paired_outcome_gap",
    "paired_share_difference",
    "phi",
    "phi_corrected",
    "precision",
    "predicted_label_weat",
    "preference_strength",
    "query_distribution",
    "rank_causes",
    "rate_comparisons",
    "rates",
    "raw_share",
    "recall_hits",
    "refused_rate",
    "region_area",
    "rejected_share",
    "rejection_gap",
    "representation",
    "representation_gap",
    "retrieval_curves",
    "retrieval_entropy",
    "retrieval_mad",
    "retrieval_measures",
    "right_rate",
    "robust_conclusions",
    "sc_weat",
    "score_summary",
    "selection_rate",
    "share_difference",
    "share_gap",
    "share_mad",
    "share_within_tolerance",
    "similarity_gap",
    "skew_at_k",
    "skewsize",
    "spearman",
    "systematic_preference",
    "threshold_accuracy",
    "total_absolute_association",
    "trend",
    "true_negative_rate",
    "true_positive_rate",
    "tschuprows_t",
    "tschuprows_t_corrected",
    "unanswered_rate",
    "unknown_rate",
    "unresolved_rate",
    "unsound_rate",
    "unusable_share",
    "variance_share",
    "weat",
    "weat_statistic",
    "worst_group_accuracy",
    "wrong_rate",
    "xmcas",
    "xmcas_distance",
]


def __getattr__(name: str) -> Function:
    """Return a metric of a plugin, or of a file without an import here.

    The error about an alias names its metric: `tpr` is `true_positive_rate`.
    """
    with suppress(KeyError):
        return function_of(name)
    record = ALIASES.get(name)
    hint = "" if record is None else f". Did you mean {attribute_name(record)!r}?"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
