"""MCAS: the association of a concept with two groups, over images and texts on both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part
from equipoise.metrics.associations.members import dots
from equipoise.metrics.associations.partitions import Exchanged, exchange, told
from equipoise.metrics.associations.resampling import (
    assembled,
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
from equipoise.metrics.building import NOTHING, Against, ends_of, number
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import COSINE, MetricSpec, register
from equipoise.stats.chance import band
from equipoise.stats.resampling import Exact, Resampling
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

COMPONENTS = ("II", "ITP", "ITA", "TT")
SIDES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "II": ("images", "target_images"),
        "ITP": ("images", "target_texts"),
        "ITA": ("texts", "target_images"),
        "TT": ("texts", "target_texts"),
    }
)
"""Attribute set and target set of each component."""


def components_of(means: Mapping[str, Floats]) -> Floats:
    """Return II, ITP, ITA and TT from mean vectors (r, d) of every set, shape (r, 4)."""
    apart = {kind: means[f"a_{kind}"] - means[f"b_{kind}"] for kind in ("images", "texts")}
    return np.stack([row_dots(apart[kind], means[target]) for kind, target in SIDES.values()], 1)


def resampled_components(sets: Sets) -> Callable[[Mapping[str, Floats]], Floats]:
    """Return what gives the components of resampled sets, from weights (r, n), shape (r, 4).

    Means of similarities to the targets are taken anew where these are fewer numbers than vectors.
    """
    targets = {name: sets[name] for name in ("target_images", "target_texts")}
    if sum(map(len, targets.values())) >= targets["target_images"].dimension:
        return lambda weights: components_of(
            {name: mean_vectors(weights[name], one) for name, one in sets.items()}
        )
    every = np.concatenate([one.vectors for one in targets.values()])
    similar = {name: one.similarities(every) for name, one in sets.items() if name not in targets}
    images = len(targets["target_images"])
    columns = {"target_images": slice(images), "target_texts": slice(images, None)}

    def components(weights: Mapping[str, Floats]) -> Floats:
        near = {name: mean_vectors(weights[name], rows) for name, rows in similar.items()}
        found = []
        for kind, target in SIDES.values():
            apart = near[f"a_{kind}"] - near[f"b_{kind}"]
            times = weights[target]
            with np.errstate(invalid="ignore"):
                found.append(row_dots(times, apart[:, columns[target]]) / times.sum(axis=1))
        return np.stack(found, axis=1)

    return components


_FEWEST_TEXTS = 10
_NULL = "images and texts of a and b are exchangeable, each among their kind"


@dataclass(frozen=True, eq=False)
class Components:
    """Ends of MCAS, with the draws of its components for the metrics made from them.

    Attributes
    ----------
    observed : ndarray, shape (4,)
        II, ITP, ITA, TT.
    boot : ndarray, shape (replicates, 4), or None
    null : ndarray, shape (permutations, 4), or None
        With images and texts exchanged between a and b.
    p_value : callable or None
        (draws of a number under the null, observed, harm) to its p-value.
    null_text : str
    level : float
        Confidence level of parts.
    """

    observed: Floats
    boot: Floats | None = None
    null: Floats | None = None
    p_value: Callable[..., Any] | None = None
    null_text: str = ""
    enumerated: bool = False
    level: float = 0.95

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends of the sum of the four components."""
        return ends_of(None if self.boot is None else self.boot.sum(axis=1))(level)

    def held(self, null: Floats | None, observed: float, harm: Any) -> Against:
        """Hold a number computed from the components against its chance level."""
        if null is None or self.p_value is None or np.isnan(observed):
            return NOTHING
        found = self.p_value(null, observed, harm)
        weights = 1.0 if self.enumerated else None
        chance = band(null, method=self.null_text, weights=weights)
        return Against(chance, found.value, f"{self.null_text}; {found.method}")


