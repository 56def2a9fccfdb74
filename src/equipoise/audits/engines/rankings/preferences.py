"""Preferences for groups, systematic and declared, and which findings lead beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from equipoise.audits.columns import numbers_of
from equipoise.audits.config import group_name
from equipoise.audits.engines.rankings.config import HypothesisConfig
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole
from equipoise.core import TESTED, DataError, Estimate, Family, Groups, Part, record
from equipoise.data import Items, load_items
from equipoise.metrics.values.subjects import alignment, favourite_gap, preferences
from equipoise.stats import Resampling

if TYPE_CHECKING:
    from equipoise.audits.engines.rankings.audit import ScoreDesign

Effects = Mapping[str, Mapping[str, float]]
"""A number of each group, by subject."""

_METRIC, _STRENGTH = "systematic_preference", "preference_strength"
HYPOTHESES = "model groups version hypothesis unit concept favourite #declared #preference"
"""Columns of the table of declared preferences."""
# Concepts that a rank correlation needs.
_MIN_RANKED = 3


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
                n: each for n, each in zip(names, numbers, strict=True) if not math.isnan(each)
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
                    f"{self.key}: {group!r}, declared for {concept!r}, is no group of "
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
    ) -> tuple[list[UncorrectedFinding], list[dict[str, Any]]]:
        """Return findings on the model's preferences, and a row of them for each concept.

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
        known = {name: value for name, value in preferred.items() if not math.isnan(value)}
        if not known:
            raise DataError(
                f"no concept of {self.key} has images of its group and of another",
                expected="concepts with several groups",
                fix="name other concepts, or add images",
            )
        findings = []
        if self.section.favours is not None:
            gap = favourite_gap(effects, self.favours, resampling=resampling, rng=seed)
            findings.append(_finding(gap, place, self.section.favours))
        numbers = {name: self.values[name] for name in known if name in self.values}
        ranked = self.section.statistic == "rank"
        if self.section.value is not None and len(numbers) >= (_MIN_RANKED if ranked else 1):
            aligned = alignment(
                known, numbers, statistic=self.section.statistic, resampling=resampling, rng=seed
            )
            findings.append(_finding(aligned, place, self.section.value))
        return findings, [
            {
                "hypothesis": self.section.value or self.section.favours,
                "concept": concept,
                "favourite": self.favours[concept],
                "declared": self.values.get(concept),
                "preference": value,
            }
            for concept, value in sorted(preferred.items())
        ]


def _finding(estimate: Estimate, place: Place, column: str) -> UncorrectedFinding:
    drafted = whole(estimate, place, Family.COMPOSITE)
    direction = ""
    if estimate.value and not math.isnan(estimate.value):
        verb = "follow" if estimate.value > 0 else "run against"
        direction = f"preferences {verb} the column “{column}”"
    return drafted.changed(subject=column, direction=direction)


def with_preferences(
    design: ScoreDesign,
    estimate: Estimate,
    others: Iterable[UncorrectedFinding],
    resampling: Resampling | None,
    *,
    effects: Iterable[Part] | None = None,
    unit: str = "share",
    gap: str = _METRIC,
) -> tuple[tuple[UncorrectedFinding, ...], list[dict[str, Any]]]:
    """Add declared and systematic preferences to other findings, and say which of all may lead.

    Parameters
    ----------
    design : ScoreDesign
    estimate : Estimate
        The systematic preference.
    others : iterable of UncorrectedFinding
    resampling : Resampling or None
    effects : iterable of Part, optional
        What declarations are compared with, by subject and group: what each subject prefers, unless
        given.
    unit : str
        Of the effects.
    gap : str
        Metric whose threshold the gap of declared groups has, unless it is set.

    Returns
    -------
    tuple of UncorrectedFinding, list of dict
        All findings, and a row for each hypothesis and subject.
    """
    config = design.config
    place = design.at()
    if effects is None:
        effects = (one for one in estimate.parts if one.metric == _STRENGTH and one.subject)
    known = {one.subject: {own.group: own.value for own in one.by_group} for one in effects}
    declared: list[UncorrectedFinding] = []
    rows: list[dict[str, Any]] = []
    for hypothesis in design.hypotheses if known else ():
        found, own = hypothesis.compare(known, place, resampling, config.resampling.seed)
        declared += found
        rows += [{**vars(place), "unit": unit, **row} for row in own]
    if config.testing.threshold("favourite_gap") is None:
        declared = [
            replace(one, parent=gap) if one.finding.metric == "favourite_gap" else one
            for one in declared
        ]
    systematic = _findings(estimate, place, known, unit)
    return (*_leading(design, declared, systematic, others),), rows


