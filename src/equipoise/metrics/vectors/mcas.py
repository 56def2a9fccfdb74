"""MCAS and xMCAS, and what a generator adds: diffusion bias and bias amplification."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
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
from equipoise.metrics.building import (
    NOTHING,
    Against,
    bootstrap_method,
    ends_of,
    folded,
    folded_ends,
    number,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import COSINE, LEANING, MetricSpec, make_estimate, register
from equipoise.metrics.vectors.resampling import (
    MOST_PARTITIONS,
    Exchanged,
    Jackknife,
    Options,
    Space,
    Terms,
    against_exchanged,
    against_studentized,
    ends_at,
)
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
# Terms of each component, and of their sum.
_TERMS: list[Terms] = [
    {(f"a_{kind}", target): 1.0, (f"b_{kind}", target): -1.0} for kind, target in SIDES.values()
]
_TERMS.append(reduce(or_, _TERMS))
# Columns of the differences of a kind: of target images, of target texts, and their sum.
_COLUMNS = 3


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
    images: Exchanged | None
    tested: Exchanged | None
    level: float

    def __call__(self, level: float) -> Span:
        """Return the ends of the sum of the four components."""
        return ends_at(self.jackknife, 4)(level)

    def held_total(self, *, resample_texts: bool) -> Against:
        """Hold MCAS against images exchanged, or images and texts.

        Texts as given make a part of MCAS, ITA + TT, that no exchange of images changes.
        """
        value, sums = float(self.observed.sum()), [_COLUMNS - 1]
        if not resample_texts:
            fixed = float(self.observed[2:].sum())
            return against_exchanged(
                self.images, value, "either", _NULL_IMAGES, column=sums[0], shift=fixed
            )
        tested, sums = self.tested, [*sums, 2 * _COLUMNS - 1]
        if tested is None:
            return NOTHING
        error = float(np.linalg.norm(tested.error[sums]))
        ratios = tested.drawn[:, sums].sum(axis=1) / np.linalg.norm(tested.errors[:, sums], axis=1)
        text = f"{_NULL}; {tested.text}"
        return against_studentized(tested, value / error, ratios, "either", text, factor=error)


def mcas(
    target_images: ArrayLike,
    target_texts: ArrayLike,
    a_images: ArrayLike,
    a_texts: ArrayLike,
    b_images: ArrayLike,
    b_texts: ArrayLike,
    *,
    resample_texts: bool = False,
    **options: Unpack[Options],
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
    >>> images = [rng.normal(size=(30, 8)) + one for one in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + one for one in np.eye(3, 8)]
    >>> m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    <mcas 2.010 [1.748, 2.271]; chance 1.873, p = 0.24, n = 93 in 6 groups>
    """
    sets = target_images, target_texts, a_images, a_texts, b_images, b_texts
    space = _space(sets, {}, resample_texts, **options)
    # The attributes of each kind are counted by their similarity to both targets.
    centres = [space[name].mean for name in TARGETS]
    sums = [*centres, centres[0] + centres[1]]
    images, texts = (space.exchange(f"a_{kind}", f"b_{kind}", sums, kind) for kind in KINDS)
    tested = None if images is None or texts is None else _joined(space.seed, images, texts)
    observed, jackknife = space.bilinear(_TERMS)
    found = Components(observed[:4], jackknife, images, tested, space.level)
    parts = []
    for index, (name, (kind, target)) in enumerate(SIDES.items()):
        value, groups = float(found.observed[index]), [f"a_{kind}", f"b_{kind}"]
        near, _ = space.bilinear([{(group, target): 1.0} for group in groups])
        parts.append(
            space.part(
                name,
                value,
                jackknife,
                index,
                n=len(space[target]),
                held=against_exchanged(tested, value, "either", _NULL, column=index + index // 2),
                by_group=space.group_values(groups, near.tolist()),
                shows="mean similarity of the targets to the set",
            )
        )
    total = float(found.observed.sum())
    if space.resampling is not None and not resample_texts:
        parts.append(_with_texts(space, found))
    leaning = "a" if total > 0 else "b" if total < 0 else "neither"
    return space.estimate(
        "mcas",
        total,
        parts,
        found.held_total(resample_texts=resample_texts),
        found=jackknife,
        ends=found,
        params={"resample_texts": resample_texts, "leans_to": leaning},
        pairs=[("a_images", "b_images"), ("a_texts", "b_texts")],
    )


def _with_texts(space: Space, found: Components) -> Part:
    """Return MCAS with texts resampled in the interval and exchanged in the test."""
    few, short = _few_texts(space)
    reason = f"texts aren't resampled: fewer than {_FEWEST_TEXTS} in {', '.join(short)}"
    ends = no_ends if short else ends_at(replace(space, fixed=few).bilinear(_TERMS)[1], 4)
    return number(
        "mcas",
        float(found.observed.sum()),
        subject=RESAMPLED,
        n=sum(len(one) for one in space.sets.values()),
        ends=ends,
        level=space.level,
        held=found.held_total(resample_texts=True),
        reason=reason if short else "",
    )


def _few_texts(space: Space) -> tuple[list[str], list[str]]:
    """Return the sets of fewer than ten texts, and those of them that are attributes."""
    texts = [name for name in space.sets if name.endswith("_texts")]
    few = [name for name in texts if len(space[name]) < _FEWEST_TEXTS]
    return few, [name for name in few if name != "target_texts"]


def _space(
    sets: Sequence[Any],
    further: Facts,
    resample_texts: bool,
    **options: Unpack[Options],
) -> Space:
    """Embed the sets and hold texts fixed: all of them, or prompts if they are fewer than ten."""
    targets = dict(zip(TARGETS, sets[:2], strict=True))
    groups = [f"{group}_{kind}" for group in "ab" for kind in KINDS]
    attributes = dict(zip(groups, sets[2:], strict=True)) | dict(further)
    space = Space.of(targets, attributes, (), **options)
    texts = [name for name in space.sets if name.endswith("_texts")]
    few, short = _few_texts(space)
    if resample_texts and short:
        name = short[0]
        raise InputError(
            f"resample_texts: {name} has {len(space[name])} texts; expected at least "
            f"{_FEWEST_TEXTS} to draw inference over prompts, or leave texts fixed"
        )
    return replace(space, fixed=few if resample_texts else texts)


def _joined(seed: Seed, images: Exchanged, texts: Exchanged) -> Exchanged:
    """Exchange the attributes of both kinds."""
    whole, many = images.enumerated and texts.enumerated, images.partitions * texts.partitions
    if whole and many <= MOST_PARTITIONS:
        sizes = len(images.null), len(texts.null)
        picked = [np.repeat(np.arange(sizes[0]), sizes[1]), np.tile(np.arange(sizes[1]), sizes[0])]
        text = f"all {many} enumerated"
    else:
        # Exchanges of images and of texts are independent of each other.
        whole = False
        drawn = min((len(one.null) for one in (images, texts) if not one.enumerated), default=1000)
        picked = []
        for kind, one in zip(KINDS, (images, texts), strict=True):
            places = np.arange(drawn)
            if one.enumerated:
                random = stream(seed, "partition", kind, "pick")
                places = random.integers(len(one.null), size=drawn)
            picked.append(places)
        text = f"{drawn} random partitions"
    both = [*zip((images, texts), picked, strict=True)]
    null = np.concatenate([one.null[places] for one, places in both], axis=1)
    errors = np.concatenate([one.null_errors[places] for one, places in both], axis=1)
    error = np.concatenate([images.error, texts.error])
    observed = np.concatenate([images.observed, texts.observed])
    # What ties refer to is the size of all scores together.
    scale, finest = images.scale + texts.scale, max(images.resolution, texts.resolution)
    return Exchanged(observed, null, whole, 0, text, scale, finest, error=error, errors=errors)


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
    resample_texts: bool = False,
    **options: Unpack[Options],
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
        k, see `estimate_offset`.
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

    Raises
    ------
    InputError
        As `mcas`; or further groups have images or texts only, or the offset is not finite.

    Notes
    -----
    The mean over four pairs is our reading of the source's cos(NB, x), and 1/G its neutral point
    for more than three groups. Erratum: the distances of its Table 9.3 do not follow from its own
    MCAS and theta (CEO: 0.08, 0.46 and k = 0.0227 give n = 0.467 and 0.156; printed 0.50).

    References
    ----------
    Mandal 2024, chapter 9.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + one for one in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + one for one in np.eye(3, 8)]
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
    if not math.isfinite(offset):
        raise InputError(f"offset={offset}: expected a finite number")
    images = c_images if isinstance(c_images, Mapping) else {"c": c_images}
    texts = c_texts if isinstance(c_texts, Mapping) else {"c": c_texts}
    names = [*images]
    if not names or {*names} != {*texts} or {"a", "b", "target"} & {*names}:
        raise InputError(
            f"c_images has groups {names}, c_texts {[*texts]}; expected the same, and none called "
            "'a', 'b' or 'target'"
        )
    both = [*zip(KINDS, (images, texts), strict=True)]
    further = {f"{name}_{kind}": given[name] for name in names for kind, given in both}
    sets = target_images, target_texts, a_images, a_texts, b_images, b_texts
    space = _space(sets, further, resample_texts, **options)
    pairs = [(target, kind) for target in TARGETS for kind in KINDS]
    near = [{(target, f"{name}_{kind}"): 0.25 for target, kind in pairs} for name in names]
    values, jackknife = space.bilinear([_TERMS[-1], *near])
    geometry = partial(_geometry, offset=offset)
    angles, found = None, geometry(values).tolist()
    if jackknife is not None:
        angles = Jackknife(lambda: (geometry(values), [*map(geometry, jackknife.numbers[1])]))
    rows = [("euclidean", ""), ("mcas", "")]
    rows += [(metric, name) for metric in ("similarity", "theta") for name in names]
    n = len(space["target_images"])
    parts = [
        space.part(metric, value, angles, index, subject=name, n=n)
        for index, ((metric, name), value) in enumerate(zip(rows, found[1:], strict=True), start=1)
    ]
    return space.estimate(
        "xmcas",
        found[0],
        parts,
        NOTHING,
        found=angles,
        params={"offset": offset, "resample_texts": resample_texts},
        no_chance="an angle between similarities: it compares no exchangeable groups",
    )


