"""The audit of counterfactual sets: rankings by subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from equipoise.audits.kind import audit_kind
from equipoise.audits.notes import Note
from equipoise.audits.rankings.counterfactuals.config import Config
from equipoise.audits.rankings.designs import RankingDesign
from equipoise.audits.rankings.measuring import Rankings
from equipoise.audits.rankings.scores import RankingData
from equipoise.core.types import Json

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models


def count_sets(design: RankingDesign) -> dict[str, int]:
    """Count the sets of compared images.

    Returns
    -------
    dict of str to int
        `subjects`, `sets`, `incomplete` (sets that lack a combination that others have) and
        `repeated` (sets with several images of one combination). Images without an attribute,
        subject or set are in none.
    """
    data = design.config.data
    columns = str(data.subject), str(data.sets)
    images = design.complete(*columns)
    # Sets of one name and different subjects are different sets.
    sets = images.group_by(pl.all()).len("n").group_by(columns).agg(pl.len(), pl.max("n"))
    return {
        "subjects": images[columns[0]].n_unique(),
        "sets": len(sets),
        "incomplete": int((sets["len"] < images[""].n_unique()).sum()),
        "repeated": int((sets["n"] > 1).sum()),
    }


@audit_kind("counterfactuals")
class Counterfactuals(Rankings[Config]):
    """Audits of counterfactual sets."""

    def load(self, config: Config, models: Models) -> RankingData:
        """Read the images and scores, and count the sets."""
        data = super().load(config, models)
        names = [str(config.data.subject), str(config.data.sets)]
        # Sets of one name and different subjects are different sets.
        columns = pl.DataFrame({name: data.images.columns[name].tolist() for name in names})
        return replace(data, counts={**data.counts, "sets": len(columns.drop_nulls().unique())})

    def details(
        self,
        config: Config,
        data: RankingData,
        designs: Sequence[RankingDesign],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Add subjects and sets of each choice of groups, and sets that lack a combination."""
        sets: list[Json] = [
            {"groups": design.name, **count_sets(design)} for design in _by_groups(designs)
        ]
        return {**super().details(config, data, designs, tests), "sets": sets}

    def notes(
        self, config: Config, data: RankingData, designs: Sequence[RankingDesign]
    ) -> Iterable[Note | str]:
        """Add the notes on sets that lack images."""
        yield from super().notes(config, data, designs)
        for design in _by_groups(designs):
            sets = count_sets(design)
            if sets["incomplete"] or sets["repeated"]:
                yield Note(
                    design.name,
                    f"of {sets['sets']} sets, {sets['incomplete']} lack an image of "
                    f"some combination and {sets['repeated']} have several of one. They "
                    "are ranked, too.",
                )


def _by_groups(designs: Sequence[RankingDesign]) -> list[RankingDesign]:
    """Return the designs of the first model that hold no attribute fixed."""
    first = designs[0].model
    return [design for design in designs if not design.within and design.model == first]
