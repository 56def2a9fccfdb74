"""Every metric with a test, in every world whose null hypothesis holds for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.metrics.spec import SPECS
from equipoise.planted.calibration import measures
from equipoise.planted.calibration.concepts import Planted
from equipoise.planted.calibration.measures import Measure, OfEmbeddings
from equipoise.planted.calibration.rankings import POOLS
from equipoise.planted.calibration.repeats import STRUCTURES, Structure

SIZES = (24, 48, 96, 192, 384, 768)


@dataclass(frozen=True)
class Case:
    """A metric in a world.

    Attributes
    ----------
    metric : str
        Name of its card.
    world : str
        How images repeat, or what is planted.
    measure : callable
        From a `Draw` to an estimate.
    images : int
        Where p-values and the rise are measured.
    variant : str
        What else tells it from other cases of the metric.
    parts : str
        Metric of the parts whose tests count too; "" for none.
    null_at : float
        The strength up to which the metric's null hypothesis holds.
    tested : bool
        Whether the estimate has a p-value.
    curve : bool
        Whether its power is measured.
    sizes : tuple of int
        Numbers of images where it is.
    """

    metric: str
    world: str
    measure: Measure
    images: int = 96
    variant: str = ""
    parts: str = ""
    null_at: float = 0.0
    tested: bool = True
    curve: bool = False
    sizes: tuple[int, ...] = SIZES

    @property
    def name(self) -> str:
        """Metric and variant."""
        return f"{self.metric}, {self.variant}" if self.variant else self.metric

    @property
    def family(self) -> str:
        """The metric's main kind of audit."""
        return SPECS[self.metric].kinds[0]

    @property
    def threshold(self) -> float | None:
        """The metric's practical threshold."""
        return SPECS[self.metric].threshold

    @property
    def rises(self) -> bool:
        """Whether the estimate should follow the strength."""
        return self.null_at == 0.0


_EMBEDDED: Sequence[tuple[str, str, OfEmbeddings]] = (
    ("association_score", "", measures.association_score),
    ("weat", "one-sided", measures.weat),
    ("weat", "two-sided", measures.weat_two_sided),
    ("sc_weat", "", measures.sc_weat),
    ("differential_association", "", measures.differential),
    ("mcas", "", measures.mcas),
    ("diffusion_bias", "", measures.diffusion_bias),
    ("total_absolute_association", "", measures.total),
)


# The smallest skew of many groups is -inf by chance, and shares are compared with equal ones.
_RANKED = (
    ("max_skew", 4),
    ("min_skew", 2),
    ("ndkl", 4),
    ("bias_at_k", 2),
    ("retrieval_mad", 2),
    ("normalized_similarity_mad", 4),
)


def _association_cases() -> list[Case]:
    found = [
        Case(
            metric,
            kind,
            measures.embedded(kind, measured),
            variant=variant,
            curve=kind == "independent" or metric == "association_score",
        )
        for metric, variant, measured in _EMBEDDED
        for kind in STRUCTURES
    ]
    for metric in ("predicted_label_weat", "label_concentration"):
        for kind in STRUCTURES:
            curve = kind == "independent"
            found.append(Case(metric, kind, measures.labelled(kind, metric), 192, curve=curve))
    for kind in STRUCTURES:
        curve = kind == "independent"
        found.append(
            Case("gender_difference", kind, measures.words(kind, "gender_difference"), curve=curve)
        )
    found.append(Case("trend", "independent", measures.words("independent", "trend"), tested=False))
    for statistic in ("mean", "rank"):
        measured = measures.preferences(statistic)
        found.append(Case("alignment", "subjects", measured, 48, variant=statistic, curve=True))
    found.append(
        Case("correlation", "subjects", measures.preferences("correlation"), 48, curve=True)
    )
    return found


def _retrieval_cases() -> list[Case]:
    return [
        Case(
            metric,
            pools,
            measures.ranked(pools, metric, groups),
            curve=pools in ("shared pool", "sets"),
        )
        for metric, groups in _RANKED
        for pools in POOLS
    ]


_LARGE = (192, 384, 768, 1536)
_CONCEPTS: Sequence[tuple[str, str, Structure, Planted]] = (
    ("average_precision", "weighted", "independent", "recognition"),
    ("average_precision", "weighted", "clustered", "recognition"),
    ("average_precision", "weighted", "sets", "recognition"),
    ("average_precision", "weighted", "independent", "prevalence"),
    ("average_precision", "observed", "independent", "recognition"),
    ("average_precision", "hall", "independent", "recognition"),
    ("average_precision", "hall", "independent", "prevalence"),
    ("auroc", "weighted", "independent", "recognition"),
    ("auroc", "weighted", "independent", "prevalence"),
    ("true_positive_rate", "weighted", "independent", "recognition"),
    ("true_positive_rate", "weighted", "clustered", "recognition"),
    ("true_positive_rate", "weighted", "independent", "prevalence"),
)


def _concept_case(metric: str, prevalence: str, structure: Structure, planted: Planted) -> Case:
    quiet = planted == "prevalence"
    return Case(
        "concept_disparity",
        f"{structure}, only prevalence differs" if quiet else structure,
        measures.concepts(planted, metric, prevalence, structure),
        384,
        variant=f"{metric} {prevalence}",
        parts="concept_difference" if prevalence == "hall" else metric,
        null_at=1.0 if quiet else 0.0,
        tested=prevalence != "hall",
        curve=structure == "independent" and not quiet and prevalence == "weighted",
        sizes=_LARGE,
    )


CASES: tuple[Case, ...] = (
    *_association_cases(),
    *_retrieval_cases(),
    *(_concept_case(*one) for one in _CONCEPTS),
    Case("iss_cross", "independent", measures.sets, curve=True),
)
