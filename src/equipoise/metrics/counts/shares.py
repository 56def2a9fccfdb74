"""Shares of perceived classes, corrected for the errors of the classifier that perceived them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np

from equipoise.core.arrays import Floats, Integers
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, Harm, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, against, ends_of, number
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.intervals import wilson
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.streams import stream

Method = Literal["likelihood", "inverse"]

# What is added to each count of an outcome before shares are drawn (Jeffreys), so that what was not
# said is rare and not impossible; to the rates of a class one image in all (Perks), for there a
# half a cell would make a classifier that never erred on 30 images err often.
_SAID = 0.5
_STEPS, _STILL = 2000, 1e-9
# Below this singular value a drawn matrix counts as having no inverse.
_SINGULAR = 1e-9
TRANSPORT = "errors on the labelled images are taken to be those on the images that are asked about"
"""What every correction by labelled images supposes."""
MOST_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of what was said of images of each class.

    Attributes
    ----------
    classes : tuple of str
        True classes.
    outcomes : tuple of str
        What may be said: the classes, and further ones such as "unknown".
    counts : ndarray of int, shape (classes, outcomes)
    """

    classes: tuple[str, ...]
    outcomes: tuple[str, ...]
    counts: Integers

    @classmethod
    def of_labels(
        cls, true: Any, said: Any, *, outcomes: Sequence[str] = ()
    ) -> tuple[Confusion, int]:
        """Count labelled images.

        Parameters
        ----------
        true, said : array-like, shape (n,)
            The true class, and what was said; missing ones are left out.
        outcomes : sequence of str
            Outcomes to have a column, whether they occur or not.

        Returns
        -------
        tuple of Confusion and int
            And how many images were left out because either is missing.

        Raises
        ------
        InputError
            When the lengths differ, or no image has both.
        """
        rows, classes = encode(true, what="true labels")
        columns, found = encode(said, what="predicted labels")
        if len(rows) != len(columns):
            raise InputError(
                f"true labels: {len(rows)}; predicted: {len(columns)}; expected as many"
            )
        names = tuple(dict.fromkeys([*outcomes, *classes, *found]))
        place = np.array([names.index(one) for one in found], dtype=np.int64)
        known = (rows >= 0) & (columns >= 0)
        if not known.any():
            raise InputError(f"true labels: none of {len(rows)} images has one and a predicted one")
        cells = rows[known].astype(np.int64) * len(names) + place[columns[known]]
        counts = np.bincount(cells, minlength=len(classes) * len(names))
        return cls(classes, names, counts.reshape(len(classes), -1)), int((~known).sum())

    @classmethod
    def of_counts(cls, counts: Mapping[str, Mapping[str, int]]) -> Confusion:
        """Take counts by true class and outcome; what is not named is 0.

        Raises
        ------
        InputError
            When a count is negative or no whole number, or there is none.
        """
        classes = tuple(counts)
        outcomes = tuple(dict.fromkeys([*classes, *(o for row in counts.values() for o in row)]))
        cells = [
            [_whole_number(row.get(outcome, 0), f"{name} as {outcome}") for outcome in outcomes]
            for name, row in counts.items()
        ]
        if not np.any(cells):
            raise InputError("confusion: no labelled image; expected counts by true class")
        return cls(classes, outcomes, np.array(cells, dtype=np.int64))

    @property
    def labelled(self) -> Integers:
        """Labelled images of each class."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def rates(self) -> Floats:
        """Share of each outcome among the images of each class; NaN of a class without images."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / self.labelled[:, None])

    @cached_property
    def condition(self) -> float:
        """Largest over smallest singular value of the rates: how far errors are blown up."""
        if not np.isfinite(self.rates).all():
            return math.inf
        sizes = np.linalg.svd(self.rates, compute_uv=False)
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 1e-12 * sizes[0] else math.inf

    @property
    def accuracy(self) -> Floats:
        """Share of the images of each class that are named right."""
        places = [self.outcomes.index(one) for one in self.classes]
        return np.asarray(self.rates[np.arange(len(self.classes)), places])

    def over(self, classes: Sequence[str], outcomes: Sequence[str]) -> Confusion:
        """Return the counts of exactly these classes and outcomes, in their order."""
        known = {
            (name, outcome): count
            for name, row in zip(self.classes, self.counts.tolist(), strict=True)
            for outcome, count in zip(self.outcomes, row, strict=True)
        }
        cells = [[known.get((name, outcome), 0) for outcome in outcomes] for name in classes]
        return Confusion(tuple(classes), tuple(outcomes), np.array(cells, dtype=np.int64))


