"""Stages in their order: what is kept, and what each took away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.counterfactuals.filters.candidates import Bools, Candidates
from equipoise.counterfactuals.filters.stages import Check, Floats, Stage, made_stage

ALL = "all"
BEST = "best"


@dataclass(frozen=True, eq=False)
class Filtered:
    """Candidates that went through filters, one after the other.

    Attributes
    ----------
    candidates : Candidates
    filters : tuple of Stage
        In their order, after the one that asks for complete sets.
    best : int, optional
        How many candidates are kept of a set: those most like their captions. All unless given.
    """

    candidates: Candidates
    filters: tuple[Stage, ...]
    best: int | None = None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage: whether there is an image of every caption, then the filters."""
        return (made_stage(self.candidates), *self.filters)

    @cached_property
    def entering(self) -> tuple[Bools, ...]:
        """Candidates that reach each stage, and last those that pass them all."""
        reach = [np.ones(len(self.candidates), dtype=bool)]
        for stage in self.stages:
            reach.append(reach[-1] & stage.passed)
        return tuple(reach)

    @cached_property
    def kept(self) -> Bools:
        """Candidates that are kept, shape (candidates,)."""
        passed = self.entering[-1]
        if self.best is None:
            return passed
        order = np.lexsort((np.arange(len(passed)), -self.likeness))
        sets = self.candidates.of_candidates("set").tolist()
        taken: dict[Any, int] = {}
        kept = np.zeros(len(passed), dtype=bool)
        for place in order[passed[order]].tolist():
            taken[sets[place]] = taken.get(sets[place], 0) + 1
            kept[place] = taken[sets[place]] <= self.best
        return kept

    @cached_property
    def likeness(self) -> Floats:
        """Mean cosine of each candidate's images with their captions; 0 without the filter."""
        for stage in self.filters:
            for check in stage.checks:
                if check.name == "caption similarity":
                    known = np.nan_to_num(check.value)
                    sums = np.bincount(
                        self.candidates.candidate, known, minlength=len(self.candidates)
                    )
                    return np.asarray(sums / self.candidates.sizes)
        return np.zeros(len(self.candidates))

    def rows(self, stage: int, check: Check) -> tuple[Bools, Floats]:
        """Return which rows a check of a stage was made of, and what each failed itself."""
        entering = self.entering[stage][self.candidates.candidate]
        known = entering & ~np.isnan(check.rejected)
        return known, check.rejected

    def summary(self) -> pa.Table:
        """Return what each stage took away, by the attributes that vary together and over all.

        Returns
        -------
        pyarrow.Table
            `attributes` ("all" over all), `stage`, `order`, `sets_before`, `sets_rejected`,
            `sets_after`, `images_before`, `images_rejected`, `images_after`: whole sets, and the
            images in them. Asked for: what is before the first stage. Kept: what is after the
            last.
        """
        return pa.Table.from_pylist([*self._summary()], _SUMMARY)

    def _summary(self) -> Iterator[Mapping[str, Any]]:
        candidates = self.candidates
        of_candidates = candidates.of_candidates("attributes")
        every = [*candidates.combinations, *([ALL] if len(candidates.combinations) > 1 else [])]
        masks: Sequence[Bools] = [*self.entering]
        names = [stage.name for stage in self.stages]
        if self.best is not None:
            masks, names = [*masks, self.kept], [*names, BEST]
        for one in every:
            some = np.ones(len(candidates), dtype=bool) if one == ALL else of_candidates == one
            for order, name in enumerate(names):
                before, after = masks[order] & some, masks[order + 1] & some
                sets = [int(before.sum()), int(after.sum())]
                images = [int(candidates.sizes[mask].sum()) for mask in (before, after)]
                yield {
                    "attributes": one,
                    "stage": name,
                    "order": order,
                    "sets_before": sets[0],
                    "sets_rejected": sets[0] - sets[1],
                    "sets_after": sets[1],
                    "images_before": images[0],
                    "images_rejected": images[0] - images[1],
                    "images_after": images[1],
                }


_SUMMARY = pa.schema(
    [("attributes", pa.string()), ("stage", pa.string())]
    + [
        (name, pa.int64())
        for name in (
            "order", "sets_before", "sets_rejected", "sets_after",
            "images_before", "images_rejected", "images_after",
        )
    ]
)  # fmt: skip
