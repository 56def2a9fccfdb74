"""MCAS and xMCAS, and what a generator adds: diffusion bias and bias amplification."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Ends,
    Estimate,
    Facts,
    Floats,
    InputError,
    NullHypothesis,
    Part,
    Span,
    floats,
    no_ends,
    record,
    unwarned,
)
from equipoise.core.arguments import real_numbers
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    bootstrap_method,
    ends_of,
    folded,
    folded_ends,
    number,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import COSINE, LEANING, OF_TARGETS, SETS, MetricSpec, make_estimate
from equipoise.metrics.vectors.resampling import (
    MOST_PARTITIONS,
    ExchangedDifferences,
    Jackknife,
    JackknifeEnds,
    SetUnits,
    Space,
    Terms,
    compare_studentized,
    compare_with_exchanges,
    ends_at,
)
from equipoise.metrics.vectors.sets import Similarity
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.intervals import Scored
from equipoise.stats.streams import Seed, stream

# Attribute kind and target set of each component.
SIDES = {
    "II": ("images", "target_images"),
    "ITP": ("images", "target_texts"),
    "ITA": ("texts", "target_images"),
    "TT": ("texts", "target_texts"),
}
TARGETS = ("target_images", "target_texts")
KINDS = ("images", "texts")
_FEWEST_TEXTS = 10
# Draws of components for the interval of their quotient, and their seed.
_DRAWS, _SEED = 1000, 0
_NULL = "images and texts of a and b are exchangeable, each among their kind"
_NULL_IMAGES = "images of a and b are exchangeable, with texts as given"
RESAMPLED = "texts resampled"
"""Subject of the part of MCAS that is about other texts like these, too."""
_EXPLODES = "under the null the texts' association is near 0: the quotient explodes"
# Terms of each component, and of their sum.
_TERMS: list[Terms] = [
    {(f"a_{kind}", target): 1.0, (f"b_{kind}", target): -1.0} for kind, target in SIDES.values()
]
_TERMS.append(reduce(or_, _TERMS))
# Columns of the differences of a kind: of target images, of target texts, and their sum.
_COLUMNS = 3


_mcas = partial(
    MetricSpec,
    null_kind=NullHypothesis.MEMBERS,
    kinds=("associations", "text_to_image"),
    reference="Mandal 2024, chapter 8",
)


@record
class Components:
    """Ends of MCAS, with its components for the metrics that use them.

    Attributes
    ----------
    observed : ndarray, shape (4,)
        II, ITP, ITA, TT.
    jackknife : Jackknife or None
        The components, then their sum.
    images : Exchanged or None
        With images exchanged between a and b: associations of target images, of target texts, and
        their sum.
    tested : Exchanged or None
        With texts exchanged too: the same of images, then of texts.
    level : float
        Confidence level of parts.
    """

    observed: Floats
    jackknife: Jackknife | None
    images: ExchangedDifferences | None
    tested: ExchangedDifferences | None
    level: float

    def __call__(self, level: float) -> Span:
        """Return the ends of the sum of the four components."""
        return ends_at(self.jackknife, 4)(level)

    def total_test(self, *, resample_texts: bool) -> ChanceTest:
        """Hold MCAS against images exchanged, or images and texts.

        Texts as given make a part of MCAS, ITA + TT, that no exchange of images changes.
        """
        value, sums = float(self.observed.sum()), [_COLUMNS - 1]
        if not resample_texts:
            fixed = float(self.observed[2:].sum())
            return compare_with_exchanges(
                self.images, value, "either", _NULL_IMAGES, column=sums[0], shift=fixed
            )
        tested, sums = self.tested, [*sums, 2 * _COLUMNS - 1]
        if tested is None:
            return UNTESTED
        error = float(np.linalg.norm(tested.error[sums]))
        ratios = tested.draws[:, sums].sum(axis=1) / np.linalg.norm(tested.errors[:, sums], axis=1)
        text = f"{_NULL}; {tested.text}"
        return compare_studentized(tested, value / error, ratios, "either", text, factor=error)


@metric(
    _mcas(
        name="mcas",
        needs=SETS,
        takes=("generated", "resample_texts", *OF_TARGETS),
        title="MCAS",
        aliases=("multimodal_composite_association_score",),
        range=(-8.0, 8.0),
        range_note="for cosines",
        harm="either",
        sentence=LEANING,
        definition=(
            "How much closer a concept is to one group than to the other: II + ITP + ITA + TT, the "
            "differences in mean similarity of its images and prompt to the groups' images and "
            "texts."
        ),
        direction="Either: positive leans to the first group, negative to the second.",
        threshold=0.04,
        threshold_reason=COSINE,
        neutral=None,
        chance="ITA + TT with texts as given, 0 with texts resampled",
        interval="Student's t by the jackknife over images; also over texts, from ten a set",
        null="images of both groups are exchangeable; so are resampled texts",
        reference="Mandal et al. 2023; Mandal 2024, chapters 6 and 8",
        errata="Chapter 8 of the source prints the range [-1, 1]; four differences reach [-8, 8].",
    )
)
def mcas(  # noqa: PLR0913 - one keyword for each choice
    target_images: ArrayLike,
    target_texts: ArrayLike,
    a_images: ArrayLike,
    a_texts: ArrayLike,
    b_images: ArrayLike,
    b_texts: ArrayLike,
    *,
    resample_texts: bool = False,
    fixed_texts: bool = False,
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
        By default they are as declared: images alone are resampled, and exchanged.
    fixed_texts : bool
        Exchange no texts at all: ITA and TT have no chance level, and `.by` lacks MCAS with texts
        resampled. Quicker with many texts.

    Returns
    -------
    Estimate
        In [-8, 8] for cosines; positive: leans to a. Either direction can be harm. Interval:
        Student's t by the jackknife over images. Chance and p (two-sided, of the difference in its
        standard errors): the images of a and b exchange their group; texts as given leave ITA + TT
        as the chance level. `.by` has the four components, and MCAS with texts resampled in the
        interval, which needs ten a set, and exchanged in chance and p.

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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + direction for direction in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + direction for direction in np.eye(3, 8)]
    >>> m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    <mcas 2.010 [1.748, 2.271]; chance 1.873, p = 0.24, n = 93 in 6 groups>
    """
    sets = target_images, target_texts, a_images, a_texts, b_images, b_texts
    space = _space(sets, {}, resample_texts, similarity, units, resampling, rng)
    images, tested = _exchanges(space, fixed_texts=fixed_texts)
    observed, jackknife = space.bilinear(_TERMS)
    components = Components(observed[:4], jackknife, images, tested, space.level)
    parts = []
    for index, (name, (kind, target)) in enumerate(SIDES.items()):
        value, groups = float(components.observed[index]), [f"a_{kind}", f"b_{kind}"]
        similarities, _ = space.bilinear([{(group, target): 1.0} for group in groups])
        parts.append(
            space.part(
                name,
                value,
                jackknife,
                index,
                n=len(space[target]),
                chance_test=_part_test(images, tested, value, index),
                by_group=space.group_values(groups, similarities.tolist()),
                shows="mean similarity of the targets to the set",
            )
        )
    total = float(components.observed.sum())
    if space.resampling is not None and not (resample_texts or fixed_texts):
        parts.append(_with_texts(space, components))
    leaning = "neither"
    if total > 0:
        leaning = "a"
    elif total < 0:
        leaning = "b"
    return space.estimate(
        "mcas",
        total,
        parts,
        components.total_test(resample_texts=resample_texts),
        jackknife=jackknife,
        ends=components,
        params={"resample_texts": resample_texts, "leans_to": leaning},
        pairs=[("a_images", "b_images"), ("a_texts", "b_texts")],
    )


