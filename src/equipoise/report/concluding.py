"""Conclusions from findings: what restates one fact is one conclusion, and the weightiest leads."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from types import MappingProxyType

from equipoise.core import AuditResult, Family, Finding, GroupValue, Verdict
from equipoise.core.conclusion import Cause, Conclusion
from equipoise.core.finding import REAL
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.adjusted import (
    Adjustments,
    at_equal_mix,
    explained_by_mix,
    leading_adjustment,
    turns,
)
from equipoise.report.comparing import conclusions_of_pair
from equipoise.report.composition import explained_by_share
from equipoise.report.expecting import EXPECTED, added_to_labels, departure
from equipoise.report.intersections import (
    Grids,
    beyond_attributes,
    explains_attribute,
    grids_of,
)
from equipoise.report.selecting import Selector, measure_of, place_in
from equipoise.report.sizing import SelectedSize, size_after_selection
from equipoise.report.words import (
    compared_groups,
    contrast,
    is_comparison,
    names_groups,
    ranked,
    weight,
)

_ALPHA = 0.05
# Tests of single queries are a family of their own: a tenth keeps the level of all together.
_QUERY_ALPHA = _ALPHA / 10


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
    findings: Sequence[Finding],
    leads: Sequence[Selector] = (),
    causes: Sequence[Cause] = (),
    adjustments: Adjustments = MappingProxyType({}),
    alpha: float = 0.05,
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
    adjustments : mapping of int to sequence of Adjustment, optional
        Differences at equal classes, or at equal values of another attribute, by the place of the
        finding. Where one leads, the finding is merged and ranked by its verdict and size.
    alpha : float
        Rate of false discoveries that verdicts accept.

    Returns
    -------
    tuple of Conclusion
        By model in the order of the findings; of each model what was found first, the weightiest
        first, then a conclusion for each set of groups without a difference.
    """
    judged = at_equal_mix(findings, adjustments)
    mixed = explained_by_mix(findings, adjustments)
    turned = {place for place, values in adjustments.items() if turns(values)}
    places: dict[str, list[int]] = defaultdict(list)
    for place, finding in enumerate(findings):
        places[finding.model].append(place)
    conclusions = list[Conclusion]()
    for model, model_places in places.items():
        if is_comparison(findings[model_places[0]]):
            conclusions += conclusions_of_pair(findings, model_places)
            continue
        model_causes = [
            _without(cause, turned, findings) for cause in causes if cause.model == model
        ]
        unmixed = [place for place in model_places if place not in mixed]
        clusters = _clusters(judged, unmixed, leads, model_causes)
        causes_by_finding = {cluster.lead: cluster.cause for cluster in clusters}
        real = [_conclusion(judged, cluster, adjustments, alpha) for cluster in clusters]
        conclusions += sorted(
            real,
            key=lambda item: _rank(judged[item.finding], item, causes_by_finding[item.finding]),
        )
        named = {findings[place].groups for cluster in clusters for place in cluster.members}
        others = _undisturbed(judged, model_places, leads, named)
        others += _of_mix(judged, mixed.intersection(model_places), leads, named)
        conclusions += [_conclusion(judged, cluster, adjustments, alpha) for cluster in others]
    return tuple(conclusions)


def _without(cause: Cause, turned: set[int], findings: Sequence[Finding]) -> Cause:
    """Return a cause that doesn't explain differences that turn at equal values of its groups."""
    explained = tuple(
        place
        for place in cause.findings
        if place not in turned or findings[place].groups == cause.groups
    )
    return replace(cause, findings=explained)


def in_order(result: AuditResult) -> list[Finding]:
    """Return a run's findings: those that state its conclusions, then the others by `ranked`."""
    stated = [
        conclusion.finding for conclusion in result.conclusions
        if conclusion.real and conclusion.about_groups
    ]  # fmt: skip
    first = dict.fromkeys(result.findings[place] for place in stated)
    return [*dict.fromkeys((*first, *ranked(result.findings)))]


def _clusters(
    findings: Sequence[Finding],
    places: Sequence[int],
    leads: Sequence[Selector],
    causes: Sequence[Cause],
) -> list[Cluster]:
    """Return the clusters of a model's real differences."""
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
    decided = [findings[place] for place in strong if _may_lead(findings[place])]
    restating = explained_by_share(findings, rest) | _of_rare_errors(findings, rest)
    for members in _by_structure(findings, [*rest], restating):
        stating = [place for place in members if place not in restating]
        eligible = _eligible(findings, stating, decided)
        if eligible:
            lead = min(eligible, key=lambda place: _place_of(findings[place], leads))
            clusters.append(Cluster(lead, tuple(members)))
    return _without_echoes(findings, clusters)


