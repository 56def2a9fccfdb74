"""Findings in words: names of metrics, who is worse off, and the numbers in one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from equipoise.core import Finding, GroupValue, Verdict
from equipoise.core.wording import shortened
from equipoise.report.comparison import is_comparison, pair_of, pair_sentence
from equipoise.report.contrast import Worse, contrast
from equipoise.report.names import EFFECT_SIZES, band, title
from equipoise.report.text import interval, number, p_value, percent
from equipoise.report.voices import Harm, voice

_GAPS = ("demographic_parity", "answer_gap")
"""Metrics whose name says already that groups are compared."""

# What a group's number says, by metric: the model's deed, and its object for a class {s}.
_DEEDS = {
    "accuracy": ("is right on", "the images labelled"),
    "worst_group_accuracy": ("is right on", "the images labelled"),
    "accuracy_gap": ("is right on", "the images labelled"),
    "hit_rate": ("has a true class among its first answers on", "the images labelled"),
    "unanswered_rate": ("gives no answer on", "the images labelled"),
    "unknown_rate": ("says that it does not know on", "the images labelled"),
    "refused_rate": ("refuses an answer on", "the images labelled"),
    "empty_rate": ("says nothing on", "the images labelled"),
}
_CLASS_DEEDS = {
    "accuracy": ("tells “{s}” from the rest rightly on", "the images labelled"),
    "demographic_parity": ("says “{s}” on", "the images labelled"),
    "selection_rate": ("says “{s}” on", "the images labelled"),
    "answer_gap": ("answers “{s}” on", "the answered images labelled"),
    "true_positive_rate": ("recognises “{s}” on", "its images labelled"),
    "false_negative_rate": ("misses “{s}” on", "its images labelled"),
    "false_positive_rate": ("wrongly says “{s}” on", "the images of other classes labelled"),
    "true_negative_rate": ("rightly does not say “{s}” on", "the images of other classes labelled"),
    "negative_predictive_value": (
        "is right in not saying “{s}” on",
        "the other answers for images labelled",
    ),
    "precision": ("is right in saying “{s}” on", "such answers for images labelled"),
}
# What a number says as a whole, by metric and whether it is about one class.
_FRAMES = {
    ("demographic_parity", False): (
        "How often {model} gives a class as its answer differs by up to {points} between groups "
        "of {groups}."
    ),
    ("demographic_parity", True): (
        "How often {model} says “{subject}” differs by {points} between groups of {groups}."
    ),
    ("equalized_odds", False): (
        "Among images of the same truth, how often {model} gives a class as its answer differs by "
        "up to {points} between groups of {groups}."
    ),
    ("equalized_odds", True): (
        "Among images that are, or are not, of “{subject}”, how often {model} says so differs by "
        "{points} between groups of {groups}."
    ),
    ("average_odds", True): (
        "The mean of true and false positive rate with which {model} says “{subject}” differs by "
        "{points} between groups of {groups}."
    ),
    ("effect_size_mean", False): (
        "Over the classes, what {model} answers depends on {groups} with a mean effect size of "
        "{value} ({band})."
    ),
    ("accuracy", False): "{model} is right on {share} of the images.",
    ("skewsize", False): (
        "The effect sizes of {model} over the classes have a skewness (SkewSize) of {value} for "
        "{groups}; higher means that fewer classes are affected."
    ),
}
_WORSE_WHEN_HIGHER = frozenset(
    {"unanswered_rate", "false_positive_rate", "false_negative_rate", "effect_size_mean"}
).union(EFFECT_SIZES)
_VALUES_WORSE_WHEN_LOWER = frozenset({"worst_group_accuracy"})
_LARGEST_LOG = 700.0
_SUFFIXES = ("_difference", "_ratio", "_gap")


def name_of(finding: Finding) -> str:
    """Return a finding's metric for display; the rates of a class are differences of groups."""
    rate = finding.subject and finding.metric in _CLASS_DEEDS and finding.metric not in _GAPS
    return f"{title(finding.metric)} difference" if rate else title(finding.metric)