def _findings(
    estimate: Estimate, place: Place, effects: Effects, unit: str
) -> Iterator[UncorrectedFinding]:
    """Yield the largest preference, that of each group, and how strong single queries' are."""
    found = {(one.finding.metric, one.finding.subject): one for one in parts(estimate, place)}
    every = [one for (metric, _), one in found.items() if metric == _METRIC]
    strength = found[_STRENGTH, ""]
    shown = strength.finding
    by_query = (
        f"For single queries, shares are {100 * shown.value:.1f} points off on average "
        f"({100 * shown.chance:.1f} by chance), whichever group a query favours."
    )

    def beside(group: str) -> str:
        known = [one[group] for one in effects.values() if not math.isnan(one[group])]
        if unit == "share" or not known:
            return by_query
        mean = fmean(known)
        return (
            f"Its mean {unit} is {abs(mean):.3f} {'above' if mean > 0 else 'below'} the average of "
            f"the groups. {by_query}"
        )

    # Of two groups, one's preference is the other's, turned round: the one ranked last is tested.
    ranked = sorted(every, key=lambda one: one.finding.value)
    least = ranked[0].finding.subject if len(every) == 2 else ""
    fold = (_METRIC, least) if least else None
    first = whole(
        estimate, place, Family.COMPOSITE, by_group=every[0].finding.by_group if every else ()
    )
    ends = max(ranked, key=lambda one: abs(one.finding.value), default=None)
    if ends is not None:
        first = first.changed(direction=_direction(ends), beside=beside(ends.finding.subject))
    yield replace(first, fold=fold)
    for one in every:
        group = one.finding.subject
        changed = one.changed(group=group, direction=_direction(one), beside=beside(group))
        yield replace(changed, harm="either", fold=None if group == least else fold)
    yield strength.changed(family=Family.QUERY, leads=False, direction="")


def _direction(draft: UncorrectedFinding) -> str:
    finding = draft.finding
    side = "over" if finding.value > 0 else "under"
    return f"“{finding.subject}” is {side}-represented" if finding.value else ""


def _leading(
    design: ScoreDesign,
    declared: Sequence[UncorrectedFinding],
    systematic: Iterable[UncorrectedFinding],
    others: Iterable[UncorrectedFinding],
) -> Iterator[UncorrectedFinding]:
    """Yield findings: declared preferences lead where they are tested, else systematic ones.

    Where neither can be tested, as with a few queries, all others may lead.
    """
    threshold = design.config.testing.threshold
    # One favourite of all concepts tells nothing new, which its reason says.
    aligned = any(
        threshold(one.parent or one.finding.metric) is not None
        and not math.isnan(one.finding.p_value)
        and not one.finding.reason
        for one in declared
    )
    named = any(one.finding.metric == "favourite_gap" for one in declared)
    for one in declared:
        # A rank correlation has no scale: it stands beside the gap of declared groups.
        yield one.changed(leads=not (named and one.finding.metric == "alignment"))
    known = aligned
    for one in systematic:
        known = known or not math.isnan(one.finding.p_value)
        yield one.changed(leads=one.finding.leads and not aligned)
    for one in others:
        by_query = known and one.finding.family in TESTED
        yield one.changed(family=Family.QUERY, leads=False) if by_query else one
