"""Shares of perceived classes, corrected for the errors of what perceived them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import Percentile
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.shares.classified import Classified, Said, identity, said_of
from equipoise.metrics.shares.confusion import Confusion
from equipoise.metrics.shares.drawn import (
    TRANSPORT,
    Shares,
    drawn_shares,
    held_by,
    mad,
    method_of,
)
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import wilson
from equipoise.stats.resampling import Exact, Resampling

Floats = npt.NDArray[np.float64]
Method = Literal["likelihood", "inverse"]


def corrected_shares(  # noqa: PLR0913 - one keyword for each choice
    predicted: Any,
    confusion: Confusion | Mapping[str, Mapping[str, int]] | None,
    *,
    classes: Sequence[str] | None = None,
    aside: Sequence[str] = (),
    units: Any = None,
    method: Method = "likelihood",
    max_condition: float = 20.0,
    min_labelled: int = 10,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
    name: str = "",
) -> Estimate:
    """Shares of true classes among images that a classifier with known errors named.

    The shares of what was said are the true shares times the rates at which images of each class
    are called each outcome. These rates come from labelled images; the true shares are those in
    the simplex under which what was said is likeliest. Where the plain inverse lies inside the
    simplex, it is these.

    Parameters
    ----------
    predicted : array-like of labels, shape (n,), or mapping of outcome to count
        What was said of the images; missing labels are left out, and counted.
    confusion : Confusion, mapping of true class to mapping of outcome to count, or None
        Labelled images, see `Confusion`. Outcomes that are no class, such as "unknown", are part
        of what is said. None: the classifier is taken at its word and nothing is corrected.
    classes : sequence of str, optional
        The order of the classes; those of the labelled images otherwise.
    aside : sequence of str
        True classes, such as "no person", that are no part of the shares: these are among the
        other images.
    units : array-like, shape (n,), optional
        Of images that are not independent, such as those of one seed.
    method : str
        "likelihood", or "inverse": the plain inverse, whose shares may lie outside [0, 1].
    max_condition : float
        Above this condition number of the rates, nothing is estimated.
    min_labelled : int
        Labelled images that every class needs.
    resampling : Bootstrap, Permutation, Exact or None
        None gives values alone.
    rng : int
        Seed.
    name : str
        Of the images, such as their prompt: sets of other names are drawn independently, the
        labelled images alike for all.

    Returns
    -------
    Estimate
        `share_mad`: sum over classes of |share - mean share|, in [0, 2 (k - 1) / k], higher is
        worse. Chance and p: what is found where true shares are equal. `.by` has "corrected_share"
        of every class (and "raw_share", as said). Intervals: shares drawn from Dirichlet
        distributions of what was said and of the labelled images, so both are uncertain. Not
        estimable, with the reason: a class has too few labelled images, or the condition number
        is too large.

    Raises
    ------
    InputError
        When labels and units differ in number, a count is no whole number, fewer than two classes
        are left, or Exact is asked for.

    Notes
    -----
    Supposes that errors on the labelled images are those on the images asked about (transport).
    Rates that differ, as for images of another style, bias the shares, and no interval says so.

    References
    ----------
    Rogan & Gladen 1978; Saerens, Latinne & Decaestecker 2002; Mandal 2024.
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: shares are drawn; use Bootstrap()")
    said = said_of(predicted, units)
    known = Confusion.of_counts(confusion) if isinstance(confusion, Mapping) else confusion
    order = _classes(said, known, classes, aside)
    if method not in get_args(Method):
        raise InputError(f"method: {method!r}; expected 'likelihood' or 'inverse'")
    arranged = identity(order) if known is None else _arranged(known, order, aside)
    table = _classified(said, arranged, order, known is None, method == "likelihood", name)
    reason = _reason(table, order, aside, max_condition, min_labelled, known is None)
    found = drawn_shares(table, resampling, rng, reason)
    return _estimate(found, said, reason, method, aside, max_condition)