def _whole_number(count: object, what: str) -> int:
    number = float(count) if isinstance(count, int | float | np.number) else math.nan
    if not number >= 0 or number != int(number):
        raise InputError(f"{what}: {count!r}; expected a whole number of images, at least 0")
    return int(number)


@dataclass(frozen=True, eq=False)
class PredictedCounts:
    """How often each outcome was predicted for the images whose shares are estimated.

    Attributes
    ----------
    counts : mapping of str to int
    effective : float
        Independent images that tell as much: fewer where images share units.
    left_out : int
        Images without an outcome.
    units : int or None
        Units, where images repeat within them.
    """

    counts: Mapping[str, int]
    effective: float
    left_out: int = 0
    units: int | None = None


def _predicted(predicted: Any, units: Any) -> PredictedCounts:
    """Count outcomes, passed as counts or one by one."""
    if isinstance(predicted, Mapping):
        if units is not None:
            raise InputError("units: counts have none; give what was said of each image")
        counts = {str(name): _whole_number(count, str(name)) for name, count in predicted.items()}
        return PredictedCounts(counts, float(sum(counts.values())))
    codes, names = encode(predicted, what="predicted labels")
    known = codes >= 0
    counts = dict(zip(names, np.bincount(codes[known], minlength=len(names)).tolist(), strict=True))
    left_out, n = int((~known).sum()), int(known.sum())
    if units is None or not n:
        return PredictedCounts(counts, float(n), left_out)
    of, unit_names = encode(units, what="units")
    if len(of) != len(codes):
        raise InputError(f"units: {len(of)}; expected {len(codes)}, one for each image")
    # An image without a unit is one of its own.
    own = np.where(of < 0, len(unit_names) + np.arange(len(of)), of)[known]
    place = np.unique(own, return_inverse=True)[1]
    many = int(place.max()) + 1
    return PredictedCounts(counts, _effective(codes[known], place, many), left_out, many)


