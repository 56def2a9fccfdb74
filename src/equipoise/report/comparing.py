"""Conclusions about two models: what tells them apart, and on how much each is better."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from equipoise.core import Aggregate, Family, Finding, Verdict
from equipoise.core.conclusion import Conclusion, Standing
from equipoise.core.finding import REAL, attributes_of
from equipoise.report.selecting import measure_of
from equipoise.report.words import Pair, over_subjects, pair_of, pairs_of, spec_of_shown, weight

Groups = str


@dataclass(frozen=True)
class Difference:
    """Findings of two models that restate one difference.

    Attributes
    ----------
    groups : str
        Attributes that are compared; "" for all rows.
    worse : str
        The model that is worse.
    members : tuple of int
        Places of the findings, the one that states the difference first.
    """

    groups: Groups
    worse: str
    members: tuple[int, ...]


def conclusions_of_pair(
    findings: Sequence[Finding], places: Sequence[int]
) -> tuple[Conclusion, ...]:
    """Conclude how two models differ.

    Findings over the same groups that prefer the same model restate one difference, and
    intersections restate that of their attributes.

    Parameters
    ----------
    findings : sequence of Finding
        All findings of a comparison, with verdicts.
    places : sequence of int
        Those about one pair of models.

    Returns
    -------
    tuple of Conclusion
        Differences first, the weightiest first; then one for each set of groups without any.
    """
    tested = [place for place in places if findings[place].tested and findings[place].leads]
    differences = _differences(findings, tested)
    named = {findings[place].groups for difference in differences for place in difference.members}
    unchanged = _alike(findings, tested, named)
    conclusions = _conclude_differences(findings, differences)
    conclusions += [_conclude(findings, members, "") for members in unchanged]
    if not conclusions:
        return _untested(findings, places)
    first, *others = conclusions
    if first.real:
        first = replace(first, alike_in=_alike_in(findings, tested, first))
    return (_with_counts(findings, tested, first), *others)


def _differences(findings: Sequence[Finding], places: Iterable[int]) -> list[Difference]:
    """Return the real differences, the one that leads first."""
    by_model: dict[tuple[str, Groups], list[int]] = defaultdict(list)
    for place in places:
        finding, pair = findings[place], pair_of(findings[place])
        if pair is not None and pair.worse and finding.verdict in REAL:
            by_model[pair.worse, finding.groups].append(place)
    merged: dict[tuple[str, Groups], list[int]] = {}
    for (worse, groups), members in sorted(by_model.items(), key=lambda item: _depth(item[0][1])):
        attributes = {*attributes_of(groups)}
        base = next(
            (
                key for key in merged
                if key[0] == worse and key[1] and {*attributes_of(key[1])} < attributes
            ),
            (worse, groups),
        )  # fmt: skip
        merged.setdefault(base, []).extend(members)
    widest = _widest_gap(findings[place] for members in by_model.values() for place in members)
    differences = list[Difference]()
    for (worse, groups), members in merged.items():
        ordered = sorted(members, key=lambda place: _place_in_difference(findings[place], widest))
        differences.append(Difference(groups, worse, tuple(ordered)))
    return sorted(
        differences, key=lambda difference: _rank(findings[difference.members[0]], widest)
    )


def _widest_gap(changes: Iterable[Finding]) -> float:
    """Return the largest change of a difference between groups; 0 without one."""
    sizes = (abs(change.value) for change in changes if change.aggregate is Aggregate.DIFFERENCE)
    return max(sizes, default=0.0)


def _yields(finding: Finding, widest: float) -> bool:
    """Whether a gap changed more than how far the models' answers ignore the images.

    The latter has no smallest size that matters, so small changes have the gravest verdict.
    """
    return spec_of_shown(finding).of_one_answer and abs(finding.value) < widest


def _depth(groups: Groups) -> int:
    return groups.count("×")


def _place_in_difference(finding: Finding, widest: float) -> tuple[float, ...]:
    """Return how well a finding states a difference of two models, the best first."""
    return (
        _yields(finding, widest),
        finding.verdict is not Verdict.DISPARITY,
        spec_of_shown(finding).of_base_rates,
        bool(finding.subject),
        _depth(finding.groups),
        -weight(finding),
    )


def _rank(finding: Finding, widest: float) -> tuple[float, ...]:
    """Return the rank of a difference among all of two models, the leading one first."""
    spec = spec_of_shown(finding)
    return (
        _yields(finding, widest),
        spec.of_one_answer and finding.group != "",
        finding.verdict is not Verdict.DISPARITY,
        not spec.of_exclusion,
        spec.of_base_rates,
        _depth(finding.groups),
        -weight(finding),
    )


def _alike(
    findings: Sequence[Finding], places: Iterable[int], named: set[Groups]
) -> list[tuple[int, ...]]:
    """Return the places over each set of groups without a difference, the whole first."""
    by_groups: dict[Groups, list[int]] = defaultdict(list)
    for place in places:
        if findings[place].groups not in named:
            by_groups[findings[place].groups].append(place)
    return [
        tuple(sorted(members, key=lambda place: _place_in_bound(findings[place])))
        for members in by_groups.values()
    ]


def _place_in_bound(finding: Finding) -> tuple[float, ...]:
    """Return how well a finding bounds a difference that was not found, the best first.

    Of the changes of groups it is the largest that the data leave open.
    """
    reach = max(abs(finding.ci_low), abs(finding.ci_high)) if finding.group else 0.0
    return bool(finding.subject), not finding.group, -reach


def _alike_in(
    findings: Sequence[Finding], places: Sequence[int], difference: Conclusion
) -> tuple[str, ...]:
    """Return the metrics in which the models are alike, over all rows and in every group."""
    differing = {findings[place].metric for place in places if findings[place].verdict in REAL}
    metrics = dict.fromkeys(
        finding.metric
        for finding in (findings[place] for place in places)
        if finding.verdict is Verdict.BELOW_THRESHOLD
        and finding.aggregate is Aggregate.VALUE
        and not finding.groups
        and not finding.subject
    )
    return tuple(metric for metric in metrics if metric not in {difference.metric} | differing)


def _conclude_differences(
    findings: Sequence[Finding], differences: Sequence[Difference]
) -> list[Conclusion]:
    """Return a conclusion for each difference.

    The first one takes in the weightiest difference in which the other model is worse.
    """
    if not differences:
        return []
    first, *others = differences
    lead = _conclude(findings, first.members, first.worse)
    reverse = next((other for other in others if other.worse != first.worse), None)
    if reverse is not None:
        others.remove(reverse)
        measure = measure_of(findings[lead.finding])
        # The number that states the first difference also states the other one, if it can.
        members = sorted(reverse.members, key=lambda place: measure_of(findings[place]) != measure)
        reversed_lead = _conclude(findings, members, reverse.worse)
        restated = (*lead.restated_by, reversed_lead.finding, *reversed_lead.restated_by)
        lead = replace(lead, reverse=reversed_lead, restated_by=restated)
    return [lead, *(_conclude(findings, other.members, other.worse) for other in others)]


def _untested(findings: Sequence[Finding], places: Iterable[int]) -> tuple[Conclusion, ...]:
    """Return the statement on untested models: the first number, and the reason."""
    described = [place for place in places if findings[place].family is not Family.FOLD]
    return tuple(_conclude(findings, (place,), "") for place in described[:1])


def _conclude(findings: Sequence[Finding], members: Sequence[int], worse: str) -> Conclusion:
    lead = members[0]
    ((finding, pair),) = pairs_of([findings[lead]])
    return Conclusion.stated_by(
        finding, lead, members, standings=_standings(pair), worse=worse, group=finding.group
    )


def _standings(pair: Pair) -> tuple[Standing, ...]:
    """Return the values of two models, the better one first."""
    standings = [
        Standing(model=model, value=value)
        for model, value in zip((pair.first, pair.second), pair.values, strict=True)
    ]
    return tuple(sorted(standings, key=lambda standing: standing.model == pair.worse))


def _with_counts(
    findings: Sequence[Finding], places: Sequence[int], conclusion: Conclusion
) -> Conclusion:
    """Add on how many subjects, groups, classes or metrics each of the models is better."""
    finding = findings[conclusion.finding]
    if finding.group:
        return _with_counts_of_groups(findings, places, conclusion)
    if over_subjects(finding):
        parameters = finding.parameters
        first, second = parameters["model_a"], parameters["model_b"]
        better = {first: parameters["better_a"], second: parameters["better_b"]}
        return _counted(conclusion, better, finding.n, "subjects")
    classes = [
        place for place in places
        if findings[place].groups == conclusion.groups and findings[place].subject
    ]  # fmt: skip
    over = "classes" if classes else "metrics"
    worse: dict[str, set[str]] = {}
    for place in classes or places:
        compared = findings[place]
        subject = compared.subject or compared.metric
        if not classes and compared.subject:
            continue
        pair = pair_of(compared)
        real = pair is not None and compared.verdict in REAL
        worse.setdefault(subject, set()).update({pair.worse} if real and pair else ())
    models = [standing.model for standing in conclusion.standings]
    counts = {
        model: sum(names == {other} for names in worse.values())
        for model, other in zip(models, reversed(models), strict=True)
    }
    return _counted(conclusion, counts, len(worse), over)


def _with_counts_of_groups(
    findings: Sequence[Finding], places: Iterable[int], conclusion: Conclusion
) -> Conclusion:
    """Add for how many groups each of the models is better in the number that is stated."""
    lead, better, n = findings[conclusion.finding], Counter[str](), 0
    for place in places:
        finding, pair = findings[place], pair_of(findings[place])
        measure = finding.groups, finding.metric, finding.subject
        if finding.group and pair and measure == (lead.groups, lead.metric, lead.subject):
            n += 1
            better[pair.first if pair.worse == pair.second else pair.second] += (
                finding.verdict in REAL
            )
    return _counted(conclusion, better, n, "groups")


def _counted(conclusion: Conclusion, better: Mapping[str, int], n: int, over: str) -> Conclusion:
    standings = tuple(
        replace(standing, better_on=better[standing.model]) for standing in conclusion.standings
    )
    return replace(conclusion, standings=standings, compared_on=n, compared_over=over)