def mcas(  # noqa: PLR0913 - one keyword for each choice
    target_images: Any,
    target_texts: Any,
    a_images: Any,
    a_texts: Any,
    b_images: Any,
    b_texts: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    resample_texts: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Multimodal composite association score: II + ITP + ITA + TT.

    The four association scores of a concept's images and prompt with groups a and b: II (attribute
    images, target images), ITP (attribute images, prompt), ITA (attribute texts, target images),
    TT (attribute texts, prompt).

    Parameters
    ----------
    target_images, target_texts : array-like, shape (n, d)
        Embeddings of images generated for the concept, and of its prompts, in one space.
    a_images, a_texts, b_images, b_texts : array-like, shape (n, d)
        Embeddings of both groups' images and texts. First group in the sources: men.
    similarity, units, resampling, rng
        As in `association_score`.
    resample_texts : bool
        Draw inference over prompts and attribute texts too; needs ten attribute texts a set.
        By default they are as declared, and images alone are resampled.

    Returns
    -------
    Estimate
        In [-8, 8] for cosines; positive: leans to a. Either direction can be harm. Interval:
        percentile bootstrap over images. Chance and p (two-sided): the images of a and b exchange
        their group, and so do their texts. `.by` has the four components.

    Raises
    ------
    InputError
        As `association_score`; or texts are to be resampled and too few.

    Notes
    -----
    Erratum: the source of chapter 8 prints the range [-1, 1].

    References
    ----------
    Mandal et al. 2023; Mandal 2024, chapters 6 and 8.
    """
    targets = {"target_images": target_images, "target_texts": target_texts}
    attributes = {
        "a_images": a_images,
        "a_texts": a_texts,
        "b_images": b_images,
        "b_texts": b_texts,
    }
    sets = embed(targets, attributes, similarity=similarity, units=units)
    fixed = fixed_texts(sets, resample_texts)
    found, boot = components(sets, fixed, resampling, rng)
    value = float(found.observed.sum())
    total = None if found.null is None else found.null.sum(axis=1)
    return assembled(
        "mcas",
        value,
        sets,
        held=found.held(total, value, "either"),
        parts=component_parts(sets, found),
        method=method_of(sets, fixed, boot, resampling),
        ends=found,
        params=compared(similarity)
        | {"resample_texts": resample_texts, "leans_to": leaning(value)}
        | overlap(sets, ("a_images", "b_images"), ("a_texts", "b_texts")),
    )


def leaning(value: float) -> str:
    """Name the group that a score leans to."""
    return "a" if value > 0 else "b" if value < 0 else "neither"


def fixed_texts(sets: Sets, resample_texts: bool) -> tuple[str, ...]:
    """Names of the sets of texts that are held fixed.

    Raises
    ------
    InputError
        When texts are to be resampled and a set of attribute texts has fewer than ten.
    """
    texts = [name for name in sets if name.endswith("_texts")]
    if not resample_texts:
        return tuple(texts)
    for name in texts:
        if name != "target_texts" and len(sets[name]) < _FEWEST_TEXTS:
            raise InputError(
                f"resample_texts: {name} has {len(sets[name])} texts; expected at least "
                f"{_FEWEST_TEXTS} to draw inference over prompts, or leave texts fixed"
            )
    return ("target_texts",) if len(sets["target_texts"]) < _FEWEST_TEXTS else ()


def components(
    sets: Sets, fixed: tuple[str, ...], resampling: Resampling | None, seed: int
) -> tuple[Components, Floats | None]:
    """Compute the four components with their draws, and the bootstrap replicates."""
    observed = components_of({name: one.mean[None] for name, one in sets.items()})[0]
    boot = replicates(sets, fixed, resampling, seed, resampled_components(sets))
    if resampling is None:
        return Components(observed), boot
    images, texts = (_exchanged(sets, kind, resampling, seed) for kind in ("images", "texts"))
    null, enumerated, text = _joined(images, texts, resampling, seed)
    # What ties refer to is the size of all scores together.
    single = Exchanged(
        observed[:1],
        null[:, :1],
        enumerated,
        0,
        text,
        images.scale + texts.scale,
        resolution=max(images.resolution, texts.resolution),
    )
    found = Components(
        observed, boot, null, single.p_value_of, f"{_NULL}; {text}", enumerated, resampling.level
    )
    return found, boot


def component_parts(sets: Sets, found: Components) -> list[Part]:
    """Return the four components as parts."""
    parts = []
    for index, name in enumerate(COMPONENTS):
        kind, target = SIDES[name]
        null = None if found.null is None else found.null[:, index]
        value = float(found.observed[index])
        attributes = [sets[f"a_{kind}"], sets[f"b_{kind}"]]
        near = [float(dots(one.mean[None], sets[target].mean)[0]) for one in attributes]
        parts.append(
            number(
                name,
                value,
                n=len(sets[target]),
                ends=ends_of(found.boot, index),
                level=found.level,
                held=found.held(null, value, "either"),
                by_group=set_values(attributes, near, [None, None], found.level),
                shows="mean similarity of the targets to the set",
            )
        )
    return parts


def _exchanged(sets: Sets, kind: str, resampling: Resampling, seed: int) -> Exchanged:
    """Exchange the attributes of one kind, each counted by its similarity to both targets."""
    first, second = sets[f"a_{kind}"], sets[f"b_{kind}"]
    centres = [sets[name].mean for name in ("target_images", "target_texts")]
    low, high = (
        np.stack([one.dots(centre) for centre in centres], axis=1) for one in (first, second)
    )
    return exchange(low, high, resampling, seed, kind, units=pair_units(first, second))


def _joined(
    images: Exchanged, texts: Exchanged, resampling: Resampling, seed: int
) -> tuple[Floats, bool, str]:
    """Pair exchanges of images with those of texts, which are independent of each other."""
    limit = resampling.limit if isinstance(resampling, Exact) else 200_000
    whole = images.enumerated and texts.enumerated
    if whole and images.partitions * texts.partitions <= limit:
        first = np.repeat(images.null, len(texts.null), axis=0)
        second = np.tile(texts.null, (len(images.null), 1))
        return np.concatenate([first, second], axis=1), True, f"all {len(first)} enumerated"
    if isinstance(resampling, Exact):
        raise InputError(
            f"resampling=Exact: {told(images.partitions)} partitions of images times "
            f"{told(texts.partitions)} of texts, more than {limit}; use Permutation()"
        )
    drawn = min((len(one.null) for one in (images, texts) if not one.enumerated), default=1000)
    picks = [
        stream(seed, "partition", name, "pick").integers(len(one.null), size=drawn)
        if one.enumerated
        else np.arange(drawn)
        for name, one in (("images", images), ("texts", texts))
    ]
    null = np.concatenate([images.null[picks[0]], texts.null[picks[1]]], axis=1)
    return null, False, f"{drawn} random partitions"


register(
    MetricSpec(
        name="mcas",
        title="MCAS",
        kinds=("associations", "text_to_image"),
        range="[-8, 8] for cosines",
        harm="either",
        definition=(
            "Sum of the four association scores II + ITP + ITA + TT of a concept's images and "
            "prompt with two groups' images and texts."
        ),
        direction="Either: positive leans to the first group, negative to the second.",
        threshold=0.04,
        threshold_reason=COSINE,
        chance="0",
        interval="percentile bootstrap over images; over texts on request, with ten a set",
        null="images of both groups are exchangeable, and so are their texts",
        parameters={"resample_texts": "false: prompts are fixed"},
        reference="Mandal et al. 2023; Mandal 2024, chapters 6 and 8",
        errata=(
            "Chapter 8 of the source prints the range [-1, 1]; four differences of cosines reach "
            "[-8, 8]."
        ),
    )
)
