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
among the excluded and not compared: 30 unless said, and 1 of images that are ranked. docs/metrics
has definitions, ranges and references.
"""

from equipoise.metrics.concepts.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.concepts.disparity import (
    Choices,
    concept_disparity,
    concept_hit_rate,
    concept_metrics,
)
from equipoise.metrics.evaluating import Evaluation, evaluate
from equipoise.metrics.labels import Counts, count
from equipoise.metrics.labels import effect_profile as effect_profile  # registers its metrics
from equipoise.metrics.labels.accuracy import accuracy, accuracy_gap, hit_rate, worst_group_accuracy
from equipoise.metrics.labels.agreement import krippendorff_alpha
from equipoise.metrics.labels.amplification import (
    Cooccurrence,
    amplification_change,
    cooccurrence_amplification,
    directional_amplification,
)
from equipoise.metrics.labels.answer_levels import dominant_answer
from equipoise.metrics.labels.causes import explained_disparity, rank_causes
from equipoise.metrics.labels.comparisons import rate_comparisons
from equipoise.metrics.labels.effect_sizes import (
    cramers_v,
    effect_sizes,
    mev_sweep,
    phi,
    skewsize,
    tschuprows_t,
)
from equipoise.metrics.labels.metric import CountMetric
from equipoise.metrics.labels.paired import accuracy_difference
from equipoise.metrics.labels.rates import demographic_parity, equalized_odds, rates
from equipoise.metrics.labels.representation import representation
from equipoise.metrics.labels.sampled import labelled_share, labelled_share_gap
from equipoise.metrics.labels.shares import Confusion, corrected_shares, mean_share_mad, share_gap
from equipoise.metrics.measure import measure
from equipoise.metrics.numbers import (
    NumberMetric,
    mean_absolute_error,
    mean_error,
    share_within_tolerance,
)
from equipoise.metrics.numbers.activation import (
    activation_share,
    activation_share_gap,
    paired_share_difference,
)
from equipoise.metrics.numbers.onset import onset
from equipoise.metrics.numbers.regression import bias_regression
from equipoise.metrics.numbers.rejections import rejection_gap
from equipoise.metrics.rankings.cosines import CosineScores, cosine_scores
from equipoise.metrics.rankings.measures import (
    bias_at_k,
    max_skew,
    min_skew,
    ndkl,
    query_distribution,
    retrieval_curves,
    retrieval_entropy,
    retrieval_mad,
    retrieval_measures,
    skew_at_k,
)
from equipoise.metrics.rankings.preference import systematic_preference
from equipoise.metrics.rankings.similarity import normalized_similarity_mad, similarity_gap
from equipoise.metrics.rankings.statistics import expected_max_skew, recall_hits
from equipoise.metrics.rankings.subjects import (
    alignment,
    correlation,
    favourite_gap,
    loess,
    score_summary,
)
from equipoise.metrics.registry import function_of, metric
from equipoise.metrics.scoring import as_score
from equipoise.metrics.spec import SPECS, MetricSpec, register
from equipoise.metrics.vectors.associations import (
    association_score,
    compare_encoders,
    differential_association,
    sc_weat,
    total_absolute_association,
    weat,
)
from equipoise.metrics.vectors.diversity import (
    iss_cross,
    iss_difference,
    iss_intra,
    mean_distances,
)
from equipoise.metrics.vectors.frechet import frechet_distance, inception_score
from equipoise.metrics.vectors.mcas import (
    bias_amplification,
    diffusion_bias,
    estimate_offset,
    mcas,
    xmcas,
)
from equipoise.metrics.vectors.predicted_labels import label_concentration, predicted_label_weat
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
    "accuracy",
    "accuracy_difference",
    "accuracy_gap",
    "activation_share",
    "activation_share_gap",
    "alignment",
    "amplification_change",
    "as_score",
    "association_score",
    "bias_amplification",
    "bias_at_k",
    "bias_regression",
    "compare_encoders",
    "concept_disparity",
    "concept_hit_rate",
    "concept_metrics",
    "cooccurrence_amplification",
    "corrected_shares",
    "correlation",
    "cosine_scores",
    "count",
    "cramers_v",
    "demographic_parity",
    "design_choices",
    "differential_association",
    "diffusion_bias",
    "directional_amplification",
    "dominant_answer",
    "effect_sizes",
    "equalized_odds",
    "estimate_offset",
    "evaluate",
    "expected_max_skew",
    "explained_disparity",
    "favourite_gap",
    "frechet_distance",
    "function_of",
    "gender_difference",
    "hit_rate",
    "inception_score",
    "iss_cross",
    "iss_difference",
    "iss_intra",
    "krippendorff_alpha",
    "label_concentration",
    "labelled_share",
    "labelled_share_gap",
    "loess",
    "max_skew",
    "mcas",
    "mean_absolute_error",
    "mean_distances",
    "mean_error",
    "mean_share_mad",
    "measure",
    "metric",
    "mev_sweep",
    "min_skew",
    "model_order",
    "ndkl",
    "normalized_similarity_mad",
    "onset",
    "paired_share_difference",
    "phi",
    "predicted_label_weat",
    "query_distribution",
    "rank_causes",
    "rate_comparisons",
    "rates",
    "recall_hits",
    "register",
    "rejection_gap",
    "representation",
    "retrieval_curves",
    "retrieval_entropy",
    "retrieval_mad",
    "retrieval_measures",
    "robust_conclusions",
    "sc_weat",
    "score_summary",
    "share_gap",
    "share_within_tolerance",
    "similarity_gap",
    "skew_at_k",
    "skewsize",
    "systematic_preference",
    "total_absolute_association",
    "trend",
    "tschuprows_t",
    "weat",
    "worst_group_accuracy",
    "xmcas",
]