def _classes(
    said: Said, known: Confusion | None, given: Sequence[str] | None, aside: Sequence[str]
) -> tuple[str, ...]:
    every = (*said.counts,) if known is None else known.classes
    order = tuple(one for one in (every if given is None else given) if one not in aside)
    if len(order) < 2 or len({*order}) < len(order):
        raise InputError(f"classes: {[*order]}; expected at least two, each once")
    return order


def _arranged(base: Confusion, order: Sequence[str], aside: Sequence[str]) -> Confusion:
    """Return the counts with the classes in the order asked for, and those aside after them."""
    names = [*order, *(one for one in aside if one in base.classes)]
    rows = np.zeros((len(names), len(base.outcomes)), dtype=np.int64)
    for row, name in enumerate(names):
        if name in base.classes:
            rows[row] = base.counts[base.classes.index(name)]
    further = [
        one
        for column, one in enumerate(base.outcomes)
        if one not in names and rows[:, column].any()
    ]
    return Confusion(tuple(names), base.outcomes, rows).over((*names, *further))


def _classified(
    said: Said, arranged: Confusion, order: Sequence[str], exact: bool, constrained: bool, name: str
) -> Classified:
    counts = np.array([said.counts.get(one, 0) for one in arranged.outcomes], dtype=np.float64)
    every = sum(said.counts.values())
    effective = said.effective * counts.sum() / every if every else 0.0
    return Classified(tuple(order), counts, effective, arranged, exact, constrained, name)


def _reason(
    table: Classified,
    order: Sequence[str],
    aside: Sequence[str],
    max_condition: float,
    min_labelled: int,
    exact: bool,
) -> str:
    """Return why there are no shares, "" where there are."""
    if not table.said.sum():
        return "no image was named"
    if exact:
        named = table.said[: len(order)].sum()
        return "" if named else "no image was named one of the classes"
    confusion = table.confusion
    few = [
        f"{one}: {count}"
        for one, count in zip(confusion.classes, confusion.labelled.tolist(), strict=True)
        if count < min_labelled
    ]
    if few:
        return f"fewer than {min_labelled} labelled images ({', '.join(few)})"
    if not confusion.condition <= max_condition:
        return (
            f"the condition number of the confusion matrix is {confusion.condition:.3g}, above "
            f"{max_condition:g}: what is said hardly depends on what is shown"
        )
    lost = [one for one in aside if one not in confusion.classes and one in confusion.outcomes]
    return (
        ""
        if table.of_classes(table.found()[None])[0].sum() > 0
        else (f"no image is left beside {', '.join(lost or aside)}")
    )


def _estimate(
    found: Shares, said: Said, reason: str, method: Method, aside: Sequence[str], limit: float
) -> Estimate:
    table, resampling = found.classified, found.resampling
    value = float(mad(found.observed[None])[0])
    chance, p, null = None, None, ""
    if found.null is not None and resampling is not None and not math.isnan(value):
        drawn = mad(found.null)
        finest = 0.0 if isinstance(resampling, Exact) else resampling.resolution
        tested = p_value(drawn, value, "higher", resolution=finest)
        text = f"true shares are equal; {len(drawn)} draws of images and labelled images"
        chance, p, null = band(drawn, method=text), tested.value, held_by(text, tested)
    used = int(table.said.sum())
    return make_estimate(
        metric="share_mad",
        value=value,
        n={"images": used},
        method=method_of(found),
        params=_params(table, said, method, aside, limit),
        chance=chance,
        no_chance="" if chance else reason or "no resampling was asked for",
        p_value=p,
        null=null,
        by=lambda: parts_to_table([*_parts(found, reason)]),
        excluded=_left_out(said, table),
        unit="unit" if said.units is not None else "image",
        reason=reason,
        ends=found,
    )


def _params(
    table: Classified, said: Said, method: Method, aside: Sequence[str], limit: float
) -> dict[str, Any]:
    about: dict[str, Any] = {"corrected": not table.exact, "aside": [*aside]}
    if not table.exact:
        about |= {
            "solved_by": method,
            "labelled_images": int(table.confusion.labelled.sum()),
            "condition_number": round(table.confusion.condition, 6),
            "max_condition": limit,
            "transport": TRANSPORT,
        }
    if said.units is not None:
        about |= {"units": said.units, "effective_images": round(table.effective, 3)}
    return about


