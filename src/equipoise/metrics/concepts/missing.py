"""Why a version of design choices has no number, or a mean over other concepts."""

from __future__ import annotations

import numpy as np

from equipoise.metrics.concepts.contrasts import Key
from equipoise.metrics.concepts.participants import FOLLOWS
from equipoise.metrics.concepts.results import ConceptResults

_LISTED = 5


def reason_of(results: ConceptResults, key: Key) -> str:
    """Say why a version cannot estimate a difference.

    Parameters
    ----------
    results : ConceptResults
        Of the version.
    key : tuple of str
        Concept ("" for the mean over concepts) and two groups, by name.

    Returns
    -------
    str
        The groups that take no part, each with its reason; "" where both do.
    """
    concept, *pair = key
    absent = [one for name in pair if (one := _absent(results, name))]
    if absent:
        return "; ".join(absent)
    if not concept:
        return "" if shared_concepts(results, key) else "no concept in which both groups take part"
    if concept not in results.names:
        return "the concept is not measured"
    reasons = results.reasons[results.names.index(concept)]
    told = {name: reasons[results.groups.names.index(name)] for name in pair}
    own = {name: why for name, why in told.items() if why and why not in FOLLOWS}
    # That no group is left to compare with follows from the other's reason.
    return "; ".join(f"{name}: {why}" for name, why in (own or told).items() if why)


def _absent(results: ConceptResults, name: str) -> str:
    groups = results.groups
    if name not in groups.names:
        return f"{name}: no rows"
    place = groups.names.index(name)
    if groups.usable[place]:
        return ""
    return f"{name}: {int(groups.counts[place])} rows, fewer than {groups.min_size}"


def shared_concepts(results: ConceptResults, key: Key) -> tuple[str, ...]:
    """Return the concepts that the mean of a pair of groups is over."""
    names = results.groups.names
    if any(name not in names for name in key[1:]):
        return ()
    both = results.shared(*(names.index(name) for name in key[1:]))
    return tuple(results.names[place] for place in np.flatnonzero(both))


def other_concepts(results: ConceptResults, baseline: ConceptResults, key: Key) -> str:
    """Say how the concepts of a version's mean differ from the baseline's; "" where they do not."""
    new, old = shared_concepts(results, key), shared_concepts(baseline, key)
    lost = [name for name in old if name not in new]
    more = [name for name in new if name not in old]
    told = [f"without {_some(lost)}"] if lost else []
    told += [f"with {_some(more)}"] if more else []
    return f"over {len(new)} concepts, not {len(old)}: {', '.join(told)}" if told else ""


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
