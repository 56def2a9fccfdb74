"""CycloneDX 1.7: a bill of materials with a model card for each model."""

import math
from collections.abc import Iterator

from equipoise.core import Fields, Finding, RunError
from equipoise.exports import Files, Form, Run
from equipoise.exports.contents import (
    NO_COMPLIANCE,
    about,
    as_json,
    data_sets,
    identifier,
    limitations,
    metric_title,
    models,
    shown_findings,
    stated,
    timestamp,
    title_of,
    version,
)
from equipoise.metrics.spec import spec_of_finding


def write(run: Run) -> Files:
    """Return one bill of materials with all models."""
    names = models(run)
    if not names:
        raise RunError(
            f"{run.folder}: it measured no model, and a model card is of a model. "
            "To do: choose another form, such as croissant for a data set"
        )
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "serialNumber": f"urn:uuid:{identifier(run)}",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(run),
            "tools": {
                "components": [
                    {"type": "application", "name": "equipoise", "version": version(run)}
                ]
            },
        },
        "components": [_component(run, model) for model in names],
    }
    return {"model-cards.cdx.json": as_json(document)}


def _component(run: Run, model: str) -> Fields:
    return {
        "type": "machine-learning-model",
        "bom-ref": identifier(run, model),
        "name": model,
        "modelCard": {
            "bom-ref": identifier(run, model, "card"),
            "quantitativeAnalysis": {"performanceMetrics": [*_metrics(run, model)]},
            "considerations": {
                "technicalLimitations": [*limitations(run), NO_COMPLIANCE],
                "fairnessAssessments": _assessments(run, model),
            },
            "properties": [{"name": "equipoise:data", "value": name} for name in data_sets(run)],
        },
    }


def _metrics(run: Run, model: str) -> Iterator[Fields]:
    """Yield the findings of a model, each followed by the new values of its groups."""
    known = list[Fields]()
    for finding in shown_findings(run):
        if finding.model != model:
            continue
        if not math.isnan(finding.value):
            yield _metric(
                f"{metric_title(finding)} ({finding.verdict.value})", finding.value,
                about(finding), finding.ci_low, finding.ci_high,
            )  # fmt: skip
        for group in finding.by_group:
            if not math.isnan(group.value):
                kind = (finding.metric, spec_of_finding(finding).basis, "of a group")
                part = (about(finding), f"{finding.groups} = {group.group}", f"n {group.n}")
                values = _metric(
                    " ".join(filter(None, kind)), group.value, "; ".join(filter(None, part)),
                    group.low, group.high,
                )  # fmt: skip
                if values not in known:
                    known.append(values)
                    yield values


def _metric(kind: str, value: float, part: str, low: float, high: float) -> Fields:
    metric: Fields = {"type": kind, "value": repr(value)}
    if part:
        metric["slice"] = part
    if not math.isnan(low) and not math.isnan(high):
        metric["confidenceInterval"] = {"lowerBound": repr(low), "upperBound": repr(high)}
    return metric


def _assessments(run: Run, model: str) -> list[Fields]:
    """Return the conclusions about groups, whatever their verdict."""
    return [
        {
            "groupAtRisk": f"{conclusion.groups}: {conclusion.group}",
            "harms": _verdict(title_of(conclusion, finding), finding),
        }
        for conclusion in run.result.conclusions
        if conclusion.model == model and conclusion.group
        for finding in [stated(run, conclusion)]
    ]


def _verdict(title: str, finding: Finding) -> str:
    return (
        f"{title} {finding.value:.4g} "
        f"[{finding.ci_low:.4g}, {finding.ci_high:.4g}], n {finding.n}: {finding.verdict.value}"
    )


FORM = Form("a bill of materials with model cards, CycloneDX 1.7", write)
