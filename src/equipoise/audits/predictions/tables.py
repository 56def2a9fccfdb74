"""The measures of an audit of predictions, and the tables beside its findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from scipy import stats

from equipoise.audits.columns import Row, placed
from equipoise.audits.engines.labels import LabelDesign
from equipoise.core import Part, table_of
from equipoise.metrics.counts import Counts
from equipoise.metrics.counts.accuracy import Accuracy
from equipoise.metrics.counts.effect_sizes import EffectSizes, SkewSize, mev_sweep
from equipoise.metrics.counts.rates import DemographicParity, EqualizedOdds, Rates, divide
from equipoise.metrics.measure import Measure
from equipoise.metrics.spec import band_of
from equipoise.metrics.table_metric import TABLE_METRICS
from equipoise.stats.intervals import fisher_z

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config, EffectSizeOptions
    from equipoise.data import PredictionData

# Beyond this many classes only wrong predictions are listed: right ones are n minus their sum.
_ALL_CELLS = 200
_AGAINST = ("accuracy", "equalized_odds", "gap", "demographic_parity")
_CORRELATION = ("pearson", "pearson_low", "pearson_high", "spearman", "spearman_p")
_COLUMNS = {
    "classes": (
        "class +n #accuracy worst_group #worst_group_accuracy #gap #effect_size #effect_low "
        "#effect_high #effect_chance band +columns_dropped +rows_dropped reason "
        "#demographic_parity #equalized_odds"
    ),
    "confusions": "class group prediction +count +n",
    "correlations": (
        "x y +classes #pearson #pearson_low #pearson_high #spearman #spearman_p reason"
    ),
}
_STATES = "model state +count"


def measures_of(config: Config, counts: Counts) -> Iterator[Measure]:
    """Yield every metric of labels by group that is switched on."""
    metrics = config.metrics
    conditional = not counts.determines_target
    for kind in ("worst_group_accuracy", "accuracy_gap"):
        if getattr(metrics, kind) is not None:
            yield Accuracy(kind, "rows")
            if conditional:
                yield Accuracy(kind, "class")
    if metrics.demographic_parity is not None:
        yield DemographicParity()
    if metrics.equalized_odds is not None:
        yield EqualizedOdds(metrics.equalized_odds.aggregate)
    if metrics.rates is not None:
        yield from (Rates("class"), Rates("rows"))
    if metrics.effect_sizes is not None:
        yield effect_sizes(metrics.effect_sizes)
    if metrics.skewsize is not None:
        yield SkewSize(**effect_sizes(metrics.skewsize).params)
    yield from (one for one in TABLE_METRICS.values() if config.audit in one.spec.kinds)


def effect_sizes(options: EffectSizeOptions) -> EffectSizes:
    """Return the measure of effect sizes that options describe."""
    return EffectSizes(options.statistic, options.min_expected, options.yates, options.formulation)


def of_design(
    design: LabelDesign, parts: Mapping[str, tuple[Part, ...]], config: Config
) -> dict[str, pa.Table]:
    """Return the tables of one design by name, see docs/run-directory.md."""
    place = {"model": design.model, "groups": design.groups.name, "version": design.version}
    classes = [*_classes(design, parts)]
    rows: dict[str, Iterable[Row]] = {
        "classes": classes,
        "confusions": _confusions(design),
        "correlations": _correlations(classes),
    }
    tables = {name: table_of(some, _COLUMNS[name]) for name, some in rows.items()}
    if (options := config.metrics.effect_sizes) is not None:
        how = options.model_dump(exclude={"min_expected"})
        tables["mev_sweep"] = mev_sweep(design.counts, **how)
    return {name: placed(table, place) for name, table in tables.items()}


def _classes(design: LabelDesign, parts: Mapping[str, tuple[Part, ...]]) -> Iterator[Row]:
    counts = design.counts
    hits, totals = counts.hits(counts.observed)[0], counts.by_truth(counts.observed)[0]
    shares, n = divide(hits, totals), totals.sum(axis=1)
    accuracy, lowest = divide(hits.sum(axis=1), n), np.fmin.reduce(shares, axis=1)
    worst = np.where(np.isnan(shares), np.inf, shares).argmin(axis=1)
    effects, parity, odds = (
        {part.subject: part for part in parts.get(metric, ())}
        for metric in ("effect_sizes", "demographic_parity", "equalized_odds")
    )
    off = Part("", "", math.nan, reason="effect sizes are switched off")
    for index in counts.targets.tolist():
        name = counts.classes[index]
        effect = effects.get(name, off)
        columns, rows = (
            sum(each.count for each in effect.excluded if each.reason.startswith(what))
            for what in ("labels", "rows")
        )
        yield {
            "class": name,
            "n": round(n[index]),
            "accuracy": accuracy[index],
            "worst_group": counts.groups.names[worst[index]] if n[index] else "",
            "worst_group_accuracy": lowest[index],
            "gap": accuracy[index] - lowest[index],
            "effect_size": effect.value,
            "effect_low": effect.low,
            "effect_high": effect.high,
            "effect_chance": effect.chance,
            "band": band_of(effect.value),
            "columns_dropped": columns,
            "rows_dropped": rows,
            "reason": effect.reason,
            "demographic_parity": parity.get(name, off).value,
            "equalized_odds": odds.get(name, off).value,
        }


def _confusions(design: LabelDesign) -> Iterator[Row]:
    counts = design.counts
    totals = counts.by_truth(counts.table[None])[0]
    everything = len(counts.classes) <= _ALL_CELLS
    for outcome, group in np.argwhere(counts.table).tolist():
        truth, predicted = counts.truth[outcome], counts.prediction[outcome]
        if everything or truth != predicted:
            yield {
                "class": counts.classes[truth],
                "group": counts.groups.names[group],
                "prediction": counts.classes[predicted],
                "count": round(counts.table[outcome, group]),
                "n": round(totals[truth, group]),
            }


def _correlations(classes: Sequence[Row]) -> Iterator[Row]:
    effects = np.array([row["effect_size"] for row in classes])
    for other in _AGAINST:
        values = np.array([row[other] for row in classes])
        known = ~(np.isnan(effects) | np.isnan(values))
        x, y, n = effects[known], values[known], int(known.sum())
        numbers, why = np.full(len(_CORRELATION), np.nan), ""
        if n < 4:
            why = "fewer than 4 classes"
        elif np.ptp(x) == 0 or np.ptp(y) == 0:
            why = "all classes have the same value"
        else:
            pearson = float(np.corrcoef(x, y)[0, 1])
            numbers[:] = pearson, *fisher_z(pearson, n), *stats.spearmanr(x, y)
        row = {"x": "effect_size", "y": other, "classes": n, "reason": why}
        yield row | dict(zip(_CORRELATION, numbers.tolist(), strict=True))


def states_of_models(data: PredictionData) -> pa.Table:
    """Return the states of all rows of each model, as the table `states`."""
    rows: list[Row] = []
    for name, model in data.models.items():
        states = model.coded_state.sizes() | {"without label": model.without_label}
        rows += [{"model": name, "state": state, "count": n} for state, n in states.items() if n]
    return table_of(rows, _STATES)
