"""Subjects that an encoder cannot tell apart: by their texts, and by their images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import number
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.quality.labels import Units, share_ends, share_method
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.vectors.sets import embedding_table
from equipoise.stats.resampling import Resampling, level_of

Floats = npt.NDArray[np.float64]

THRESHOLD, MARGIN = 0.95, 0.1
"""From which cosine two subjects' texts are one to the encoder; and how far above chance its
zero-shot accuracy has to be for a subject to be told from the others."""

_NO_CHANCE = "none: it is a property of the encoder's texts"


def confusable_subjects(
    texts: Any, names: Sequence[str] | None = None, *, threshold: float = THRESHOLD
) -> Estimate:
    """Share of subjects whose neutral text lies as close to another's as `threshold`.

    Parameters
    ----------
    texts : array-like, shape (m, d)
        Vector of each subject's neutral text.
    names : sequence of str, optional
        Of the subjects; their numbers unless given.
    threshold : float
        Cosine from which two subjects cannot be told apart.

    Returns
    -------
    Estimate
        In [0, 1], higher: more subjects whose rankings are of one text. Descriptive. `.by` has
        "subject_cosine" of each such pair, largest first, and `params["subjects"]` their names.

    Raises
    ------
    InputError
        When texts are no finite numbers or zeros, names do not fit, or the threshold is no cosine.
    """
    if not -1.0 < threshold <= 1.0:
        raise InputError(f"threshold={threshold}: expected a cosine above −1, at most 1")
    unit, called = _units(texts, "texts"), _names(names, texts)
    cosines = np.einsum("id,jd->ij", unit, unit)
    # Equal texts are confusable at a threshold of 1, whatever rounding does.
    first, second = np.nonzero(np.triu(cosines >= threshold - 1e-12, 1))
    order = np.argsort(-cosines[first, second], kind="stable")
    parts = [
        Part("subject_cosine", f"{called[a]} | {called[b]}", float(cosines[a, b]), n=2)
        for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
    ]
    found = sorted({*first.tolist(), *second.tolist()})
    return make_estimate(
        metric="confusable_subjects",
        value=len(found) / len(unit),
        n={"subjects": len(unit)},
        method="none: every subject is looked at",
        params={"threshold": threshold, "subjects": [called[place] for place in found]},
        no_chance=_NO_CHANCE,
        by=parts_to_table(parts),
        unit="subject",
    )


def subject_accuracy(
    images: Any,
    texts: Any,
    subjects: Any,
    *,
    names: Sequence[str],
    margin: float = MARGIN,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Share of images whose own subject's neutral text is the closest of all subjects'.

    Parameters
    ----------
    images : array-like, shape (n, d)
    texts : array-like, shape (m, d)
        Vector of each subject's neutral text.
    subjects : array-like of str, shape (n,)
        What each image shows; those without one, or without a text, are left out and counted.
    names : sequence of str, length m
        Subjects of the texts.
    margin : float
        A subject is told from the others where its accuracy's interval lies above 1 / m + margin.
    units : array-like, shape (n,), optional
        What is resampled together, such as the counterfactual set.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], lower: subjects are told apart less. Descriptive; chance is 1 / m. `.by` has
        every subject, with what its other images are taken for most in `shows`;
        `params["not_told_apart"]` names those not shown to lie above 1 / m + margin.

    Raises
    ------
    InputError
        When vectors are no finite numbers or zeros, lengths or dimensions differ, or no image has
        a subject with a text.
    """
    unit, asked = _units(images, "images"), _units(texts, "texts")
    if unit.shape[1] != asked.shape[1]:
        raise InputError(f"images of {unit.shape[1]} numbers and texts of {asked.shape[1]}")
    called = _names(names, texts)
    codes, given = encode(subjects, what="subjects")
    if len(codes) != len(unit):
        raise InputError(f"subjects: {len(codes)} images; expected {len(unit)}")
    place = {name: index for index, name in enumerate(called)}
    own = np.array([place.get(name, -1) for name in given] + [-1], dtype=np.int64)[codes]
    kept = own >= 0
    if not kept.any():
        raise InputError("subjects: no image has a subject with a text")
    closest = (unit @ asked.T).argmax(axis=1)
    hits, owner = closest == own, Units.of(units, len(unit))
    parts = [
        _accuracy(called, closest, hits, own == index, index, owner, resampling, rng)
        for index in range(len(called))
        if (own == index).any()
    ]
    chance = 1.0 / len(called)
    ends = share_ends(hits, kept, owner, resampling, rng) or no_ends
    return make_estimate(
        metric="subject_accuracy",
        value=float(hits[kept].mean()),
        n={"images": int(kept.sum())},
        method=share_method(owner, resampling) if resampling is not None else NO_INTERVAL,
        params={
            "chance": chance,
            "margin": margin,
            "not_told_apart": [
                one.subject
                for one in parts
                if not (one.value if math.isnan(one.low) else one.low) > chance + margin
            ],
        },
        no_chance=f"none by groups: an encoder that guesses has {chance:.3g}",
        by=parts_to_table(parts),
        excluded={"images without a subject's text": int((~kept).sum())} if not kept.all() else {},
        unit=owner.name,
        ends=ends,
    )


