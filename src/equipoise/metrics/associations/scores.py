"""Association scores of embeddings, and differential association."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Estimate
from equipoise.metrics.associations.partitions import Exchanged, exchange
from equipoise.metrics.associations.resampling import (
    against_exchanged,
    assembled,
    check_fixed,
    compared,
    mean_vectors,
    method_of,
    overlap,
    pair_units,
    replicates,
    row_dots,
    set_values,
)
from equipoise.metrics.associations.space import Sets, Similarity, embed
from equipoise.metrics.building import ends_of, number
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import COSINE, MetricSpec, register
from equipoise.stats.resampling import Resampling, level_of

Floats = npt.NDArray[np.float64]


def association_score(
    targets: Any,
    a: Any,
    b: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Mean over targets of the mean similarity to one attribute set minus that to another.

    s(w, A, B) = mean over a of sim(w, a) - mean over b of sim(w, b); the score is its mean over w.

    Parameters
    ----------
    targets, a, b : array-like, shape (n, d)
        Embeddings of images or texts, one per row; normalised here. Vectors that are zero or not
        finite are left out and counted in `.excluded`. With `similarity`, whatever it takes. Give
        a and b without members of targets: an item's similarity with itself says nothing of a set.
    similarity : callable, optional
        (targets, attributes) to scores, for models that score pairs; `PairScores` holds a matrix,
        and the sets are then indices of its rows and columns. Default: cosine.
    units : mapping of set name to array-like (n,), optional
        Names of the units that members repeat within (a person, a prompt).
    fixed : collection of set names
        Sets that the interval takes as given, such as declared lists of words.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [-2, 2] for cosines; positive: closer to `a`. Either direction can be harm. Interval:
        percentile bootstrap over every set with two members or more that is not `fixed`. Chance
        and p (two-sided): a and b exchange members. `.by` has one row: the mean similarities.

    Raises
    ------
    InputError
        See `equipoise.metrics.associations.space.embed`; or Exact has too many partitions.

    References
    ----------
    Caliskan et al. 2017; Mandal 2024, chapters 6 and 7 (II, ITP, ITA, TT).
    """
    sets = embed({"targets": targets}, {"a": a, "b": b}, similarity=similarity, units=units)
    check_fixed(sets, fixed)
    boot = replicates(sets, fixed, resampling, rng, _resampled(sets))
    centre = sets["targets"].mean
    value, *nearness = _score({name: one.mean[None] for name, one in sets.items()})[0].tolist()
    tested = _tested(sets, ("a", "b"), centre, resampling, rng)
    held = against_exchanged(
        tested, value, "either", 1.0, "the members of a and b are exchangeable"
    )
    level, ends = level_of(resampling), ends_of(boot, 0)
    boots = [None if boot is None else boot[:, index] for index in (1, 2)]
    near = number(
        "association_score",
        value,
        n=len(sets["targets"]),
        ends=ends,
        level=level,
        held=held,
        by_group=set_values([sets["a"], sets["b"]], nearness, boots, level),
        shows="mean similarity of the targets to the set",
    )
    return assembled(
        "association_score",
        value,
        sets,
        held=held,
        parts=[near],
        method=method_of(sets, fixed, boot, resampling),
        ends=ends,
        params=compared(similarity) | overlap(sets, ("a", "b")),
    )


def _score(means: Mapping[str, Floats]) -> Floats:
    near, far = (row_dots(means["targets"], means[name]) for name in ("a", "b"))
    return np.stack([row_dots(means["targets"], means["a"] - means["b"]), near, far], axis=1)


def _resampled(sets: Sets) -> Callable[[Mapping[str, Floats]], Floats]:
    """Return what gives the score and both mean similarities of resampled sets.

    Means of similarities to the targets are taken anew where these are fewer numbers than vectors.
    """
    targets = sets["targets"]
    if len(targets) >= targets.dimension:
        return lambda weights: _score(_means(sets, weights))
    similar = {name: sets[name].similarities(targets.vectors) for name in ("a", "b")}

    def scores(weights: Mapping[str, Floats]) -> Floats:
        times = weights["targets"]
        with np.errstate(invalid="ignore"):
            near, far = (
                row_dots(times, mean_vectors(weights[name], rows)) / times.sum(axis=1)
                for name, rows in similar.items()
            )
        return np.stack([near - far, near, far], axis=1)

    return scores