def _effective(codes: Any, unit: Any, many: int) -> float:
    """Return n over the design effect: how much more shares vary between units than images."""
    n, classes = len(codes), int(codes.max()) + 1
    if many in (1, n):
        return float(many)
    table = np.bincount(unit * classes + codes, minlength=many * classes).reshape(many, classes)
    shares = table.sum(axis=0) / n
    simple = float((shares * (1.0 - shares)).sum()) / n
    apart = table - shares * table.sum(axis=1, keepdims=True)
    clustered = float((apart**2).sum()) * many / (many - 1) / n**2
    return n / max(clustered / simple, 1.0) if simple > 0 else float(many)


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of classes with their draws; the ends of their MAD.

    Attributes
    ----------
    classes : tuple of str
        Whose shares are estimated.
    said : ndarray, shape (outcomes,)
        Counts, in the order of the outcomes of `confusion`.
    effective : float
        Independent images.
    confusion : Confusion
    exact : bool
        Whether what is said is taken for true: nothing is corrected.
    constrained : bool
        Whether shares are those of largest likelihood in the simplex, or the plain inverse.
    name : str
        Key of the draws of these images; those of the labelled ones are the same for all.
    resampling : Resampling or None
    seed : int
    reason : str
        Why shares cannot be estimated.
    """

    classes: tuple[str, ...]
    said: Floats
    effective: float
    confusion: Confusion
    exact: bool
    constrained: bool
    name: str
    resampling: Resampling | None
    seed: int
    reason: str = ""

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends of the MAD."""
        return no_ends(level) if self.boot is None else ends_of(mad(self.boot))(level)

    @cached_property
    def _kept(self) -> Integers:
        """Places of the classes among those of the confusion counts."""
        return np.array([self.confusion.classes.index(one) for one in self.classes])

    @cached_property
    def _every(self) -> Floats:
        """Shares of all true classes, shape (classes of the confusion,)."""
        share = self.said / self.said.sum()
        return np.asarray(self._solved(share[None], self.confusion.rates[None])[0])

    @cached_property
    def observed(self) -> Floats:
        """Shares among the classes, shape (classes,)."""
        if self.reason:
            return np.full(len(self.classes), math.nan)
        return np.asarray(self._of_classes(self._every[None])[0])

    @cached_property
    def boot(self) -> Floats | None:
        """Shares as likely as those observed, given both sets of images: (draws, classes)."""
        if self.reason or not isinstance(self.resampling, Bootstrap):
            return None
        draws, counts = self.resampling.replicates, self.confusion.counts
        weight = self.effective / self.said.sum()
        rng = stream(self.seed, "shares", "counts", self.name)
        said = rng.standard_gamma(self.said * weight + _SAID, (draws, len(self.said)))
        if self.exact:
            rates = self.confusion.rates[None]
        else:
            rng = stream(self.seed, "shares", "confusion")
            likely = counts + 1.0 / counts.shape[1]
            rates = _normalised(rng.standard_gamma(likely, (draws, *counts.shape)))
        return self._of_classes(self._solved(_normalised(said), rates))

    @cached_property
    def null(self) -> Floats | None:
        """Shares found where true ones are equal: (draws, classes)."""
        if self.reason or self.resampling is None:
            return None
        return self.under(np.full_like(self.observed, 1.0 / len(self.observed)))

    def under(self, target: Floats) -> Floats:
        """Return shares found where the true ones are `target`: (draws, classes).

        Images and labelled images are both drawn anew, as many as there were. Classes aside keep
        their estimated share.
        """
        confusion = self.confusion
        draws = null_draws(self.resampling or DEFAULT, MOST_DRAWS)
        if len(self.classes) < len(confusion.classes):
            every = _normalised(np.clip(self._every, 0.0, None))
            every[self._kept] = target * every[self._kept].sum()
            target = every
        # What was never seen is rare and not impossible.
        rates = confusion.rates
        if not self.exact:
            rates = _normalised(confusion.counts + 1.0 / confusion.counts.shape[1])
        n = max(1, round(self.effective))
        rng = stream(self.seed, "shares", "null", self.name)
        share = rng.multinomial(n, _whole(target @ rates), size=draws) / n
        if self.exact:
            return self._of_classes(self._solved(share, rates[None]))
        labelled = stream(self.seed, "shares", "null", "confusion")
        again = np.empty((draws, *rates.shape))
        for row, (count, rate) in enumerate(zip(confusion.labelled.tolist(), rates, strict=True)):
            again[:, row] = labelled.multinomial(count, _whole(rate), size=draws) / count
        return self._of_classes(self._solved(share, again))

    def _of_classes(self, shares: Floats) -> Floats:
        some = shares[:, self._kept]
        total = some.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(total > 0, some / total, np.nan))

    def _solved(self, share: Floats, rates: Floats) -> Floats:
        if self.exact:
            return share[:, : len(self.confusion.classes)]
        return likeliest(share, rates) if self.constrained else inverted(share, rates)

    @property
    def method(self) -> str:
        """How intervals were made, and what they suppose."""
        if self.resampling is None:
            return NO_INTERVAL
        if self.boot is None:
            return "none: use Bootstrap()"
        how = f"{len(self.boot)} draws from Dirichlet distributions of what was said"
        if self.exact:
            return f"{how}; not corrected for the errors of the classifier"
        return f"{how} and of the labelled images; {TRANSPORT}"

    def against(
        self, null: Floats | None, value: float, what: str, harm: Harm = "higher"
    ) -> Against:
        """Hold a number against draws of it where true shares are `what`."""
        if null is None:
            return NOTHING
        text = f"true shares are {what}; {len(null)} draws of images and labelled images"
        held = against(null, value, harm, text, resolution=resolution_of(self.resampling))
        return replace(held, null=held.null.replace("; permutation", ""))


def _normalised(values: Floats) -> Floats:
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _whole(shares: Floats) -> Floats:
    """Return shares that sum to 1 in floating point, as multinomial draws want."""
    clipped = np.clip(shares, 0.0, 1.0)
    return np.asarray(clipped / math.fsum(clipped.tolist()))


