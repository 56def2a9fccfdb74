"""The first screen: a sentence for each model, one chart, and what to do next."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.finding import REAL
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import (
    Badge,
    Chart,
    Page,
    Remark,
    Statement,
    Summary,
    has,
)
from equipoise.report.choice_effects import (
    changes_conclusions,
    chart_of_choices,
    table_of_steps,
)
from equipoise.report.choice_words import (
    choices_certainty,
    choices_sentence,
    scope_of_choices,
    short_choices_line,
)
from equipoise.report.forms import draw
from equipoise.report.leading_chart import chart_of
from equipoise.report.next_steps import fields_of
from equipoise.report.not_compared import statements_not_compared, steps_not_compared
from equipoise.report.page_verdicts import conclusions_about_groups
from equipoise.report.ranking_models import is_ranking
from equipoise.report.ratio_words import deciding_ratio
from equipoise.report.selecting import Selector, measure_of
from equipoise.report.short_lines import (
    short_certainty,
    short_line,
    wanted_data,
    wanted_items,
)
from equipoise.report.text import count, enclose, listed, plural
from equipoise.report.titles import title_of, verdict_line
from equipoise.report.words import (
    compares,
    conclusion_certainty,
    conclusion_sentence,
    counts_sentence,
    limit_of,
    metric_verdict,
    name_of,
    ranking_certainty,
    standings_text,
    uncapitalised,
    weight,
)

MOST_MODELS = 8
_MOST_NAMED = 2
_MODELS = "more model", "more models"


def summarize(
    result: AuditResult,
    leads: Sequence[Selector],
    caveat: str = "",
    steps: Sequence[str] = Page.steps,
    of_answers: Sequence[str] = (),
) -> Summary:
    """Return the first screen of an audit.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of Selector
        Metrics of the kind of audit, most important first, for a result without conclusions.
    caveat : str
        Shown where a statement is a disparity.
    steps : sequence of str
        What to do next about a disparity.
    of_answers : sequence of str
        Metrics that compare rows with an answer; where too few have one, this comes first.
    """
    statements = [*statements_not_compared(result, of_answers), *statements_of(result, leads)]
    statements.sort(key=lambda statement: not statement.is_disparity)
    first, last = about_whole_run(result)
    nouns = ("more pair of models", "more pairs of models") if compares(result) else _MODELS
    shown_statements = (
        *_statements_of_run(result, first),
        *statements[:MOST_MODELS],
        *_left_out(len(statements) - MOST_MODELS, *nouns),
        *_statements_of_run(result, last),
    )
    if not any(statement.is_disparity for statement in shown_statements):
        caveat = ""
    summary = Summary(shown_statements, caveat=caveat)
    chart = _chart_of_run(first, result) or _chart(shown_statements, result.findings)
    table = table_of_steps(first[0]) if first and first[0].steps else None
    return replace(
        _with_title(summary), chart=chart, table=table, steps=_steps(shown_statements, steps),
        advice=steps_not_compared(result, of_answers),
    )  # fmt: skip


def _with_title(summary: Summary) -> Summary:
    """Return a summary whose title is the conclusion of its first statement."""
    first = summary.statements[0]
    if first.finding is None or first.conclusion is None:
        return replace(summary, verdict=first.certainty)
    start = enclose("", first.conclusion.model, ": ")
    if first.conclusion.real or first.conclusion.at_equal_mix:
        start = ""
    title_spans = title_of(first.finding, first.conclusion, start)
    return replace(
        summary, title=title_spans, verdict=verdict_line(first.finding, first.conclusion)
    )


def statements_of(result: AuditResult, leads: Sequence[Selector] = ()) -> list[Statement]:
    """Return the statements on each model, or on each pair of models."""
    by_model = conclusions_by_model(result, leads)
    return [
        _statement(model, conclusions, result.findings) for model, conclusions in by_model.items()
    ]


def _left_out(n: int, noun: str, plural_noun: str) -> Iterator[Statement]:
    """Yield a statement that counts what has none of its own; nothing where all have one."""
    if n > 0:
        yield Statement(None, f"And {plural(n, noun, plural_noun)}.")


def about_whole_run(result: AuditResult) -> tuple[list[Conclusion], list[Conclusion]]:
    """Return what comes before the conclusions on groups, and what comes after them.

    Both are conclusions on choices of measurement, then rankings of models. A ranking comes first
    where it found a difference; choices do where one of them changes a conclusion.
    """
    others = [conclusion for conclusion in result.conclusions if not conclusion.about_groups]
    moved = {_place(conclusion) for conclusion in others if changes_conclusions(conclusion)}
    first = [
        conclusion for conclusion in others
        if (_place(conclusion) in moved if conclusion.steps else conclusion.real)
    ]  # fmt: skip
    return first, [conclusion for conclusion in others if conclusion not in first]


def _place(conclusion: Conclusion) -> tuple[str, str]:
    return conclusion.model, conclusion.groups


def _statements_of_run(
    result: AuditResult, conclusions: Sequence[Conclusion]
) -> Iterator[Statement]:
    """Yield a statement for each ranking, and for all metrics of a model under other choices."""
    by_place: dict[tuple[str, str], list[Conclusion]] = {}
    for conclusion in conclusions:
        if conclusion.steps:
            by_place.setdefault(_place(conclusion), []).append(conclusion)
    n_models, n_groups = (len({place[i] for place in by_place}) for i in range(2))
    for metrics in [*by_place.values()][:MOST_MODELS]:
        first, *further = metrics
        scope = scope_of_choices(first, models=n_models, groups=n_groups)
        remarks = (
            Remark(None, choices_sentence(other), "", short_choices_line(other))
            for other in further
        )
        yield Statement(
            None, enclose("", scope, ": ") + choices_sentence(first), choices_certainty(first),
            others=tuple(remarks),
        )  # fmt: skip
    yield from _left_out(len(by_place) - MOST_MODELS, "more sentence on choices of measurement",
                         "more sentences on choices of measurement")  # fmt: skip
    for conclusion in filter(is_ranking, conclusions):
        yield _ranking_statement(result, conclusion)


def _ranking_statement(result: AuditResult, ranking: Conclusion) -> Statement:
    finding = result.findings[ranking.finding]
    return Statement(
        Badge(ranking.verdict, comparison=True, limit=limit_of(finding)),
        conclusion_sentence(finding, ranking),
        ranking_certainty(finding, ranking),
        standings_text(finding, ranking),
        conclusion=ranking,
    )


def conclusions_by_model(
    result: AuditResult, leads: Sequence[Selector] = ()
) -> dict[str, list[Conclusion]]:
    """Return a run's conclusions by model, the leading one of each model first.

    Findings of no model, such as human judgements, are left out where they say nothing new.
    """
    by_model: dict[str, list[Conclusion]] = {finding.model: [] for finding in result.findings}
    for conclusion in conclusions_about_groups(result, leads):
        by_model[conclusion.model].append(conclusion)
    unnamed = by_model.get("", [])
    if len(by_model) > 1 and not any(map(_is_disparity, unnamed)):
        by_model.pop("", None)
    return by_model


def _is_disparity(conclusion: Conclusion) -> bool:
    return conclusion.verdict is Verdict.DISPARITY


def _statement(
    model: str, conclusions: Sequence[Conclusion], findings: Sequence[Finding]
) -> Statement:
    """Return the statement on a model: its leading conclusion, and the others in a line each."""
    if not conclusions:
        n_values = sum(finding.model == model for finding in findings)
        name = enclose("", model, ": ")
        return Statement(None, f"{name}{plural(n_values, 'value')}, none with a verdict.")
    first, *further = conclusions
    finding = findings[first.finding]
    text = conclusion_sentence(finding, first)
    if not (first.real or first.standings or first.at_equal_mix):
        text = enclose("", model, ": ") + text
    comparison = bool(first.standings)
    return Statement(
        Badge(
            first.verdict,
            comparison,
            limit_of(finding),
            deciding_ratio(finding),
            metric_verdict(finding),
        ),
        text,
        _certainty(first, findings) + enclose(" ", wanted_data(finding, first)),
        short_certainty(finding, first),
        agreement(first, findings) or _beside(first, findings),
        finding,
        tuple(_remark(other, findings, comparison=comparison) for other in further),
        first,
    )


def _certainty(conclusion: Conclusion, findings: Sequence[Finding]) -> str:
    """Say how sure a conclusion is; of two models that differ both ways, in both."""
    text = conclusion_certainty(findings[conclusion.finding], conclusion)
    if conclusion.reverse is None:
        return text
    return f"{text} The other way: {uncapitalised(_certainty(conclusion.reverse, findings))}"


def _remark(conclusion: Conclusion, findings: Sequence[Finding], *, comparison: bool) -> Remark:
    finding = findings[conclusion.finding]
    return Remark(
        Badge(conclusion.verdict, comparison, name=metric_verdict(finding)),
        conclusion_sentence(finding, conclusion),
        agreement(conclusion, findings),
        short_line(finding, conclusion),
        conclusion.groups,
    )


def _beside(conclusion: Conclusion, findings: Sequence[Finding]) -> str:
    """Return the sentence beside the weightiest real difference that is not the model's.

    Labels may differ between groups where nothing was found of the model itself.
    """
    differences = [
        finding
        for finding in findings
        if finding.model == conclusion.model and finding.verdict in REAL and finding.tested
        and not finding.leads
    ]  # fmt: skip
    if conclusion.real or not differences:
        return ""
    return max(differences, key=weight).beside


def agreement(conclusion: Conclusion, findings: Sequence[Finding]) -> str:
    """Name the other findings that show the same difference; "" where none does.

    More than a few are counted. Complements and other folds are numbers that are there already,
    and so are further tests.
    """
    if conclusion.standings:
        return counts_sentence(conclusion)
    lead = findings[conclusion.finding]
    restated = [findings[place] for place in conclusion.restated_by]
    n = len({_number_of(finding) for finding in restated} - {None, _number_of(lead)})
    if not n or not conclusion.real:
        return ""
    names = dict.fromkeys(
        name_of(finding) for finding in restated if finding.family is not Family.FOLD
    )
    subject = plural(n, "more number")
    if len(names) <= _MOST_NAMED and name_of(lead) not in names:
        subject = listed([*names])
    singular = n == 1 or (len(names) == 1 and subject in names)
    return f"{subject} {'shows' if singular else 'show'} the same difference."


def _number_of(finding: Finding) -> tuple[object, ...] | None:
    """Return which number a finding is; None for a fold, which is another's."""
    if finding.family is Family.FOLD:
        return None
    return (*measure_of(finding), finding.groups, finding.subject, finding.group, finding.version)