def _left_out(said: Said, table: Classified) -> dict[str, int]:
    found = {"nothing was said": said.left_out} if said.left_out else {}
    for outcome, count in said.counts.items():
        if outcome not in table.confusion.outcomes and count:
            why = "no class" if table.exact else "of no labelled image"
            found[f"said {outcome}: {why}"] = count
    return found


def _parts(found: Shares, reason: str) -> list[Part]:
    table, level = found.classified, 0.95
    if found.resampling is not None:
        level = found.resampling.level
    used = int(table.said.sum())
    parts = []
    for index, name in enumerate(table.classes):
        low, high = no_ends(level)
        if found.boot is not None:
            low, high = Percentile(found.boot[:, index])(level)
        value = float(found.observed[index])
        raw = _raw(table, index, level)
        share = GroupValue(name, (name,), used, value, low, high)
        parts.append(
            Part(
                "corrected_share", name, value, low, high, n=used, by_group=(share,), reason=reason
            )
        )
        parts.append(Part("raw_share", name, *raw, n=used))
    return parts


def _raw(table: Classified, index: int, level: float) -> tuple[float, float, float]:
    """Return the share of images that were called a class among those called any, with its ends."""
    named = table.said[: len(table.classes)]
    total = float(named.sum())
    if not total:
        return math.nan, math.nan, math.nan
    weight = table.effective / table.said.sum()
    low, high = wilson(named[index] * weight, total * weight, level)
    return float(named[index] / total), float(low), float(high)


_DRAWN = "percentiles of shares drawn from Dirichlet distributions"
_OUTSIDE = "true shares are the outside shares"
_share = partial(
    MetricSpec,
    kinds=("text_to_image",),
    unit="share",
    reference="Mandal 2024, chapters 6 and 8; Rogan & Gladen 1978; Saerens et al. 2002",
    interval=_DRAWN,
)
register(
    _share(
        name="share_mad",
        title="Inequality of shares",
        symbol="MAD",
        range="[0, 2 (k - 1) / k] for k classes",
        unit="points",
        definition=(
            "Sum over classes of |share − mean share|, of shares corrected for the classifier's "
            "errors. Summary: the mean over prompts."
        ),
        threshold=0.1,
        threshold_reason="5 points up for one class and 5 points down for another",
        direction="Higher: images show one class more often than others.",
        chance="above 0, more so for few images and a poor classifier",
        null="true shares are equal",
        parameters={
            "solved_by": "likelihood (in the simplex) or inverse",
            "max_condition": "largest condition number of the confusion matrix: 20",
        },
    )
)
register(
    _share(
        name="share_gap",
        title="Difference from outside shares",
        unit="points",
        definition=(
            "Largest absolute difference over classes between corrected shares and outside shares, "
            "such as labour statistics, taken as exact."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: images depart more from the outside shares.",
        chance="above 0",
        interval="drawn shares, simultaneous over classes",
        null=_OUTSIDE,
    )
)
register(
    _share(
        name="corrected_share",
        title="Corrected share",
        harm="either",
        definition=(
            "Most likely share of a true class among images, from the classifier's labels and its "
            "errors on labelled images."
        ),
        direction="Either: a share is no disparity.",
        chance="none: see share_mad and share_gap",
    )
)
register(
    _share(
        name="raw_share",
        title="Predicted share",
        harm="either",
        definition=(
            "Share of images that the classifier assigns to a class, among those it assigns to "
            "any; not corrected."
        ),
        direction="Either: a share is no disparity.",
        chance="none: see share_mad and share_gap",
        interval="Wilson, with as many images as are independent",
    )
)
register(
    _share(
        name="share_difference",
        title="Difference of one share",
        range="[-1, 1]",
        unit="points",
        harm="either",
        definition="Corrected share of a class minus its outside share.",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Either: positive means images show the class more often than outside.",
        chance="0",
        null=_OUTSIDE,
    )
)
