"""The tables beside the findings: differences by version, and what choices do to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.concepts.designs import Design
from equipoise.audits.concepts.measuring import Run
from equipoise.audits.group_sizes import sizes_of
from equipoise.core.parts import Part
from equipoise.metrics.concepts.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.concepts.results import ConceptResults
from equipoise.stats.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config

Row = dict[str, Any]
_DIFFERENCE = "concept_difference"


def tables_of(config: Config, every: Sequence[Design], runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/concepts.md."""
    found = {
        "concepts": _table(_CONCEPTS, (row for run in runs for row in _pairs(run))),
        "concept_groups": _table(_GROUPS, (row for run in runs for row in _groups(run))),
        "versions": _table(_VERSIONS, _versions(config)),
        "group_sizes": group_sizes.table(_sizes(config, every)),
    }
    return found | choices_of_runs(config, runs)


def choices_of_runs(config: Config, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return what choices do to the disparities; nothing without replicates or versions."""
    if config.resampling.method == "none" or len(config.every_version) < 2:
        return {}
    alpha, baseline = config.testing.alpha, config.every_version[0].name
    found: dict[str, list[pa.Table]] = {"choices": [], "robust": []}
    order: list[pa.Table] = []
    by_groups: dict[tuple[str, str], dict[str, dict[str, ConceptResults]]] = {}
    for run in runs:
        models = by_groups.setdefault((run.design.name, run.against), {})
        models.setdefault(run.design.model, {})[run.design.version.name] = run.results
    for (groups, metric), models in by_groups.items():
        place = {"groups": groups, "metric": metric}
        for model, versions in models.items():
            here = {"model": model, **place}
            found["choices"].append(_named(here, design_choices(versions, baseline, alpha=alpha)))
            robust = robust_conclusions(versions, baseline, alpha=alpha)
            found["robust"].append(_named(here, robust))
        if len(models) > 1:
            order.append(_named(place, model_order(models, baseline, alpha=alpha)))
    made = {name: pa.concat_tables(some) for name, some in found.items()}
    return made | ({"model_order": pa.concat_tables(order)} if order else {})


def _named(place: Mapping[str, str], table: pa.Table) -> pa.Table:
    for position, (name, value) in enumerate(place.items()):
        table = table.add_column(position, name, pa.array([value] * len(table), pa.string()))
    return table


def where(run: Run) -> Row:
    """Return the columns that name a run."""
    design = run.design
    return {
        "model": design.model,
        "groups": design.name,
        "version": design.version.name,
        "metric": run.metric,
    }


def _pairs(run: Run) -> Iterator[Row]:
    """Yield a row for each concept ("" for their mean) and pair of groups."""
    parts = [part for part in run.estimate.parts if part.metric == _DIFFERENCE]
    results, pairs = run.results, run.results.pairs
    means, others = parts[: len(pairs)], parts[len(pairs) :]
    subjects = [""] * len(pairs) + [name for name in results.names for _ in pairs]
    q_values = np.concatenate([_corrected(means), _corrected(others)]).tolist()
    index = {name: place for place, name in enumerate(results.names)}
    for place, (subject, part, q) in enumerate(zip(subjects, parts, q_values, strict=True)):
        a, b = pairs[place % len(pairs)]
        yield (
            where(run)
            | {"concept": subject}
            | _pair(part, q)
            | _held(results, index.get(subject), (a, b))
        )


def _corrected(parts: Sequence[Part]) -> Any:
    return benjamini_hochberg(np.array([part.p_value for part in parts], dtype=np.float64))


def _pair(part: Part, q: float) -> Row:
    first, second = part.by_group
    return {
        "group_a": first.group,
        "group_b": second.group,
        "value_a": first.value,
        "value_b": second.value,
        "difference": part.value,
        "low": part.low,
        "high": part.high,
        "chance_low": part.chance_low,
        "chance_high": part.chance_high,
        "p_value": part.p_value,
        "q_value": q,
        "reason": part.reason,
    }


def _held(results: ConceptResults, concept: int | None, pair: tuple[int, int]) -> Row:
    """Return prevalence, positives and negatives of two groups, and the threshold."""
    if concept is None:
        none = dict.fromkeys(("prevalence_a", "prevalence_b", "threshold"), math.nan)
        counts = ("positives_a", "positives_b", "negatives_a", "negatives_b")
        return none | dict.fromkeys(counts)
    row: Row = {"threshold": float(results.thresholds[concept])}
    for side, group in zip("ab", pair, strict=True):
        positives, n = (int(one[concept, group]) for one in (results.positives, results.sizes))
        row[f"prevalence_{side}"] = positives / n if n else math.nan
        row[f"positives_{side}"] = positives
        row[f"negatives_{side}"] = n - positives
    return row


def _groups(run: Run) -> Iterator[Row]:
    """Yield a row for each concept and group: its value beside its prevalence."""
    wanted = [part for part in run.estimate.parts if part.metric == run.metric]
    for concept, part in enumerate(wanted):
        for group, one in enumerate(part.by_group):
            positives, n = (
                int(counts[concept, group]) for counts in (run.results.positives, run.results.sizes)
            )
            yield where(run) | {
                "concept": part.subject,
                "group": one.group,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "prevalence": positives / n if n else math.nan,
                "positives": positives,
                "n": n,
                "reason": run.results.reasons[concept][group],
            }


def _versions(config: Config) -> Iterator[Row]:
    for version in config.every_version:
        choices = version.choices
        yield {
            "version": version.name,
            "changes": version.description,
            "keys": [*version.changed],
            "metric": choices.metric or config.primary,
            "prevalence": choices.prevalence,
            "ratio": choices.ratio,
        }


def _sizes(config: Config, every: Sequence[Design]) -> Iterator[Row]:
    """Yield the sizes of the groups in the baseline, whatever the model."""
    first = next(iter(config.models))
    for design in every:
        if not design.version.changed and design.model == first:
            why = "; ".join(f"{reason}: {n}" for reason, n in design.excluded.items())
            yield from sizes_of(design.groups, missing=why)


_TEXT, _NUMBER, _COUNT, _FLAG = pa.string(), pa.float64(), pa.int64(), pa.bool_()


def _schema(*columns: tuple[pa.DataType, tuple[str, ...]]) -> pa.Schema:
    return pa.schema([(name, kind) for kind, names in columns for name in names])


_PLACE = ("model", "groups", "version", "metric", "concept")
_CONCEPTS = _schema(
    (_TEXT, (*_PLACE, "group_a", "group_b")),
    (_NUMBER, ("value_a", "value_b", "difference", "low", "high", "chance_low", "chance_high",
               "p_value", "q_value", "prevalence_a", "prevalence_b")),
    (_COUNT, ("positives_a", "positives_b", "negatives_a", "negatives_b")),
    (_NUMBER, ("threshold",)),
    (_TEXT, ("reason",)),
)  # fmt: skip
_GROUPS = _schema(
    (_TEXT, (*_PLACE, "group")),
    (_NUMBER, ("value", "low", "high", "prevalence")),
    (_COUNT, ("positives", "n")),
    (_TEXT, ("reason",)),
)
_VERSIONS = _schema(
    (_TEXT, ("version", "changes")),
    (pa.list_(_TEXT), ("keys",)),
    (_TEXT, ("metric", "prevalence")),
    (_NUMBER, ("ratio",)),
)


def _table(schema: pa.Schema, rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([*rows], schema)