def inverted(said: Floats, rates: Floats) -> Floats:
    """Return shares that reproduce the shares of outcomes, which may lie outside [0, 1].

    Least squares where there are more outcomes than classes.

    Parameters
    ----------
    said : ndarray, shape (r, outcomes)
        Shares of outcomes.
    rates : ndarray, shape (r, classes, outcomes)

    Returns
    -------
    ndarray, shape (r, classes)
        They sum to 1 where there are as many outcomes as classes.
    """
    back = np.linalg.pinv(rates.transpose(0, 2, 1), rcond=_SINGULAR)
    return np.asarray(np.einsum("rkj,rj->rk", back, said))


def likeliest(said: Floats, rates: Floats) -> Floats:
    """Return the shares in the simplex under which the outcomes are likeliest.

    Where the plain inverse lies inside the simplex, it is these; elsewhere expectation
    maximisation leads to the point of the border, see `inverted` for the parameters.
    """
    plain = inverted(said, rates)
    if rates.shape[1] == rates.shape[2]:
        inside = (plain >= 0.0).all(axis=1) & (np.abs(plain.sum(axis=1) - 1.0) < 1e-9)
    else:
        inside = np.zeros(len(plain), dtype=bool)
    found = plain.copy()
    outside = np.flatnonzero(~inside)
    if len(outside):
        start = np.clip(plain[outside], 0.0, 1.0) + 0.1 / plain.shape[1]
        start /= start.sum(axis=1, keepdims=True)
        found[outside] = _maximised(start, said[outside], rates[outside])
    return found


def _maximised(start: Floats, said: Floats, rates: Floats) -> Floats:
    """Return where expectation maximisation leads, each row until it stands still.

    Steps are squared (Varadhan & Roland 2008), for on the border plain ones hardly move.
    """
    found, moving = start.copy(), np.arange(len(start))
    for _ in range(_STEPS):
        here, asked, given = found[moving], said[moving], rates[moving]
        first = _step(here, asked, given)
        second = _step(first, asked, given)
        away, turn = first - here, second - 2.0 * first + here
        turned = np.sqrt((turn**2).sum(axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            far = np.where(turned > 0, np.sqrt((away**2).sum(axis=1)) / turned, 1.0)[:, None]
        leap = np.clip(here + 2.0 * far * away + far**2 * turn, 1e-12, None)
        leap = _step(leap / leap.sum(axis=1, keepdims=True), asked, given)
        worse = _fit(leap, asked, given) < _fit(second, asked, given)
        leap[worse] = second[worse]
        found[moving] = leap
        moving = moving[np.abs(leap - here).max(axis=1) > _STILL]
        if not len(moving):
            break
    found[found < 1e-7] = 0.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _step(shares: Floats, said: Floats, rates: Floats) -> Floats:
    expected = np.einsum("rk,rkj->rj", shares, rates)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(said > 0, said / np.maximum(expected, 1e-300), 0.0)
    moved = shares * np.einsum("rkj,rj->rk", rates, ratio)
    total = moved.sum(axis=1, keepdims=True)
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), shares)


def _fit(shares: Floats, said: Floats, rates: Floats) -> Floats:
    expected = np.maximum(np.einsum("rk,rkj->rj", shares, rates), 1e-300)
    return np.asarray((said * np.log(expected)).sum(axis=1))


