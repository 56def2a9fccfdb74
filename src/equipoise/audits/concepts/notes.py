"""What a reader of the findings must know about the data, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.audits.concepts.designs import UNSCORED, Design
from equipoise.audits.concepts.measuring import Run, unmeasured
from equipoise.audits.group_sizes import odd_labels
from equipoise.audits.kinds import PERCEIVED
from equipoise.metrics.concepts.participants import FOLLOWS

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.loading import ConceptData
    from equipoise.metrics.concepts.results import ConceptResults

_LISTED = 8


def notes_of(
    config: Config, data: ConceptData, every: Sequence[Design], runs: Sequence[Run]
) -> tuple[str, ...]:
    """Return the notes on an audit, each once."""
    found = [
        PERCEIVED,
        "Only the baseline is tested; versions say what other choices would have shown.",
        *without_scores(config, data),
        *(note for design in every for note in _unused_terms(data, design)),
        *(note for design in every for note in _left_out(design)),
        *(
            note
            for design in every
            for note in odd_labels(design.groups, "rows", config.data.images)
        ),
        *(note for run in runs for note in _rare(run)),
    ]
    if any(run.results.hall for run in runs):
        found.append(
            "Under the protocol of fixed samples (hall) a difference is significant where its "
            "interval excludes 0: the rule of its source, without a p-value."
        )
    if any("asymptotic" in run.estimate.null for run in runs if run.baseline):
        found.append(
            "Tests of means over concepts rest on replicates centred at no difference; they are "
            "asymptotic."
        )
    return tuple(dict.fromkeys(found))


def without_scores(config: Config, data: ConceptData) -> Iterator[str]:
    """Yield per model the concepts that are labelled and wanted, and that it does not score."""
    wanted = config.concepts or sorted(data.labels.known)
    for model, one in data.models.items():
        lacking = [name for name in wanted if name not in one.concepts]
        if len(lacking) == 1:
            yield (
                f"{model}: 1 labelled concept has no scores and is not measured: {_some(lacking)}."
            )
        elif lacking:
            yield (
                f"{model}: {len(lacking)} labelled concepts have no scores and are not measured: "
                f"{_some(lacking)}."
            )


def _unused_terms(data: ConceptData, design: Design) -> Iterator[str]:
    """Name terms that no row has: perhaps a typing error."""
    choices = design.version.choices
    for attribute in design.attributes:
        column = choices.columns.get(attribute, attribute)
        known = data.rows.items.coded[column].vocabulary
        listed = [one for values in choices.terms.get(attribute, {}).values() for one in values]
        unused = [one for one in listed if one not in known]
        if unused:
            yield (
                f"{design.name}, {design.version.name}: no row has the values {_some(unused)} that "
                f"the terms of {attribute} name."
            )


def _left_out(design: Design) -> Iterator[str]:
    version = design.version.name
    for reason, count in design.excluded.items():
        # Only what scores decide may differ between models.
        model = f"{design.model}, " if reason == UNSCORED else ""
        yield f"{model}{design.name}, {version}: {count} rows left out ({reason})."
    few = [
        f"{name} ({n})"
        for name, n, usable in zip(
            design.groups.names, design.groups.counts.tolist(), design.groups.usable, strict=True
        )
        if not usable
    ]
    if few:
        yield (
            f"{design.name}, {version}: {len(few)} of {len(design.groups)} groups have fewer than "
            f"{design.groups.min_size} rows and are not compared: {_some(few)}."
        )


def _rare(run: Run) -> Iterator[str]:
    lacking = unmeasured(run.results)
    if lacking and run.metric == run.against:
        yield (
            f"{run.design.model}, {run.design.name}, {run.design.version.name}: in {len(lacking)} "
            f"of {len(run.results.names)} concepts fewer than two groups take part, and they are "
            f"not compared: {_some([f'{name} ({_why(run.results, name)})' for name in lacking])}."
        )


def _why(results: ConceptResults, name: str) -> str:
    """Say why groups leave a concept, those with one reason together."""
    told = results.reasons[results.names.index(name)]
    groups: dict[str, list[str]] = {}
    for group, reason in zip(results.groups.names, told, strict=True):
        if reason:
            groups.setdefault(reason, []).append(group)
    own = {reason: which for reason, which in groups.items() if reason not in FOLLOWS}
    return "; ".join(f"{_some(which)}: {reason}" for reason, which in (own or groups).items())


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
