"""Conclusions from findings: what restates one fact is one conclusion, and the weightiest leads."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from equipoise.core import AuditResult, Family, Finding, GroupValue, Verdict
from equipoise.core.conclusion import Cause, Conclusion
from equipoise.core.finding import REAL
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.selecting import Selector, measure_of, place_in
from equipoise.report.words import contrast, names_groups, ranked, weight

_ALPHA = 0.05


@dataclass(frozen=True)
class Cluster:
    """Findings that restate one fact.

    Attributes
    ----------
    lead : int
        Place of the finding that states it.
    members : tuple of int
        Places of all of them.
    cause : Cause or None
        What explains them, where that was counted.
    """

    lead: int
    members: tuple[int, ...]
    cause: Cause | None = None


def conclusions_of(
    findings: Sequence[Finding], leads: Sequence[Selector] = (), causes: Sequence[Cause] = ()
) -> tuple[Conclusion, ...]:
    """Merge findings that restate one fact, and rank what they say.

    Parameters
    ----------
    findings : sequence of Finding
        All findings of a run, with verdicts.
    leads : sequence of Selector
        Metrics of the kind of audit, most important first.
    causes : sequence of Cause
        Cells that were shown to explain disparities.

    Returns
    -------
    tuple of Conclusion
        By model in the order of the findings; of each model what was found first, the weightiest
        first, then a conclusion for each set of groups without a difference.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, finding in enumerate(findings):
        places[finding.model].append(place)
    conclusions = list[Conclusion]()
    for model, model_places in places.items():
        model_causes = [cause for cause in causes if cause.model == model]
        clusters = _clusters(findings, model_places, leads, model_causes)
        conclusions += [_conclusion(findings, cluster) for cluster in clusters]
        named = {findings[place].groups for cluster in clusters for place in cluster.members}
        conclusions += _undisturbed(findings, model_places, leads, named)
    return tuple(conclusions)


def in_order(result: AuditResult) -> list[Finding]:
    """Return a run's findings: those that state its conclusions, then the others by `ranked`."""
    stated = [conclusion.finding for conclusion in result.conclusions if conclusion.real]
    first = dict.fromkeys(result.findings[place] for place in stated)
    return [*dict.fromkeys((*first, *ranked(result.findings)))]


def _clusters(
    findings: Sequence[Finding],
    places: Sequence[int],
    leads: Sequence[Selector],
    causes: Sequence[Cause],
) -> list[Cluster]:
    """Return the clusters of a model's real differences, the one that leads first."""
    strong = [place for place in places if findings[place].verdict in REAL]
    clusters, rest = list[Cluster](), dict.fromkeys(strong)
    for cause in causes:
        members = [place for place in cause.findings if place in rest]
        stated = [place for place in members if _states(findings[place], cause)]
        # A cell of few rows may have no rate of its own that was tested.
        if stated := stated or [place for place in members if _names(findings[place], cause)]:
            lead = min(stated, key=lambda place: _place_in_cause(findings[place], leads, cause))
            clusters.append(Cluster(lead, tuple(members), cause))
            for place in members:
                del rest[place]
    for members in _by_structure(findings, [*rest]):
        eligible = [place for place in members if findings[place].tested and findings[place].leads]
        if eligible:
            lead = min(eligible, key=lambda place: _place_of(findings[place], leads))
            clusters.append(Cluster(lead, tuple(members)))
    clusters = _without_echoes(findings, clusters)
    return sorted(clusters, key=lambda cluster: _rank(findings[cluster.lead], cluster.cause))


def _states(finding: Finding, cause: Cause) -> bool:
    """Whether a finding compares the rows of a cause with those of other groups."""
    groups = contrast(finding)
    if finding.groups != cause.groups or groups is None or finding.version != "default":
        return False
    return groups[0].group == cause.group and groups[0].n == cause.n


def _names(finding: Finding, cause: Cause) -> bool:
    """Whether a finding is about the class of a cause, and its group is worst off."""
    groups = contrast(finding)
    if not finding.tested or not finding.leads or groups is None:
        return False
    place = finding.groups, finding.subject, groups[0].group
    return place == (cause.groups, cause.subject, cause.group)


def _place_in_cause(
    finding: Finding, leads: Sequence[Selector], cause: Cause
) -> tuple[object, ...]:
    """Return how well a finding states a cause, the best first."""
    return (
        finding.subject != cause.subject, not finding.tested, not names_groups(finding),
        *_place_of(finding, leads),
    )  # fmt: skip


def _place_of(finding: Finding, leads: Sequence[Selector]) -> tuple[float, ...]:
    """Return where a finding stands among those that restate one fact, the best first."""
    groups = contrast(finding) if finding.group else None
    worse = groups is None or groups[0].group == finding.group
    whole_of_parts = bool(finding.subject) and finding.family is not Family.COMPOSITE
    return (
        -_STRENGTH.get(finding.verdict, 0),
        place_in(leads, finding),
        finding.version != "default",
        not (names_groups(finding) and worse),
        _is_average(finding),
        whole_of_parts and not finding.group,
        -weight(finding),
    )


def _is_average(finding: Finding) -> bool:
    """Whether a finding is of all subjects together, by a number of each."""
    return not finding.subject and finding.family is Family.COMPOSITE and not finding.group


_STRENGTH = {Verdict.DISPARITY: 2, Verdict.DETECTED: 1}


def _worst(finding: Finding) -> GroupValue | None:
    groups = contrast(finding)
    return None if groups is None else groups[0]


