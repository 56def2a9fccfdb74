"""How often each answer is given, whatever the group: one answer to all, and expected shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import special

from equipoise.core import (
    Booleans,
    Chance,
    Estimate,
    Groups,
    InputError,
    Integers32,
    IntervalKind,
    Labels,
    NullHypothesis,
    Strings,
    encode,
    tally,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.groups import rows_of
from equipoise.core.labels import Encoded
from equipoise.metrics.labels.representation import representation_gap
from equipoise.metrics.labels.table import name_unit
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

_OTHERS = 0.05
# A model whose other answers are so much rarer than those of the labels hardly tells them apart.
_OF_LABELS = 0.2


@metric(
    MetricSpec(
        name="dominant_answer",
        title="Share of the most frequent answer",
        kinds=("answers", "predictions"),
        neutral=None,
        of_one_answer=True,
        definition=(
            "Share of the images with an answer that get the most frequent one. It is a finding "
            "where at most 5 % get another, or at most a fifth of the share of others among the "
            "labels."
        ),
        unit="share",
        threshold=0.0,
        threshold_reason="the null hypothesis is a model that hardly distinguishes images",
        direction="Higher: the model distinguishes fewer images, whatever groups they show.",
        reference="equipoise",
        chance="95 %, or more where labels are nearly all the same",
        interval="Wilson, over units if rows repeat",
        null="at least 5 % of the images get another answer",
        null_kind=NullHypothesis.SHARES,
        sentence="One answer{model} to nearly all images: {direction}.",
    )
)
def dominant_answer(
    answers: Labels, truth: Labels | None = None, *, units: Labels | None = None
) -> Estimate:
    """Share of the most frequent answer, tested against a model that tells images apart.

    Parameters
    ----------
    answers : array-like (n,)
        None and empty texts count as no answer.
    truth : array-like (n,), optional
        True answers, which may be nearly all the same themselves.
    units : array-like (n,), optional
        Units that repeat; a unit counts once, and for the answer if all its images get it.

    Returns
    -------
    Estimate
        `.params["answer"]` names the answer. Chance: 95 % of the images; where 3 % of the labels
        are others, 99.4 %, since a fifth of them would be few.

    Raises
    ------
    InputError
        When lengths differ.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.dominant_answer(["male"] * 100)
    <dominant_answer 1.000 [0.963, 1.000]; chance 0.950, p = 0.0059, n = 100>
    """
    codes, names = encode(answers, subject="answers")
    true_codes, true_names = _encoded(truth, len(codes), "truth")
    answered = codes >= 0
    owners = _encoded(units, len(codes), "units")[0][answered]
    n = tally(answered)
    if not n:
        return make_estimate(
            "dominant_answer", math.nan, {"rows": 0}, "none", reason="no image has an answer",
            no_chance="no image has an answer",
        )  # fmt: skip
    dominant = int(np.bincount(codes[answered]).argmax())
    same, others = codes == dominant, _OTHERS
    known = (true_codes >= 0) & answered
    if known.any():
        true_code = true_names.index(names[dominant]) if names[dominant] in true_names else -1
        others = min(others, _OF_LABELS * float((true_codes[known] != true_code).mean()))
    hits, size = _independent(same[answered], owners)
    chance = 1.0 - others
    return make_estimate(
        "dominant_answer",
        tally(same) / n,
        {"rows": n},
        "Wilson interval",
        params={"answer": names[dominant], "count": tally(same)},
        ends=ClosedForm(wilson, (float(hits), float(size))),
        chance=Chance(chance, chance, chance, "share of the null hypothesis"),
        p_value=float(special.bdtrc(hits - 1, size, chance)) if hits else 1.0,
        null_drawn="exact binomial test",
        unit=name_unit(units),
        interval_kind=IntervalKind.CONFIDENCE,
    )


def _encoded(column: Labels | None, n: int, name: str) -> tuple[Integers32, Strings]:
    """Return codes and names of a column; every code is -1 without one."""
    if column is None:
        return np.full(n, -1, dtype=np.int32), ()
    codes, names = encode(column, subject=name)
    if len(codes) != n:
        raise InputError(f"{name}: {len(codes)} rows; expected {n}, as in answers")
    return codes, tuple(names)


def _independent(same: Booleans, owners: Integers32) -> tuple[int, int]:
    """Return how many units have the answer for all their images, of how many.

    An image without a unit is one of its own.
    """
    alone = owners < 0
    n_owners = int(owners.max(initial=-1)) + 1
    present = np.bincount(owners[~alone], minlength=n_owners) > 0
    other = np.bincount(owners[~alone & ~same], minlength=n_owners) > 0
    hits = tally(same & alone) + tally(present & ~other)
    return hits, tally(alone) + tally(present)


@metric(
    MetricSpec(
        name="answer_level",
        title="Difference from expected answers",
        kinds=("answers",),
        definition=(
            "Largest absolute difference over expected answers between the share of the images "
            "that get the answer, among those with an expected answer, and its expected share."
        ),
        unit="points",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: answers depart more from the expected shares.",
        reference="equipoise; as `representation`, of answers in place of groups",
        chance="above 0",
        interval="Wilson, simultaneous over answers",
        null="answers are drawn from the expected shares",
        null_kind=NullHypothesis.REFERENCE,
        group_label="share of answers",
        clause=(
            "{model} answers “{group}” for {share} of the images ({n}), against {expected} "
            "expected."
        ),
        expectation="reference",
    )
)
def answer_level(
    answers: Labels,
    expected: Mapping[str, float],
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between shares of answers and those that were expected.

    Parameters
    ----------
    answers : array-like (n,)
    expected : mapping of str to float
        Expected share of each answer; shares are among the images with one of these answers.
    units, resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        That of `representation_gap`, of answers in place of groups.

    Raises
    ------
    InputError
        As `representation_gap`.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.answer_level(["yes"] * 60 + ["no"] * 40, {"yes": 0.5, "no": 0.5})
    <answer_level 0.100 [0.000, 0.202]; chance 0.042, p = 0.063, n = 100 in 2 groups>
    """
    codes, names = encode(answers, subject="answers")
    if units is not None:
        check_lengths({"answers": len(codes), "units": rows_of(units)})
    shares = Groups.of({"answer": Encoded(codes, names)})
    gap = representation_gap(shares, expected, units=units, resampling=resampling, rng=rng)
    return replace(gap, metric="answer_level")
