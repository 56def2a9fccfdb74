"""Findings in words: who is worse off, and the numbers in one line; of one model or of two."""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from equipoise.core import (
    Aggregate,
    AuditResult,
    Finding,
    GroupValue,
    Harm,
    IntervalKind,
    NullHypothesis,
    Verdict,
)
from equipoise.core.conclusion import Adjustment, Conclusion
from equipoise.core.finding import REAL
from equipoise.core.sentences import Phrase, Sentence, fill, named, share_part
from equipoise.core.wording import shortened
from equipoise.metrics.spec import SENTENCE, MetricSpec, band_of, spec_for, spec_of_finding
from equipoise.report.blocks import panels, rows
from equipoise.report.choice_words import choices_sentence, effect_clause
from equipoise.report.expecting import added_to_labels, departure, for_group
from equipoise.report.ratio_words import compare_errors, deciding_ratio, ratio_text
from equipoise.report.text import (
    VERDICT_TITLES,
    count,
    counted,
    enclose,
    equal_q,
    finding_q,
    in_words,
    interval,
    listed,
    log_note,
    number,
    percent,
    plural,
    title,
    verdict_title,
)

_LARGEST_LOG = 700.0


def spec_of_shown(finding: Finding) -> MetricSpec:
    """Return the record of a finding's value; of two models that are compared, of each value."""
    if is_comparison(finding):
        return spec_for(finding.metric, finding.aggregate, finding.compared_to)
    return spec_of_finding(finding)


def name_of(finding: Finding) -> str:
    """Return a finding's metric for display, with how groups or models compare in it."""
    spec = spec_of_shown(finding)
    if is_comparison(finding) and spec.rate:
        return spec.titled("difference")
    return spec.title


def name_with_unit(finding: Finding) -> str:
    """Return the name of a finding's number, with "ln" where the number is a logarithm."""
    return name_of(finding) + unit_note(finding)


def unit_note(finding: Finding) -> str:
    """Return what a column of plain numbers adds to the name of a logarithm; "" for others."""
    return log_note(spec_of_shown(finding))


def heading(finding: Finding) -> str:
    """Return the heading of a finding: metric, class, model, groups and version."""
    model = finding.model
    if pair := pair_of(finding):
        model = f"{pair.second} against {pair.first}"
    place = ", ".join(filter(None, (model, finding.groups, version_of(finding))))
    return f"{name_of(finding)}{_about(finding, 'of')}: {place}"


def version_of(finding: Finding) -> str:
    """Return the version of a finding; "" of the only one."""
    return finding.version if finding.version != "default" else ""


def sentence(finding: Finding) -> str:
    """Explain a finding for the groups, in a sentence or two.

    Parameters
    ----------
    finding : Finding

    Returns
    -------
    str
        For metrics whose groups have shares: who is worse off, against whom. Otherwise the
        value and its direction. Without a value: that there is none, and why. Of two models:
        both values, their difference, and who is worse.
    """
    pair = pair_of(finding)
    if pair is not None:
        return pair_sentence(finding, pair)
    if finding.verdict == Verdict.NOT_ESTIMABLE or math.isnan(finding.value):
        reason = finding.reason or "no reason was recorded"
        return f"{heading(finding)} cannot be estimated: {reason}."
    return f"{headline(finding)} {finding.beside}".strip()


def headline(finding: Finding, clause: str = "") -> Sentence:
    """Return the sentence of a finding's value for the groups, without its addition.

    A clause ends the sentence.
    """
    groups_sentence = _groups_sentence(finding, clause)
    if groups_sentence is None:
        return _value_sentence(finding).without_end(".") + clause + "."
    return groups_sentence


def _groups_sentence(finding: Finding, clause: str = "") -> Sentence | None:
    """Return which group is worse off than another, or None without group shares."""
    spec = spec_of_finding(finding)
    if spec.expectation:
        return _departure_sentence(finding, spec)
    numbers = spec.unit == "number" and not spec.group_label
    if is_summary(finding) or not spec.clause or spec.bands or not (numbers or has_shares(finding)):
        return None
    if (groups := compared_groups(finding)) is None:
        return None
    worst, other, best = groups
    if finding.by_ratio:
        errors = compare_errors(finding, worst, other)
        return _filled(spec.error_clause, finding) + " " + errors + clause + "."
    n = f"n = {count(worst.n)}" if numbers else counted(finding, worst.value, worst.n)
    first = _part(spec, worst) + f" ({n})"
    text = _filled(spec.clause, finding, groups=first + " and " + _part(spec, other)) + clause
    if best.group == other.group:
        return text + "."
    end = "lowest" if worst.value > other.value else "highest"
    size = abs(best.value - worst.value)
    gap = f"{number(size) if numbers else f'{number(100 * size, 1)} points'} apart"
    last = Sentence(_group_number(spec, best.value), ", for ", named(best.group), f", {gap}.")
    return text + f". The {end} is " + last


def is_summary(finding: Finding) -> bool:
    """Whether a finding is of all classes together, whose groups have the values of one class."""
    spec = spec_of_finding(finding)
    return (spec.of_class or "{subject}" in spec.clause) and not finding.subject


def _filled(
    clause: str, finding: Finding, *, capital: bool = True, **fields: str | Phrase | int | None
) -> Sentence:
    """Return a template with a finding's model and subject in place of its fields."""
    subject = enclose("“", shortened(finding.subject), "”")
    text = fill(
        clause,
        model=_model_of(finding),
        subject=subject,
        about=enclose(" about ", subject),
        of=enclose(" of ", subject),
        **fields,
    )
    # A model keeps its name as it is.
    return text.capitalised() if capital and not clause.startswith("{model}") else text


