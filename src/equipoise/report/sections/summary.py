"""The few sentences that a reader takes away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.core.finding import Family
from equipoise.report.augmentation import in_short
from equipoise.report.blocks import Section, Words
from equipoise.report.comparison import changed, compares, leading, over_subjects
from equipoise.report.sections.tables import rows
from equipoise.report.text import plural
from equipoise.report.voices import voice
from equipoise.report.words import names_groups, ranked, sentence

MOST_MODELS = 8
# What a reader should hear first of predictions, before what has a larger excess.
FOREMOST = ("worst_group_accuracy", "accuracy_gap", "equalized_odds", "demographic_parity")
# So many models have their counts and an example told, too.
FEW_MODELS = 3
MOST_DISAGREEMENTS = 3


def summary(result: AuditResult) -> Section | None:
    """How many disparities a model has, and the largest; of few models an example of a part, too.

    Disparities of a kind of audit that has a caveat are told with it. Of a comparison: a
    statement for each pair.
    """
    if compares(result):
        return Section("summary", "In short", (Words(tuple(_between(result)), "list"),))
    models = list(dict.fromkeys(finding.model for finding in result.findings))
    if not models:
        return None
    spoken = voice(result.findings[0].audit)
    said = spoken.in_short(result) if spoken else ()
    if said:
        return Section("summary", "In short", (Words(said, "list"),))
    ordered = ranked(result.findings)
    by_model = {model: [one for one in ordered if one.model == model] for model in models}
    # Findings of no model, such as what people say, are told where there is something to tell.
    if not any(one.verdict == Verdict.DISPARITY for one in by_model.get("", ())):
        by_model.pop("", None)
    models = [*by_model]
    few = len(models) <= FEW_MODELS
    items = [_statement(model, by_model[model], few) for model in models[:MOST_MODELS]]
    if len(models) > MOST_MODELS:
        items.append(f"{plural(len(models) - MOST_MODELS, 'further model')}: see below.")
    told = any(one.verdict == Verdict.DISPARITY for one in ordered)
    caveat = spoken.caveat if spoken and told else ""
    notes = (Words((caveat,), "note"),) if caveat else ()
    return Section("summary", "In short", (Words(tuple(items), "list"), *notes))


def _between(result: AuditResult) -> Iterator[str]:
    """Say who is better in accuracy and for the worst group, and which metrics disagree."""
    if "augmentation" in result.tables:
        yield from in_short(result)
        return
    found = leading(result.findings)
    yield from (sentence(finding) for finding in found[:MOST_MODELS])
    if len(found) > MOST_MODELS:
        yield f"{plural(len(found) - MOST_MODELS, 'further difference')}: see below."
    yield from changed(result)
    if all(map(over_subjects, result.findings)):
        return
    disagreed = [row["sentence"] for row in rows(result, "disagreements")]
    if not disagreed:
        yield "No two metrics with a verdict of difference prefer different models."
    yield from (f"Metrics disagree: {text}" for text in disagreed[:MOST_DISAGREEMENTS])
    if len(disagreed) > MOST_DISAGREEMENTS:
        more = len(disagreed) - MOST_DISAGREEMENTS
        yield f"{plural(more, 'further disagreement')}: see below."


def _statement(model: str, found: Sequence[Finding], few: bool) -> str:
    disparities = [finding for finding in found if finding.verdict == Verdict.DISPARITY]
    unsure = sum(finding.verdict == Verdict.INCONCLUSIVE for finding in found)
    below = sum(finding.verdict == Verdict.BELOW_THRESHOLD for finding in found)
    if not disparities:
        return (
            f"{model}: no disparity was found; {plural(below, 'finding')} below the threshold, "
            f"{unsure} inconclusive."
        )
    told = [sentence(finding) for finding in _told(disparities)]
    if not few:
        return told[0]
    tested = plural(len(disparities) + unsure + below, "finding")
    verb = "is a disparity" if len(disparities) == 1 else "are disparities"
    count = f"{len(disparities)} of {tested} with a verdict {verb}, {unsure} inconclusive."
    return " ".join([f"{model}: {count}" if model else count, *told])


def _told(disparities: Sequence[Finding]) -> list[Finding]:
    """Return the disparity to be told first, and one of a part where that is of the whole."""
    spoken = voice(disparities[0].audit)
    order = FOREMOST if spoken is None else spoken.foremost

    def place(finding: Finding) -> tuple[int, bool, bool]:
        known = order.index(finding.metric) if finding.metric in order else len(order)
        return known, finding.version != "default", not names_groups(finding)

    ordered = sorted(disparities, key=place)
    whole = [finding for finding in ordered if finding.family is Family.COMPOSITE][:1]
    parts = [finding for finding in ordered if finding.family is not Family.COMPOSITE]
    parts = [finding for finding in parts if finding.metric == parts[0].metric]
    alike = [one for one in parts if any(_same_design(one, other) for other in whole)]
    return [*whole, *(alike or parts)[:1]]


def _same_design(one: Finding, other: Finding) -> bool:
    return (one.groups, one.version) == (other.groups, other.version)