def differential_association(  # noqa: PLR0913 - one keyword for each choice
    c1: Any,
    c2: Any,
    m_images: Any,
    f_images: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = ("c1", "c2"),
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Difference of two concepts in their associations with images of two groups.

    s(c1, c2, M, F) = t(c1) - t(c2), t(c) = mean over M of sim(c, m) - mean over F of sim(c, f).

    Parameters
    ----------
    c1, c2 : array-like, shape (n, d)
        Embeddings of each concept's texts.
    m_images, f_images : array-like, shape (n, d)
        Embeddings of the images of each group.
    similarity, units, resampling, rng
        As in `association_score`; concepts are the targets, images the attributes.
    fixed : collection of set names
        Sets that the interval takes as given; by default the concepts' texts.

    Returns
    -------
    Estimate
        In [-4, 4] for cosines; positive: c1 is closer to `m_images` than c2 is. Interval:
        percentile bootstrap over images. Chance and p (two-sided): images exchange their group.
        `.by` has t(c1) and t(c2).

    Raises
    ------
    InputError
        As `association_score`.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models".
    """
    concepts, images = {"c1": c1, "c2": c2}, {"m_images": m_images, "f_images": f_images}
    sets = embed(concepts, images, similarity=similarity, units=units)
    check_fixed(sets, fixed)
    boot = replicates(sets, fixed, resampling, rng, lambda weights: _apart(_means(sets, weights)))
    value, *single = _apart({name: one.mean[None] for name, one in sets.items()})[0].tolist()
    contrast = sets["c1"].mean - sets["c2"].mean
    tested = _tested(sets, ("m_images", "f_images"), contrast, resampling, rng)
    held = against_exchanged(tested, value, "either", 1.0, "images of both groups are exchangeable")
    parts = [
        number(
            "association_score",
            one,
            subject=name,
            n=len(sets["m_images"]) + len(sets["f_images"]),
            ends=ends_of(boot, index),
            level=level_of(resampling),
        )
        for index, (name, one) in enumerate(zip(("c1", "c2"), single, strict=True), start=1)
    ]
    return assembled(
        "differential_association",
        value,
        sets,
        held=held,
        parts=parts,
        method=method_of(sets, fixed, boot, resampling),
        ends=ends_of(boot, 0),
        params=compared(similarity) | overlap(sets, ("c1", "c2"), ("m_images", "f_images")),
    )


def _apart(means: Mapping[str, Floats]) -> Floats:
    groups = means["m_images"] - means["f_images"]
    first, second = (row_dots(means[name], groups) for name in ("c1", "c2"))
    return np.stack([first - second, first, second], axis=1)


def _means(sets: Sets, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: mean_vectors(weights[name], one) for name, one in sets.items()}


def _tested(
    sets: Sets,
    names: tuple[str, str],
    direction: Floats,
    resampling: Resampling | None,
    seed: int,
) -> Exchanged | None:
    """Exchange the members of two sets, each counted by its similarity to one direction."""
    if resampling is None:
        return None
    first, second = (sets[name] for name in names)
    low, high = (one.dots(direction)[:, None] for one in (first, second))
    return exchange(low, high, resampling, seed, "members", units=pair_units(first, second))


register(
    MetricSpec(
        name="association_score",
        title="Association score",
        kinds=("associations", "text_to_image"),
        range="[-2, 2] for cosines",
        harm="either",
        definition=(
            "Mean over targets of the mean similarity to one attribute set minus that to another. "
            "MCAS calls it II, ITP, ITA or TT by modality."
        ),
        direction="Either: positive is closer to the first attribute set, negative to the second.",
        threshold=0.01,
        threshold_reason=COSINE,
        chance="0",
        interval="percentile bootstrap over every set of two members or more that is not fixed",
        null="members of both attribute sets are exchangeable",
        reference="Caliskan et al. 2017; Mandal 2024, chapters 6 and 7",
    )
)
register(
    MetricSpec(
        name="differential_association",
        title="Differential association",
        kinds=("associations",),
        range="[-4, 4] for cosines; a sum within weat",
        harm="either",
        definition=(
            "Association of a concept with images of two groups, minus that of another concept."
        ),
        direction=(
            "Either: positive means the first concept is closer to the first group than the second "
            "is."
        ),
        threshold=0.02,
        threshold_reason=COSINE,
        chance="0",
        interval="percentile bootstrap over images, texts fixed",
        null="images of both groups are exchangeable",
        reference="Chen & Dou 2022",
    )
)