def component_scores(composite: Estimate) -> Iterator[tuple[Part, Part]]:
    """Yield II, ITP, ITA and TT of MCAS, and each as the association score that it is."""
    for component in composite.parts[: len(SIDES)]:
        yield component, replace(component, metric="association_score")


def _exchanges(
    space: Space, *, fixed_texts: bool
) -> tuple[ExchangedDifferences | None, ExchangedDifferences | None]:
    """Exchange the images of both groups, and their images and texts unless these are fixed."""
    # The attributes of each kind are counted by their similarity to both targets.
    centres = [space[name].mean for name in TARGETS]
    sums = [*centres, centres[0] + centres[1]]
    images, texts = (
        None if fixed_texts and kind == "texts"
        else space.exchange(f"a_{kind}", f"b_{kind}", sums, kind)
        for kind in KINDS
    )  # fmt: skip
    return images, None if images is None or texts is None else _joined(space.seed, images, texts)


def _part_test(
    images: ExchangedDifferences | None,
    tested: ExchangedDifferences | None,
    value: float,
    index: int,
) -> ChanceTest:
    """Hold a component against exchanged images and texts, or images where texts are fixed."""
    if tested is not None:
        column = index + index // 2
        return compare_with_exchanges(tested, value, "either", _NULL, column=column)
    if index < 2:
        return compare_with_exchanges(images, value, "either", _NULL_IMAGES, column=index)
    return UNTESTED


