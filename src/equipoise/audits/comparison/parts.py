"""Which numbers of a run are parts of one subject, so that none is paired as a subject of its own.

A query asked within the values of another attribute has a number for each of them, and a concept
one for each pair of its sets of images: numbers of one subject, which depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core.finding import Finding
from equipoise.core.groups import Groups
from equipoise.core.result import AuditResult

PAIRS = "iss_difference"
"""The metric whose findings are about two sets of images of one concept."""


def has_parts(finding: Finding) -> bool:
    """Whether the numbers of a measure are those of parts of subjects."""
    return finding.metric == PAIRS or finding.version.startswith("within ")


@dataclass(frozen=True, eq=False)
class Held:
    """Groups that were compared within the values of other attributes.

    Attributes
    ----------
    groups, version : str
        As findings have them; versions may go on after a comma.
    labels : tuple of str
        What the values that are held fixed are called.
    queries : frozenset of str
        Subjects of the intersection that both come from, of which nothing is held fixed.
    """

    groups: str
    version: str
    labels: tuple[str, ...]
    queries: frozenset[str]

    def holds(self, finding: Finding) -> bool:
        """Whether a finding is about these groups within these attributes."""
        version = finding.version
        same = version == self.version or version.startswith(f"{self.version}, ")
        return same and finding.groups == self.groups

    def owner(self, subject: str) -> str | None:
        """Return the query of which a subject is a part; None where it is not known.

        Taken apart at a label that the run has: a query or a label may hold the mark itself.
        """
        ends = [f" | {label}" for label in self.labels]
        found = {subject.removesuffix(end) for end in ends if subject.endswith(end)}
        # Without names of queries there is one, and its parts are called by their values alone.
        if not found and subject in self.labels:
            return ""
        if len(found) > 1:
            found &= self.queries
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, eq=False)
class Owners:
    """The subject of each finding of a run that is about a part of one.

    Attributes
    ----------
    held : tuple of Held
    sets : mapping of (groups, concept) to frozenset of str
        Names of the sets of images of each concept; the concept is "" where there is none.
    """

    held: tuple[Held, ...]
    sets: Mapping[tuple[str, str], frozenset[str]]

    @classmethod
    def of(cls, result: AuditResult) -> Owners:
        """Read from a run what was held fixed, and what its values and sets are called."""
        table = result.tables.get("group_sizes")
        rows = [] if table is None else [row for row in table.to_pylist() if row["group"]]
        sets: dict[tuple[str, str], set[str]] = {}
        for row in rows:
            name = ", ".join(row["levels"])
            concept = row["group"].removesuffix(name).removesuffix(": ")
            sets.setdefault((row["groups"], concept), set()).add(name)
        return cls(
            tuple(_held(result, rows)), {key: frozenset(names) for key, names in sets.items()}
        )

    def owner(self, finding: Finding) -> str | None:
        """Return the subject that a finding is about, or about a part of; None: not known."""
        if not finding.subject or not has_parts(finding):
            return finding.subject
        if finding.metric == PAIRS:
            found = {
                concept
                for (groups, concept), names in self.sets.items()
                if groups == finding.groups and _is_pair(finding.subject, concept, names)
            }
        else:
            every = (one.owner(finding.subject) for one in self.held if one.holds(finding))
            found = {one for one in every if one is not None}
        return found.pop() if len(found) == 1 else None


def _held(result: AuditResult, rows: Sequence[Mapping[str, Any]]) -> Iterator[Held]:
    given = result.manifest.resolved.get("data", {}).get("groups", ())
    for attributes in (tuple(one) for one in given if not isinstance(one, str) and len(one) > 1):
        whole = " × ".join(attributes)
        levels = [tuple(row["levels"]) for row in rows if row["groups"] == whole]
        queries = frozenset(one.subject for one in result.findings if one.groups == whole)
        for place, one in enumerate(attributes):
            others = attributes[:place] + attributes[place + 1 :]
            kept = dict.fromkeys(row[:place] + row[place + 1 :] for row in levels)
            # Named as pools name them, quoted where two would share a name.
            labels = Groups(others, tuple(kept), np.zeros(0, np.int32)).names
            yield Held(one, f"within {' × '.join(others)}", labels, queries)


def _is_pair(subject: str, concept: str, names: frozenset[str]) -> bool:
    start = f"{concept}: " if concept else ""
    pair = subject.removeprefix(start)
    firsts = [name for name in names if pair.startswith(f"{name} − ")]
    return subject.startswith(start) and any(pair[len(one) + 3 :] in names for one in firsts)


def owners_of(results: Iterable[AuditResult]) -> dict[tuple[str, str, str, str], str | None]:
    """Return whose part each finding is that is about one.

    Returns
    -------
    dict of (metric, groups, version, subject) to str or None
        The subject; None where it cannot be told, or two runs tell different ones.
    """
    found: dict[tuple[str, str, str, str], str | None] = {}
    for result in results:
        owners = Owners.of(result)
        for one in filter(has_parts, result.findings):
            key, owner = (one.metric, one.groups, one.version, one.subject), owners.owner(one)
            found[key] = owner if found.get(key, owner) == owner else None
    return found
