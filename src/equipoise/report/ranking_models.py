"""The models of one run in order: the measure that ranks them, and the best against the worst."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from equipoise.core import Finding, Verdict
from equipoise.core.conclusion import Conclusion, Standing
from equipoise.core.finding import REAL
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.selecting import Selector, measure_of, place_in
from equipoise.report.words import compared_groups, pair_of, weight

Contrast = Callable[[Finding, Finding], Finding | None]
"""Compares the values of two models, paired; None where these can't be paired."""


def rank_models(
    findings: Sequence[Finding], leads: Sequence[Selector], contrast: Contrast
) -> Conclusion | None:
    """Rank the models of a run by the measure that leads.

    Parameters
    ----------
    findings : sequence of Finding
        All findings of a run, with verdicts.
    leads : sequence of Selector
        Metrics of the kind of audit, most important first.
    contrast : callable
        Compares the best model with the worst, paired by what they share.

    Returns
    -------
    Conclusion or None
        Its model is ""; `worse` names the worst model only where the paired interval excludes 0.
        Where no model is worse, two models may be worse for different groups: then the size is
        the distance of their differences, which have opposite signs. None for one model, and
        where no measure of all models can be paired.
    """
    for places in _shared_measures(findings, leads):
        ordered = sorted(places, key=lambda place: _badness(findings[place]))
        best, worst = findings[ordered[0]], findings[ordered[-1]]
        difference = contrast(best, worst)
        if difference is not None and not math.isnan(difference.ci_low):
            ranking = _conclude(findings, ordered, difference)
            return ranking if ranking.worse else _with_opposites(findings, ordered, ranking)
    return None


def is_ranking(conclusion: Conclusion) -> bool:
    """Whether a conclusion ranks the models of a run."""
    return bool(conclusion.standings) and not conclusion.model


def _shared_measures(findings: Sequence[Finding], leads: Sequence[Selector]) -> Iterator[list[int]]:
    """Yield the places of each number that all models have, the measure that leads first."""
    models = {finding.model for finding in findings if finding.model}
    if len(models) < 2:
        return
    by_measure: dict[Hashable, dict[str, int]] = defaultdict(dict)
    for place, finding in enumerate(findings):
        whole = not finding.subject and not finding.group and finding.leads
        if finding.model and whole and finding.tested and math.isfinite(finding.value):
            measure = (*measure_of(finding), finding.groups, finding.version, finding.within)
            by_measure[measure].setdefault(finding.model, place)
    shared = [[*places.values()] for places in by_measure.values() if len(places) == len(models)]
    yield from sorted(
        shared, key=lambda places: _place_of([findings[place] for place in places], leads)
    )


def _place_of(findings: Sequence[Finding], leads: Sequence[Selector]) -> tuple[float, ...]:
    """Return the rank of a measure among the measures of all models, the leading one first."""
    first = findings[0]
    return (
        min(map(_place_of_verdict, findings)),
        spec_of_finding(first).of_base_rates,
        first.groups.count("×"),
        place_in(leads, first),
        -max(map(weight, findings)),
    )


def _place_of_verdict(finding: Finding) -> int:
    """Return where a verdict stands among real ones, the strongest first; others are last."""
    return REAL.index(finding.verdict) if finding.verdict in REAL else len(REAL)


def _badness(finding: Finding) -> float:
    """Return a number that is larger for a worse value."""
    harm = spec_of_finding(finding).value_harm
    if harm == "either":
        return abs(finding.value)
    return -finding.value if harm == "lower" else finding.value


def _conclude(
    findings: Sequence[Finding], places: Sequence[int], difference: Finding
) -> Conclusion:
    worst, pair = findings[places[-1]], pair_of(difference)
    differs = difference.ci_low > 0 or difference.ci_high < 0
    verdict = difference.verdict
    if verdict in REAL and not differs:
        verdict = Verdict.INCONCLUSIVE
    named = verdict in REAL and pair is not None and pair.worse == worst.model
    low, high = difference.ci_low, difference.ci_high
    if difference.value < 0:
        low, high = -high, -low
    conclusion = Conclusion(
        model="", verdict=verdict, groups=worst.groups, metric=worst.metric,
        aggregate=worst.aggregate, compared_to=worst.compared_to, size=abs(difference.value),
        low=low, high=high, n=difference.n, finding=places[-1], restated_by=(*places[:-1],),
        standings=tuple(
            Standing(model=findings[place].model, value=findings[place].value)
            for place in places
        ),
    )  # fmt: skip
    return replace(conclusion, worse=worst.model) if named else conclusion


def _with_opposites(
    findings: Sequence[Finding], places: Sequence[int], ranking: Conclusion
) -> Conclusion:
    """Return a ranking that names the two models whose differences have opposite signs, if any.

    Two differences of opposite signs are as far apart as both sizes together.
    """
    real = [findings[place] for place in places if findings[place].verdict in REAL]
    opposites = [
        (first, second) for first, second in combinations(real, 2)
        if _sides(first) and _sides(first) == _sides(second)[::-1]
    ]  # fmt: skip
    if not opposites:
        return ranking
    pair = max(opposites, key=lambda item: sum(abs(finding.value) for finding in item))
    worse_groups = {finding.model: _sides(finding)[0] for finding in pair}
    standings = tuple(
        replace(standing, group=worse_groups.get(standing.model, ""))
        for standing in ranking.standings
    )
    both = all(finding.verdict is Verdict.DISPARITY for finding in pair)
    return replace(
        ranking,
        verdict=Verdict.DISPARITY if both else Verdict.DETECTED,
        size=sum(abs(finding.value) for finding in pair),
        low=sum(finding.ci_low for finding in pair),
        high=sum(finding.ci_high for finding in pair),
        standings=standings,
    )


def _sides(finding: Finding) -> tuple[str, ...]:
    """Return the groups that a difference is between, the worse one first; () without these."""
    groups = compared_groups(finding)
    return () if groups is None else (groups[0].group, groups[1].group)