def _with_texts(space: Space, components: Components) -> Part:
    """Return MCAS with texts resampled in the interval and exchanged in the test."""
    small_sets, small_attributes = _few_texts(space)
    reason = f"texts aren't resampled: fewer than {_FEWEST_TEXTS} in {', '.join(small_attributes)}"
    ends = (
        no_ends
        if small_attributes
        else ends_at(replace(space, fixed=small_sets).bilinear(_TERMS)[1], 4)
    )
    return number(
        "mcas",
        float(components.observed.sum()),
        subject=RESAMPLED,
        n=sum(len(members) for members in space.sets.values()),
        ends=ends,
        level=space.level,
        chance_test=components.total_test(resample_texts=True),
        reason=reason if small_attributes else "",
    )


def _few_texts(space: Space) -> tuple[list[str], list[str]]:
    """Return the names of sets with fewer than ten texts: all, and attributes."""
    texts = [name for name in space.sets if name.endswith("_texts")]
    few = [name for name in texts if len(space[name]) < _FEWEST_TEXTS]
    return few, [name for name in few if name != "target_texts"]


def _space(
    sets: Sequence[Any],
    further: Facts,
    resample_texts: bool,
    similarity: Similarity | None,
    units: SetUnits | None,
    resampling: Resampling | None,
    rng: Seed,
) -> Space:
    """Embed the sets and hold texts fixed: all of them, or prompts if they are fewer than ten."""
    targets = dict(zip(TARGETS, sets[:2], strict=True))
    groups = [f"{group}_{kind}" for group in "ab" for kind in KINDS]
    attributes = dict(zip(groups, sets[2:], strict=True)) | dict(further)
    space = Space.of(targets, attributes, (), similarity, units, resampling, rng)
    texts = [name for name in space.sets if name.endswith("_texts")]
    small_sets, small_attributes = _few_texts(space)
    if resample_texts and small_attributes:
        name = small_attributes[0]
        raise InputError(
            f"resample_texts: {name} has {len(space[name])} texts; expected at least "
            f"{_FEWEST_TEXTS} to draw inference over prompts, or leave texts fixed"
        )
    return replace(space, fixed=small_sets if resample_texts else texts)


def _joined(
    seed: Seed, images: ExchangedDifferences, texts: ExchangedDifferences
) -> ExchangedDifferences:
    """Exchange the attributes of both kinds."""
    enumerated, n_partitions = (
        images.enumerated and texts.enumerated,
        images.partitions * texts.partitions,
    )
    if enumerated and n_partitions <= MOST_PARTITIONS:
        sizes = len(images.null), len(texts.null)
        picked = [np.repeat(np.arange(sizes[0]), sizes[1]), np.tile(np.arange(sizes[1]), sizes[0])]
        text = f"all {n_partitions} enumerated"
    else:
        # Exchanges of images and of texts are independent of each other.
        enumerated = False
        n_draws = min(
            (len(exchanged.null) for exchanged in (images, texts) if not exchanged.enumerated),
            default=1000,
        )
        picked = []
        for kind, exchanged in zip(KINDS, (images, texts), strict=True):
            places = np.arange(n_draws)
            if exchanged.enumerated:
                random = stream(seed, "partition", kind, "pick")
                places = random.integers(len(exchanged.null), size=n_draws)
            picked.append(places)
        text = f"{n_draws} random partitions"
    picks = [*zip((images, texts), picked, strict=True)]
    null = np.concatenate([exchanged.null[places] for exchanged, places in picks], axis=1)
    errors = np.concatenate([exchanged.null_errors[places] for exchanged, places in picks], axis=1)
    error = np.concatenate([images.error, texts.error])
    observed = np.concatenate([images.observed, texts.observed])
    # What ties refer to is the size of all scores together.
    scale, finest = images.scale + texts.scale, max(images.resolution, texts.resolution)
    return ExchangedDifferences(
        observed, null, enumerated, 0, text, scale, finest, error=error, errors=errors
    )


