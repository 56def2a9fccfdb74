"""What an audit would do and could find; no model is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from equipoise.audits import group_sizes
from equipoise.audits.config import AuditConfig
from equipoise.audits.findings import conclude
from equipoise.audits.group_sizes import Row
from equipoise.audits.kind import AnyAudit, Data, Design, audit_of
from equipoise.audits.limits import ERROR_RATE, Assumed, Limit, distinct_limits
from equipoise.audits.measuring import checked_designs, measure_designs
from equipoise.audits.notes import Note, merged
from equipoise.audits.outputs import DryRun
from equipoise.audits.plugins import broken_metrics
from equipoise.core import DataError, Finding, InputError
from equipoise.core.types import Json
from equipoise.report.gate import checks_of_extremes
from equipoise.report.gate_rules import EXTREMES, GateRule
from equipoise.report.text import listed

# Seconds before the first number: libraries and kernels are loaded.
_START = 0.5

# Draws that show which numbers have a test: too few to say how it ends.
_FEW_DRAWS = {"replicates": 20, "permutations": 200}


@dataclass(frozen=True)
class Plan:
    """The work of an audit and the effects that it could detect.

    Attributes
    ----------
    runs : tuple of mapping
        Per model and what it runs on: items, those that the store has, those that failed before
        and aren't tried again, those to do and those whose files are missing, numbers of a row,
        and bytes to write; None where only loading the model tells.
    details : mapping
        What the kind adds, by name.
    groups : list of mapping
        Per group: its size, and whether it is large enough to be compared; then items in no
        group, by reason.
    tests_by_model : mapping of str to int or None
        Findings that get a verdict, by model; None where only running the model tells.
    seconds : float
        About how long measuring takes, without running models.
    gate : list of mapping
        Per gate rule on an extreme of groups, model and set of groups: how often chance breaches
        the rule if all groups are alike, as `check` says it. Not of models that are yet to run.
    notes : tuple of str
    limits : tuple of Limit
        What the data can't give, whatever the models do, and what to change.
    """

    runs: tuple[Mapping[str, Any], ...]
    details: Mapping[str, Any]
    groups: list[Row]
    tests_by_model: Mapping[str, int | None]
    seconds: float
    gate: list[Row] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    @property
    def tests(self) -> int | None:
        """Largest number of tests of a model, or None if it is unknown yet."""
        tests = [*self.tests_by_model.values()]
        known_counts = [number for number in tests if number is not None]
        return max(known_counts, default=0) if len(known_counts) == len(tests) else None

    @property
    def values(self) -> dict[str, Json]:
        """Everything by name, in the order in which it is shown."""
        runs = {"runs": self.runs} if self.runs else {}
        gate = {"gate": self.gate} if self.gate else {}
        limits = [
            {"of": limit.of, "place": limit.place, **limit.numbers, "text": limit.text}
            for limit in self.limits
        ]
        totals = {
            "tests": self.tests, "seconds": self.seconds, "limits": limits, "notes": self.notes,
        }  # fmt: skip
        return runs | dict(self.details) | {"groups": self.groups} | gate | totals


def plan(
    config: AuditConfig,
    *,
    base: Path = Path(),
    error_rate: float = ERROR_RATE,
    kept_share: float | None = None,
) -> Plan:
    """Return the plan of an audit without loading a model.

    Tests are counted by measuring as the audit does, with few draws; where a model is yet to run,
    random numbers stand in for its outputs, and the audit may have more tests or fewer.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        Relative paths are relative to this folder.
    error_rate : float
        How often models that are yet to run err, on average over classes.
    kept_share : float, optional
        Share of sets that pass the filters of generated images, before these are made.

    Raises
    ------
    DataError
        If a file can't be used.
    InputError
        If a share isn't between 0 and 1.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> audits.plan(config).tests
    12
    """
    dry, audit = DryRun(config, base), audit_of(config.audit)
    assumed = Assumed(error_rate, kept_share)
    data = audit.load(config, dry)
    designs, left_out = checked_designs(audit, config, data)
    rehearsed = _rehearse(audit, config, data, dry)
    tests = _count_tests(designs, rehearsed, dry)
    draws = 2 * config.resampling.replicates + (config.resampling.permutations or 10_000)
    seconds = sum(design.seconds(draws) for design in designs)
    by_groups = dict[str, Design]()
    for design in designs:
        by_groups.setdefault(design.groups.name, design)
    groups, group_notes = list[Row](), list[Note | str]()
    for design in by_groups.values():
        groups += group_sizes.planned(
            design.groups, audit.items, design.lacking, of_labels=audit.compares_all_shares
        )
    group_notes += group_sizes.sentinels(dry.read_counts, audit.items)
    group_notes += group_sizes.looking_missing(dry.read_counts)
    group_notes += group_sizes.typos(dry.read_counts)
    runs = tuple(
        {"model": outputs.model, "on": outputs.on, **(outputs.pending or {})}
        for outputs in dry.outputs
    )
    gate = _alarms(config, rehearsed or (), dry)
    notes = (
        *dry.missing_files,
        *_left_to_run(runs),
        *_counted_on_stand_ins(runs),
        *left_out,
        *dry.sent,
        *dry.plan_notes,
        *audit.notes(config, data, designs),
        *broken_metrics(),
        *group_notes,
        *_without_alarms(config, gate, dry),
    )
    return Plan(
        runs=runs,
        details=audit.details(config, data, designs, _corrected_for(tests, designs)),
        groups=groups,
        tests_by_model=tests,
        seconds=ceil(10 * (_START + seconds)) / 10,
        gate=gate,
        notes=merged(notes),
        limits=(*distinct_limits(audit.limits(config, data, designs, assumed)),),
    )


def _rehearse(
    audit: AnyAudit, config: AuditConfig, data: Data, dry: DryRun
) -> tuple[Finding, ...] | None:
    """Measure as a run does, with few draws; None where stand-ins for outputs can't be measured.

    Which findings have a test follows from the data, and not from what is drawn.
    """
    rehearsed = config.model_copy(
        update={"resampling": config.resampling.model_copy(update=_FEW_DRAWS)}
    )
    designs, _ = checked_designs(audit, rehearsed, data)
    try:
        measured, _ = measure_designs(audit, rehearsed, data, designs)
    except (DataError, InputError):
        if not dry.outputs:
            raise
        return None
    return conclude(measured.findings, rehearsed.testing)


def _count_tests(
    designs: Iterable[Design], findings: Iterable[Finding] | None, dry: DryRun
) -> dict[str, int | None]:
    """Count the findings of each model with a verdict; None where a model is yet to answer."""
    models = [design.model for design in designs]
    if findings is None:
        return dict.fromkeys(models)
    tests = Counter(finding.model for finding in findings if finding.tested)
    unanswered = {outputs.model for outputs in dry.outputs if outputs.labels is not None}
    return {
        model: None if model in unanswered else tests[model]
        for model in dict.fromkeys([*models, *tests])
    }


def _alarms(config: AuditConfig, findings: Iterable[Finding], dry: DryRun) -> list[Row]:
    """Return how often chance breaches gate rules on extremes, of models with outputs."""
    pending = {outputs.model for outputs in dry.outputs}
    answered = [finding for finding in findings if finding.model not in pending]
    rules = [rule.as_rule for rule in config.gate]
    return [
        {
            "rule": str(check.rule),
            "model": check.finding.model,
            "groups": check.finding.groups,
            "subject": check.finding.subject,
            "breached_by_chance": check.alarms,
        }
        for check in checks_of_extremes(answered, rules)
        if check.finding is not None
    ]


def _without_alarms(config: AuditConfig, gate: Iterable[Row], dry: DryRun) -> Iterator[Note]:
    """Yield why rules of the gate have no rate of false alarms, by model."""
    stated = {(row["rule"], row["model"]) for row in gate}
    pending = {outputs.model for outputs in dry.outputs}
    for rule in (item.as_rule for item in config.gate):
        models = [name for name in config.model_names if rule.model in (None, name)]
        reasons = {name: _why_no_alarm(rule, name in pending) for name in models}
        for reason in dict.fromkeys(reasons.values()):
            lacking = [
                name for name in models
                if reasons[name] == reason and (str(rule), name) not in stated
            ]  # fmt: skip
            if lacking:
                yield Note(f"gate, {rule}", f"{reason} ({listed(lacking)}).")


def _why_no_alarm(rule: GateRule, pending: bool) -> str:
    """Say why a plan doesn't state how often chance breaches a rule for a model."""
    if not rule.bounds:
        return "the plan states no false alarms of rules on verdicts and on other runs"
    if rule.on != "value":
        return f"the plan states false alarms of rules with on: value, and this has on: {rule.on}"
    if rule.aggregate not in EXTREMES:
        return "chance breaches only rules on extremes of groups"
    if pending:
        return "false alarms are unknown before the model has run"
    return "no rate of false alarms, as all rows together would breach the rule, or lack the number"


def _corrected_for(tests: Mapping[str, int | None], designs: Iterable[Design]) -> Mapping[str, int]:
    """Return the tests of each model, or the number that its p-values must resolve."""
    numbers = Counter({model: number for model, number in tests.items() if number is not None})
    for design in designs:
        if tests.get(design.model) is None:
            numbers[design.model] += design.resolved_tests
    return numbers


def _counted_on_stand_ins(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say that tests are counted without the outputs of models."""
    if models := ", ".join(dict.fromkeys(run["model"] for run in runs)):
        yield (
            f"{models}: tests are counted with random numbers in place of the model's outputs: the "
            "audit may have more or fewer."
        )


def _left_to_run(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say that the planned time leaves out models that have items to do."""
    unfinished_runs = [run for run in runs if run.get("to_do", 0) != 0]
    if unfinished_runs:
        n_items = sum(run["to_do"] or 0 for run in unfinished_runs)
        items = f"{n_items} items are left" if n_items else "an unknown number of items is left"
        models = ", ".join(dict.fromkeys(run["model"] for run in unfinished_runs))
        yield (
            f"{models}: {items} to run. That takes longer than the seconds of this plan, which are "
            "for measuring; how long is known only once a model has run."
        )
