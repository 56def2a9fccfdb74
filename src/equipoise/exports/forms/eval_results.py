"""Evaluation results of a model repository of the Hugging Face Hub, `.eval_results/*.yaml`."""

import math
from collections.abc import Iterator

import yaml

from equipoise.core import Fields, Finding, RunError
from equipoise.exports import Files, Form, Run
from equipoise.exports.contents import (
    about,
    metric_title,
    models,
    path_segment,
    shown_findings,
    stated,
    timestamp,
    title_of,
    version,
)


def write(run: Run) -> Files:
    """Return a file for each model, with the findings that its conclusions rest on."""
    if not run.dataset:
        raise RunError(
            f"{run.folder}: entries of the Hub name the data set there, and a run doesn't. "
            "To do: add its name, such as --dataset HuggingFaceM4/FairFace"
        )
    files: dict[str, str] = {}
    for model in models(run):
        entries = [*_entries(run, model)]
        if entries:
            text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=100)
            files[f"{path_segment(model)}/.eval_results/equipoise.yaml"] = text
    if not files:
        raise RunError(
            f"{run.folder}: no model has a conclusion with a number. "
            "To do: choose another form, such as card"
        )
    return files


def _entries(run: Run, model: str) -> Iterator[Fields]:
    """Yield the conclusions of a model, then the findings that say the same or rank it."""
    findings, conclusions = shown_findings(run), run.result.conclusions
    own = [conclusion for conclusion in conclusions if conclusion.model == model]
    for conclusion in own:
        finding = stated(run, conclusion)
        if math.isfinite(finding.value):
            yield _entry(run, finding, title_of(conclusion, finding))
    places = {
        place for conclusion in conclusions
        for place in (conclusion.finding, *conclusion.restated_by)
    } - {conclusion.finding for conclusion in own}  # fmt: skip
    for place in sorted(places):
        finding = findings[place]
        if finding.model == model and math.isfinite(finding.value):
            yield _entry(run, finding, metric_title(finding))


def _entry(run: Run, finding: Finding, title: str) -> Fields:
    numbers = list[str]()
    if not math.isnan(finding.ci_low):
        ends = f"{finding.ci_low:.4g} to {finding.ci_high:.4g}"
        numbers.append(f"interval {ends} ({finding.level:.0%})")
    if not math.isnan(finding.chance):
        numbers.append(f"chance {finding.chance:.4g}")
    numbers += [
        f"n {finding.n}", f"verdict {finding.verdict.value}", f"equipoise {version(run)}",
    ]  # fmt: skip
    return {
        "dataset": {
            "id": run.dataset,
            "task_id": "; ".join(filter(None, (title, about(finding)))),
        },
        "value": finding.value,
        "date": timestamp(run),
        "notes": "; ".join(numbers),
    }


FORM = Form("`.eval_results` of a model repository on the Hugging Face Hub", write)
