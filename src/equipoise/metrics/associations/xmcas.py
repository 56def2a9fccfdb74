"""xMCAS: MCAS with further groups beside the first two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.parts import Part
from equipoise.metrics.associations.mcas import components_of, fixed_texts
from equipoise.metrics.associations.resampling import (
    assembled,
    compared,
    mean_vectors,
    method_of,
    replicates,
    row_dots,
)
from equipoise.metrics.associations.space import Similarity, embed
from equipoise.metrics.building import NOTHING, Percentile, ends_of, number
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

_REFERENCE = "Mandal 2024, chapter 9"
_TARGETS = ("target_images", "target_texts")
_KINDS = ("images", "texts")


def xmcas(  # noqa: PLR0913 - one keyword for each choice
    target_images: Any,
    target_texts: Any,
    a_images: Any,
    a_texts: Any,
    b_images: Any,
    b_texts: Any,
    c_images: Any,
    c_texts: Any,
    *,
    offset: float = 0.0,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    resample_texts: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
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
        atan(1/3) = 18.43 degrees. Interval: percentile bootstrap over images. No chance level: it
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
    """
    _check_offset(offset)
    groups = _groups(c_images, c_texts)
    attributes = {
        "a_images": a_images,
        "a_texts": a_texts,
        "b_images": b_images,
        "b_texts": b_texts,
    }
    for name, (images, texts) in groups.items():
        attributes |= {f"{name}_images": images, f"{name}_texts": texts}
    targets = dict(zip(_TARGETS, (target_images, target_texts), strict=True))
    sets = embed(targets, attributes, similarity=similarity, units=units)
    fixed = fixed_texts(sets, resample_texts)
    names = [*groups]

    def statistic(weights: Mapping[str, Floats]) -> Floats:
        means = {name: mean_vectors(weights[name], one) for name, one in sets.items()}
        return _geometry(means, names, offset)

    boot = replicates(sets, fixed, resampling, rng, statistic)
    found = _geometry({name: one.mean[None] for name, one in sets.items()}, names, offset)[0]
    return assembled(
        "xmcas",
        float(found[0]),
        sets,
        held=NOTHING,
        parts=_parts(found, boot, names, level_of(resampling), len(sets["target_images"])),
        method=method_of(sets, fixed, boot, resampling),
        ends=ends_of(boot, 0),
        params=compared(similarity) | {"offset": offset, "resample_texts": resample_texts},
        no_chance="an angle between similarities: it compares no exchangeable groups",
    )


def estimate_offset(
    mcas_values: Any, *, resampling: Resampling | None = DEFAULT, rng: int = 0
) -> Estimate:
    """Offset k of `xmcas`: the mean |MCAS| of targets that are declared neutral.

    With it, the denominator 1 - |mcas| + k of theta is 1 on average over those targets.

    Parameters
    ----------
    mcas_values : array-like, shape (n,)
        MCAS of each neutral target with the model at hand.
    resampling : Bootstrap or None
        None gives the value alone; others give no interval either.
    rng : int
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
    """
    values = np.abs(np.asarray(mcas_values, dtype=np.float64))
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError("mcas_values: expected finite numbers, one per neutral target, (n,)")
    ends, method = no_ends, NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    if isinstance(resampling, Bootstrap) and len(values) > 1:
        size = (resampling.replicates, len(values))
        draws = stream(rng, "bootstrap", "targets").integers(len(values), size=size)
        ends = Percentile(np.sort(values)[draws].mean(axis=1))
        method = f"percentile bootstrap over targets, {resampling.replicates} replicates"
    return make_estimate(
        metric="offset",
        value=float(np.sort(values).mean()),
        n={"targets": len(values)},
        method=method,
        no_chance="a property of neutral targets: it compares no groups",
        ends=ends,
    )


def _groups(images: Any, texts: Any) -> dict[str, tuple[Any, Any]]:
    if isinstance(images, Mapping) != isinstance(texts, Mapping):
        raise InputError("c_images and c_texts: expected two mappings of groups, or two arrays")
    if not isinstance(images, Mapping):
        return {"c": (images, texts)}
    if not images or {*images} != {*texts}:
        raise InputError(
            f"c_images has groups {sorted(images)}, c_texts {sorted(texts)}; expected the same"
        )
    if taken := sorted({"a", "b", "target"} & {*images}):
        raise InputError(f"c_images: a group may not be called {taken[0]!r}; choose another name")
    return {name: (images[name], texts[name]) for name in images}


def _check_offset(offset: float) -> None:
    if not math.isfinite(offset):
        raise InputError(f"offset={offset}: expected a finite number")


def _geometry(means: Mapping[str, Floats], names: Sequence[str], offset: float) -> Floats:
    """theta, distance, mcas, then similarity and theta of each further group."""
    composite = components_of(means).sum(axis=1)
    similarities = np.stack(
        [
            np.stack(
                [row_dots(means[t], means[f"{name}_{kind}"]) for t in _TARGETS for kind in _KINDS],
                1,
            ).mean(axis=1)
            for name in names
        ],
        axis=1,
    )
    across = 1.0 - np.abs(composite) + offset
    neutral = 1.0 / (2 + len(names))
    distance = np.sqrt(((similarities - neutral) ** 2).sum(axis=1) + composite**2)
    theta = np.arctan2(similarities.mean(axis=1), across)
    single = np.arctan2(similarities, across[:, None])
    return np.concatenate(
        [np.stack([theta, distance, composite], axis=1), similarities, single], axis=1
    )


def _parts(
    found: Floats, boot: Floats | None, names: Sequence[str], level: float, n: int
) -> list[Part]:
    many = len(names)
    rows = [("euclidean", "", 1), ("mcas", "", 2)]
    rows += [("similarity", name, 3 + index) for index, name in enumerate(names)]
    rows += [("theta", name, 3 + many + index) for index, name in enumerate(names)]
    return [
        number(metric, float(found[i]), subject=name, n=n, ends=ends_of(boot, i), level=level)
        for metric, name, i in rows
    ]


register(
    MetricSpec(
        name="xmcas",
        title="xMCAS",
        symbol="θ",
        kinds=("associations", "text_to_image"),
        range="[-pi, pi] radians",
        unit="degrees",
        harm="either",
        definition=(
            "Angle θ = atan2(n, 1 − |MCAS| + k), with n the mean similarity to further groups over "
            "the four pairs of modalities and k an offset."
        ),
        direction=(
            "Either: below the neutral angle (18.43° for three groups) further groups are "
            "represented less."
        ),
        chance="none: an angle compares no exchangeable groups",
        interval="percentile bootstrap over images",
        parameters={"offset": "0; estimate_offset estimates it"},
        reference=_REFERENCE,
        errata=(
            "The distances of the source's Table 9.3 do not follow from its own MCAS and θ (CEO: n "
            "= 0.467 and distance 0.156; printed 0.50). The mean over four pairs is our reading of "
            "its cos(NB, x)."
        ),
    )
)
register(
    MetricSpec(
        name="offset",
        title="Offset of xMCAS",
        symbol="k",
        kinds=("associations",),
        range="[0, 8] for cosines",
        harm="either",
        definition=(
            "Mean |MCAS| of targets declared neutral: the denominator of θ is then 1 on average."
        ),
        direction="Either: no harm by itself.",
        chance="none: a property of neutral targets",
        interval="percentile bootstrap over targets",
        reference=_REFERENCE,
        errata="The source gives 0.0227 without its rule; the mean is our reading.",
    )
)