def _of_rare_errors(findings: Sequence[Finding], places: Iterable[int]) -> dict[int, int]:
    """Return which findings have the same counts as one whose ratio of rare errors decides.

    Where a target has two classes, an effect size of the rows of one class is about the errors
    that the rate of the other counts.
    """
    by_ratio = {_counts_of(findings[place]): place for place in places if findings[place].by_ratio}
    return {
        place: by_ratio[counts]
        for place in places
        if not findings[place].by_ratio and (counts := _counts_of(findings[place])) in by_ratio
    }


def _counts_of(finding: Finding) -> tuple[object, ...]:
    """Return groups with their rows, and how many of these have an error."""
    counts = [
        (part.group, part.n, round(min(part.value, 1.0 - part.value) * part.n))
        for part in finding.by_group
        if not math.isnan(part.value)
    ]
    return finding.groups, finding.version, *sorted(counts)


def _may_lead(finding: Finding) -> bool:
    return finding.tested and finding.leads and finding.family is not Family.QUERY


def _eligible(
    findings: Sequence[Finding], members: Iterable[int], decided: Iterable[Finding]
) -> list[int]:
    """Return places of the findings that may state the fact of all members.

    A single query may where nothing is decided over all queries, so that they cancel out, and it
    is certain enough to keep the level of the first screen.
    """
    eligible = [place for place in members if _may_lead(findings[place])]
    queries = [place for place in members if _is_single_query(findings[place])]
    certain = any(
        findings[place].q_value <= _QUERY_ALPHA and findings[place].verdict is Verdict.DISPARITY
        for place in queries
    )
    if eligible or not certain:
        return eligible
    attributes = {*_attributes(findings[queries[0]])}
    cancels = not any({*_attributes(finding)} <= attributes for finding in decided)
    return queries if cancels else []


def _is_single_query(finding: Finding) -> bool:
    return finding.tested and finding.leads and finding.family is Family.QUERY


def _states(finding: Finding, cause: Cause) -> bool:
    """Whether a finding may lead and compares the rows of a cause with other groups."""
    groups = compared_groups(finding)
    if not finding.leads or finding.version != "default":
        return False
    if finding.groups != cause.groups or groups is None:
        return False
    return groups[0].group == cause.group and groups[0].n == cause.n


def _names(finding: Finding, cause: Cause) -> bool:
    """Whether a finding is about the class of a cause, and names its group first."""
    groups = compared_groups(finding)
    if not finding.tested or not finding.leads or groups is None:
        return False
    place = finding.groups, finding.subject, groups[0].group
    return place == (cause.groups, cause.subject, cause.group)


def _place_in_cause(
    finding: Finding, leads: Sequence[Selector], cause: Cause
) -> tuple[object, ...]:
    """Return how well a finding states a cause, the best first."""
    # Errors of a class are made in the rows of the other, where there are two.
    of_cell = finding.subject == cause.subject or finding.ratio is not None
    return (
        -_STRENGTH[finding.verdict], not finding.by_ratio, not names_groups(finding), not of_cell,
        not finding.tested,
        *_place_of(finding, leads),
    )  # fmt: skip