def heading(finding: Finding) -> str:
    """Return what a finding is about: metric, class, model, groups and version."""
    version = "" if finding.version == "default" else finding.version
    pair = pair_of(finding)
    model = f"{pair.second} against {pair.first}" if pair else finding.model
    place = ", ".join(part for part in (model, finding.groups, version) if part)
    return f"{_subject_title(finding)}: {place}"


def _subject_title(finding: Finding) -> str:
    subject = f" of “{shortened(finding.subject)}”" if finding.subject else ""
    return f"{name_of(finding)}{subject}"


def sentence(finding: Finding) -> str:
    """Say what a finding means for the groups, in a sentence or two.

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
    if finding.metric in EFFECT_SIZES:
        return _effect_sentence(finding)
    return _share_sentence(finding) or _plain_sentence(finding)


def _effect_sentence(finding: Finding) -> str:
    """Say how strongly answers depend on the groups, and who is wrong more often."""
    size = f"{title(finding.metric)} {number(finding.value)}, {band(finding.value)}"
    what = f"images of “{shortened(finding.subject)}”" if finding.subject else "an image"
    verb = {
        Verdict.DISPARITY: "depends on",
        Verdict.BELOW_THRESHOLD: "hardly depends on",
    }.get(finding.verdict, "may depend on")
    text = f"What {finding.model} answers for {what} {verb} {finding.groups} ({size})"
    found = contrast(finding.by_group, "higher")
    if found is None or not _are_shares(finding.by_group):
        return f"{text}."
    return (
        f"{text}: it is wrong on {_share(found.worst)} of those labelled {found.worst.group}, "
        f"against {percent(found.counterpart.value)} of those labelled {found.counterpart.group}."
    )


def _deed(finding: Finding) -> tuple[str, str] | None:
    metric = finding.metric
    names = (metric, *(metric.removesuffix(s) for s in _SUFFIXES if metric.endswith(s)))
    deeds = _CLASS_DEEDS if finding.subject else _DEEDS
    found = next((deeds[name] for name in names if name in deeds), None)
    return found and (found[0].replace("{s}", shortened(finding.subject)), found[1])


def _share_sentence(finding: Finding) -> str | None:
    deed = _deed(finding)
    found = contrast(finding.by_group, worse_side(finding))
    if deed is None or found is None or not _are_shares(finding.by_group):
        return None
    verb, objects = deed
    worst, other = found.worst, found.counterpart
    text = (
        f"{finding.model} {verb} {_share(worst)} of {objects} {worst.group}, "
        f"against {percent(other.value)} of those labelled {other.group}."
    )
    if found.best.group == other.group:
        return text
    end = "lowest" if worse_side(finding) == "higher" else "highest"
    return f"{text} The {end} share is {percent(found.best.value)}, for {found.best.group}."


def worse_side(finding: Finding) -> Worse:
    """Return which side of its groups' numbers is worse."""
    spoken = voice(finding.audit)
    if spoken is not None:
        return spoken.groups_worse.get(finding.metric, "lower")
    names = {finding.metric, *(finding.metric.removesuffix(suffix) for suffix in _SUFFIXES)}
    behind = finding.reason if finding.metric == "equalized_odds" else ""
    if names & _WORSE_WHEN_HIGHER or "false_positive_rate" in behind:
        return "higher"
    return "lower"


def harm(finding: Finding) -> Harm:
    """Return which side of chance is worse for the value itself."""
    if is_comparison(finding):
        return "either"
    spoken = voice(finding.audit)
    if spoken is not None:
        return spoken.harm.get(finding.metric, "higher")
    return "lower" if finding.metric in _VALUES_WORSE_WHEN_LOWER else "higher"


def harmful_side(finding: Finding) -> int:
    """Return 1 where harm lies above chance, -1 where it lies below; by the value where either."""
    side = harm(finding)
    if side == "either":
        return -1 if finding.excess < 0 else 1
    return -1 if side == "lower" else 1