def _geometry(numbers: Floats, *, offset: float) -> Floats:
    """Return theta, distance, mcas, then similarity and theta of each further group.

    Parameters
    ----------
    numbers : ndarray, shape (..., 1 + groups)
        MCAS, and similarity to each further group.
    offset : float
    """
    composite, similarities = numbers[..., :1], numbers[..., 1:]
    across = 1.0 - np.abs(composite) + offset
    neutral = 1.0 / (1 + numbers.shape[-1])
    squares = ((similarities - neutral) ** 2).sum(axis=-1, keepdims=True)
    distance = np.sqrt(squares + composite**2)
    theta = np.arctan2(similarities.mean(axis=-1, keepdims=True), across)
    single = np.arctan2(similarities, across)
    return np.concatenate([theta, distance, composite, similarities, single], axis=-1)


def estimate_offset(
    mcas_values: ArrayLike, *, resampling: Resampling | None = DEFAULT, rng: Seed = 0
) -> Estimate:
    """Offset k of `xmcas`: the mean |MCAS| of targets that are declared neutral.

    With it, the denominator 1 - |mcas| + k of theta is 1 on average over those targets.

    Parameters
    ----------
    mcas_values : array-like, shape (n,)
        MCAS of each neutral target with the model at hand.
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
    The source gives k = 0.0227 for its models without the rule; the mean is our reading.

    References
    ----------
    Mandal 2024, chapter 9.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.estimate_offset([0.1, -0.2, 0.15])
    <offset 0.150 [0.100, 0.200]; n = 3>
    """
    values = np.sort(np.abs(floats(mcas_values)))
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError("mcas_values: expected finite numbers, one per neutral target, (n,)")
    boot = None
    if isinstance(resampling, Bootstrap) and len(values) > 1:
        size = (resampling.replicates, len(values))
        draws = stream(rng, "bootstrap", "targets").integers(len(values), size=size)
        boot = values[draws].mean(axis=1)
    return make_estimate(
        "offset",
        float(values.mean()),
        {"targets": len(values)},
        bootstrap_method(boot, resampling, "targets"),
        no_chance="a property of neutral targets: it compares no groups",
        ends=ends_of(boot),
    )