def _key(finding: Finding) -> tuple[object, ...]:
    """Return what findings share that restate one fact by their structure."""
    subject = finding.subject
    if finding.part_of:
        subject = finding.part_of
    if finding.group and subject == finding.group:
        subject = ""
    return finding.groups, subject, finding.change_from, finding.within


def _by_structure(findings: Sequence[Finding], places: Iterable[int]) -> list[list[int]]:
    """Return places by the fact that their findings restate.

    Findings about the same subject and groups are one fact, and numbers over all subjects join
    the weightiest subject of the same groups.
    """
    by_key: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in places:
        by_key[_key(findings[place])].append(place)
    merged: dict[tuple[object, ...], list[int]] = {}
    for key, members in by_key.items():
        groups, subject, *others = key
        subjects = [
            other for other in by_key if other[1] and (other[0], *other[2:]) == (groups, *others)
        ]
        if subject or not subjects:
            merged.setdefault(key, []).extend(members)
            continue
        heaviest = max(
            subjects, key=lambda other: max(weight(findings[place]) for place in by_key[other])
        )
        merged.setdefault(heaviest, []).extend(members)
    return [*merged.values()]


def _without_echoes(findings: Sequence[Finding], clusters: Sequence[Cluster]) -> list[Cluster]:
    """Merge clusters of intersections that add nothing to one of their attributes."""
    kept = list[Cluster]()
    ordered = sorted(clusters, key=lambda cluster: findings[cluster.lead].groups.count("×"))
    for cluster in ordered:
        finding = findings[cluster.lead]
        base = next(
            (
                index
                for index, other in enumerate(kept)
                if cluster.cause is None and _echoes(finding, findings[other.lead])
            ),
            None,
        )
        if base is None:
            kept.append(cluster)
        else:
            other = kept[base]
            kept[base] = Cluster(other.lead, (*other.members, *cluster.members), other.cause)
    return kept


def _attributes(finding: Finding) -> tuple[str, ...]:
    return tuple(finding.groups.split(" × "))


def _echoes(finding: Finding, main: Finding) -> bool:
    """Whether a finding of an intersection is what one of its attributes makes of it.

    Its worst group has the level of the attribute that is worst off, and departs from that level
    by no more than chance.
    """
    worst, main_worst = _worst(finding), _worst(main)
    attributes, main_attributes = _attributes(finding), _attributes(main)
    if worst is None or main_worst is None or not {*main_attributes} < {*attributes}:
        return False
    levels = dict(zip(attributes, worst.levels, strict=False))
    if any(
        levels.get(name) != level
        for name, level in zip(main_attributes, main_worst.levels, strict=False)
    ):
        return False
    comparable = measure_of(finding)[0] == measure_of(main)[0] and finding.subject == main.subject
    if not comparable:
        return True
    departure = abs(worst.value - main_worst.value)
    spread = (worst.high - worst.low) / (2 * NormalDist().inv_cdf(1 - _ALPHA / 2))
    groups = max(sum(not math.isnan(part.value) for part in finding.by_group), 1)
    return math.isnan(spread) or departure <= spread * NormalDist().inv_cdf(
        1 - _ALPHA / (2 * groups)
    )


def _rank(finding: Finding, cause: Cause | None) -> tuple[float, ...]:
    """Return where a real difference stands among those of a model, the leading one first.

    An average over subjects comes after them, unless it was shown to explain them.
    """
    return (
        -_STRENGTH[finding.verdict],
        not spec_of_finding(finding).of_exclusion,
        cause is None and _is_average(finding),
        finding.groups.count("×"),
        -weight(finding),
    )


def _undisturbed(
    findings: Sequence[Finding],
    places: Iterable[int],
    leads: Sequence[Selector],
    named: set[str],
) -> list[Conclusion]:
    """Return a conclusion for each set of groups without a real difference."""
    by_groups: dict[str, list[int]] = defaultdict(list)
    for place in places:
        finding = findings[place]
        if finding.tested and finding.leads and finding.groups not in named:
            by_groups[finding.groups].append(place)
    conclusions = []
    for members in by_groups.values():
        main = min(members, key=lambda place: _main_comparison(findings[place], leads))
        conclusions.append(_conclusion(findings, Cluster(main, tuple(members))))
    return conclusions


def _main_comparison(finding: Finding, leads: Sequence[Selector]) -> tuple[float, ...]:
    return (
        bool(finding.subject),
        bool(finding.group),
        finding.version != "default",
        place_in(leads, finding),
        finding.compared_to != "",
        -weight(finding),
    )


def _conclusion(findings: Sequence[Finding], cluster: Cluster) -> Conclusion:
    finding = findings[cluster.lead]
    groups = contrast(finding)
    compared: Mapping[str, object] = {}
    if groups is not None:
        worst, other, _ = groups
        if other.group == finding.group:
            worst, other = other, worst
        compared = {
            "group": worst.group,
            "other": other.group,
            "group_value": worst.value,
            "other_value": other.value,
        }
    return Conclusion(
        model=finding.model,
        verdict=finding.verdict,
        groups=finding.groups,
        subject=finding.subject,
        metric=finding.metric,
        aggregate=finding.aggregate,
        size=finding.value,
        low=finding.ci_low,
        high=finding.ci_high,
        n=finding.n,
        finding=cluster.lead,
        restated_by=tuple(place for place in cluster.members if place != cluster.lead),
        **compared,  # type: ignore[arg-type]
    )