def mad(shares: Floats) -> Floats:
    """Return the sum over classes of |share - mean share|, shape (r,)."""
    return np.asarray(np.abs(shares - shares.mean(axis=1, keepdims=True)).sum(axis=1))


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
    resampling : Bootstrap, Permutation or None
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
        When labels and units differ in number, a count is no whole number, or fewer than two
        classes are left.

    Notes
    -----
    Supposes that errors on the labelled images are those on the images asked about (transport).
    Rates that differ, as for images of another style, bias the shares, and no interval says so.

    References
    ----------
    Rogan & Gladen 1978; Saerens, Latinne & Decaestecker 2002; Mandal 2024.
    """
    said = _predicted(predicted, units)
    known = Confusion.of_counts(confusion) if isinstance(confusion, Mapping) else confusion
    every = (*said.counts,) if known is None else known.classes
    order = tuple(one for one in (every if classes is None else classes) if one not in aside)
    if len(order) < 2 or len({*order}) < len(order):
        raise InputError(f"classes: {[*order]}; expected at least two, each once")
    if method not in get_args(Method):
        raise InputError(f"method: {method!r}; expected 'likelihood' or 'inverse'")
    if known is None:
        arranged = Confusion(order, order, np.eye(len(order), dtype=np.int64))
    else:
        arranged = _arranged(known, order, aside)
    counts = np.array([said.counts.get(one, 0) for one in arranged.outcomes], dtype=np.float64)
    total = sum(said.counts.values())
    effective = said.effective * counts.sum() / total if total else 0.0
    constrained = method == "likelihood"
    shares = Shares(
        order, counts, effective, arranged, known is None, constrained, name, resampling, rng
    )
    reason = _reason(shares, aside, max_condition, min_labelled)
    shares = replace(shares, reason=reason)
    value = float(mad(shares.observed[None])[0])
    held = shares.against(None if shares.null is None else mad(shares.null), value, "equal")
    return make_estimate(
        "share_mad",
        value,
        {"images": int(counts.sum())},
        shares.method,
        params=_params(shares, said, method, aside, max_condition),
        **held.fields(reason or "no resampling was asked for"),
        by=lambda: parts_to_table(_parts(shares)),
        excluded=_left_out(said, shares),
        unit="unit" if said.units is not None else "image",
        reason=reason,
        ends=shares,
    )


def _arranged(base: Confusion, order: Sequence[str], aside: Sequence[str]) -> Confusion:
    """Return the counts with the classes in that order, and the excluded ones after them."""
    names = [*order, *(one for one in aside if one in base.classes)]
    rows = base.over(names, base.outcomes)
    occurs = zip(rows.outcomes, rows.counts.sum(axis=0).tolist(), strict=True)
    return rows.over(names, [*names, *(one for one, some in occurs if some and one not in names)])


def _reason(shares: Shares, aside: Sequence[str], max_condition: float, min_labelled: int) -> str:
    """Return why there are no shares, "" where there are."""
    confusion = shares.confusion
    if not shares.said.sum():
        return "no image was named"
    if shares.exact:
        return ""
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
    return "" if shares.observed.sum() > 0 else f"no image is left beside {', '.join(aside)}"


def _params(
    table: Shares, said: PredictedCounts, method: Method, aside: Sequence[str], limit: float
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


def _left_out(said: PredictedCounts, table: Shares) -> dict[str, int]:
    found = {"nothing was said": said.left_out} if said.left_out else {}
    for outcome, count in said.counts.items():
        if outcome not in table.confusion.outcomes and count:
            why = "no class" if table.exact else "of no labelled image"
            found[f"said {outcome}: {why}"] = count
    return found


def _parts(found: Shares) -> Iterator[Part]:
    level, used = level_of(found.resampling), int(found.said.sum())
    named = found.said[: len(found.classes)]
    weight = found.effective / found.said.sum() if used else math.nan
    for index, name in enumerate(found.classes):
        low, high = ends_of(found.boot, index)(level)
        value = float(found.observed[index])
        share = (GroupValue(name, (name,), used, value, low, high),)
        yield Part(
            "corrected_share", name, value, low, high, n=used, by_group=share, reason=found.reason
        )
        # Of the images that were assigned to any class.
        raw = (math.nan, math.nan, math.nan)
        if total := float(named.sum()):
            ends = wilson(named[index] * weight, total * weight, level)
            raw = (float(named[index] / total), float(ends[0]), float(ends[1]))
        yield Part("raw_share", name, *raw, n=used)


def mean_share_mad(estimates: Mapping[str, Estimate]) -> Estimate:
    """Mean over sets of images of how unequal their shares are.

    Parameters
    ----------
    estimates : mapping of name to Estimate
        What `corrected_shares` returned with that name and one seed: their draws share the
        labelled images. Those that are not estimable are left out, and counted.

    Returns
    -------
    Estimate
        `share_mad`, at least 0, higher is worse. Chance and p: true shares are equal in every
        set.

    Raises
    ------
    InputError
        When an estimate is another, draws were made otherwise, or none can be estimated.
    """
    known = {name: one for name, one in estimates.items() if one.estimable}
    found = [one.ends for one in known.values() if isinstance(one.ends, Shares)]
    if not found or len(found) < len(known):
        raise InputError("estimates: expected what corrected_shares returned, at least one of them")
    first = found[0]
    if any((one.resampling, one.seed) != (first.resampling, first.seed) for one in found):
        raise InputError("estimates: drawn with other seeds or numbers of draws; use the same")
    value = float(np.mean([one.value for one in known.values()]))
    boots = [mad(one.boot) for one in found if one.boot is not None]
    nulls = [mad(one.null) for one in found if one.null is not None]
    boot, null = (np.mean(some, axis=0) if some else None for some in (boots, nulls))
    held = first.against(null, value, "equal in every set")
    lost = len(estimates) - len(known)
    return make_estimate(
        metric="share_mad",
        value=value,
        n={name: one.n["images"] for name, one in known.items()},
        method=first.method,
        params={"sets": len(known), "corrected": not first.exact},
        **held.fields("no resampling was asked for"),
        excluded={"not estimable": lost} if lost else {},
        unit=next(iter(known.values())).unit,
        ends=ends_of(boot),
    )


@dataclass(frozen=True, eq=False)
class LargestGap:
    """Ends of the largest difference: those of every class together, at a shared level."""

    drawn: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends."""
        each = 1.0 - (1.0 - level) / self.drawn.shape[1]
        ends = [ends_of(column)(each) for column in self.drawn.T]
        low = max(max(a, -b, 0.0) for a, b in ends)
        high = max(max(abs(a), abs(b)) for a, b in ends)
        return low, high