def diffusion_bias(components: Estimate) -> Estimate:
    """Difference in size of the association in images and in texts: | |II| - |TT| |.

    Parameters
    ----------
    components : Estimate
        What `mcas` returned.

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
        When it is no result of `mcas`.

    References
    ----------
    Mandal 2024, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + one for one in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + one for one in np.eye(3, 8)]
    >>> m.diffusion_bias(
    ...     m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    ... )
    <diffusion_bias 1.313 [1.234, 1.393]; chance 1.368, p = 0.99, n = 93 in 6 groups>
    """
    found = _components_of(components)
    signed = float(_signed(found.observed))
    held = against_exchanged(
        found.tested,
        abs(signed),
        "higher",
        _NULL,
        lambda drawn: np.abs(_signed(drawn[:, [0, 1, _COLUMNS, _COLUMNS + 1]])),
    )
    n = sum(components.n.values())
    ends = partial(_signed_ends, found)
    part = number("signed_diffusion_bias", signed, n=n, ends=ends, level=found.level)
    return make_estimate(
        "diffusion_bias",
        abs(signed),
        components.n,
        components.method,
        **held.fields("no resampling was asked for"),
        by=[part],
        ends=lambda level: folded(*ends(level)),
    )


def _signed_ends(found: Components, level: float) -> Span:
    """Return the ends of |II| - |TT|, from intervals of II and TT by the MOVER method.

    A resampled absolute value lies farther from 0 than the value does, near 0.
    """
    sizes = []
    for index in (0, 3):
        ends = folded(*ends_at(found.jackknife, index)(level))
        numbers = (np.array(one) for one in (abs(found.observed[index]), *ends))
        sizes.append(Scored(*numbers))
    apart = sizes[0].minus(sizes[1])
    return float(apart.low), float(apart.high)


