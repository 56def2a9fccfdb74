"""Findings that say again what another one says: shown, but not tested twice.

Counting one comparison several times would make the correction for the number of tests stricter
than it should be, and the report longer than it need be.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from equipoise.audits.findings import UncorrectedFinding, without_verdict
from equipoise.core.finding import Family, Finding

_SAME_CLASS = {
    "true_negative_rate": "false_positive_rate",
    "false_negative_rate": "true_positive_rate",
    "selection_rate": "demographic_parity",
}
# With two labels, what is said of one class holds for the other.
_OTHER_CLASS = {
    "false_positive_rate": "true_positive_rate",
    "negative_predictive_value": "precision",
}
_BOTH_CLASSES = ("accuracy", "average_odds", "demographic_parity", "equalized_odds")

# What the groups' base rates decide where each group holds one class only.
_BASE_RATES = ("demographic_parity", "selection_rate", "precision", "negative_predictive_value")


def without_mirrors(
    drafts: Iterable[UncorrectedFinding], *, classes: Sequence[str], determined: bool
) -> Iterator[UncorrectedFinding]:
    """Take the verdict from findings of one design that repeat another or say nothing new.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design, or of two models on the same rows.
    classes : sequence of str
        Every label that occurs as truth or prediction.
    determined : bool
        Whether every group holds one true class only.
    """
    for draft in drafts:
        finding = draft.finding
        if determined and finding.metric in _BASE_RATES:
            why = "the groups determine the target: a model without mistakes has this gap too"
        else:
            why = _mirror(finding, classes)
        yield without_verdict(draft, why) if why else draft


def _mirror(finding: Finding, classes: Sequence[str]) -> str:
    if not finding.subject:
        return ""
    if finding.metric in _SAME_CLASS:
        return f"the same gap as {_SAME_CLASS[finding.metric]} of this class, which is tested"
    if len(classes) != 2:
        return ""
    first, second = classes
    other = second if finding.subject == first else first
    if finding.metric in _OTHER_CLASS:
        return f"the same gap as {_OTHER_CLASS[finding.metric]} of {other}, which is tested"
    if finding.metric in _BOTH_CLASSES and finding.subject == second:
        return f"the same gap as for {first}, which is tested"
    return ""


def same_numbers_once(drafts: Iterable[UncorrectedFinding]) -> Iterator[UncorrectedFinding]:
    """Take the verdict from findings whose groups have the numbers of an earlier finding.

    An intersection with an attribute that determines the target splits no class: within a class
    its groups are those of the other attributes.
    """
    yield from once((draft, _numbers(draft.finding)) for draft in drafts)


def once(told: Iterable[tuple[UncorrectedFinding, Hashable]]) -> Iterator[UncorrectedFinding]:
    """Take the verdict from drafts that stand on the same numbers as one of other groups before.

    Parameters
    ----------
    told : iterable of (UncorrectedFinding, hashable)
        With the numbers that each stands on; None where they cannot be told apart.
    """
    seen: dict[Hashable, str] = {}
    for draft, numbers in told:
        finding = draft.finding
        if finding.family is Family.DESCRIPTIVE or numbers is None:
            yield draft
            continue
        groups = seen.setdefault(numbers, finding.groups)
        same = groups == finding.groups
        yield draft if same else without_verdict(draft, f"the same numbers as for {groups}")


def _numbers(finding: Finding) -> tuple[object, ...] | None:
    if not finding.by_group:
        return None
    behind = sorted((one.n, one.value) for one in finding.by_group if one.n)
    place = (finding.model, finding.version, finding.metric, finding.subject, finding.value)
    return (*place, finding.null, *behind)