def share_gap(
    shares: Estimate, outside: Mapping[str, float] | Literal["uniform"] = "uniform"
) -> Estimate:
    """Largest difference between the shares of classes and shares from outside.

    Parameters
    ----------
    shares : Estimate
        What `corrected_shares` returned, with its draws.
    outside : mapping of class to number, or "uniform"
        Shares or counts to hold them against, such as labour statistics; taken as known without
        error, and divided by their sum over the classes.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous over classes. Chance and p: what is
        found where true shares are those from outside. `.by` has the signed "share_difference" of
        every class, with its own interval and two-sided p.

    Raises
    ------
    InputError
        When the estimate is another, a class has no number from outside, or numbers are negative,
        not finite or all 0.
    """
    found = shares.ends
    if not isinstance(found, Shares):
        raise InputError(f"shares: {shares.metric} is not what corrected_shares returned")
    classes = found.classes
    target = _target(classes, outside)
    apart = found.observed - target
    value = float(np.abs(apart).max())
    null = None if found.null is None else found.under(target) - target
    what = "equal" if isinstance(outside, str) else "those from outside"
    held = found.against(None if null is None else np.abs(null).max(axis=1), value, what)
    drawn = None if found.boot is None else found.boot - target
    used, level, parts = int(found.said.sum()), level_of(found.resampling), []
    for index, name in enumerate(classes):
        ends = ends_of(drawn, index)
        low, high = (float(end + target[index]) for end in ends(level))
        difference, of_class = float(apart[index]), None if null is None else null[:, index]
        part = number(
            "share_difference",
            difference,
            subject=name,
            ends=ends,
            level=level,
            held=found.against(of_class, difference, what, "either"),
            n=used,
            by_group=(GroupValue(name, (name,), used, float(found.observed[index]), low, high),),
            reason=shares.reason,
            shows="share",
        )
        parts.append(part)
    return make_estimate(
        "share_gap",
        value,
        shares.n,
        found.method.replace("draws", "draws, simultaneous over classes,", 1),
        params={
            **shares.params,
            "outside": dict(zip(classes, [round(one, 12) for one in target.tolist()], strict=True)),
        },
        **held.fields(shares.reason or "no resampling was asked for"),
        by=parts_to_table(parts),
        excluded=shares.excluded,
        unit=shares.unit,
        reason=shares.reason,
        ends=no_ends if drawn is None else LargestGap(drawn),
    )


def _target(classes: tuple[str, ...], outside: Mapping[str, float] | str) -> Floats:
    if isinstance(outside, str):
        if outside != "uniform":
            raise InputError(f"outside: {outside!r}; expected 'uniform' or a number for each class")
        return np.full(len(classes), 1.0 / len(classes))
    numbers = np.array([float(outside.get(one, math.nan)) for one in classes])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        raise InputError(
            f"outside: {numbers.tolist()}; expected a share or count of each class, at least 0 and "
            "not all 0"
        )
    return np.asarray(numbers / numbers.sum())


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
