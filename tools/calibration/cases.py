"""Every metric with a test, in every world whose null hypothesis holds for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise import metrics
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.spec import SPECS
from equipoise.stats.resampling import Resampling
from tools.calibration.worlds import (
    POOLS,
    STRUCTURES,
    ConceptWorld,
    Embedded,
    EmbeddingWorld,
    Labelled,
    LabelWorld,
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
OfEmbeddings = Callable[[Embedded, dict[str, Any]], Estimate]


def embedded(structure: Structure, measured: OfEmbeddings) -> Measure:
    """Return the measure of images of a structure by a function of their embeddings."""

    def measure(draw: Draw) -> Estimate:
        world = EmbeddingWorld(draw.strength, draw.images, structure)
        return measured(world.draw(SEED, draw.sample), _options(draw))

    return measure


def any_size(groups: Any) -> Groups:
    """Return groups that are all compared, however small a sample is."""
    return Groups.of(groups, min_size=1)


def _options(draw: Draw) -> dict[str, Any]:
    return {"resampling": draw.resampling, "rng": draw.sample}


def association_score(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure the score of a concept's texts with both groups' images."""
    units = data.units("a", "b")
    return metrics.association_score(
        data.concept, data.of(0), data.of(1), units=units, fixed=("targets",), **options
    )


def weat(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure how far the groups' images go with either end of the axis."""
    units = data.units("x", "y")
    first, second = data.of(0), data.of(1)
    return metrics.weat(first, second, data.towards, data.away, units=units, **options)


def weat_one_sided(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure WEAT with a declared direction."""
    return weat(data, options | {"alternative": "greater"})


def sc_weat(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure the effect size of one text of the concept."""
    units = data.units("a", "b")
    return metrics.sc_weat(data.concept[0], data.of(0), data.of(1), units=units, **options)


def differential(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure the concept against one on which groups do not differ."""
    units = data.units("m_images", "f_images")
    return metrics.differential_association(
        data.concept, data.other, data.of(0), data.of(1), units=units, **options
    )


def total(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure three targets: two on either end of the axis, one on neither."""
    targets = {"engineer": data.concept, "nurse": -data.concept, "writer": data.other}
    units = data.units("a", "b")
    return metrics.total_absolute_association(
        targets, data.of(0), data.of(1), units=units, fixed=(*targets,), **options
    )


def mcas(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure all four associations of a concept whose texts favour no group."""
    half = len(data.towards) // 2
    units = data.units("a_images", "b_images")
    # The groups' texts are alike: the images alone lie apart.
    return metrics.mcas(
        data.concept,
        data.concept[:1],
        data.of(0),
        data.towards[:half],
        data.of(1),
        data.towards[half:],
        units=units,
        **options,
    )


def diffusion_bias(data: Embedded, options: dict[str, Any]) -> Estimate:
    """Measure by how much images carry what texts do not."""
    return metrics.diffusion_bias(mcas(data, options))


def labelled(structure: Structure, metric: str) -> Measure:
    """Return the measure of predicted labels in the world that plants what it measures."""
    planted = "lean" if metric == "predicted_label_weat" else "concentrate"

    def measure(draw: Draw) -> Estimate:
        world = LabelWorld(draw.strength, draw.images, structure, planted)  # type: ignore[arg-type]  # one of the two
        data = world.draw(SEED, draw.sample)
        return _of_labels(metric, data, _options(draw) | {"units": data.unit})

    return measure


def _of_labels(metric: str, data: Labelled, options: dict[str, Any]) -> Estimate:
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


def words(structure: Structure, metric: str) -> Measure:
    """Return the measure of similarities to words, by its public name."""

    def measure(draw: Draw) -> Estimate:
        data = WordWorld(draw.strength, draw.images, structure).draw(SEED, draw.sample)
        words = (*data.positive, *data.negative)
        similarities = metrics.ImageSimilarities(
            data.scores, words, data.group, data.region, data.unit
        )
        measured = getattr(metrics, metric)
        found: Estimate = measured(similarities, data.positive, data.negative, **_options(draw))
        return found

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
        found: Estimate = getattr(metrics, metric)(data.scores, data.group, **options)
        return found

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
    ("association_score", "", association_score),
    ("weat", "one-sided", weat_one_sided),
    ("weat", "two-sided", weat),
    ("sc_weat", "", sc_weat),
    ("differential_association", "", differential),
    ("mcas", "", mcas),
    ("diffusion_bias", "", diffusion_bias),
    ("total_absolute_association", "", total),
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
            embedded(kind, measured),
            variant=variant,
            curve=kind == "independent" or metric == "association_score",
        )
        for metric, variant, measured in _EMBEDDED
        for kind in STRUCTURES
    ]
    for metric in ("predicted_label_weat", "label_concentration"):
        for kind in STRUCTURES:
            curve = kind == "independent"
            found.append(Case(metric, kind, labelled(kind, metric), 192, curve=curve))
    for kind in STRUCTURES:
        curve = kind == "independent"
        found.append(Case("gender_difference", kind, words(kind, "gender_difference"), curve=curve))
    found.append(Case("trend", "independent", words("independent", "trend"), tested=False))
    for statistic in ("mean", "rank"):
        measured = preferences(statistic)
        found.append(Case("alignment", "subjects", measured, 48, variant=statistic, curve=True))
    found.append(Case("correlation", "subjects", preferences("correlation"), 48, curve=True))
    return found


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
    *(_concept_case(*one) for one in _CONCEPTS),
    Case("iss_cross", "independent", sets, curve=True),
)
