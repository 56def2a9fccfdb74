"""Metrics by the names that the field has for them, and by words of their records."""

import re
from difflib import get_close_matches

from equipoise.core import Aggregate, Harm
from equipoise.metrics.spec import (
    ALIASES,
    SPECS,
    MetricSpec,
    aliases_of,
    own_aggregate,
    plain_name,
    spec_for,
)

_GROUP_ENDS: dict[str, Harm] = {"_group_min": "lower", "_group_max": "higher"}
"""Suffixes of the worst group's value, by which side of it is worse."""
_WORDS = re.compile(r"[^\W_]+")
_SHORTEST = 3
"""Letters of a word that may be the start of another."""
_WHOLE, _START, _SIMILAR = 1.0, 0.8, 0.4


def find_records(name: str) -> list[MetricSpec]:
    """Return the records that a name may be of, the likeliest first.

    A name is that of a metric, an alias, or either with how groups compare in it:
    "recall_difference", "recall.difference", "worst_group_recall", "recall_group_min". The name of
    a metric is of that metric alone: "accuracy_difference" compares models, "accuracy.difference"
    groups.

    Examples
    --------
    >>> from equipoise.metrics.naming import find_records
    >>> [record.title for record in find_records("mean error difference")]
    ['Mean error difference']
    """
    name = plain_name(name)
    names = {*SPECS}  # Imports plugins, which may have aliases.
    if name in names:
        return [SPECS.find(name)]
    records = [ALIASES[name]] if name in ALIASES else []
    for suffix, harm in _GROUP_ENDS.items():
        base = _first(name, suffix)
        if base is not None and base.harm == harm:
            records.append(spec_for(base.name, Aggregate.WORST_GROUP))
    if name.startswith(prefix := f"{Aggregate.WORST_GROUP}_"):
        name = f"{name.removeprefix(prefix)}_{Aggregate.WORST_GROUP}"
    for aggregate in Aggregate:
        base = _first(name, f"_{aggregate}") or _first(name, f".{aggregate}")
        if base is not None and (base.rate or base.aggregate is aggregate):
            records.append(spec_for(base.name, aggregate))
    return records


def comparison_of(record: MetricSpec) -> Aggregate | None:
    """Return how groups compare in a record, None of the first record of its metric."""
    return None if record.aggregate is own_aggregate(record.name) else record.aggregate


def full_name(record: MetricSpec) -> str:
    """Return a name that a record is found by: of a comparison the metric's with it.

    Examples
    --------
    >>> from equipoise.metrics.naming import find_records, full_name
    >>> full_name(*find_records("disparate impact"))
    'selection_rate_ratio'
    """
    dotted = attribute_name(record)
    name = dotted.replace(".", "_")
    return dotted if name != dotted and SPECS.has(name) else name


def attribute_name(record: MetricSpec) -> str:
    """Return the attribute of `equipoise.metrics` that measures a record.

    Examples
    --------
    >>> from equipoise.metrics.naming import attribute_name, find_records
    >>> attribute_name(*find_records("disparate impact"))
    'selection_rate.ratio'
    """
    comparison = comparison_of(record)
    return record.name if comparison is None else f"{record.name}.{comparison}"


def _first(name: str, suffix: str) -> MetricSpec | None:
    """Return the record of a name without its suffix, or None."""
    base = name.removesuffix(suffix)
    record = ALIASES.get(base) or SPECS.get(base)
    return record if base != name else None


def search(text: str) -> list[MetricSpec]:
    """Return the metrics with the words of a text in their record, the best match first.

    Examples
    --------
    >>> from equipoise.metrics.naming import search
    >>> search("equal odds")[0].name
    'equalized_odds'
    """
    words = _words(text)
    scores = {spec.name: _score(spec, words) for spec in SPECS.values()}
    most = max((matched for matched, _ in scores.values()), default=0)
    names = [name for name, (matched, _) in scores.items() if matched == most > 0]
    return [SPECS[name] for name in sorted(names, key=lambda name: -scores[name][1])]


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _score(spec: MetricSpec, words: list[str]) -> tuple[int, float]:
    """Return how many words a record has, and how well they match."""
    fields = (
        (4.0, [spec.name, *aliases_of(spec.name)]),
        (3.0, [spec.title, spec.symbol]),
        (1.0, [spec.definition]),
    )
    weights = dict[str, float]()
    for weight, texts in fields:
        for text in texts:
            # A short name has fewer words besides.
            share = 1.0 + 1.0 / (1 + len(_words(text)))
            for word in _words(text):
                weights[word] = max(weights.get(word, 0.0), weight * share)
    scores = [_match(word, weights) for word in words]
    return sum(score > 0 for score in scores), sum(scores)


def _match(word: str, weights: dict[str, float]) -> float:
    """Return the weight of the word of a record that a word is most like."""
    if word in weights:
        return _WHOLE * weights[word]
    stem = word.removesuffix("s")
    starts = [weights[other] for other in weights if other.startswith(stem)]
    if starts and len(stem) >= _SHORTEST:
        return _START * max(starts)
    similar = get_close_matches(word, weights, n=1, cutoff=0.8)
    return _SIMILAR * weights[similar[0]] if similar else 0.0
