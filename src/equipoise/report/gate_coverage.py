"""Models and groups that a gate rule is about and that no finding measures."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from equipoise.core import Finding
from equipoise.report.gate_rules import GateCheck, GateRule

Place = tuple[str, str]
"""A model and the groups that it is measured by."""


def checks_of_gaps(
    findings: Sequence[Finding], rule: GateRule, measured: Collection[Place]
) -> Iterator[GateCheck]:
    """Yield a check "not measured" for each model that a rule can't judge.

    A model is measured like another where they have a metric in common.

    Parameters
    ----------
    findings : sequence of Finding
        All of the run.
    rule : GateRule
    measured : collection of (str, str)
        Models and groups that the rule judges.
    """
    metrics: dict[str, set[str]] = {}
    for finding in findings:
        metrics.setdefault(finding.model, set()).add(finding.metric)
    absent = (None, "", rule.change_from)
    for groups in dict.fromkeys(groups for _, groups in measured):
        models = {model for model, measured_by in measured if measured_by == groups}
        shared = {name for model in models for name in metrics.get(model, ())}
        for model, names in metrics.items():
            has_peer = not shared.isdisjoint(names)
            is_missing = has_peer and model not in models and model not in absent
            if is_missing and rule.model in (None, model):
                place = replace(rule, model=model, groups=groups or None)
                text = f"{place}: not measured for this model, and for another one. To do: "
                fix = "measure both alike, or name the model of the rule"
                yield GateCheck(place, None, "not measured", f"{text}{fix}.")
