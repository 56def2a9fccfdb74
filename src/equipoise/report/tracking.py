"""The numbers, verdicts and files of a result for experiment trackers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from equipoise.core import Aggregate, AuditResult, Finding, InputError
from equipoise.discovery import TRACKERS

_REPORT, _FINDINGS = "report.html", "findings.json"
_PREFIX = "equipoise"
_OTHER_MARKS = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class TrackedResult:
    """A result in the form that trackers take.

    Attributes
    ----------
    numbers : mapping of str to float
        A name for each finding that was tested, to its value; the ends of its interval have this
        name with "/low" and "/high". Counts of verdicts have names such as
        "equipoise/verdicts/disparity".
    verdicts : mapping of str to str
        The names of the findings to their verdicts.
    files : tuple of path
        The report and the findings.
    step : int or None
        The step of the training that the numbers are of.
    """

    numbers: Mapping[str, float]
    verdicts: Mapping[str, str]
    files: tuple[Path, ...]
    step: int | None = None


@dataclass(frozen=True)
class Tracker:
    """An experiment tracker.

    Attributes
    ----------
    is_active : callable
        Whether a run of the tracker is active in this process; it doesn't import the tracker.
    log : callable
        Takes a `TrackedResult` and logs it to the active run.
    """

    is_active: Callable[[], bool]
    log: Callable[[TrackedResult], None]


def tracker_of(name: str | None) -> Tracker:
    """Return a tracker by its name, or the one with an active run.

    Raises
    ------
    InputError
        When there is none of this name; or without a name no active run, or several.
    """
    names = ", ".join(map(repr, TRACKERS))
    if name is not None:
        if name not in TRACKERS:
            raise InputError(f"to: given {name!r}; expected one of {names}")
        return TRACKERS[name].load(Tracker)
    active = {known: TRACKERS[known].load(Tracker) for known in TRACKERS}
    active = {known: tracker for known, tracker in active.items() if tracker.is_active()}
    if len(active) != 1:
        problem = f"runs of {' and '.join(active)} are" if active else "no run of a tracker is"
        raise InputError(f"to: {problem} active. To do: start a run, or name one of {names}")
    return next(iter(active.values()))


def tracked(result: AuditResult, run: Path, step: int | None = None) -> TrackedResult:
    """Return a result for trackers.

    Parameters
    ----------
    result : AuditResult
    run : Path
        Its run directory.
    step : int, optional
    """
    numbers, verdicts = dict[str, float](), dict[str, str]()
    for finding in result.findings:
        if not finding.tested:
            continue
        name = _new_name(finding, verdicts)
        ends = {"": finding.value, "/low": finding.ci_low, "/high": finding.ci_high}
        numbers |= {f"{name}{end}": x for end, x in ends.items() if math.isfinite(x)}
        verdicts[name] = finding.verdict.value
    counts = {verdict: [*verdicts.values()].count(verdict) for verdict in verdicts.values()}
    numbers |= {_joined("verdicts", verdict): float(n) for verdict, n in counts.items()}
    files = (run / _REPORT, run / _FINDINGS)
    return TrackedResult(numbers, verdicts, tuple(filter(Path.is_file, files)), step)


def _new_name(finding: Finding, taken: Mapping[str, str]) -> str:
    """Return the name of a finding: model, metric, groups and what else tells it from others."""
    aggregate = "" if finding.aggregate is Aggregate.VALUE else finding.aggregate.value
    name = _joined(
        finding.model,
        "_".join(filter(None, [finding.metric, aggregate, finding.compared_to])),
        finding.groups,
        finding.subject,
        finding.group,
        finding.within_value or finding.within,
        "" if finding.version == "default" else finding.version,
    )
    names = chain([name, f"{name}/{finding.null}"], (f"{name}/{n}" for n in count(2)))
    return next(candidate for candidate in names if candidate not in taken)


def _joined(*parts: str) -> str:
    """Return a name of parts, of letters, digits and a few marks, which all trackers take."""
    cleaned = (_OTHER_MARKS.sub("-", part).strip("-") for part in parts)
    return "/".join([_PREFIX, *filter(None, cleaned)])