def _departure_sentence(finding: Finding, spec: MetricSpec) -> Sentence | None:
    """Return which group departs from its expected share, or None without one."""
    if (departing := departure(finding)) is None:
        return None
    part, expected = departing
    return _filled(
        spec.clause,
        finding,
        group=named(part.group),
        share=share_part(part.value),
        n=counted(finding, part.value, finding.top_k or finding.n),
        expected=share_part(expected),
        k=finding.top_k,
    )


# Versions that need no mention: the only one, and the one that others are held against.
_PLAIN = ("default", "baseline")


def _model_of(finding: Finding) -> str:
    """Return a finding's model with its version; findings of no model are of people."""
    return f"{finding.model or 'people'}{_version_note(finding)}"


def _version_note(finding: Finding) -> str:
    if finding.version in _PLAIN:
        return ""
    return f" ({finding.version})"


def _part(spec: MetricSpec, part: GroupValue) -> Sentence:
    return fill(spec.part, share=_group_number(spec, part.value), group=named(part.group))


def _group_number(spec: MetricSpec, value: float) -> Phrase | str:
    """Return a group's own value, a share in per cent."""
    return share_part(value) if spec.unit != "number" or spec.group_label else number(value)


def _about(finding: Finding, word: str = "for") -> str:
    return enclose(f" {word} “", shortened(in_words(finding.subject)), "”")


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def contrast(finding: Finding) -> tuple[GroupValue, GroupValue, GroupValue] | None:
    """Return the group that is worst off, the widest contrast that one attribute makes, the best.

    The second differs from the worst in one attribute only; for a single attribute this is the
    best group. Groups with a note (too small, empty) take no part unless all have one. Equal values
    keep the order given. None when fewer than two groups have a value, or all values are equal.
    """
    groups = worst_first(finding)
    if not groups or groups[0].value == groups[-1].value:
        return None
    worst = groups[0]
    # Of equal ones the first given is the best.
    best = next(part for part in groups if part.value == groups[-1].value)
    near = [part for part in groups if _n_differing(part.levels, worst.levels) == 1]
    if not near or near[-1].value == worst.value:
        return worst, best, best
    return worst, next(part for part in near if part.value == near[-1].value), best


def compared_groups(finding: Finding) -> tuple[GroupValue, GroupValue, GroupValue] | None:
    """Return the groups of `contrast`; the group of a finding about one comes first."""
    groups = contrast(finding)
    if groups is None or groups[1].group != finding.group:
        return groups
    worst, other, _ = groups
    return other, worst, worst


def worst_first(finding: Finding) -> list[GroupValue]:
    """Return the groups that have a value, the worst first.

    Groups with a note take no part unless all have one; equal values keep the order given.
    """
    valued = [part for part in finding.by_group if not math.isnan(part.value)]
    groups = [part for part in valued if not part.note] or valued
    sign = 1 if worse_side(finding) == "lower" else -1
    return sorted(groups, key=lambda part: sign * part.value)


def _n_differing(levels: Sequence[str], other_levels: Sequence[str]) -> int:
    return sum(map(operator.ne, levels, other_levels))


def worse_side(finding: Finding) -> Literal["lower", "higher"]:
    """Return which side of its groups' numbers is worse."""
    spec = spec_of_finding(finding)
    if not spec.rate:
        return spec.groups_harm
    return "higher" if spec.harm == "higher" else "lower"


def harm(finding: Finding) -> Harm:
    """Return which side of chance is worse for the value itself."""
    if is_comparison(finding):
        return "either"
    return spec_of_finding(finding).value_harm


def harmful_side(finding: Finding) -> int:
    """Return 1 if harm is above chance, -1 if below; by the value if either."""
    side = harm(finding)
    lower = side == "lower" or (side == "either" and finding.excess < 0)
    return -1 if lower else 1


def has_shares(finding: Finding) -> bool:
    """Whether groups' own values are shares."""
    spec, values = spec_of_finding(finding), (part.value for part in finding.by_group)
    # What groups have by the metric's own name are differences, such as preferences.
    shares = spec.group_metric != spec.name and (spec.unit != "number" or bool(spec.group_label))
    return shares and all(math.isnan(value) or 0 <= value <= 1 for value in values)


def in_points(finding: Finding) -> bool:
    """Whether the numbers of a finding and of its groups are shares, or differences of shares."""
    return has_shares(finding) or spec_of_finding(finding).unit in ("share", "points")


def group_value_name(finding: Finding) -> str:
    """Return the name of the number that each group of a finding has."""
    spec = spec_of_finding(finding)
    label = spec.group_label
    if spec.group_metric:
        label = title(spec.group_metric)
    if not label:
        return title(finding.metric)
    return label[:1].upper() + label[1:]


def _value_sentence(finding: Finding) -> Sentence:
    """State a value and its direction."""
    spec = spec_of_finding(finding)
    if finding.top_k is not None and spec.unit == "log ratio" and finding.value == -math.inf:
        return _absence(finding)
    direction = finding.direction
    within = "{direction}" in spec.sentence
    template, model, k = spec.sentence, "", finding.top_k
    if within and not direction:
        template = SENTENCE
    if finding.model:
        model = f" of {_model_of(finding)}"
    text = fill(
        template,
        title=name_of(finding),
        model=model,
        subject=_about(finding),
        of=_about(finding, "of"),
        value=_shown(finding, spec),
        size=_shown(replace(finding, value=abs(finding.value)), spec),
        groups=enclose(" (", finding.groups, ")"),
        direction=direction,
        k="K" if k is None else k,
    )
    if within or not direction:
        return text.capitalised()
    return text + " " + direction.capitalised() + "."


