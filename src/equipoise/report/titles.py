"""The title of a page: the conclusion that leads, its groups marked, and one line of how sure."""

from collections.abc import Sequence
from dataclasses import replace

from equipoise.core import Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.sentences import EMPTY, Sentence
from equipoise.core.wording import shortened
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import Role, Span, Summary, has
from equipoise.report.expecting import for_group
from equipoise.report.ratio_words import ratio_text
from equipoise.report.text import equal_q
from equipoise.report.words import (
    conclusion_sentence,
    harm,
    headline,
    is_comparison,
    limit_from_chance,
    limit_of,
    metric_verdict,
    name_of,
    sentence_at_equal_mix,
    sized,
    sized_ends,
    sized_interval,
    uncapitalised,
    unit_note,
)
from equipoise.stats.verdict import LEAST_RATIO

MOST_WORDS = 25
"""Words of a title."""

_ROLES: tuple[Role, Role] = ("worse", "other")


def title_of(finding: Finding, conclusion: Conclusion, start: str = "") -> tuple[Span, ...]:
    """Return a conclusion as a title, with the names of its groups marked.

    Parameters
    ----------
    finding : Finding
        The one that states the conclusion.
    conclusion : Conclusion
    start : str
        What stands before the sentence, such as the model's name.

    Returns
    -------
    tuple of Span
        At most `MOST_WORDS` words: the sentence, else its first part, else with short names.
    """
    texts = [conclusion_sentence(finding, conclusion)]
    if conclusion.at_equal_mix is not None:
        texts.append(sentence_at_equal_mix(finding, conclusion, explained=False))
    if conclusion.real:
        narrowed = _of_two_groups(finding, conclusion)
        texts += [headline(narrowed), headline(_with_short_names(narrowed))]
    texts = [start + text for text in texts]
    text = next(filter(fits, texts), min(texts, key=len))
    return spans_of(cut(text), sides_of(finding, conclusion))


def fits(text: str) -> bool:
    """Whether a text is short enough for a title."""
    return len(text.split(" ")) <= MOST_WORDS


def cut(text: Sentence) -> Sentence:
    """Return a text with at most `MOST_WORDS` words; "…" stands for the others."""
    return text.first_words(MOST_WORDS)


def plain_title(summary: Summary) -> tuple[Span, ...]:
    """Return the title of a summary, which is its first statement unless it has one."""
    if summary.title:
        return summary.title
    first = summary.statements[0]
    text, conclusion = Sentence(first.text), first.conclusion
    # A second difference, and the mistakes behind the first one, follow in the statement.
    if first.finding and conclusion and is_comparison(first.finding) and not fits(text):
        text = conclusion_sentence(
            replace(first.finding, beside=""), replace(conclusion, reverse=None)
        )
    return spans_of(cut(text), _models_of(conclusion))


def _models_of(conclusion: Conclusion | None) -> tuple[str, str]:
    """Return the worst and the best of the models that a conclusion ranks; "" where none is."""
    if conclusion is None or not conclusion.real or not conclusion.standings:
        return "", ""
    return conclusion.standings[-1].model, conclusion.standings[0].model


def _of_two_groups(finding: Finding, conclusion: Conclusion) -> Finding:
    """Return a finding that compares the two groups of a conclusion alone."""
    names = conclusion.group, conclusion.other
    parts = tuple(part for part in finding.by_group if part.group in names)
    by_group = parts if len(parts) > 1 else finding.by_group
    # What follows a sentence is left out of a title.
    within = "{direction}" in spec_of_finding(finding).sentence
    return replace(finding, by_group=by_group, direction=finding.direction if within else EMPTY)


def _with_short_names(finding: Finding) -> Finding:
    """Return a finding whose groups have names that a title has room for."""
    parts = tuple(replace(part, group=shortened(part.group)) for part in finding.by_group)
    return replace(finding, by_group=parts, group=shortened(finding.group))


def sides_of(finding: Finding, conclusion: Conclusion) -> tuple[str, str]:
    """Return the groups that a conclusion names, the worse one first; "" where it names none.

    Of two sets of groups whose difference has a sign, the first comes first. A comparison names
    models.
    """
    if not conclusion.real:
        return "", ""
    if conclusion.standings:
        return _models_of(conclusion)
    if conclusion.group:
        return conclusion.group, conclusion.other
    if not finding.sides:
        return "", ""
    first, second = finding.sides
    return first, second


def spans_of(sentence: Sentence, sides: Sequence[str]) -> tuple[Span, ...]:
    """Return the parts of a sentence; those that name one of two groups have its role."""
    roles: dict[str, Role] = {}
    for name, role in zip(sides, _ROLES, strict=True):
        if name:
            roles |= {name: role, shortened(name): role}
    spans = list[Span]()
    for part in sentence.parts:
        role = roles.get(part.group, "")
        if spans and spans[-1].role == role == "":
            spans[-1] = Span(spans[-1].text + part.text)
        else:
            spans.append(Span(part.text, role))
    return tuple(spans)


def verdict_line(finding: Finding, conclusion: Conclusion | None = None) -> str:
    """Answer in one line: is a difference real, is it large, and what is the limit.

    Where the difference at equal classes leads, it is that one.
    """
    if conclusion is not None and conclusion.at_equal_mix is not None:
        size = sized(finding, conclusion.size)
        low, high = sized(finding, conclusion.low), sized(finding, conclusion.high)
        text = f"At equal mix of classes the difference is {size} ({low} to {high})"
        if has(finding.threshold):
            text += f"; the limit is {limit_of(finding)}"
        return f"{text}."
    if finding.verdict is Verdict.NOT_ESTIMABLE or not has(finding.value):
        return f"Can't be estimated: {finding.reason or 'no reason was recorded'}."
    size = sized_interval(finding) + for_group(finding)
    if finding.compared_to:
        size = f"{uncapitalised(name_of(finding))} {size}"
    elif unit_note(finding):
        size = f"{name_of(finding)} {size}"
    if finding.by_ratio:
        size = f"{ratio_text(finding)}; the limit is {LEAST_RATIO:g}"
    elif has(finding.threshold):
        size += f"; the limit is {limit_from_chance(finding)}"
    real, large = _ANSWERS.get(finding.verdict, ("Not tested", "Value"))
    if metric_verdict(finding):
        large = "Value"
    return f"{real}{_chance_text(finding)}. {large}: {size}."


_ANSWERS = {
    Verdict.DISPARITY: ("Real", "Large"),
    Verdict.DETECTED: ("Real", "Size uncertain"),
    Verdict.BELOW_THRESHOLD: ("Nothing that matters", "Small"),
    Verdict.INCONCLUSIVE: ("May be chance", "Size unknown"),
}


def _chance_text(finding: Finding) -> str:
    """Return what chance alone gives, and the corrected p, as the end of an answer."""
    texts = []
    if has(finding.chance_low) and has(finding.chance_high):
        low, high = sized(finding, finding.chance_low), sized(finding, finding.chance_high)
        side = harm(finding)
        if side == "higher":
            texts.append(f"chance alone gives up to {high}")
        elif side == "lower":
            texts.append(f"chance alone gives down to {low}")
        else:
            ends = sized_ends(finding, finding.chance_low, finding.chance_high)
            texts.append(f"chance alone gives {ends}")
    text = f": {texts[0]}" if texts else ""
    if has(finding.q_value):
        text += f" (corrected p {equal_q(finding)})"
    return text