def _are_shares(by_group: Sequence[GroupValue]) -> bool:
    return all(math.isnan(part.value) or 0 <= part.value <= 1 for part in by_group)


def _share(part: GroupValue) -> str:
    successes = round(part.value * part.n)
    exact = abs(part.value * part.n - successes) < 1e-6 * max(part.n, 1)
    counted = f"{successes} of {part.n}" if exact else f"n = {part.n}"
    return f"{percent(part.value)} ({counted})"


def _plain_sentence(finding: Finding) -> str:
    spoken = voice(finding.audit)
    frames = _FRAMES if spoken is None else spoken.frames
    frame = frames.get((finding.metric, bool(finding.subject)), "{title}: {value} for {place}.")
    text = frame.format(
        title=_subject_title(finding),
        value=number(finding.value),
        points=f"{number(100 * finding.value, 1)} percentage points",
        share=percent(finding.value),
        times=number(math.exp(finding.value), 2) if finding.value < _LARGEST_LOG else "∞",
        degrees=f"{number(math.degrees(finding.value), 1)}°",
        band=band(finding.value),
        model=finding.model,
        groups=finding.groups,
        place=", ".join(part for part in (finding.model, finding.groups) if part),
        subject=shortened(finding.subject),
        version="" if finding.version == "default" else f" ({finding.version})",
    )
    return text if finding.metric == "effect_size_mean" else _with_direction(text, finding)


def _with_direction(text: str, finding: Finding) -> str:
    direction = finding.direction.strip().rstrip(".")
    return f"{text} {direction[0].upper()}{direction[1:]}." if direction else text


def figures(finding: Finding) -> str:
    """Return a finding's numbers in one line: value, interval, chance level, threshold, q."""
    what = finding.model if is_comparison(finding) else name_of(finding)
    parts = [f"{what} {number(finding.value)}"]
    if not math.isnan(finding.ci_low):
        spread = finding.method.startswith("resampling spread")
        kind = "resampling spread" if spread else f"{100 * finding.level:g} % interval"
        parts.append(f"{kind} {interval(finding.ci_low, finding.ci_high)}")
    parts += _chance(finding)
    if not math.isnan(finding.threshold):
        parts.append(f"threshold {number(finding.threshold)} {_side_of_chance(finding)}")
    if not math.isnan(finding.q_value):
        parts.append(f"q\u00a0{p_value(finding.q_value)}")
    return " · ".join(parts)


def _chance(finding: Finding) -> list[str]:
    """Say what chance gives; of two models, whose difference is 0 if they are alike, the band."""
    drawn = not math.isnan(finding.chance_low)
    band_text = f" {interval(finding.chance_low, finding.chance_high)}" if drawn else ""
    if is_comparison(finding):
        return [f"if the models were alike{band_text}"] if drawn else []
    if math.isnan(finding.chance):
        return []
    return [f"by chance {number(finding.chance)}{band_text}"]


def _side_of_chance(finding: Finding) -> str:
    sides = {"higher": "above chance", "lower": "below chance", "either": "either way"}
    return sides[harm(finding)]


_ORDER = (
    Verdict.DISPARITY,
    Verdict.INCONCLUSIVE,
    Verdict.BELOW_THRESHOLD,
    Verdict.NOT_ESTIMABLE,
    Verdict.NONE,
)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Order findings by verdict, then by excess in units of the threshold, largest first.

    In units of the threshold, a gap of accuracies and an effect size can stand in one list.
    Without a threshold the excess itself counts; equal ones keep the order given.
    """
    return sorted(findings, key=lambda f: (_ORDER.index(f.verdict), -_weight(f)))


def _weight(finding: Finding) -> float:
    if math.isnan(finding.excess):
        return -math.inf
    harmful = harmful_side(finding) * finding.excess
    return harmful / finding.threshold if finding.threshold > 0 else harmful


def names_groups(finding: Finding) -> bool:
    """Whether a finding's sentence says which group is worse off than which."""
    return _share_sentence(finding) is not None