def _absence(finding: Finding) -> Sentence:
    """Say of a skew of −∞ which group is absent from the top K, and for how many queries."""
    top = f"the top {finding.top_k} of {_model_of(finding)}"
    n_absent = finding.parameters.get("queries_without_group")
    names = [part.group for part in finding.by_group if part.n and part.value in (0.0, -math.inf)]
    groups = enclose(" (", finding.groups, ")")
    if n_absent is None:
        which = " or ".join(names) or "one of the groups"
        return Sentence(f"None of {top}{_about(finding)} shows {which}{groups}.")
    which, n = finding.subject or "one of the groups", finding.parameters["queries_measured"]
    return Sentence(f"None of {top} shows {which} for {n_absent} of {n} queries{groups}.")


def _shown(finding: Finding, spec: MetricSpec) -> str:
    """Return a value in its unit, with its band."""
    if spec.unit == "share" and not finding.change_from:
        return percent(finding.value)
    scaled, unit = scale_of(finding)
    text = f"{scaled(finding.value)}{unit}"
    if spec.bands:
        text += f", {band_of(finding.value)}"
    return text


def figures(finding: Finding) -> str:
    """Return a finding's numbers in one line: value, interval, chance level, threshold, q."""
    compared = is_comparison(finding)
    label = finding.model if compared else name_with_unit(finding)
    parts = [f"{label} {number(finding.value)}"]
    if not math.isnan(finding.ci_low):
        kind = f"{100 * finding.level:g} % interval"
        if finding.interval is IntervalKind.SPREAD:
            kind = "resampling spread"
        parts.append(f"{kind} {interval(finding.ci_low, finding.ci_high)}")
    band = ""
    if not math.isnan(finding.chance_low):
        band = f" {interval(finding.chance_low, finding.chance_high)}"
    # Two models that are alike differ by 0, so only the band says something.
    if compared and band:
        parts.append(f"if the models were alike{band}")
    elif not compared and not math.isnan(finding.chance):
        parts.append(f"by chance {number(finding.chance)}{band}")
    if finding.ratio is not None:
        parts.append(ratio_text(finding))
    if not math.isnan(finding.threshold):
        parts.append(f"threshold {number(finding.threshold)} {_SIDES[harm(finding)]}")
    if not math.isnan(finding.q_value):
        parts.append(f"q\u00a0{finding_q(finding)}")
    return " · ".join(parts)


