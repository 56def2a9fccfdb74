"""Steps between versions: which two are compared, in which choices they differ, and in words."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from equipoise.audits.concepts.config import BASELINE, BY_KEY, Config, Version
from equipoise.core import Facts, Strings, record, table_of
from equipoise.core.columns import TEXT, TEXTS
from equipoise.metrics.spec import spec_of
from equipoise.report.text import listed, percent

_STEPS = {"baseline": TEXT, "version": TEXT, "choices": TEXTS, "change": TEXT}
_PREVALENCE, _RATIO, _OBSERVED = "prevalence", "ratio", "observed"
_MOST_CLAUSES = 3


@record
class VersionStep:
    """Two versions that are compared.

    Attributes
    ----------
    baseline, version : Version
        The one that is read first, and the other.
    """

    baseline: Version
    version: Version

    @property
    def names(self) -> tuple[str, str]:
        """Names of both."""
        return self.baseline.name, self.version.name

    @property
    def choices(self) -> Strings:
        """Choices in which they differ; of a choice by attribute or column, each with its name."""
        first, last = _values_of(self.baseline), _values_of(self.version)
        names = [name for name in {**first, **last} if first.get(name) != last.get(name)]
        # The ratio is part of how prevalence is fixed.
        if _PREVALENCE in names or first[_PREVALENCE] == last[_PREVALENCE] == _OBSERVED:
            names = [name for name in names if name != _RATIO]
        return tuple(names)

    @property
    def change(self) -> str:
        """The differences of the other version, as a clause."""
        first, last = _values_of(self.baseline), _values_of(self.version)
        clauses = [_clause(name, first.get(name), last.get(name)) for name in self.choices]
        return listed(clauses, _MOST_CLAUSES)


def steps_of(config: Config) -> list[VersionStep]:
    """Return the steps that the config declares, or each version from where it starts.

    Without a declaration each version is compared with the baseline, and with the earlier version
    from which it differs in fewer choices, if there is one.
    """
    versions = {version.name: version for version in config.every_version}
    if config.steps:
        return [VersionStep(versions[first], versions[last]) for first, last in config.steps]
    steps = []
    for place, version in enumerate(config.every_version[1:], 1):
        starts = [VersionStep(earlier, version) for earlier in config.every_version[:place]]
        steps.append(starts[0])
        nearest = min(starts, key=lambda step: len(step.choices))
        if nearest.baseline.name != BASELINE:
            steps.append(nearest)
    return steps


def table_of_steps(steps: Iterable[VersionStep]) -> pa.Table:
    """Return the changes of each step."""
    step_rows = [
        dict(zip(_STEPS, (*step.names, list(step.choices), step.change), strict=True))
        for step in steps
    ]
    return table_of(step_rows, _STEPS)


def _values_of(version: Version) -> Facts:
    """Return the choices of a version by name; those by attribute or column one by one."""
    values: dict[str, Any] = version.choices.model_dump(mode="json") | {"metric": version.metric}
    for key in BY_KEY:
        values |= {f"{key}.{name}": value for name, value in values.pop(key).items()}
    return values


def _clause(choice: str, before: Any, value: Any) -> str:
    """Return a version's setting of a choice as a clause."""
    key, _, name = choice.partition(".")
    if key == _PREVALENCE and before != _OBSERVED:
        return _OTHER_PREVALENCE[value]
    words = _CLAUSES[key]
    return str(words[value] if isinstance(words, dict) else words(name, value))


def _percent(share: Any) -> str:
    return percent(share, 0)


_OTHER_PREVALENCE = {
    "observed": "prevalence is as observed", "weighted": "prevalence is fixed by weights",
    "hall": "prevalence is fixed by samples",
}  # fmt: skip
_FIXED = "prevalence is fixed"
_CLAUSES: Facts = {
    "metric": lambda _, value: f"{spec_of(value).in_audit('concepts').label} is measured",
    "prevalence": {"weighted": _FIXED, "hall": _FIXED},
    "ratio": lambda _, value: f"{value:g} negatives count for each positive",
    "min_positives": lambda _, value: f"a group needs {value} positives",
    "validation": lambda _, value: f"thresholds are tuned on {_percent(value)} of rows",
    "incomplete": {
        "group": "a group with few positives leaves alone",
        "concept": "a concept with few positives of a group is left out",
    },
    "unlabelled": {
        "keep": "images without a concept count",
        "leave out": "images without a concept are left out",
    },
    "terms": lambda name, _: f"other terms stand for {name}",
    "columns": lambda name, value: f"{name} is read from “{value or name}”",
    "where": lambda name, value: f"rows are {'' if value else 'not '}selected by {name}",
    "map": lambda _, value: f"classes are mapped by “{value}”" if value else "mappings are plain",
}
"""What a version does, by the choice that it makes."""