def _accuracy(
    names: Sequence[str],
    closest: npt.NDArray[np.int64],
    hits: npt.NDArray[np.bool_],
    mine: npt.NDArray[np.bool_],
    index: int,
    units: Units,
    resampling: Resampling | None,
    rng: int,
) -> Part:
    ends = share_ends(hits, mine, units, resampling, rng) or no_ends
    others = np.bincount(closest[mine & ~hits], minlength=len(names))
    taken = f"taken for {names[int(others.argmax())]} most" if others.any() else ""
    value, n = float(hits[mine].mean()), int(mine.sum())
    level = level_of(resampling)
    return number(
        "subject_accuracy", value, subject=names[index], ends=ends, level=level, n=n, shows=taken
    )


def _units(given: Any, what: str) -> Floats:
    rows = np.asarray(embedding_table(given, what), dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad) or not len(rows):
        where = f"row {bad[0] + 1} is zero or not finite" if len(bad) else "no row"
        raise InputError(f"{what}: {where}; expected vectors with a direction")
    return np.asarray(rows / lengths[:, None])


def _names(names: Sequence[str] | None, texts: Any) -> list[str]:
    many = len(texts)
    found = [str(place) for place in range(many)] if names is None else [str(one) for one in names]
    if len(found) != many or len({*found}) < many:
        raise InputError(f"names: {len(found)}; expected {many} different ones, one for each text")
    return found


_subject = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    unit="share",
    reference="Howard et al. 2024, SocialCounterfactuals (subjects' neutral texts)",
    chance="none: a property of the encoder's texts",
)
register(
    _subject(
        name="confusable_subjects",
        title="Confusable subjects",
        definition=(
            "Share of subjects whose neutral text lies as close to another subject's as a "
            "threshold of the cosine."
        ),
        direction="Higher: the encoder confuses more subjects.",
        interval="none: every subject is counted",
        parameters={"threshold": "cosine: 0.95"},
    )
)
register(
    _subject(
        name="subject_cosine",
        title="Cosine of two subjects' texts",
        range="[threshold, 1]",
        unit="number",
        definition=(
            "Cosine of the neutral texts of two subjects, of pairs at or above the threshold."
        ),
        direction="Higher: the encoder distinguishes the two less.",
        interval="none: every pair is counted",
    )
)
register(
    _subject(
        name="subject_accuracy",
        title="Accuracy of subjects",
        harm="lower",
        definition=(
            "Share of images whose own subject's neutral text is the closest of all subjects' "
            "texts."
        ),
        direction="Lower: rankings for one subject are rankings for others.",
        chance="none by groups: 1 over the number of subjects for guesses",
        interval="Wilson, or wider over resampled units",
        parameters={"margin": "required distance above 1 over the number of subjects: 0.1"},
    )
)
