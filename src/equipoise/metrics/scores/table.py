"""Rows with a score: counts of outcomes by score, in steps that draws are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Labels,
    encode,
    integers,
    record,
)
from equipoise.core.arguments import check_lengths, real_numbers
from equipoise.core.labels import Cell, Encoded
from equipoise.core.types import Facts
from equipoise.metrics.labels import Counts, Null, count, fill_labels

NO_SCORE, NO_OUTCOME = "rows without a score", "rows without an outcome"
_STEPS, _BANDS = 2048, 10


@record
class ScoredRows:
    """Rows with an outcome of 0 or 1, a score, a group and a unit.

    Attributes
    ----------
    outcomes : ndarray of int, shape (n,)
    scores : ndarray of float64, shape (n,)
    groups : Groups
    units : Encoded or None
    excluded : mapping of str to int
        Rows that were left out, by reason.
    """

    outcomes: Integers
    scores: Floats
    groups: Groups
    units: Encoded | None
    excluded: Facts

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: GroupLabels | None,
        units: Labels | None,
        positive: Cell = "",
    ) -> ScoredRows:
        """Check outcomes and scores, and leave out rows without one.

        Raises
        ------
        InputError
            When lengths differ, an outcome is not 0 or 1 and no class is `positive`, that isn't
            a class, a score is infinite, or nothing is left.
        """
        truth, scores = _outcomes(y_true, positive), real_numbers(y_score, "y_score")
        check_lengths({"y_true": len(truth), "y_score": len(scores)})
        if np.isinf(scores).any():
            raise InputError(
                f"y_score, row {int(np.isinf(scores).argmax())}: infinite; expected finite "
                "scores, or NaN for none"
            )
        wrong = ~np.isnan(truth) & (truth != 0) & (truth != 1)
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"y_true, row {row}: {truth[row]:g}; expected 0, 1, or NaN for none. "
                "To do: write 0 and 1, or give positive="
            )
        row_groups = Groups.of(fill_labels(groups, len(truth)))
        owners = None if units is None else Encoded(*encode(units, subject="units"))
        unit_codes = None if owners is None else owners.codes
        for subject, codes in (("groups", row_groups.codes), ("units", unit_codes)):
            if codes is not None and len(codes) != len(truth):
                raise InputError(
                    f"{subject}: {len(codes)} labels for {len(truth)} rows; expected one each"
                )
        no_outcome, no_score = np.isnan(truth), np.isnan(scores)
        rows = np.flatnonzero(~no_outcome & ~no_score)
        if not len(rows):
            raise InputError("no row has an outcome and a score; expected at least one")
        return cls(
            integers(truth[rows]),
            scores[rows],
            row_groups.take(rows),
            None if owners is None else Encoded(owners.codes[rows], owners.vocabulary),
            {NO_OUTCOME: int(no_outcome.sum()), NO_SCORE: int((no_score & ~no_outcome).sum())},
        )

    @property
    def prevalence(self) -> float:
        """The share of outcomes that are 1."""
        return float(self.outcomes.mean())

    def take(self, rows: Integers) -> ScoredRows:
        """Return some rows."""
        units = None if self.units is None else replace(self.units, codes=self.units.codes[rows])
        return replace(
            self, outcomes=self.outcomes[rows], scores=self.scores[rows],
            groups=self.groups.take(rows), units=units,
        )  # fmt: skip


def _outcomes(y_true: ArrayLike, positive: Cell) -> Floats:
    """Return outcomes as numbers: of labels 1 for the positive class, NaN for none."""
    if positive == "":
        try:
            return real_numbers(y_true, "y_true")
        except InputError as error:
            raise InputError(f"{error}. To do: write 0 and 1, or give positive=") from None
    codes, classes = encode(y_true, subject="y_true")
    if str(positive) not in classes:
        raise InputError(f"positive={positive!r}: expected a class, one of {', '.join(classes)}")
    return np.where(codes < 0, np.nan, codes == classes.index(str(positive)))


@record
class ScoreCounts(Counts):
    """Counts of outcomes and scores by group.

    Attributes
    ----------
    scores : ndarray of float64, shape (outcomes,)
        Score of each entry of the table.
    bands : ndarray of int, shape (outcomes,)
        Band of alike scores that each entry is in.
    """

    scores: Floats = ()  # type: ignore[assignment]
    bands: Integers = ()  # type: ignore[assignment]

    def strata(self, null: Null) -> Integers:
        """Stratum of each entry: of a prediction the band of its score."""
        return self.bands if null == "prediction" else super().strata(null)

    @property
    def outcomes(self) -> Integers:
        """Outcome of each entry, 0 or 1."""
        return integers(np.array([int(name) for name in self.classes])[self.truth])

    @classmethod
    def of(cls, rows: ScoredRows, steps: int | None = _STEPS) -> ScoreCounts:
        """Count rows; of more distinct scores than `steps`, neighbours share their mean."""
        distinct, place, n = np.unique(rows.scores, return_inverse=True, return_counts=True)
        middle = np.cumsum(n) - n / 2.0
        if steps is not None and len(distinct) > steps:
            step = integers(np.floor(middle / n.sum() * steps))
            place = step[place]
            totals = np.bincount(place, minlength=steps)
            sums = np.bincount(place, rows.scores, minlength=steps)
            distinct = sums / np.maximum(totals, 1)
            middle = np.cumsum(totals) - totals / 2.0
        counts = count(rows.outcomes, integers(place), rows.groups, units=rows.units)
        step_of = integers(np.array([int(name) for name in counts.classes])[counts.prediction])
        bands = integers(np.floor(middle[step_of] / len(rows.scores) * _BANDS))
        return cls(**vars(counts), scores=distinct[step_of], bands=bands)