@metric(
    _mcas(
        name="xmcas",
        needs=(*SETS, "further"),
        takes=("offset", "neutral", "size_of_mean", "centre", "resample_texts", *OF_TARGETS),
        title="xMCAS",
        symbol="θ",
        range=(-math.pi, math.pi),
        range_note="radians",
        unit="degrees",
        harm="either",
        definition=(
            "Angle θ = atan2(n, 1 − |MCAS| + k), with n the mean similarity to further groups over "
            "the four pairs of modalities and k an offset."
        ),
        direction="Either: below the neutral angle further groups are represented less.",
        chance="none: an angle compares no exchangeable groups",
        interval="Student's t by the jackknife over images",
        reference="Mandal 2024, chapter 9",
        errata=(
            "The distances of the source's Table 9.3 do not follow from its own MCAS and θ (CEO: n "
            "= 0.467 and distance 0.156; printed 0.50). The mean over four pairs is our reading of "
            "its cos(NB, x)."
        ),
    )
)
def xmcas(  # noqa: PLR0913 - one keyword for each choice
    target_images: ArrayLike,
    target_texts: ArrayLike,
    a_images: ArrayLike,
    a_texts: ArrayLike,
    b_images: ArrayLike,
    b_texts: ArrayLike,
    c_images: ArrayLike | Mapping[str, ArrayLike],
    c_texts: ArrayLike | Mapping[str, ArrayLike],
    *,
    offset: float = 0.0,
    centre: tuple[float, float] | None = None,
    resample_texts: bool = False,
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Angle between a concept's association with two groups and its similarity to further ones.

    theta = atan2(n, 1 - |mcas| + k): n is the mean over the four pairs of modalities of the mean
    similarity of the targets to the further group, averaged over further groups; k the offset.

    Parameters
    ----------
    target_images, target_texts, a_images, a_texts, b_images, b_texts
        As in `mcas`.
    c_images, c_texts : array-like, shape (n, d), or mapping of group to such
        Embeddings of the further group's images and texts, or of several groups under one name
        each.
    offset : float
        k, see `offset`.
    centre : tuple of two float, optional
        Similarity and MCAS of a point, from which a further distance is measured.
    similarity, units, resample_texts, resampling, rng
        As in `mcas`; the sets of a further group are called "<group>_images" and "<group>_texts",
        "c" where it has no name.

    Returns
    -------
    Estimate
        theta in radians, in [-pi, pi]. Neutral: mcas 0 and n = 1/3 (with G groups in all, 1/G):
        atan(1/3) = 18.43 degrees. Interval: jackknife over images. No chance level: it
        compares no exchangeable groups. `.by` has "mcas"; for every further group "similarity" (n)
        and "theta"; and "euclidean", the distance from neutral sqrt(sum (n - 1/G)^2 + mcas^2).
        With a centre also "distance", that from the centre.

    Raises
    ------
    InputError
        As `mcas`; or further groups have images or texts only, or a number is not finite.

    Notes
    -----
    The mean over four pairs is our reading of the source's cos(NB, x), and 1/G its neutral point
    for more than three groups. Erratum: the distances of its Table 9.3 do not follow from its own
    MCAS and theta (CEO: 0.08, 0.46 and k = 0.0227 give n = 0.467 and 0.156; printed 0.50). They
    fit the centre (0, 1/3): the neutral point with its axes exchanged.

    References
    ----------
    Mandal 2024, chapter 9.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + direction for direction in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + direction for direction in np.eye(3, 8)]
    >>> m.xmcas(
    ...     images[0],
    ...     texts[0],
    ...     images[1],
    ...     texts[1],
    ...     images[2],
    ...     texts[2],
    ...     {"other": images[2][::-1]},
    ...     {"other": texts[1]},
    ... )
    <xmcas 2.914 [2.848, 2.979]; n = 124 in 8 groups>
    """
    _check_numbers(offset, centre)
    names, further = _further_sets(c_images, c_texts)
    sets = target_images, target_texts, a_images, a_texts, b_images, b_texts
    space = _space(sets, further, resample_texts, similarity, units, resampling, rng)
    pairs = [(target, kind) for target in TARGETS for kind in KINDS]
    similarity_terms = [
        {(target, f"{name}_{kind}"): 0.25 for target, kind in pairs} for name in names
    ]
    values, jackknife = space.bilinear([_TERMS[-1], *similarity_terms])
    geometry = partial(_geometry, offset=offset, centre=centre)
    angles, angle_values = None, geometry(values).tolist()
    if jackknife is not None:
        angles = Jackknife(lambda: (geometry(values), [*map(geometry, jackknife.numbers[1])]))
    rows = [("euclidean", ""), ("mcas", "")]
    rows += [(metric, name) for metric in ("similarity", "theta") for name in names]
    rows += [("distance", "")] if centre is not None else []
    n = len(space["target_images"])
    parts = [
        space.part(metric, value, angles, index, subject=name, n=n)
        for index, ((metric, name), value) in enumerate(
            zip(rows, angle_values[1:], strict=True), start=1
        )
    ]
    return space.estimate(
        "xmcas",
        angle_values[0],
        parts,
        UNTESTED,
        jackknife=angles,
        params={"offset": offset, "centre": centre, "resample_texts": resample_texts},
        no_chance="an angle between similarities: it compares no exchangeable groups",
    )


@metric(
    _mcas(
        name="xmcas_distance",
        title="Distance of xMCAS",
        symbol="o−d",
        range=(0.0, math.inf),
        definition=(
            "Distance of a target from the neutral point (similarity to each further group 1/G, "
            "MCAS 0), or from a declared centre."
        ),
        direction="Higher: farther from neutral.",
        chance="none: it compares no exchangeable groups",
        interval="Student's t by the jackknife over images",
        reference="Mandal 2024, chapter 9",
        errata=(
            "The distances of the source's Table 9.3 fit the centre (0, 1/3), the neutral point "
            "with its axes exchanged, with a mean absolute error of 0.019; the neutral point with "
            "0.43."
        ),
    )
)
def xmcas_distance(  # noqa: PLR0913 - one keyword for each choice
    target_images: ArrayLike,
    target_texts: ArrayLike,
    a_images: ArrayLike,
    a_texts: ArrayLike,
    b_images: ArrayLike,
    b_texts: ArrayLike,
    c_images: ArrayLike | Mapping[str, ArrayLike],
    c_texts: ArrayLike | Mapping[str, ArrayLike],
    *,
    centre: tuple[float, float] | None = None,
    resample_texts: bool = False,
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Distance of a concept from the neutral point of `xmcas`, or from a centre.

    Parameters
    ----------
    target_images, target_texts, a_images, a_texts, b_images, b_texts, c_images, c_texts
        As in `xmcas`.
    centre : tuple of two float, optional
        Similarity and MCAS of the point; the neutral one by default.
    resample_texts, similarity, units, resampling, rng
        As in `mcas`.

    Returns
    -------
    Estimate
        At least 0. Interval: jackknife over images. No chance level.

    Raises
    ------
    InputError
        As `xmcas`.

    References
    ----------
    Mandal 2024, chapter 9.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + direction for direction in np.eye(4, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + direction for direction in np.eye(4, 8)]
    >>> m.xmcas_distance(*[table for pair in zip(images, texts) for table in pair])
    <xmcas_distance 0.801 [0.573, 1.028]; n = 124 in 8 groups>
    """
    angle = xmcas(
        target_images, target_texts, a_images, a_texts, b_images, b_texts, c_images, c_texts,
        centre=centre, resample_texts=resample_texts, similarity=similarity, units=units,
        resampling=resampling, rng=rng,
    )  # fmt: skip
    part, column = distance_part(angle), 1 if centre is None else len(angle.parts)
    return make_estimate(
        part.metric, part.value, angle.n, angle.method, params=angle.params,
        excluded=angle.excluded, unit=angle.unit, no_chance=angle.no_chance,
        ends=replace(angle.ends, column=column)
        if isinstance(angle.ends, JackknifeEnds) else no_ends,
    )  # fmt: skip