def conclusion_sentence(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say what was concluded: who is worse off, or how large a difference may still be.

    Parameters
    ----------
    finding : Finding
        The one that states it.
    conclusion : Conclusion
    """
    if conclusion.steps:
        return Sentence(choices_sentence(conclusion))
    if conclusion.standings:
        return _sentence_about_models(finding, conclusion)
    if conclusion.at_equal_mix is not None:
        return sentence_at_equal_mix(finding, conclusion)
    clause = _clause_at_equal_shares(finding, conclusion)
    if conclusion.real:
        clause += effect_clause(conclusion)
        return headline(finding, f"{_clause_of_labels(finding)}{clause}")
    return Sentence(_bound_clause(finding, conclusion), clause, ".")


def _sentence_about_models(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say how models compare, with their names as parts."""
    if is_comparison(finding):
        return comparison_sentence(finding, conclusion)
    if finding.change_from:
        return change_sentence(finding, conclusion)
    return ranking_sentence(finding, conclusion)


def _model_part(model: str) -> Phrase:
    """Return the name of a model as a part, which a title colours."""
    return Phrase(model, group=model)


def _bound_clause(finding: Finding, conclusion: Conclusion) -> str:
    """Say how large a difference may still be that was not found, without a full stop."""
    scaled, unit = scale_of(finding)
    by, n_text = enclose(" by ", finding.groups), _sample(finding)
    small = conclusion.verdict is Verdict.BELOW_THRESHOLD
    name = difference_name(finding)
    if not small and math.isnan(finding.p_value):
        return f"No {name}{by} was found; {in_words(finding.reason)} ({n_text})"
    bound = largest_size(finding)
    if math.isnan(bound):
        ends = ""
        if finding.interval not in (IntervalKind.SPREAD, IntervalKind.NONE):
            ends = f"{scaled(finding.ci_low)} to {scaled(finding.ci_high)}, "
        start = "The difference is too small to matter" if small else "No difference was found"
        return f"{start}: {name}{by} is {sized(finding, finding.value)} ({ends}{n_text})"
    if small:
        size = f" larger than {scaled(bound)}{unit}" if bound else ""
        return f"No {name}{by}{size} ({n_text})"
    return f"No {name}{by} was found; up to {scaled(bound)}{unit} can't be excluded ({n_text})"


def difference_name(finding: Finding) -> str:
    """Return the name of a difference that was not found, with its subject."""
    name = uncapitalised(name_of(finding))
    if finding.aggregate is Aggregate.DIFFERENCE and not finding.compared_to:
        label = spec_of_finding(finding).group_label or spec_for(finding.metric).title
        name = f"difference in {uncapitalised(label)}"
    widest = enclose(" (largest for “", _widest_label(finding), "”)")
    return f"{name}{_about(finding, 'of')}{widest}"


def _widest_label(finding: Finding) -> str:
    """Return the label with the largest gap of all; "" where the finding isn't of all labels."""
    if finding.subject or not spec_of_finding(finding).of_labels:
        return ""
    return shortened(finding.by_group_of)


def largest_size(finding: Finding) -> float:
    """Return the largest size that an interval allows; NaN where sizes aren't counted from 0."""
    spec, side = spec_of_shown(finding), harm(finding)
    from_zero = spec.neutral == 0.0 and spec.unit != "log ratio" and side != "lower"
    if not from_zero or finding.interval is IntervalKind.SPREAD:
        return math.nan
    return max(finding.ci_high, -finding.ci_low) if side == "either" else finding.ci_high


def _sample(finding: Finding) -> str:
    """Return how many rows or images a finding has; units that repeat are fewer than its rows."""
    if finding.unit in ("row", "image"):
        return plural(finding.n, finding.unit)
    return f"n = {count(finding.n)}"


def sentence_at_equal_mix(
    finding: Finding, conclusion: Conclusion, *, explained: bool = True
) -> Sentence:
    """Say what groups have at equal classes, then over all rows."""
    spec = spec_of_finding(finding)
    over_all = {part.group: part.value for part in finding.by_group}
    sides = (
        (conclusion.group, conclusion.group_value), (conclusion.other, conclusion.other_value),
    )  # fmt: skip
    first, other = (
        fill(spec.part, share=share_part(value), group=named(group)) for group, value in sides
    )
    raw = " and ".join(percent(over_all[group]) for group, _ in sides)
    clause = _filled(spec.clause, finding, capital=False, groups=first + " and " + other)
    text = Sentence("At equal mix of classes, ", clause, f"; over all rows {raw}")
    nothing = finding.verdict in REAL and _is_nothing(conclusion, finding.threshold)
    if nothing and explained:
        text += ": the mix of classes explains the difference"
    return text + "."


def _is_nothing(conclusion: Conclusion, threshold: float) -> bool:
    """Whether no difference is left at equal classes."""
    adjustment = conclusion.at_equal_mix
    return (
        adjustment is not None
        and adjustment.low <= 0.0 <= adjustment.high
        and abs(adjustment.size) < threshold
    )


def _clause_at_equal_shares(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say what the difference is at equal classes and at equal values of another attribute.

    Only where they move it: to another sign, by the practical threshold, or, for classes, by a
    point. Of other attributes the one that moves it most is said.
    """
    clauses, others = Sentence(), []
    for adjustment in conclusion.adjustments:
        far = adjustment.turns or abs(adjustment.moved) >= finding.threshold
        if not adjustment.by and adjustment.moves:
            clauses += f"; at equal mix of classes {_shares(adjustment)}"
        elif adjustment.by and adjustment.moves and far:
            others.append(adjustment)
    if not others:
        return clauses
    most = max(others, key=lambda adjustment: (adjustment.turns, abs(adjustment.moved)))
    if not most.turns:
        return clauses + f"; at equal {most.by} {_shares(most)}"
    side = "worse" if better_off(finding) else "better"
    size = f"{number(100 * abs(most.size), 1)} points {side} for "
    return clauses + f"; the sign turns at equal {most.by}: {size}" + named(conclusion.group)


def _clause_of_labels(finding: Finding) -> str:
    """Say what the model adds to a difference that the labels have as well."""
    added = added_to_labels(finding)
    if added is None:
        return ""
    value = number(100 * added.value, 1)
    if len(worst_first(finding)) > 2:
        return f"; the model adds up to {value} points to the labels"
    labels = f"{number(100 * abs(added.labels), 1)} points"
    # What is added exceeds the whole where the labels differ in the other direction.
    side = " the other way" if added.value > abs(finding.value) else ""
    return f"; the labels differ by {labels}{side}, the model adds {value}"


def _shares(adjustment: Adjustment) -> str:
    return f"{percent(adjustment.group_value)} and {percent(adjustment.other_value)}"


def uncapitalised(text: str) -> str:
    """Return text with a small first letter, unless it begins with an abbreviation."""
    if text[1:2].isupper():
        return text
    return text[:1].lower() + text[1:]


def certainty(finding: Finding) -> str:
    """Say how sure a value is, in the unit that people use: interval, n, chance level and q."""
    if is_comparison(finding):
        return _certainty_of_pair(finding)
    if finding.audit == MITIGATION:
        return _certainty_of_difference(finding, "Change")
    scaled, _ = scale_of(finding)
    ratio = ratio_text(finding)
    value = f"{sized(finding, finding.value)}{for_group(finding)}"
    text, n_text = f"{name_of(finding)} {value} (", f"n = {count(finding.n)})"
    if spec_of_shown(finding).unit == "log ratio":
        text += f"ln {number(finding.value)}, "
    if not math.isnan(finding.ci_low):
        ends = f"{scaled(finding.ci_low)} to {scaled(finding.ci_high)}"
        text += f"{100 * finding.level:g} % interval {ends}, "
    text += n_text
    if not math.isnan(finding.chance):
        # Digits that the value doesn't show would only make noise of the draws look like a result.
        text += f"; {scaled(round(finding.chance, 3))} expected by chance"
    if ratio and not finding.by_ratio:
        text += f"; {ratio}"
    text = f"{text}{_corrected_p(finding)}."
    if finding.by_ratio:
        text = f"{_capitalised(ratio)}. {text}"
    return text


def _corrected_p(finding: Finding) -> str:
    if math.isnan(finding.q_value):
        return ""
    return f"; corrected p {equal_q(finding)}"


def corrected_size(finding: Finding, conclusion: Conclusion) -> str:
    """State the size of a conclusion corrected for picking its group, from three groups on."""
    if not conclusion.real or conclusion.compared < 3 or math.isnan(conclusion.corrected):
        return ""
    scaled, unit = scale_of(finding)
    low, high = scaled(conclusion.corrected_low), scaled(conclusion.corrected_high)
    size, ends = scaled(conclusion.corrected), f"{low} to {high}"
    if low != high and size in (low, high):
        # Where the runner-up is as extreme, the correction ends at a limit of the interval.
        ends = f"the {'low' if size == low else 'high'} end of {ends}"
        size = f"{size}{unit}, {ends}"
    else:
        size = f"{size}{unit} ({ends})"
    picked = "lowest" if conclusion.group_value <= conclusion.other_value else "highest"
    if conclusion.aggregate is Aggregate.DIFFERENCE and not finding.compared_to:
        picked = "lowest and highest"
    return f"Corrected for picking the {picked} of {conclusion.compared} groups: {size}."


def conclusion_certainty(finding: Finding, conclusion: Conclusion) -> str:
    """Say how sure a conclusion is: at equal classes where that leads, then over all rows."""
    corrected = corrected_size(finding, conclusion)
    if conclusion.at_equal_mix is None:
        return f"{certainty(finding)} {corrected}".strip()
    scaled, unit = scale_of(finding)
    value = f"{scaled(conclusion.size)}{unit}"
    ends = f"{100 * finding.level:g} % interval {scaled(conclusion.low)} to"
    return (
        f"At equal mix of classes the difference is {value} ({ends} {scaled(conclusion.high)}). "
        f"Over all rows: {certainty(finding)}"
    )


def sized(finding: Finding, value: float) -> str:
    """Return a number of a finding in the unit that people use."""
    scaled, unit = scale_of(finding)
    return f"{scaled(value)}{unit}"


def sized_ends(finding: Finding, low: float, high: float) -> str:
    """Return two numbers of a finding as a range, with their unit once."""
    scaled, unit = scale_of(finding)
    return f"{scaled(low)} to {scaled(high)}{unit}"


def sized_interval(finding: Finding) -> str:
    """Return the value of a finding in the unit that people use, with its interval."""
    scaled, _ = scale_of(finding)
    text = sized(finding, finding.value)
    if math.isnan(finding.ci_low):
        return text
    return f"{text} ({scaled(finding.ci_low)} to {scaled(finding.ci_high)})"


def scale_of(finding: Finding) -> tuple[Callable[[float], str], str]:
    """Return how numbers of a finding are shown without their unit, and the unit."""
    unit = spec_of_shown(finding).unit
    if unit in ("share", "points"):
        share = unit == "share" and not finding.change_from
        return _hundredths, " %" if share else " points"
    if unit == "log ratio":
        return _ratio, " times"
    if unit == "degrees":
        return (lambda value: number(math.degrees(value), 1)), "°"
    return number, ""


def _hundredths(share: float) -> str:
    return number(100 * share, 1)


def _ratio(log: float) -> str:
    """Return the ratio of a logarithm; infinite where it is too large for a float, 0 of −∞."""
    ratio = math.inf if log >= _LARGEST_LOG else math.exp(log)
    return number(ratio, 2) if ratio else "0"


_SIDES = {"higher": "above chance", "lower": "below chance", "either": "either way"}
_ORDER = [*VERDICT_TITLES]


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Order findings by verdict, then by the excess that is certain, largest first.

    What is certain is the distance from chance to the closest end of the interval; without an
    interval, from the band of chance to the value. In units of the threshold, a gap of accuracies
    and an effect size can stand in one list. Verdicts that rest on a ratio follow those that rest
    on points, as the two have no common unit. Equal ones keep the order given.
    """
    return sorted(findings, key=lambda f: (_ORDER.index(f.verdict), f.by_ratio, -weight(f)))


def weight(finding: Finding) -> float:
    """Return the excess that is certain, in units of the threshold; see `ranked`."""
    if math.isnan(finding.excess):
        return -math.inf
    side = harmful_side(finding)
    close, chance_end = finding.ci_low, finding.chance_high
    if side < 0:
        close, chance_end = finding.ci_high, finding.chance_low
    if not math.isnan(close):
        certain = side * (close - finding.chance)
    elif math.isnan(chance_end):
        certain = side * (finding.value - finding.chance)
    else:
        certain = side * (finding.value - chance_end)
    if finding.threshold > 0:
        certain /= finding.threshold
    return certain


def better_off(finding: Finding) -> bool:
    """Whether a finding is about one group that is better off than the others."""
    if not finding.group or spec_of_finding(finding).rest_metric != "":
        return False
    groups = contrast(finding)
    return groups is not None and groups[0].group != finding.group


def null_sentence(finding: Finding) -> str:
    """Describe a finding's null hypothesis, and how its distribution was drawn."""
    if finding.null is NullHypothesis.NONE:
        return finding.null_drawn or "none"
    return NULL_SENTENCES[finding.null] + enclose(" (", finding.null_drawn, ")")


NULL_SENTENCES: Mapping[NullHypothesis, str] = MappingProxyType({
    NullHypothesis.ROWS: "Groups are exchangeable over all rows",
    NullHypothesis.WITHIN_CLASS: "Groups are exchangeable within each true class",
    NullHypothesis.WITHIN_PREDICTION: "Groups are exchangeable within each predicted label",
    NullHypothesis.WITHIN_SETS: "Groups are exchangeable within each counterfactual set",
    NullHypothesis.POOL_ORDER: "The order within each pool is random",
    NullHypothesis.UNITS: "Units exchange their groups",
    NullHypothesis.MEMBERS: "Members of the sets are exchangeable",
    NullHypothesis.REPLICATES: "Groups do not differ: bootstrap replicates are centred",
    NullHypothesis.MODELS: "The two models, or before and after, are exchangeable",
    NullHypothesis.SIGNS: "Differences may as well have the other sign",
    NullHypothesis.HYPOTHESIS: "The hypothesis is exchangeable over subjects",
    NullHypothesis.LARGEST: "The largest p of several null hypotheses",
    NullHypothesis.SHARES: "True shares are equal, or those from outside",
    NullHypothesis.REFERENCE: "Images are drawn from the reference population",
    NullHypothesis.MAPS: "Maps are exchangeable between images",
    NullHypothesis.CAUSE: "The cause does not matter within a group",
    NullHypothesis.NORMAL: "Numbers are independent and normal: Student's t",
    NullHypothesis.SAMPLES: "Images exchange their samples, or labels and predictions",
})  # fmt: skip
"""What is exchangeable under each null hypothesis."""


def metric_verdict(finding: Finding) -> str:
    """Return what people read for a real finding of its metric; "" for the verdict's title."""
    return spec_of_finding(finding).verdict_title if finding.verdict in REAL else ""


def shown_verdict(finding: Finding) -> str:
    """Return the title of a finding's verdict, with the threshold or ratio if it decides."""
    return metric_verdict(finding) or verdict_title(
        finding.verdict, comparison=is_comparison(finding), limit=limit_of(finding),
        ratio=deciding_ratio(finding),
    )  # fmt: skip


def limit_of(finding: Finding) -> str:
    """Return the smallest size that matters, in words; "" without a threshold."""
    if math.isnan(finding.threshold):
        return ""
    unit = spec_of_shown(finding).unit
    if unit == "log ratio":
        return f"a factor of {_ratio(finding.threshold)}"
    if unit in ("share", "points"):
        return f"{100 * finding.threshold:g} points"
    return f"{finding.threshold:g}"


def limit_from_chance(finding: Finding) -> str:
    """Return the smallest distance from chance that matters, in words."""
    return f"{limit_of(finding)} {_FROM_CHANCE[harm(finding)]}"


_FROM_CHANCE = {"higher": "above chance", "lower": "below chance", "either": "from chance"}


def names_groups(finding: Finding) -> bool:
    """Whether a finding's sentence says which group is worse off than which."""
    return _groups_sentence(finding) is not None


COMPARISON, MITIGATION = "comparison", "mitigation"


@dataclass(frozen=True)
class Pair:
    """The two models of a finding; its value is the second's minus the first's.

    Attributes
    ----------
    first, second : str
    values : tuple of float
        NaN where a model has none.
    worse : str
        Which model is worse; "" where neither is or it is unknown.
    """

    first: str
    second: str
    values: tuple[float, float]
    worse: str

    @property
    def name(self) -> str:
        """The pair as the difference that is measured."""
        return f"{self.second} − {self.first}"


def is_comparison(finding: Finding) -> bool:
    """Whether a finding is about the difference of two models."""
    return finding.audit == COMPARISON


def compares(result: AuditResult) -> bool:
    """Whether a result compares models, rather than auditing each."""
    return any(is_comparison(finding) for finding in result.findings)


def pair_of(finding: Finding) -> Pair | None:
    """Return the two models of a finding, or None if it is about one."""
    if not is_comparison(finding):
        return None
    parameters = finding.parameters
    values = _as_float(parameters["value_a"]), _as_float(parameters["value_b"])
    return Pair(parameters["model_a"], parameters["model_b"], values, parameters["worse"])


def _as_float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def pairs_of(findings: Iterable[Finding]) -> list[tuple[Finding, Pair]]:
    """Return the findings that compare two models, with these."""
    return [(finding, pair) for finding in findings if (pair := pair_of(finding))]


def models_of(result: AuditResult) -> list[str]:
    """Return the models in order of first appearance in the findings."""
    names: dict[str, None] = {}
    for finding in result.findings:
        if pair := pair_of(finding):
            names |= {pair.first: None, pair.second: None}
        else:
            names[finding.model] = None
    return [*filter(None, names)]


def place_text(finding: Finding) -> str:
    """Return the rows of two models' values: " for" a group, or " over" all groups."""
    if finding.group:
        return f" for {named(finding.group)}"
    return enclose(" over ", finding.groups)


def pair_sentence(finding: Finding, pair: Pair) -> str:
    """Say what both models come to, how far they are apart, and who is worse."""
    spec = spec_of_shown(finding)
    subject = enclose(" of “", finding.subject, "”")
    over = place_text(finding)
    n_text = f"n = {count(finding.n)}"
    if over_subjects(finding):
        n_text = plural(finding.n, "subject")
    # One measure may come in several versions, such as words with words and images with images.
    version = _version_note(finding)
    start = f"{spec.title}{subject}{over}{version} ({n_text}): {_values_text(pair, spec)}"
    if math.isnan(finding.value):
        return f"{start}; the difference can't be estimated ({finding.reason})."
    scale, digits, unit = (100, 1, " points") if spec.unit in _HUNDREDTHS else (1, 3, "")
    size = f"{number(scale * abs(finding.value), digits)}{unit}"
    low, high = scale * finding.ci_low, scale * finding.ci_high
    if finding.value < 0:
        low, high = -high, -low
    if not math.isnan(finding.ci_low):
        size += f" {interval(low, high, digits)}"
    close = f"too close to matter (under {number(scale * finding.threshold, digits)}{unit})"
    return f"{start}, a difference of {size}{_end(finding, pair, close)}."


def _values_text(pair: Pair, spec: MetricSpec) -> str:
    """Return both models with their values, the better one first."""
    first, second = (value_text(spec, value) for value in pair.values)
    texts = [f"{pair.first} {first}", f"{pair.second} {second}"]
    if pair.worse == pair.first:
        texts.reverse()
    return ", ".join(texts)


def _end(finding: Finding, pair: Pair, close: str) -> str:
    if finding.verdict == Verdict.NONE:
        return f"; no verdict: {finding.reason or 'described, not tested'}"
    if finding.verdict == Verdict.BELOW_THRESHOLD:
        return f"; {close}"
    if finding.verdict == Verdict.DETECTED:
        return f": worse for {pair.worse}, and perhaps {close}"
    if finding.verdict == Verdict.INCONCLUSIVE:
        return "; these data cannot tell which is worse"
    return f": worse for {pair.worse}"


def oriented(finding: Finding, pair: Pair) -> tuple[float, float, float]:
    """Return difference and interval, turned so that positive is better for the second model."""
    value, low, high = finding.value, finding.ci_low, finding.ci_high
    if pair.worse and (value > 0) == (pair.worse == pair.second):
        return -value, -high, -low
    return value, low, high


def over_subjects(finding: Finding) -> bool:
    """Whether a finding compares two models over the subjects that both have."""
    return is_comparison(finding) and finding.unit == "subject"


def changed(result: AuditResult) -> list[str]:
    """Say of each pair of models how many disparities one removes, keeps and adds."""
    texts = []
    for (first, second), changes in panels(rows(result, "changes"), "model_a", "model_b").items():
        counts = Counter(row["change"] for row in changes)
        disparities = plural(counts["went"] + counts["stayed"], "disparity", "disparities")
        texts.append(
            f"{second} removes {counts['went']} of the {disparities} of {first}, keeps "
            f"{counts['stayed']} and adds {counts['came']}."
        )
    return texts


def comparison_sentence(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say which of two models is worse, or how much worse one may still be."""
    if not conclusion.real:
        return _bound_of_pair(finding, conclusion)
    if conclusion.reverse is not None and _differ_by_place(conclusion, conclusion.reverse):
        text = _both_ways(conclusion, conclusion.reverse)
    else:
        text = _difference_of_models(conclusion)
        if conclusion.reverse is not None:
            text += "; " + _difference_of_models(conclusion.reverse)
    if conclusion.alike_in:
        metrics = listed([spec_for(metric).label for metric in conclusion.alike_in])
        text = f"The models are alike in {metrics}; " + text
    names = tuple(standing.model for standing in conclusion.standings)
    text = text if text.parts[0].group in names else text.capitalised()
    return text + "." + enclose(" ", finding.beside)


def _bound_of_pair(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say how large a difference of two models may still be that was not found."""
    spec, (better, worse) = spec_of_shown(finding), conclusion.standings
    of = enclose(" of “", shortened(finding.subject), "”")
    over = f" for any {finding.groups}" if finding.group else place_text(finding)
    models, place = f"{better.model} and {worse.model}", f"{spec.label}{of}{over}"
    reach = max(abs(finding.ci_low), abs(finding.ci_high))
    rows = f"{enclose('', named(finding.group), ', ')}{plural(finding.n, finding.unit)}"
    untested = math.isnan(finding.p_value) and not conclusion.real
    if math.isnan(finding.value) or untested or conclusion.verdict is Verdict.NONE:
        reason = finding.reason or "it is described, not tested"
        return Sentence(f"{models} have no verdict in {place}: {reason}.")
    start, found = f"No difference between {models} in {place}", sized(finding, reach)
    if conclusion.verdict is Verdict.BELOW_THRESHOLD and not math.isnan(reach):
        size = f" larger than {found}" if reach else ""
        return Sentence(f"{start}{size} ({rows}).")
    if math.isnan(reach):
        return Sentence(f"{start} was found ({rows}).")
    return Sentence(f"{start} was found; up to {found} can't be excluded ({rows}).")


def _spec_of(conclusion: Conclusion) -> MetricSpec:
    return spec_for(conclusion.metric, conclusion.aggregate, conclusion.compared_to)


def _difference_of_models(conclusion: Conclusion) -> Sentence:
    """Say which of two models is worse, with both values."""
    spec, (better, worse) = _spec_of(conclusion), conclusion.standings
    over = Sentence(enclose(" over ", conclusion.groups))
    if conclusion.group:
        over = Sentence(" for ", named(conclusion.group))
    text = fill(
        _pair_clause(spec, conclusion.groups),
        worse=_model_part(worse.model), better=_model_part(better.model), label=spec.label,
        of=enclose(" of “", shortened(conclusion.subject), "”"), over=over,
        groups=conclusion.groups,
    )  # fmt: skip
    values = f" {value_text(spec, worse.value)} against {value_text(spec, better.value)}"
    return text + f"{values} for " + Sentence(_model_part(better.model))


def _differ_by_place(conclusion: Conclusion, reverse: Conclusion) -> bool:
    """Whether models differ both ways in one measure, for different groups or subjects."""
    spec = _spec_of(conclusion)
    same = spec == _spec_of(reverse) and conclusion.groups == reverse.groups
    places = [(item.group, item.subject) for item in (conclusion, reverse)]
    return same and spec.rate and all(any(place) for place in places) and len({*places}) > 1


def _both_ways(conclusion: Conclusion, reverse: Conclusion) -> Sentence:
    """Say for which groups or subjects the better model is better, and for which it is worse."""
    spec, (better, worse) = _spec_of(conclusion), conclusion.standings
    other_values = [value_text(spec, standing.value) for standing in reversed(reverse.standings)]
    values = f"{value_text(spec, better.value)} against {value_text(spec, worse.value)}"
    return Sentence(
        _model_part(better.model), " is better", _place_of(conclusion), " and worse",
        _place_of(reverse), " than ", _model_part(worse.model),
        f": {spec.label} {values}, and {' against '.join(other_values)}",
    )  # fmt: skip


def _place_of(conclusion: Conclusion) -> Sentence:
    text = Sentence(enclose(" on “", shortened(conclusion.subject), "”"))
    return text + Sentence(" for ", named(conclusion.group)) if conclusion.group else text


def _pair_clause(spec: MetricSpec, groups: str) -> str:
    """Return the template of how one model is worse than another, before the values of both."""
    if spec.pair_clause:
        return spec.pair_clause
    if groups and not spec.rate and spec.harm != "lower":
        return "{worse} differs more by {groups}: {label}{of}"
    side = "lower" if spec.harm == "lower" else "higher"
    return f"{{worse}} has the {side} {{label}}{{of}}{{over}}:"


def value_text(spec: MetricSpec, value: float) -> str:
    """Return a model's value in the unit of its metric; "–" where it has none."""
    if math.isnan(value):
        return "–"
    if spec.unit == "share":
        return percent(value)
    if spec.unit == "points":
        return f"{number(100 * value, 1)} points"
    return number(value)


def _certainty_of_pair(finding: Finding) -> str:
    """Say how sure the difference of two models is, without its sign."""
    low, high = finding.ci_low, finding.ci_high
    if finding.value < 0:
        low, high = -high, -low
    size = replace(finding, value=abs(finding.value), ci_low=low, ci_high=high)
    return _certainty_of_difference(size, "Difference")


def _certainty_of_difference(finding: Finding, name: str) -> str:
    if math.isnan(finding.value):
        return ""
    shares = spec_for(finding.metric, finding.aggregate, finding.compared_to).unit in _HUNDREDTHS
    unit, scaled = (" points", _hundredths) if shares else ("", _plain)
    ends = ""
    if not math.isnan(finding.ci_low):
        interval_text = f"{scaled(finding.ci_low)} to {scaled(finding.ci_high)}"
        ends = f"{100 * finding.level:g} % interval {interval_text}, "
    n_text = f"n = {count(finding.n)}"
    if over_subjects(finding):
        n_text = plural(finding.n, "subject")
    return f"{name} {scaled(finding.value)}{unit} ({ends}{n_text}){_corrected_p(finding)}."


_HUNDREDTHS = ("share", "points")


def _plain(value: float) -> str:
    return number(value)


def change_sentence(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say how a number of a model changed when it was mitigated."""
    spec = spec_for(finding.metric, finding.aggregate, finding.compared_to)
    values = {standing.model: standing.value for standing in conclusion.standings}
    before = values.pop(finding.change_from)
    ((recipe, after),) = values.items()
    first, last = value_text(spec, before), value_text(spec, after)
    place = f", {spec.label}{enclose(' over ', finding.groups)}"
    change = f"{'falls' if after < before else 'rises'} from {first} to {last}"
    if first == last:
        change = f"stays at {first}"
    return Sentence("With ", _model_part(recipe), f"{place} {change}.")


def counts_sentence(conclusion: Conclusion) -> str:
    """Say on how many classes, subjects or metrics each of two models is better."""
    n, over = conclusion.compared_on, conclusion.compared_over
    if n < 2:
        return ""
    first, second = conclusion.standings
    word = {"metrics": "in", "groups": "for"}.get(over, "on")
    # Subjects are counted by their numbers, others by verdicts: no verdict isn't equality.
    counted = over == "subjects"
    if not (first.better_on or second.better_on):
        neither = f"Neither {first.model} nor {second.model} is better"
        return f"{neither if counted else 'No difference was found'} {word} any of {n} {over}."
    better = f"{first.model} is better {word}"
    if first.better_on == n:
        return f"{better} {'both' if n == 2 else f'all {n}'} {over}."
    other = f"worse {word} {second.better_on or 'none'}"
    if not (counted or second.better_on):
        other = f"no difference was found {word} the others"
    return f"{better} {first.better_on} of {n} {over}, {other}."


_EXTREMES = {"lower": ("highest", "lowest"), "higher": ("smallest", "largest")}
_OF_TWO = MappingProxyType({
    "highest": "higher", "lowest": "lower", "smallest": "smaller", "largest": "larger",
})  # fmt: skip


def ranking_sentence(finding: Finding, conclusion: Conclusion) -> Sentence:
    """Say which of several models is best and which is worst, where they differ."""
    spec = spec_of_finding(finding)
    best, worst = conclusion.standings[0], conclusion.standings[-1]
    place = f"{spec.label}{enclose(' by ', finding.groups)}"
    first, last = (value_text(spec, standing.value) for standing in (best, worst))
    if conclusion.opposite:
        return _opposite_sentence(spec, conclusion, place)
    if not conclusion.worse:
        start = f"These data can't rank the models by {place}"
        if conclusion.verdict is Verdict.BELOW_THRESHOLD:
            start = f"The models differ too little in {place} to matter"
        return Sentence(
            f"{start}: {first} for ", _model_part(best.model), f", {last} for ",
            _model_part(worst.model), ".",
        )  # fmt: skip
    words = _EXTREMES.get(spec.value_harm, _EXTREMES["higher"])
    if len(conclusion.standings) == 2:
        words = _OF_TWO[words[0]], _OF_TWO[words[1]]
    return Sentence(
        _model_part(best.model), f" has the {words[0]} {place}, {first}; ",
        _model_part(worst.model), f" the {words[1]}, {last}.",
    )  # fmt: skip


def _opposite_sentence(spec: MetricSpec, conclusion: Conclusion, place: str) -> Sentence:
    """Say for which groups two models are worse."""
    first, second = conclusion.opposite
    values = " and ".join(value_text(spec, standing.value) for standing in (first, second))
    return Sentence(
        _model_part(first.model), " is worse for ", named(first.group), ", ",
        _model_part(second.model), " for ", named(second.group), f": {place} {values}.",
    )  # fmt: skip


def ranking_certainty(finding: Finding, conclusion: Conclusion) -> str:
    """Say how sure the difference of the best model and the worst is."""
    scaled, unit = scale_of(finding)
    size = f"{scaled(conclusion.size)}{unit.replace(' %', ' points')}"
    ends = f"{scaled(conclusion.low)} to {scaled(conclusion.high)}"
    if conclusion.opposite:
        n_text = f"n = {count(conclusion.n)}"
        return f"Difference with signs {size} ({ends}, {n_text})."
    n_text, pairs = f"n = {count(conclusion.n)}", max(math.comb(len(conclusion.standings), 2), 1)
    # The best and the worst model are the widest of all pairs, so each has a share of the error.
    level = round(100 * (1 - (1 - finding.level) / pairs), 1)
    chosen = f" for the widest of {pairs} pairs" if pairs > 1 else ""
    return f"Difference {size} ({level:g} % interval {ends}{chosen}, {n_text})."


def standings_text(finding: Finding, conclusion: Conclusion) -> str:
    """Return the values of three models or more, the best first."""
    standings, spec = conclusion.standings, spec_of_finding(finding)
    if len(standings) < 3:
        return ""
    values = [f"{standing.model} {value_text(spec, standing.value)}" for standing in standings[:8]]
    if len(standings) > len(values):
        values.append(f"{len(standings) - len(values)} more")
    return f"{'; '.join(values)}."