def bias_amplification(components: Estimate) -> Estimate:
    """Cross-modal association relative to that of the texts: |(ITP + ITA) / (2 TT)|.

    Parameters
    ----------
    components : Estimate
        What `mcas` returned.

    Returns
    -------
    Estimate
        At least 0; above 1 the association is amplified. Not estimable (NaN, with the reason) when
        the 95 % interval of TT contains 0: the quotient explodes. Interval: percentiles of normal
        draws with the variances of `mcas`. No chance level: under the null TT is near 0.

    Raises
    ------
    InputError
        When it is no result of `mcas`.

    References
    ----------
    Mandal 2024, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(30, 8)) + one for one in np.eye(3, 8)]
    >>> texts = [rng.normal(size=(1, 8)) + one for one in np.eye(3, 8)]
    >>> m.bias_amplification(
    ...     m.mcas(images[0], texts[0], images[1], texts[1], images[2], texts[2])
    ... )
    <bias_amplification 0.192 [0.111, 0.273]; n = 93 in 6 groups>
    """
    found = _components_of(components)
    low, high = ends_at(found.jackknife, 3)(0.95)
    reason = ""
    if found.observed[3] == 0.0:
        reason = "the association of the texts (TT) is 0"
    elif low <= 0 <= high:
        reason = f"the 95 % interval of TT, {low:.3g} to {high:.3g}, contains 0"
    drawn, method = None, components.method
    if found.jackknife is not None:
        drawn = found.jackknife.draws(_DRAWS, _SEED)
        method = f"percentiles of {_DRAWS} normal draws, with the variances of: {method}"
    return make_estimate(
        "bias_amplification",
        math.nan if reason else abs(float(_quotient(found.observed))),
        components.n,
        method,
        no_chance="under the null the texts' association is near 0: the quotient explodes",
        reason=reason,
        ends=no_ends if reason or drawn is None else folded_ends(_quotient(drawn)),
    )


def _components_of(estimate: Estimate) -> Components:
    if not isinstance(estimate.ends, Components):
        raise InputError(f"components: {estimate.metric}; expected what mcas returned")
    return estimate.ends


def _signed(drawn: Floats) -> Floats:
    return floats(np.abs(drawn[..., 0]) - np.abs(drawn[..., 3]))


def _quotient(drawn: Floats) -> Floats:
    with unwarned():
        return floats((drawn[..., 1] + drawn[..., 2]) / (2.0 * drawn[..., 3]))


_mcas = partial(
    MetricSpec,
    null_kind=NullHypothesis.MEMBERS,
    kinds=("associations", "text_to_image"),
    reference="Mandal 2024, chapter 8",
)
register(
    _mcas(
        name="mcas",
        title="MCAS",
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
        interval="Student's t by the jackknife over images; over texts beside it, with ten a set",
        null="images of both groups are exchangeable; their texts too, where they are resampled",
        reference="Mandal et al. 2023; Mandal 2024, chapters 6 and 8",
        errata="Chapter 8 of the source prints the range [-1, 1]; four differences reach [-8, 8].",
    ),
    _mcas(
        name="xmcas",
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
    ),
    _mcas(
        name="offset",
        title="Offset of xMCAS",
        symbol="k",
        kinds=("associations",),
        range=(0.0, 8.0),
        range_note="for cosines",
        harm="either",
        definition="Mean |MCAS| of neutral targets: the denominator of θ is then 1 on average.",
        direction="Either: no harm by itself.",
        chance="none: a property of neutral targets",
        interval="percentile bootstrap over targets",
        reference="Mandal 2024, chapter 9",
        errata="The source gives 0.0227 without its rule; the mean is our reading.",
    ),
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
    ),
    _mcas(
        name="bias_amplification",
        symbol="α",
        range=(0.0, math.inf),
        definition="|(ITP + ITA) / (2 TT)|: association across modalities relative to texts.",
        direction="Higher: above 1 the association is amplified.",
        chance="none: TT is near 0 under the null and the quotient explodes",
        interval="normal draws with the jackknife's variances; none when that of TT contains 0",
    ),
)
