"""Labels that a model predicts for images of groups: their concentration, and WEAT of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, Harm
from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.partitions import HARM, Alternative
from equipoise.metrics.associations.predicted import (
    CHOSEN_ANEW,
    UNEVEN,
    Chosen,
    Concentration,
    LabelCounts,
    Masks,
    count_labels,
    spread,
)
from equipoise.metrics.associations.resampling import compared
from equipoise.metrics.associations.space import Similarity, associations, embed
from equipoise.metrics.building import (
    NOTHING,
    Against,
    against,
    bootstrap_method,
    ends_of,
    number,
    sizes,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import COHEN, POINTS, MetricSpec, make_estimate, register
from equipoise.stats.resampling import Exact, Resampling, level_of

Floats = npt.NDArray[np.float64]

_NULL = "images of all groups are exchangeable"


def label_concentration(
    labels: Any,
    groups: Any,
    *,
    vocabulary: Sequence[str] | None = None,
    k: int = 10,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """How far the labels predicted for a group's images pile up on a few, compared between groups.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Predicted label of each image.
    groups : array-like (n,), mapping of attribute to array-like, or Groups
    vocabulary : sequence of str, optional
        All labels that could be predicted: skewness and kurtosis then count zeros too. Default:
        the labels predicted at least once for the group.
    k : int
        How many of a group's most frequent labels make its top share.
    units : array-like, shape (n,), optional
        Names of the units that repeat.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The ends need Bootstrap.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Largest difference between groups in the share of images on their k most frequent labels,
        in [0, 1], higher is worse; small groups have higher shares by chance, which the chance
        level shows. Ends: resampling spread, which can leave out the value: replicates pile up
        more. Chance and p: images exchange groups. `.by` has the shares; "label_skewness" (g1) and
        "label_kurtosis" (excess) of each group's counts, without chance level.

    Raises
    ------
    InputError
        When lengths differ, k is below 1, a label is not in the vocabulary, or Exact is asked for.

    References
    ----------
    Mandal 2024, chapters 5 and 7.
    """
    _no_exact(resampling, "label_concentration")
    if k < 1:
        raise InputError(f"k={k}: expected at least 1")
    counted = count_labels(labels, groups, units, vocabulary)
    measure = Concentration(k, vocabulary is not None, counted.groups.usable)
    observed, boot, null = counted.draws(measure, resampling, rng)
    level = level_of(resampling)
    held = _held(null, float(observed[0]), resampling, "higher")
    many = len(counted.groups)
    parts = [
        number(
            name,
            float(observed[place]),
            n=int(counted.groups.counts.sum()),
            ends=ends_of(boot, place),
            level=level,
            held=held if place == 0 else NOTHING,
            by_group=_group_values(counted.groups, observed, boot, start, level),
        )
        for name, place, start in (
            ("top_share", 0, 3),
            ("label_skewness", 1, 3 + many),
            ("label_kurtosis", 2, 3 + 2 * many),
        )
    ]
    return make_estimate(
        metric="label_concentration",
        value=float(observed[0]),
        n=sizes(counted.groups),
        method=spread(bootstrap_method(boot, resampling, f"{counted.unit}s"), UNEVEN),
        params={"k": k, "labels": "vocabulary" if vocabulary is not None else "predicted"},
        **held.fields("no resampling was asked for, or there is no value"),
        by=parts_to_table(parts),
        excluded=counted.excluded,
        unit=counted.unit,
        reason="fewer than two groups have images enough" if math.isnan(observed[0]) else "",
        ends=ends_of(boot, 0),
    )


def predicted_label_weat(  # noqa: PLR0913 - one keyword for each choice
    labels: Any,
    groups: Any,
    vocabulary: Sequence[str],
    embeddings: Any,
    a: Any,
    b: Any,
    *,
    first: str | None = None,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    similarity: Similarity | None = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """WEAT of the labels that a model predicts most for images of each of two groups.

    X and Y are the more frequent half of the distinct labels predicted for each group: those at
    least as frequent as the label at that place. Labels in both are left out and counted.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Label predicted for each image.
    groups : array-like, shape (n,)
        One of two groups for each image.
    vocabulary : sequence of str, length v
        The labels that `embeddings` belong to.
    embeddings : array-like, shape (v, d)
        Embeddings of the labels by the text encoder.
    a, b : array-like, shape (n, d)
        Embeddings of the attribute words, by the same encoder.
    first : str, optional
        The group whose labels are X. Default: the first in order.
    alternative, ddof, similarity
        As in `weat`; "greater": labels of the first group go with a.
    units : array-like, shape (n,), optional
        Names of the units that repeat.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Effect size d. Ends: resampling spread over images; it can leave out d, since replicates
        choose labels anew. Chance and p: images exchange groups, and labels are chosen anew, as
        they were with the very images they test. `.by` has the score of each label of X and Y.

    Raises
    ------
    InputError
        When there are not two groups, a label is not in the vocabulary or has no embedding, lengths
        differ, or Exact is asked for.

    References
    ----------
    Mandal 2024, chapter 5.
    """
    _no_exact(resampling, "predicted_label_weat")
    if alternative not in HARM:
        raise InputError(f"alternative={alternative!r}: expected one of {[*HARM]}")
    sets = embed({"labels": embeddings}, {"a": a, "b": b}, similarity=similarity)
    if sets["labels"].given != len(vocabulary):
        raise InputError(
            f"embeddings: {sets['labels'].given} rows; expected {len(vocabulary)}, as vocabulary"
        )
    if len(sets["labels"]) < len(vocabulary):
        raise InputError("embeddings: a label's vector is zero or not finite; embed it again")
    counted = count_labels(labels, groups, units, vocabulary)
    if len(counted.groups) != 2:
        raise InputError(f"groups: {[*counted.groups.names]}; expected two groups")
    swapped = first is not None and counted.groups.names[1] == first
    if first is not None and first not in counted.groups.names:
        raise InputError(f"first={first!r}: expected one of {[*counted.groups.names]}")
    scores = associations(*(sets[name].vectors for name in ("labels", "a", "b")))
    scores = scores[counted.order]
    measure = Chosen(scores, ddof, -1.0 if swapped else 1.0)
    observed, boot, null = counted.draws(measure, resampling, rng)
    held = _held(null, float(observed[0]), resampling, HARM[alternative])
    x, y, both = (mask[0] for mask in measure.chosen(counted.table[None]))
    x, y = (y, x) if swapped else (x, y)
    excluded = dict(counted.excluded) | ({"labels of both groups": int(both.sum())})
    return make_estimate(
        metric="predicted_label_weat",
        value=float(observed[0]),
        n=sizes(counted.groups),
        method=spread(bootstrap_method(boot, resampling, f"{counted.unit}s"), CHOSEN_ANEW),
        params={"alternative": alternative, "ddof": ddof} | compared(similarity),
        **held.fields("no resampling was asked for, or there is no value"),
        harm=HARM[alternative],
        by=parts_to_table(_label_parts(counted, scores, (x, y))),
        excluded={why: count for why, count in excluded.items() if count},
        unit=counted.unit,
        reason="one group has no labels of its own, or all scores are equal"
        if math.isnan(observed[0])
        else "",
        ends=ends_of(boot, 0),
    )


def _no_exact(resampling: Resampling | None, name: str) -> None:
    if isinstance(resampling, Exact):
        raise InputError(f"resampling=Exact: not for {name}; use Permutation()")


def _held(null: Floats | None, value: float, resampling: Resampling | None, harm: Harm) -> Against:
    if null is None or resampling is None:
        return NOTHING
    text = f"{_NULL}; {len(null)} permutations"
    return against(null[:, 0], value, harm, text, resolution=resampling.resolution)


def _group_values(
    groups: Groups, observed: Floats, boot: Floats | None, start: int, level: float
) -> tuple[GroupValue, ...]:
    found = []
    for index, (name, levels, n) in enumerate(
        zip(groups.names, groups.levels, groups.counts.tolist(), strict=True)
    ):
        value = float(observed[start + index])
        ends = ends_of(boot, start + index)
        note = (
            "no images"
            if n == 0
            else "its labels are equally frequent"
            if math.isnan(value)
            else ""
        )
        found.append(GroupValue(name, levels, n, value, *ends(level), note))
    return tuple(found)


def _label_parts(counted: LabelCounts, scores: Floats, chosen: tuple[Masks, Masks]) -> list[Part]:
    """Association score of each label, with how often each group got it."""
    parts = []
    for side, mask in zip(("x", "y"), chosen, strict=True):
        for index in np.flatnonzero(mask):
            counts = counted.table[index]
            groups = tuple(
                GroupValue(name, levels, int(count), count, math.nan, math.nan)
                for name, levels, count in zip(
                    counted.groups.names, counted.groups.levels, counts.tolist(), strict=True
                )
            )
            parts.append(
                number(
                    "association_score",
                    float(scores[index]),
                    subject=counted.labels[index],
                    n=int(counts.sum()),
                    by_group=groups,
                    shows=f"images with the label, in {side}",
                )
            )
    return parts


register(
    MetricSpec(
        name="label_concentration",
        title="Label concentration",
        kinds=("associations", "answers"),
        unit="points",
        definition=(
            "Largest difference between groups in the share of images on the group's k most "
            "frequent labels."
        ),
        direction="Higher: fewer labels describe one group's images.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0, more so for small groups",
        interval="resampling spread over images or units, no confidence interval",
        null="images of all groups are exchangeable",
        parameters={"k": "10", "vocabulary": "labels predicted at least once, or a list"},
        reference="Mandal 2024, chapters 5 and 7",
    )
)
_shape = partial(
    MetricSpec,
    kinds=("associations", "answers"),
    range="any real number",
    harm=None,
    direction="Neither: the shape of the counts.",
    chance="none: descriptive",
    reference="Mandal 2024, chapters 5 and 7",
)
register(
    _shape(
        name="label_skewness",
        title="Skewness of label counts",
        symbol="g1",
        definition="Skewness of the counts of a group's labels.",
    )
)
register(
    _shape(
        name="label_kurtosis",
        title="Kurtosis of label counts",
        definition="Excess kurtosis of the counts of a group's labels.",
    )
)
register(
    MetricSpec(
        name="predicted_label_weat",
        title="WEAT of predicted labels",
        symbol="d",
        kinds=("associations",),
        range="about [-2, 2]",
        harm="either",
        definition=(
            "WEAT effect size of the labels predicted most often for each of two groups, in the "
            "text encoder's space, without labels of both groups."
        ),
        direction="Either: positive means labels of the first group go with a.",
        threshold=0.2,
        threshold_reason=COHEN,
        chance="near 0",
        interval="resampling spread over images or units, no confidence interval",
        null="images of both groups are exchangeable; labels are chosen anew",
        parameters={"alternative": "two-sided, greater or less", "ddof": "1 or 0"},
        reference="Mandal 2024, chapter 5",
    )
)