def _chart(statements: Sequence[Statement], findings: Sequence[Finding]) -> Chart | None:
    """Draw the chart of the first conclusion."""
    for statement in statements:
        if statement.finding is not None and statement.conclusion is not None:
            record = chart_of(statement.finding, statement.conclusion, findings)
            return None if record is None else draw(record)
    return None


def _chart_of_run(first: Sequence[Conclusion], result: AuditResult) -> Chart | None:
    """Draw every version, or the metric that ranks the models, where one of these comes first."""
    for conclusion in first[:1]:
        if conclusion.steps:
            record = chart_of_choices(result, conclusion)
        else:
            record = chart_of(result.findings[conclusion.finding], conclusion, result.findings)
        return None if record is None else draw(record)
    return None


def _steps(statements: Sequence[Statement], about: Sequence[str]) -> tuple[str, ...]:
    """Return what to do next, by the verdicts of the conclusions that lead."""
    first = {
        statement.badge.verdict: statement.finding
        for statement in reversed(statements)
        if statement.badge and statement.finding
        and not spec_of_finding(statement.finding).of_one_answer
    }  # fmt: skip
    steps = []
    if finding := first.get(Verdict.DISPARITY):
        steps += [step.format(**fields_of(finding)) for step in about]
    if Verdict.DETECTED in first:
        steps.append("Add images: the difference is real, and its size is uncertain.")
    if finding := first.get(Verdict.INCONCLUSIVE):
        more = "images of the smallest groups"
        if len({part.n for part in finding.by_group}) == 1:
            more = "more scenes, or more images of each group"
        if has(finding.more):
            of = f" of {finding.more_of}" if finding.more_of else ""
            more = f"about {count(finding.more)} {wanted_items(finding)}{of} to decide"
        elif finding.unit not in ("row", "image", "unit"):
            units = f"{finding.unit}s"
            if finding.unit.endswith("y"):
                units = f"{finding.unit[:-1]}ies"
            more = f"{units}. More images of the same {units} won't help"
        steps.append(f"Add {more}.")
    # A gate on a difference that is the mix of classes would fail.
    if {*first} == {Verdict.BELOW_THRESHOLD} == {finding.verdict for finding in first.values()}:
        steps.append("Keep it so: add a gate to the config, for “equipoise check” in CI.")
    return tuple(steps)
