"""Every metric with a test, in every world whose null hypothesis holds for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise import metrics
from equipoise.core import Estimate, Groups
from equipoise.metrics import SPECS
from equipoise.stats import Resampling
from tools.calibration.worlds import (
    POOLS,
    STRUCTURES,
    ConceptWorld,
    Embedded,
    EmbeddingWorld,
    Floats,
    LabelWorld,
    Leaning,
    Planted,
    Pools,
    PreferenceWorld,
    RankingWorld,
    SetWorld,
    Structure,
    WordWorld,
)

SEED = 17


@dataclass(frozen=True)
class Draw:
    """What to measure: a sample of a world.

    Attributes
    ----------
    strength : float
        Of the planted bias, in [0, 1].
    images, sample : int
        Size of the world, and which sample of it.
    resampling : Bootstrap, Permutation or None
    """

    strength: float
    images: int
    sample: int
    resampling: Resampling | None


Measure = Callable[[Draw], Estimate]
OfEmbeddings = Callable[[Embedded, Floats, Floats, dict[str, Any]], Estimate]


def embedded(structure: Structure, sides: tuple[str, str], measured: OfEmbeddings) -> Measure:
    """Return the measure of images of a structure by a function of both groups' embeddings.

    Parameters
    ----------
    structure : "independent", "clustered" or "sets"
    sides : (str, str)
        What the metric calls the images of either group.
    measured : callable
        Takes a sample, the images of either group, and options.
    """

    def measure(draw: Draw) -> Estimate:
        data = EmbeddingWorld(draw.strength, draw.images, structure).draw(SEED, draw.sample)
        options = _options(draw) | {"units": data.units(*sides)}
        return measured(data, data.of(0), data.of(1), options)

    return measure


def any_size(groups: Any) -> Groups:
    """Return groups that are all compared, however small a sample is."""
    return Groups.of(groups, min_size=1)


def _options(draw: Draw) -> dict[str, Any]:
    return {"resampling": draw.resampling, "rng": draw.sample}


def total(data: Embedded, first: Floats, second: Floats, options: dict[str, Any]) -> Estimate:
    """Measure three targets: two on either end of the axis, one on neither."""
    targets = {"engineer": data.concept, "nurse": -data.concept, "writer": data.other}
    return metrics.total_absolute_association(targets, first, second, fixed=(*targets,), **options)


def mcas(data: Embedded, first: Floats, second: Floats, options: dict[str, Any]) -> Estimate:
    """Measure all four associations of a concept whose texts favour no group."""
    # The groups' texts are alike: the images alone lie apart.
    first_texts, other = np.split(data.towards, 2)
    return metrics.mcas(
        data.concept, data.concept[:1], first, first_texts, second, other, **options
    )


_TWO, _IMAGES = ("a", "b"), ("a_images", "b_images")
_EMBEDDED: Sequence[tuple[str, str, tuple[str, str], OfEmbeddings]] = (
    (
        "association_score", "", _TWO,
        lambda data, first, second, options: metrics.association_score(
            data.concept, first, second, fixed=("targets",), **options
        ),
    ),
    (
        "weat", "one-sided", ("x", "y"),
        lambda data, first, second, options: metrics.weat(
            first, second, data.towards, data.away, alternative="greater", **options
        ),
    ),
    (
        "weat", "two-sided", ("x", "y"),
        lambda data, first, second, options: metrics.weat(
            first, second, data.towards, data.away, **options
        ),
    ),
    (
        "sc_weat", "", _TWO,
        lambda data, first, second, options: metrics.sc_weat(
            data.concept[0], first, second, **options
        ),
    ),
    (
        "differential_association", "", ("m_images", "f_images"),
        lambda data, first, second, options: metrics.differential_association(
            data.concept, data.other, first, second, **options
        ),
    ),
    ("mcas", "", _IMAGES, mcas),
    ("diffusion_bias", "", _IMAGES, lambda *arguments: metrics.diffusion_bias(mcas(*arguments))),
    ("total_absolute_association", "", _TWO, total),
)  # fmt: skip


def labelled(structure: Structure, metric: str) -> Measure:
    """Return the measure of predicted labels in the world that plants what it measures."""
    planted: Leaning = "lean" if metric == "predicted_label_weat" else "concentrate"

    def measure(draw: Draw) -> Estimate:
        data = LabelWorld(draw.strength, draw.images, structure, planted).draw(SEED, draw.sample)
        options = _options(draw) | {"units": data.unit}
        if metric == "label_concentration":
            return metrics.label_concentration(data.label, any_size(data.group), k=4, **options)
        return metrics.predicted_label_weat(
            data.label,
            data.group,
            data.vocabulary,
            data.embeddings,
            data.towards,
            data.away,
            **options,
        )

    return measure


def words(structure: Structure, metric: str) -> Measure:
    """Return the measure of similarities to words, by its public name."""

    def measure(draw: Draw) -> Estimate:
        data = WordWorld(draw.strength, draw.images, structure).draw(SEED, draw.sample)
        words = (*data.positive, *data.negative)
        similarities = metrics.ImageSimilarities(
            data.scores, words, data.group, data.region, data.unit
        )
        measured = getattr(metrics, metric)
        estimate: Estimate = measured(similarities, data.positive, data.negative, **_options(draw))
        return estimate

    return measure


def preferences(statistic: str) -> Measure:
    """Return the measure of preferences: correlation, or alignment by mean or rank."""

    def measure(draw: Draw) -> Estimate:
        data = PreferenceWorld(draw.strength, draw.images).draw(SEED, draw.sample)
        if statistic == "correlation":
            return metrics.correlation(data.preference, data.hypothesis)
        return metrics.alignment(
            data.preference,
            data.hypothesis,
            statistic=statistic,  # type: ignore[arg-type]  # "mean" or "rank"
            **_options(draw),
        )

    return measure


def ranked(pools: Pools, metric: str, groups: int) -> Measure:
    """Return the measure of rankings, by its public name; K is a quarter of the pool."""

    def measure(draw: Draw) -> Estimate:
        data = RankingWorld(draw.strength, draw.images, pools, groups).draw(SEED, draw.sample)
        options = _options(draw) | {"queries": data.queries, "sets": data.sets}
        if metric != "normalized_similarity_mad":
            options["k"] = draw.images // 4
        estimate: Estimate = getattr(metrics, metric)(data.scores, data.group, **options)
        return estimate

    return measure


def concepts(
    planted: Planted, metric: str, prevalence: str, structure: Structure = "independent"
) -> Measure:
    """Return the measure of disparities over concepts in a world."""

    def measure(draw: Draw) -> Estimate:
        data = ConceptWorld(draw.strength, draw.images, structure, planted).draw(SEED, draw.sample)
        return metrics.concept_disparity(
            data.scores,
            data.labels,
            any_size(data.group),
            metric=metric,  # type: ignore[arg-type]  # names of the cases below
            prevalence=prevalence,  # type: ignore[arg-type]  # likewise
            min_positives=10,
            replicates=199,
            units=data.unit,
            **_options(draw),
        )

    return measure


def sets(draw: Draw) -> Estimate:
    """Measure the distance between image sets."""
    data = SetWorld(draw.strength, draw.images).draw(SEED, draw.sample)
    return metrics.iss_cross(data.sets, **_options(draw))


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

    def __reduce__(self) -> tuple[Callable[[int], Case], tuple[int]]:
        """Travel to other processes by place, since functions made here can't."""
        return _case, (CASES.index(self),)

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
    cases = [
        Case(
            metric,
            kind,
            embedded(kind, sides, measured),
            variant=variant,
            curve=kind == "independent" or metric == "association_score",
        )
        for metric, variant, sides, measured in _EMBEDDED
        for kind in STRUCTURES
    ]
    for metric, measure, images in (
        ("predicted_label_weat", labelled, 192),
        ("label_concentration", labelled, 192),
        ("gender_difference", words, 96),
    ):
        cases += [
            Case(metric, kind, measure(kind, metric), images, curve=kind == "independent")
            for kind in STRUCTURES
        ]
    cases.append(Case("trend", "independent", words("independent", "trend"), tested=False))
    for statistic in ("mean", "rank"):
        measured = preferences(statistic)
        cases.append(Case("alignment", "subjects", measured, 48, variant=statistic, curve=True))
    cases.append(Case("correlation", "subjects", preferences("correlation"), 48, curve=True))
    return cases


def _retrieval_cases() -> list[Case]:
    return [
        Case(
            metric,
            pools,
            ranked(pools, metric, groups),
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
        concepts(planted, metric, prevalence, structure),
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
    *(_concept_case(*settings) for settings in _CONCEPTS),
    Case("iss_cross", "independent", sets, curve=True),
)


def _case(place: int) -> Case:
    return CASES[place]
