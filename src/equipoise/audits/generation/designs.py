"""What is measured: stage × check × groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_sections import group_name
from equipoise.core.groups import Groups

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData
    from equipoise.counterfactuals.filters import Check, Stage

# Sets of captions from which on they stand for others that might have been asked for.
FEWEST_SETS = 10

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Design:
    """One check of one stage, held against one choice of groups.

    Attributes
    ----------
    place : int
        Of the stage.
    stage : Stage
    check : Check
    attributes : tuple of str
    data : GenerationData
    config : Config
    """

    place: int
    stage: Stage
    check: Check
    attributes: tuple[str, ...]
    data: GenerationData
    config: Config

    @property
    def name(self) -> str:
        """The groups as findings call them."""
        return group_name(self.attributes)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Images that were checked, of sets that came as far, in which the attributes vary."""
        filtered = self.data.filtered
        known, _ = filtered.rows(self.place, self.check)
        for name in self.attributes:
            known = known & np.array(
                [bool(one) for one in filtered.candidates.columns[name]], dtype=bool
            )
        return np.flatnonzero(known)

    @cached_property
    def groups(self) -> Groups:
        """The groups of these images."""
        columns = self.data.filtered.candidates.columns
        found = {name: columns[name][self.rows] for name in self.attributes}
        return Groups.of(found, min_size=self.config.min_group_size)

    @property
    def strata(self) -> Objects:
        """The attributes that vary together, by image."""
        return self.data.filtered.candidates.columns["attributes"][self.rows]

    @property
    def sets(self) -> Objects:
        """The candidate of each image."""
        candidates = self.data.filtered.candidates
        names = np.array(candidates.names, dtype=object)
        return names[candidates.candidate[self.rows]]

    @property
    def clusters(self) -> Objects:
        """What is resampled together: all candidates of a set of captions, where these are many."""
        if self.by_caption_set:
            return self.data.filtered.candidates.columns["set"][self.rows]
        return self.sets

    @cached_property
    def by_caption_set(self) -> bool:
        """Whether there are sets of captions enough to resample them."""
        columns = self.data.filtered.candidates.columns
        return len({*columns["set"][self.rows].tolist()}) >= FEWEST_SETS


def designs(config: Config, data: GenerationData) -> Iterator[Design]:
    """Yield every check with every choice of groups, where anything reached it."""
    for place, stage in enumerate(data.filtered.stages):
        for check in stage.checks:
            for attributes in config.compared:
                design = Design(place, stage, check, attributes, data, config)
                if len(design.rows) and len(design.groups) > 1:
                    yield design