def _place_of(finding: Finding, leads: Sequence[Selector]) -> tuple[float, ...]:
    """Return where a finding stands among those that restate one fact, the best first.

    A ratio of rare errors says more than points of numbers that the errors make.
    """
    groups = contrast(finding) if finding.group else None
    worse = groups is None or groups[0].group == finding.group
    whole_of_parts = bool(finding.subject) and finding.family is not Family.COMPOSITE
    return (
        -_STRENGTH.get(finding.verdict, 0),
        not finding.by_ratio,
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


def _key(finding: Finding, excluding: Collection[str]) -> tuple[object, ...]:
    """Return what findings share that restate one fact by their structure.

    Rows without an answer are neither right nor wrong, so where groups differ in how often they
    are excluded, the shares of all states are one fact.
    """
    of_state, subject = spec_of_finding(finding).of_state, finding.subject
    if finding.part_of or (finding.part_of == "" and finding.family is Family.COMPOSITE):
        subject = finding.part_of
    if of_state:
        subject = ""
    excluded = of_state and finding.groups in excluding
    return finding.groups, subject, finding.change_from, finding.within, excluded


def _by_structure(
    findings: Sequence[Finding], places: Sequence[int], restating: Mapping[int, int]
) -> list[list[int]]:
    """Return places by the fact that their findings restate.

    Findings about the same subject and groups are one fact, and numbers over all subjects join
    the weightiest subject of the same groups. So do places that restate another.
    """
    by_key: dict[tuple[object, ...], list[int]] = defaultdict(list)
    excluding = {
        findings[place].groups for place in places if spec_of_finding(findings[place]).of_exclusion
    }
    for place in places:
        stated = findings[restating.get(place, place)]
        by_key[_key(stated, excluding)].append(place)
    merged: dict[tuple[object, ...], list[int]] = {}
    for key, members in by_key.items():
        groups, subject, *others = key
        subjects = [
            other for other in by_key if other[1] and (other[0], *other[2:]) == (groups, *others)
        ]
        # Twins of two classes restate each other, and one of them is not tested again.
        subjects = [
            other for other in subjects if any(findings[place].tested for place in by_key[other])
        ] or subjects
        if subject or not subjects:
            merged.setdefault(key, []).extend(members)
            continue
        heaviest = max(
            subjects, key=lambda other: max(weight(findings[place]) for place in by_key[other])
        )
        merged.setdefault(heaviest, []).extend(members)
    return [*merged.values()]


def _without_echoes(findings: Sequence[Finding], clusters: Sequence[Cluster]) -> list[Cluster]:
    """Merge clusters of intersections that add nothing to one of their attributes.

    An intersection that goes beyond its attributes takes in those that it explains.
    """
    kept, grids = list[Cluster](), grids_of(findings)
    ordered = sorted(clusters, key=lambda cluster: findings[cluster.lead].groups.count("×"))
    for cluster in ordered:
        finding = findings[cluster.lead]
        beyond = "×" in finding.groups and beyond_attributes(finding, grids)
        if cluster.cause is None and beyond:
            kept = _with_explained(findings, cluster, kept, grids)
            continue
        base = next(
            (
                index
                for index, other in enumerate(kept)
                if cluster.cause is None
                and _echoes(finding, findings[other.lead], adds_up=beyond is False)
            ),
            None,
        )
        if base is None:
            kept.append(cluster)
        else:
            other = kept[base]
            kept[base] = Cluster(other.lead, (*other.members, *cluster.members), other.cause)
    return kept


def _with_explained(
    findings: Sequence[Finding], cluster: Cluster, clusters: Sequence[Cluster], grids: Grids
) -> list[Cluster]:
    """Return clusters with an intersection that takes in the attributes that it explains.

    The group that departs most from all others states it.
    """
    measure, subject = findings[cluster.lead].metric, findings[cluster.lead].subject
    stating = [
        place
        for place in cluster.members
        if _may_lead(findings[place]) and findings[place].group
        and (findings[place].metric, findings[place].subject) == (measure, subject)
    ]  # fmt: skip
    lead = max(stating, key=lambda place: weight(findings[place]), default=cluster.lead)
    finding = findings[lead]
    attributes = {*_attributes(finding)}
    explained = [
        other
        for other in clusters
        if other.cause is None and findings[other.lead].groups in attributes
        and explains_attribute(finding, findings[other.lead], grids)
    ]  # fmt: skip
    members = [place for other in explained for place in other.members]
    unexplained = [other for other in clusters if other not in explained]
    return [*unexplained, Cluster(lead, (*cluster.members, *members))]


def _attributes(finding: Finding) -> tuple[str, ...]:
    return finding.attributes or ("",)


def _echoes(finding: Finding, main: Finding, *, adds_up: bool) -> bool:
    """Whether a finding of an intersection is what one of its attributes makes of it.

    Its attributes add up to its value. Where that is unknown, its worst group has the level of the
    attribute that is worst off, and departs from that level by no more than chance.
    """
    worst, main_worst = _worst(finding), _worst(main)
    attributes, main_attributes = _attributes(finding), _attributes(main)
    if worst is None or main_worst is None or not {*main_attributes} < {*attributes}:
        return False
    if adds_up:
        return True
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


def _rank(finding: Finding, conclusion: Conclusion, cause: Cause | None) -> tuple[float, ...]:
    """Return where a real difference stands among those of a model, the leading one first.

    An average over subjects comes after them, unless it was shown to explain them.
    """
    spec = spec_of_finding(finding)
    return (
        not spec.of_one_answer,
        -_STRENGTH[finding.verdict],
        finding.by_ratio,
        not spec.of_exclusion,
        not spec.expectation,
        cause is None and _is_average(finding),
        finding.groups.count("×"),
        -_size(finding, conclusion),
    )


def _size(finding: Finding, conclusion: Conclusion) -> float:
    """Return the corrected size in units of the threshold; without one, the certain excess.

    Without an interval, it is the excess: the ends of a band of chance are as coarse as counts
    of a few ranks, and would put the smaller of two differences first. Of a difference that
    labels have as well, it is no more than the model adds.
    """
    threshold, added = finding.threshold if finding.threshold > 0 else 1.0, added_to_labels(finding)
    size = weight(finding)
    if math.isnan(finding.ci_low) and not math.isnan(finding.excess):
        size = abs(finding.excess) / threshold
    if not math.isnan(conclusion.corrected):
        size = abs(conclusion.corrected) / threshold
    return size if added is None else min(size, added.value / threshold)


def _undisturbed(
    findings: Sequence[Finding],
    places: Iterable[int],
    leads: Sequence[Selector],
    named: set[str],
) -> list[Cluster]:
    """Return a cluster for each set of groups without a real difference."""
    by_groups: dict[str, list[int]] = defaultdict(list)
    for place in places:
        finding = findings[place]
        of_one_answer = spec_of_finding(finding).of_one_answer
        if _may_lead(finding) and finding.groups not in named and not of_one_answer:
            by_groups[finding.groups].append(place)
    # Numbers about all images stand after those that compare groups.
    in_order = sorted(by_groups, key=lambda name: name == "")
    return [_led_by_main(findings, by_groups[groups], leads) for groups in in_order]


def _of_mix(
    findings: Sequence[Finding], places: Iterable[int], leads: Sequence[Selector], named: set[str]
) -> list[Cluster]:
    """Return a cluster for each set of groups that also differ by the mix of classes."""
    by_groups: dict[str, list[int]] = defaultdict(list)
    for place in sorted(places):
        finding = findings[place]
        if _may_lead(finding) and finding.groups in named:
            by_groups[finding.groups].append(place)
    return [_led_by_main(findings, members, leads) for members in by_groups.values()]


def _led_by_main(
    findings: Sequence[Finding], members: Sequence[int], leads: Sequence[Selector]
) -> Cluster:
    """Return a cluster led by its main comparison without a real difference."""
    equal = [place for place in members if findings[place].verdict not in REAL]
    main = min(equal, key=lambda place: _main_comparison(findings[place], leads))
    return Cluster(main, tuple(members))


def _main_comparison(finding: Finding, leads: Sequence[Selector]) -> tuple[float, ...]:
    return (
        bool(finding.subject),
        bool(finding.group),
        finding.version != "default",
        place_in(leads, finding),
        finding.compared_to != "",
        -weight(finding),
    )


def _conclusion(
    findings: Sequence[Finding], cluster: Cluster, adjustments: Adjustments, alpha: float
) -> Conclusion:
    finding = findings[cluster.lead]
    cluster_adjustments = adjustments.get(cluster.lead, ())
    groups, adjustment = compared_groups(finding), leading_adjustment(cluster_adjustments)
    compared: Mapping[str, object] = {}
    if (departing := departure(finding)) is not None:
        compared = {
            "group": departing.part.group,
            "other": EXPECTED,
            "group_value": departing.part.value,
            "other_value": departing.expected,
        }
    elif groups is not None:
        first, other, _ = groups
        sides = [(first.group, first.value), (other.group, other.value)]
        if adjustment is not None:
            values = adjustment.group_value, adjustment.other_value
            sides = [*zip((first.group, other.group), values, strict=True)]
            # The group that is worse off comes first, unless the finding is about one group.
            if finding.verdict in REAL and adjustment.turns and not finding.group:
                sides.reverse()
        compared = {
            "group": sides[0][0],
            "other": sides[1][0],
            "group_value": sides[0][1],
            "other_value": sides[1][1],
        }
    selected = SelectedSize()
    if adjustment is None:
        selected = size_after_selection(findings, cluster.lead, cluster.members, alpha)
    return Conclusion.stated_by(
        finding, cluster.lead, cluster.members, adjustments=tuple(cluster_adjustments),
        **compared, **asdict(selected),
    )  # fmt: skip
