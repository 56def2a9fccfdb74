"""Preferences that a table declares, compared with those of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.audits.columns import numbers_of
from equipoise.audits.config import group_name
from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.audits.rankings.config import HypothesisConfig
from equipoise.core import DataError, Estimate, Family, Groups, record
from equipoise.core.columns import NUMBER, TEXT
from equipoise.core.sentences import Sentence
from equipoise.data import Items, load_items
from equipoise.metrics.rankings.subjects import alignment, favourite_gap, preferences
from equipoise.stats import Resampling

Effects = Mapping[str, Mapping[str, float]]
"""A number of each group, by subject."""

HYPOTHESES = {
    "model": TEXT,
    "groups": TEXT,
    "version": TEXT,
    "hypothesis": TEXT,
    "unit": TEXT,
    "concept": TEXT,
    "favourite": TEXT,
    "declared": NUMBER,
    "preference": NUMBER,
}
"""Columns of the table of declared preferences."""
# Concepts that a rank correlation needs.
_MIN_RANKED = 3
_LEADS = "groups that the column “{}” declares lead", "groups that the column “{}” declares trail"
_FOLLOWS = "preferences follow the column “{}”", "preferences run against the column “{}”"


@record
class Compared:
    """Preferences of a model, compared with declared ones.

    Attributes
    ----------
    gap : UncorrectedFinding, optional
        How much declared groups are preferred, in the unit of the effects.
    alignment : UncorrectedFinding, optional
        How preferences follow declared numbers, where there are enough of these.
    rows : list of mapping
        The preference for each concept.
    """

    gap: UncorrectedFinding | None
    alignment: UncorrectedFinding | None
    rows: list[dict[str, Any]]

    @property
    def findings(self) -> list[UncorrectedFinding]:
        """The findings that there are."""
        return [draft for draft in (self.gap, self.alignment) if draft is not None]


@record
class Hypothesis:
    """A table of declared preferences.

    Attributes
    ----------
    key : str
        Of the config, such as "hypotheses[0]".
    section : HypothesisConfig
    items : Items
        The table, a row for each concept.
    favours : mapping of str to str
        Concept to the declared group.
    values : mapping of str to float
        Concept to the declared number.
    """

    key: str
    section: HypothesisConfig
    items: Items
    favours: Mapping[str, str]
    values: Mapping[str, float]

    @classmethod
    def read(
        cls, key: str, section: HypothesisConfig, base: Path, concepts: set[str]
    ) -> Hypothesis:
        """Read the table.

        Raises
        ------
        DataError
            When it names none of the concepts, or has a value that is no number.
        """
        items = load_items(section.source(base), subject=key)
        names = [str(name) for name in items.ids.tolist()]
        if not concepts & {*names}:
            raise DataError(
                f"none of the {len(names)} concepts is compared, such as {names[0]!r}",
                file=items.name,
                column=section.concept,
                expected=f"names such as {min(concepts)!r}",
                fix="name concepts as the queries' subject, or the queries, are named",
            )
        values, favours = dict[str, float](), dict[str, str]()
        if section.value is not None:
            numbers = numbers_of(items, section.value).tolist()
            values = {
                n: number
                for n, number in zip(names, numbers, strict=True)
                if not math.isnan(number)
            }
        if section.favours is not None:
            cells = items.columns[section.favours].tolist()
            favours = {
                n: str(cell) for n, cell in zip(names, cells, strict=True) if cell is not None
            }
        if section.first is not None:
            favours = dict.fromkeys(values, section.first)
        return cls(key, section, items, favours, values)

    def applies(self, groups: Groups) -> bool:
        """Return whether the hypothesis is about a choice of groups."""
        return self.section.groups is None or group_name(self.section.groups) == groups.name

    def among(self, groups: Groups) -> Hypothesis:
        """Return the hypothesis with declared groups by their display names."""
        favours = {name: groups.display_name(group) for name, group in self.favours.items()}
        return replace(self, favours=favours)

    def check(self, groups: Groups) -> None:
        """Refuse declared groups that don't exist.

        Raises
        ------
        DataError
            With the concept and the group.
        """
        for concept, group in self.favours.items():
            if group not in groups.names:
                raise DataError(
                    f"{self.key}: {group!r}, declared for {concept!r}, isn't a group of "
                    f"{groups.name}",
                    expected=", ".join(groups.names),
                    fix="name the groups as findings do",
                )

    def compare(
        self,
        effects: Effects,
        place: Place,
        resampling: Resampling | None,
        seed: int,
    ) -> Compared:
        """Compare the model's preferences with the declared ones.

        Parameters
        ----------
        effects : mapping of concept to mapping of group to float
        place : Place
        resampling : Resampling or None
        seed : int

        Raises
        ------
        DataError
            When none of the concepts has images of its group and of another.
        """
        preferred = preferences(effects, self.favours)
        estimable = {name: value for name, value in preferred.items() if not math.isnan(value)}
        if not estimable:
            raise DataError(
                f"no concept of {self.key} has images of its group and of another",
                expected="concepts with several groups",
                fix="name other concepts, or add images",
            )
        gap = aligned = None
        if self.section.favours is not None:
            estimate = favourite_gap(effects, self.favours, resampling=resampling, rng=seed)
            gap = _finding(estimate, place, self.section.favours, _LEADS)
        numbers = {name: self.values[name] for name in estimable if name in self.values}
        ranked = self.section.statistic == "rank"
        if self.section.value is not None and len(numbers) >= (_MIN_RANKED if ranked else 1):
            estimate = alignment(
                estimable,
                numbers,
                statistic=self.section.statistic,
                resampling=resampling,
                rng=seed,
            )
            aligned = _finding(estimate, place, self.section.value, _FOLLOWS)
        rows = [
            {
                "hypothesis": self.section.value or self.section.favours,
                "concept": concept,
                "favourite": self.favours[concept],
                "declared": self.values.get(concept),
                "preference": value,
            }
            for concept, value in sorted(preferred.items())
        ]
        return Compared(gap, aligned, rows)


def _finding(
    estimate: Estimate, place: Place, column: str, directions: tuple[str, str]
) -> UncorrectedFinding:
    """Return a finding with its direction, the first of two for a value above 0."""
    drafted = whole(estimate, place, Family.COMPOSITE)
    direction = Sentence()
    if estimate.value and not math.isnan(estimate.value):
        template = directions[0] if estimate.value > 0 else directions[1]
        direction = Sentence(template.format(column))
    return drafted.changed(subject=column, direction=direction)
