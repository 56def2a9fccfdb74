"""One model's scores of images, held against one choice of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_sections import group_name
from equipoise.audits.group_sizes import lacking
from equipoise.core.errors import DataError
from equipoise.core.groups import Groups

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit
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

    @property
    def lacking(self) -> dict[str, int]:
        """Images in no group, by the attributes that they lack."""
        return lacking({name: self.codes(name) for name in self.attributes})

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """Return the codes of a column of the images that are compared; -1 where missing."""
        return self.data.images.coded[name].codes[self.scored.used]

    def column(self, name: str) -> Objects:
        """Return a column of the images that are compared."""
        return self.data.images.columns[name][self.scored.used]

    def exchanges(self, within: Sequence[str] = ()) -> bool:
        """Whether some set of a subject, and of the attributes held fixed, holds several groups.

        Parameters
        ----------
        within : sequence of str
            Attributes that are held fixed.
        """
        about = self.config.data
        if about.sets is None:
            return True
        columns = [about.sets, *within, *([about.subject] if about.subject else [])]
        codes = [self.codes(name) for name in columns]
        kept = np.all([self.groups.codes >= 0, *(one >= 0 for one in codes)], axis=0)
        place = np.zeros(int(kept.sum()), dtype=np.int64)
        for one in codes:
            _, place = np.unique(
                place * (int(one.max(initial=0)) + 1) + one[kept], return_inverse=True
            )
        pairs = np.unique(place * len(self.groups) + self.groups.codes[kept])
        return bool((np.diff(pairs // len(self.groups)) == 0).any())


def check_sets(design: Compared, *, file: str) -> None:
    """Refuse sets in none of which images of two groups stand.

    Raises
    ------
    DataError
        With the column.
    """
    if not design.exchanges():
        raise DataError(
            f"no set holds images of two groups of {design.name}",
            file=file,
            column=design.config.data.sets,
            expected="sets of images that differ in their groups only",
            fix="give the counterfactuals of one another the same value, name another column, or "
            "leave data.sets out",
        )
