"""The tables beside the findings: counts and series that a report draws on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import stats

from equipoise.audits import group_sizes
from equipoise.audits.group_sizes import sizes_of
from equipoise.audits.predictions.designs import Design, groups_of
from equipoise.audits.predictions.measuring import MeasuredDesign
from equipoise.core.parts import Part
from equipoise.metrics.effect_sizes import bands
from equipoise.metrics.skewsize import mev_sweep
from equipoise.metrics.spec import BANDS
from equipoise.stats.intervals import fisher_z

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.data import PredictionData

Row = dict[str, Any]

# Beyond this many classes only wrong predictions are listed: right ones are n minus their sum.
_ALL_CELLS = 200


def tables_of(
    config: Config, data: PredictionData, measured: Sequence[MeasuredDesign]
) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/run-directory.md."""
    classes = [row for one in measured for row in _classes(one)]
    rows = {
        "classes": classes,
        "confusions": [row for one in measured for row in _confusions(one.design)],
        "correlations": list(_correlations(classes)),
        "bands": list(_bands(classes)),
        "states": [*_all_states(data), *(row for one in measured for row in _states(one.design))],
    }
    found = {name: _table(name, some) for name, some in rows.items()}
    every = np.ones(len(data.ids), dtype=bool)
    found["group_sizes"] = group_sizes.table(
        row
        for attributes in config.data.groups
        for row in sizes_of(groups_of(config.data, data, attributes, every))
    )
    sweeps = [sweep for one in measured if (sweep := _sweep(one, config)) is not None]
    if sweeps:
        found["mev_sweep"] = pa.concat_tables(sweeps)
    return found


def where(design: Design) -> Row:
    """Return the columns that name a design."""
    return {"model": design.model, "groups": design.groups.name, "version": design.version}


def _classes(one: MeasuredDesign) -> Iterator[Row]:
    counts = one.design.counts
    hits, totals = counts.hits(counts.table[None])[0], counts.by_truth(counts.table[None])[0]
    effects = {part.subject: part for part in one.parts.get("effect_sizes", ())}
    parity = {part.subject: part.value for part in one.parts.get("demographic_parity", ())}
    odds = {part.subject: part.value for part in one.parts.get("equalized_odds", ())}
    for index in counts.targets.tolist():
        name = counts.classes[index]
        rates = _rates(hits[index], totals[index], counts.groups.names)
        extra = {
            "demographic_parity": parity.get(name, math.nan),
            "equalized_odds": odds.get(name, math.nan),
        }
        yield where(one.design) | {"class": name} | rates | _effect(effects.get(name)) | extra


