"""One model's scores of images, held against one choice of groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_sections import group_name
from equipoise.core.groups import Groups

if TYPE_CHECKING:
    from equipoise.audits.retrieval.config import RankingAudit
    from equipoise.audits.retrieval.loading import RetrievalData, Scored
    from equipoise.audits.similarity.config import Config as SimilarityConfig

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Compared:
    """One model, and one choice of groups.

    Attributes
    ----------
    model : str
    attributes : tuple of str
        Whose intersections are compared.
    data : RetrievalData
    config : RankingAudit, or that of an audit of similarity
    """

    model: str
    attributes: tuple[str, ...]
    data: RetrievalData
    config: RankingAudit | SimilarityConfig

    @property
    def scored(self) -> Scored:
        """What the model says of images and queries."""
        return self.data.models[self.model]

    @property
    def name(self) -> str:
        """The groups as findings call them."""
        return group_name(self.attributes)

    @cached_property
    def groups(self) -> Groups:
        """The groups of the images that are compared."""
        found = {name: self.column(name) for name in self.attributes}
        return Groups.of(found, min_size=self.config.data.min_group_size)

    def column(self, name: str) -> Objects:
        """Return a column of the images that are compared."""
        return self.data.images.columns[name][self.scored.used]