def distance_part(angle: Estimate) -> Part:
    """Return the distance of an angle from its centre, or from the neutral point."""
    by_metric = {part.metric: part for part in angle.parts if not part.subject}
    distance = by_metric.get("distance", by_metric["euclidean"])
    return replace(distance, metric="xmcas_distance")


def _check_numbers(offset: float, centre: tuple[float, float] | None) -> None:
    if not math.isfinite(offset):
        raise InputError(f"offset={offset}: expected a finite number")
    if centre is not None and not all(map(math.isfinite, centre)):
        raise InputError(f"centre={centre}: expected two finite numbers, similarity and MCAS")


def _further_sets(
    c_images: ArrayLike | Mapping[str, ArrayLike], c_texts: ArrayLike | Mapping[str, ArrayLike]
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of further groups, and their sets by name and kind."""
    images = c_images if isinstance(c_images, Mapping) else {"c": c_images}
    texts = c_texts if isinstance(c_texts, Mapping) else {"c": c_texts}
    names = [*images]
    if not names or {*names} != {*texts} or {"a", "b", "target"} & {*names}:
        raise InputError(
            f"c_images has groups {names}, c_texts {[*texts]}; expected the same, and none called "
            "'a', 'b' or 'target'"
        )
    by_kind = [*zip(KINDS, (images, texts), strict=True)]
    return names, {f"{name}_{kind}": arrays[name] for name in names for kind, arrays in by_kind}


def _geometry(
    numbers: Floats, *, offset: float, centre: tuple[float, float] | None = None
) -> Floats:
    """Return theta, distance, mcas, similarity and theta by further group, distance from a centre.

    Parameters
    ----------
    numbers : ndarray, shape (..., 1 + groups)
        MCAS, and similarity to each further group.
    offset : float
    centre : tuple of two float, optional
    """
    composite, similarities = numbers[..., :1], numbers[..., 1:]
    across = 1.0 - np.abs(composite) + offset
    theta = np.arctan2(similarities.mean(axis=-1, keepdims=True), across)
    single = np.arctan2(similarities, across)
    centres = [(1.0 / (1 + numbers.shape[-1]), 0.0), *([] if centre is None else [centre])]
    first, *further = (_distance(numbers, *point) for point in centres)
    return np.concatenate([theta, first, composite, similarities, single, *further], axis=-1)


def _distance(numbers: Floats, similarity: float, composite: float) -> Floats:
    """Return the distance of similarities and MCAS from a point."""
    squares = ((numbers[..., 1:] - similarity) ** 2).sum(axis=-1, keepdims=True)
    return floats(np.sqrt(squares + (numbers[..., :1] - composite) ** 2))


@metric(
    _mcas(
        name="offset",
        title="Offset of xMCAS",
        symbol="k",
        range=(0.0, 8.0),
        range_note="for cosines",
        harm="either",
        definition=(
            "Mean |MCAS| of neutral targets: the denominator of θ is then 1 on average. Or the "
            "size of the mean MCAS of a further group's prompts, used as targets."
        ),
        direction="Either: no harm by itself.",
        chance="none: a property of neutral targets",
        interval="percentile bootstrap over targets",
        reference="Mandal 2024, chapter 9",
    )
)
def offset(
    mcas_values: ArrayLike,
    *,
    size_of_mean: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Offset k of `xmcas`: the mean |MCAS| of targets that are declared neutral.

    With it, the denominator 1 - |mcas| + k of theta is 1 on average over those targets.

    Parameters
    ----------
    mcas_values : array-like, shape (n,)
        MCAS of each neutral target with the model at hand.
    size_of_mean : bool
        Take the size of the mean MCAS, as the source does of the further group's prompts.
    resampling : Bootstrap or None
        None gives the value alone; others give no interval either.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        At least 0. Interval: percentile bootstrap over targets.

    Raises
    ------
    InputError
        When there is no value or one is not finite.

    Notes
    -----
    The source takes the prompts of the further group as targets, and the mean of their MCAS
    (section 9.4.1: 0.0227 for its models), which is negative: k is its size.

    References
    ----------
    Mandal 2024, chapter 9.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.offset([0.1, -0.2, 0.15])
    <offset 0.150 [0.100, 0.200]; n = 3>
    """
    values = np.sort(real_numbers(mcas_values, "mcas_values"))
    if not len(values) or not np.isfinite(values).all():
        raise InputError("mcas_values: expected finite numbers, one per neutral target, (n,)")
    boot = None
    if not size_of_mean:
        values = np.sort(np.abs(values))
    if isinstance(resampling, Bootstrap) and len(values) > 1:
        size = (resampling.replicates, len(values))
        draws = stream(rng, "bootstrap", "targets").integers(len(values), size=size)
        boot = np.abs(values[draws].mean(axis=1))
    return make_estimate(
        "offset",
        float(np.abs(values.mean())),
        {"targets": len(values)},
        bootstrap_method(boot, resampling, "targets"),
        no_chance="a property of neutral targets: it compares no groups",
        ends=ends_of(boot),
    )


@metric(
    _mcas(
        name="diffusion_bias",
        symbol="δ",
        range=(0.0, 2.0),
        range_note="for cosines",
        definition="| |II| − |TT| |: difference in size of the association in images and texts.",
        direction="Higher: images add to the association of the texts, or lose it.",
        threshold=0.01,
        threshold_reason=COSINE,
        chance="above 0",
        interval="from the intervals of II and TT",
        null="groups are exchangeable: images and texts have no association; no p in audits",
    )
)
def diffusion_bias(components: Estimate | Sequence[Estimate]) -> Estimate:
    """Difference in size of the association in images and in texts: | |II| - |TT| |.

    Parameters
    ----------
    components : Estimate, or sequence of Estimate
        What `mcas` returned; several are of the same images in several encoders: the result is the
        mean of theirs, without a chance level, with Student's t by the jackknife.

    Returns
    -------
    Estimate
        In [0, 2] for cosines, higher is worse: images carry an association that the texts do not,
        or lose one that they do. Interval: what intervals of II and TT leave possible, so that it
        holds the value and reaches 0 where the sizes may be equal. Chance and p come from the
        draws of `mcas`. `.by` has |II| - |TT|, signed.

    Raises
    ------
    InputError
        When it is no result of `mcas`, or there is none.

    References
    ----------
    Mandal 2024, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + direction for direction in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + direction for direction in np.eye(3, 8)]
    >>> m.diffusion_bias(
    ...     m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    ... )
    <diffusion_bias 1.313 [1.234, 1.393]; chance 1.368, p = 0.99, n = 93 in 6 groups>
    """
    if not isinstance(components, Estimate):
        return _average(
            "diffusion_bias", components, lambda values: floats(np.abs(_signed(values)))
        )
    mcas_ends = _components_of(components)
    signed = float(_signed(mcas_ends.observed))
    chance_test = compare_with_exchanges(
        mcas_ends.tested,
        abs(signed),
        "higher",
        _NULL,
        lambda draws: np.abs(_signed(draws[:, [0, 1, _COLUMNS, _COLUMNS + 1]])),
    )
    n = sum(components.n.values())
    ends = partial(_signed_ends, mcas_ends)
    part = number("signed_diffusion_bias", signed, n=n, ends=ends, level=mcas_ends.level)
    return make_estimate(
        "diffusion_bias",
        abs(signed),
        components.n,
        components.method,
        **chance_test.fields("resampling is off"),
        by=[part],
        ends=lambda level: folded(*ends(level)),
    )


def _signed_ends(components: Components, level: float) -> Span:
    """Return the ends of |II| - |TT|, from intervals of II and TT by the MOVER method.

    A resampled absolute value lies farther from 0 than the value does, near 0.
    """
    sizes = []
    for index in (0, 3):
        ends = folded(*ends_at(components.jackknife, index)(level))
        numbers = (np.array(value) for value in (abs(components.observed[index]), *ends))
        sizes.append(Scored(*numbers))
    difference = sizes[0].minus(sizes[1])
    return float(difference.low), float(difference.high)


@metric(
    _mcas(
        name="bias_amplification",
        symbol="α",
        range=(0.0, math.inf),
        definition="|(ITP + ITA) / (2 TT)|: association across modalities relative to texts.",
        direction="Higher: above 1 the association is amplified.",
        chance="none: TT is near 0 under the null and the quotient explodes",
        interval="normal draws with the jackknife's variances; none when that of TT contains 0",
    )
)
def bias_amplification(components: Estimate | Sequence[Estimate]) -> Estimate:
    """Cross-modal association relative to that of the texts: |(ITP + ITA) / (2 TT)|.

    Parameters
    ----------
    components : Estimate, or sequence of Estimate
        What `mcas` returned; several are of the same images in several encoders: the result is the
        mean of theirs, with Student's t by the jackknife.

    Returns
    -------
    Estimate
        At least 0; above 1 the association is amplified. Not estimable (NaN, with the reason) when
        the 95 % interval of TT contains 0: the quotient explodes. Interval: percentiles of normal
        draws with the variances of `mcas`. No chance level: under the null TT is near 0.

    Raises
    ------
    InputError
        When it is no result of `mcas`, or there is none.

    References
    ----------
    Mandal 2024, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + direction for direction in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + direction for direction in np.eye(3, 8)]
    >>> m.bias_amplification(
    ...     m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    ... )
    <bias_amplification 0.192 [0.111, 0.273]; n = 93 in 6 groups>
    """
    if not isinstance(components, Estimate):
        reasons = [_undefined(_components_of(estimate)) for estimate in components]
        reason = next(filter(None, reasons), "")
        return _average("bias_amplification", components, _amplification, reason)
    mcas_ends, replicates, method = _components_of(components), None, components.method
    reason = _undefined(mcas_ends)
    if mcas_ends.jackknife is not None:
        replicates = mcas_ends.jackknife.draws(_DRAWS, _SEED)
        method = f"percentiles of {_DRAWS} normal draws, with the variances of: {method}"
    return make_estimate(
        "bias_amplification",
        math.nan if reason else float(_amplification(mcas_ends.observed)),
        components.n,
        method,
        no_chance=_EXPLODES,
        reason=reason,
        ends=no_ends if reason or replicates is None else folded_ends(_quotient(replicates)),
    )


def _undefined(components: Components) -> str:
    """Return why the quotient by TT is not defined, or ""."""
    if components.observed[3] == 0.0:
        return "the association of the texts (TT) is 0"
    low, high = ends_at(components.jackknife, 3)(0.95)
    contains = low <= 0 <= high
    return f"the 95 % interval of TT, {low:.3g} to {high:.3g}, contains 0" if contains else ""


def _average(
    metric: str,
    estimates: Sequence[Estimate],
    number_of: Callable[[Floats], Floats],
    reason: str = "",
) -> Estimate:
    """Return the mean over encoders of a number of their components."""
    if not estimates:
        raise InputError("components: expected estimates of mcas, from one encoder or several")
    components = [_components_of(estimate) for estimate in estimates]
    jackknives = [part.jackknife for part in components if part.jackknife is not None]
    first, value = estimates[0], np.mean([number_of(part.observed) for part in components])

    def make() -> tuple[Floats, list[Floats]]:
        # The encoders have the same images, so that each leaves out the same one.
        samples = zip(*(jackknife.numbers[1] for jackknife in jackknives), strict=True)
        means = [np.mean([number_of(values) for values in sample], axis=0) for sample in samples]
        return floats([value]), [floats(mean[:, None]) for mean in means]

    drawn = len(jackknives) == len(components) and not reason
    return make_estimate(
        metric,
        math.nan if reason else float(value),
        first.n,
        f"mean over {len(estimates)} encoders; {first.method}",
        no_chance=_EXPLODES if metric == "bias_amplification" else "a mean over encoders",
        reason=reason,
        ends=_at_least_zero(Jackknife(make)) if drawn else no_ends,
    )


def _at_least_zero(jackknife: Jackknife) -> Ends:
    """Return the interval of a size, which ends at 0."""
    ends = ends_at(jackknife, 0)
    return lambda level: (max(ends(level)[0], 0.0), ends(level)[1])


def _components_of(estimate: Estimate) -> Components:
    if not isinstance(estimate.ends, Components):
        raise InputError(f"components: {estimate.metric}; expected estimates of mcas")
    return estimate.ends


def _signed(values: Floats) -> Floats:
    return floats(np.abs(values[..., 0]) - np.abs(values[..., 3]))


def _amplification(values: Floats) -> Floats:
    return floats(np.abs(_quotient(values)))


def _quotient(values: Floats) -> Floats:
    with unwarned():
        return floats((values[..., 1] + values[..., 2]) / (2.0 * values[..., 3]))