def _rates(hits: Any, totals: Any, names: Sequence[str]) -> Row:
    n = float(totals.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = hits / totals
    worst = int(np.nanargmin(shares)) if n else 0
    accuracy = float(hits.sum()) / n if n else math.nan
    return {
        "n": round(n),
        "accuracy": accuracy,
        "worst_group": names[worst] if n else "",
        "worst_group_accuracy": float(shares[worst]) if n else math.nan,
        "gap": accuracy - float(shares[worst]) if n else math.nan,
    }


def _effect(part: Part | None) -> Row:
    found = part or Part("", "", math.nan, reason="effect sizes are switched off")
    dropped = {one.reason: one.count for one in found.excluded}
    return {
        "effect_size": found.value,
        "effect_low": found.low,
        "effect_high": found.high,
        "effect_chance": found.chance,
        "band": bands([found.value])[0] or "",
        "columns_dropped": sum(n for reason, n in dropped.items() if reason.startswith("labels")),
        "rows_dropped": sum(n for reason, n in dropped.items() if reason.startswith("rows")),
        "reason": found.reason,
    }


def _confusions(design: Design) -> Iterator[Row]:
    counts = design.counts
    totals = counts.by_truth(counts.table[None])[0]
    everything = len(counts.classes) <= _ALL_CELLS
    outcomes, groups = np.nonzero(counts.table)
    for outcome, group in zip(outcomes.tolist(), groups.tolist(), strict=True):
        truth, predicted = counts.truth[outcome], counts.prediction[outcome]
        if everything or truth != predicted:
            yield where(design) | {
                "class": counts.classes[truth],
                "group": counts.groups.names[group],
                "prediction": counts.classes[predicted],
                "count": round(counts.table[outcome, group]),
                "n": round(totals[truth, group]),
            }


_AGAINST = ("accuracy", "equalized_odds", "gap", "demographic_parity")


def _correlations(classes: Iterable[Row]) -> Iterator[Row]:
    for place, rows in _by_place(classes):
        for other in _AGAINST:
            x = np.array([row["effect_size"] for row in rows])
            y = np.array([row[other] for row in rows])
            known = ~(np.isnan(x) | np.isnan(y))
            yield place | {"x": "effect_size", "y": other} | _correlation(x[known], y[known])


def _correlation(x: Any, y: Any) -> Row:
    n = len(x)
    nothing = dict.fromkeys(
        ("pearson", "pearson_low", "pearson_high", "spearman", "spearman_p"), math.nan
    )
    if n < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        why = "fewer than 4 classes" if n < 4 else "all classes have the same value"
        return {"classes": n} | nothing | {"reason": why}
    pearson = float(np.corrcoef(x, y)[0, 1])
    low, high = fisher_z(pearson, n)
    spearman = stats.spearmanr(x, y)
    return {
        "classes": n,
        "pearson": pearson,
        "pearson_low": float(low),
        "pearson_high": float(high),
        "spearman": float(spearman.statistic),
        "spearman_p": float(spearman.pvalue),
        "reason": "",
    }


def _bands(classes: Iterable[Row]) -> Iterator[Row]:
    for place, rows in _by_place(classes):
        for band in BANDS:
            yield place | {"band": band, "classes": sum(row["band"] == band for row in rows)}


def _by_place(classes: Iterable[Row]) -> Iterator[tuple[Row, list[Row]]]:
    names = ("model", "groups", "version")
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in classes:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for place, rows in found.items():
        yield dict(zip(names, place, strict=True)), rows


def _all_states(data: PredictionData) -> Iterator[Row]:
    for name, model in data.models.items():
        states, counted = np.unique(model.state.astype(str), return_counts=True)
        for state, n in zip(states.tolist(), counted.tolist(), strict=True):
            yield {"model": name, "state": state, "groups": "", "group": "", "count": n}
        if model.without_label:
            extra = {"state": "without label", "groups": "", "group": ""}
            yield {"model": name} | extra | {"count": model.without_label}


def _states(design: Design) -> Iterator[Row]:
    state = design.data.models[design.model].state[design.rows].astype(str)
    if (state == "answered").all() or design.version != _first_version(design):
        return
    for group, name in enumerate(design.groups.names):
        states, counted = np.unique(state[design.groups.codes == group], return_counts=True)
        for one, n in zip(states.tolist(), counted.tolist(), strict=True):
            place = {"model": design.model, "state": one, "groups": design.groups.name}
            yield place | {"group": name, "count": n}


def _first_version(design: Design) -> str:
    return next(iter(design.data.models[design.model].versions))


def _sweep(one: MeasuredDesign, config: Config) -> pa.Table | None:
    options = config.metrics.effect_sizes
    if options is None:
        return None
    swept = mev_sweep(
        one.design.counts,
        statistic=options.statistic,
        yates=options.yates,
        formulation=options.formulation,
    )
    for position, (name, value) in enumerate(where(one.design).items()):
        swept = swept.add_column(position, name, pa.array([value] * len(swept), pa.string()))
    return swept


_TEXT = (
    "model", "groups", "version", "class", "worst_group", "band", "reason", "group",
    "prediction", "x", "y", "state", "note",
)  # fmt: skip
_WHOLE = ("n", "columns_dropped", "rows_dropped", "count", "classes")
_COLUMNS = {
    "classes": (
        "model", "groups", "version", "class", "n", "accuracy", "worst_group",
        "worst_group_accuracy", "gap", "effect_size", "effect_low", "effect_high",
        "effect_chance", "band", "columns_dropped", "rows_dropped", "reason",
        "demographic_parity", "equalized_odds",
    ),
    "confusions": ("model", "groups", "version", "class", "group", "prediction", "count", "n"),
    "correlations": (
        "model", "groups", "version", "x", "y", "classes", "pearson", "pearson_low",
        "pearson_high", "spearman", "spearman_p", "reason",
    ),
    "bands": ("model", "groups", "version", "band", "classes"),
    "states": ("model", "state", "groups", "group", "count"),
}  # fmt: skip


def _table(name: str, rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([(one, _type(one)) for one in _COLUMNS[name]]))


def _type(column: str) -> pa.DataType:
    if column in _TEXT:
        return pa.string()
    if column in _WHOLE:
        return pa.int64()
    return pa.float64()
