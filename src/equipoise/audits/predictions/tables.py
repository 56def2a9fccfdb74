"""The tables beside the findings: counts and series that a report draws on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import stats

from equipoise.audits.engines.labels import LabelDesign
from equipoise.core.parts import Part
from equipoise.metrics.counts.effect_sizes import bands, mev_sweep
from equipoise.metrics.spec import BANDS
from equipoise.stats.intervals import fisher_z

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.data import PredictionData

Row = dict[str, Any]

# Beyond this many classes only wrong predictions are listed: right ones are n minus their sum.
_ALL_CELLS = 200


def of_design(
    design: LabelDesign, parts: Mapping[str, tuple[Part, ...]], config: Config
) -> dict[str, pa.Table]:
    """Return the tables of one design by name, see docs/run-directory.md."""
    classes = [*_classes(design, parts)]
    rows = {
        "classes": classes,
        "confusions": _confusions(design),
        "correlations": _correlations(design, classes),
        "bands": _bands(design, classes),
        "states": _states(design),
    }
    sweep = _sweep(design, config)
    made = {name: _table(name, some) for name, some in rows.items()}
    return made if sweep is None else made | {"mev_sweep": sweep}


def where(design: LabelDesign) -> Row:
    """Return the columns that name a design."""
    return {"model": design.model, "groups": design.groups.name, "version": design.version}


def _classes(design: LabelDesign, parts: Mapping[str, tuple[Part, ...]]) -> Iterator[Row]:
    counts = design.counts
    hits, totals = counts.hits(counts.table[None])[0], counts.by_truth(counts.table[None])[0]
    effects = {part.subject: part for part in parts.get("effect_sizes", ())}
    parity = {part.subject: part.value for part in parts.get("demographic_parity", ())}
    odds = {part.subject: part.value for part in parts.get("equalized_odds", ())}
    for index in counts.targets.tolist():
        name = counts.classes[index]
        rates = _rates(hits[index], totals[index], counts.groups.names)
        extra = {
            "demographic_parity": parity.get(name, math.nan),
            "equalized_odds": odds.get(name, math.nan),
        }
        yield where(design) | {"class": name} | rates | _effect(effects.get(name)) | extra


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
    dropped = {each.reason: each.count for each in found.excluded}
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


def _confusions(design: LabelDesign) -> Iterator[Row]:
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


def _correlations(design: LabelDesign, classes: Sequence[Row]) -> Iterator[Row]:
    x = np.array([row["effect_size"] for row in classes])
    for other in _AGAINST:
        y = np.array([row[other] for row in classes])
        known = ~(np.isnan(x) | np.isnan(y))
        names = {"x": "effect_size", "y": other}
        yield where(design) | names | _correlation(x[known], y[known])


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


def _bands(design: LabelDesign, classes: Sequence[Row]) -> Iterator[Row]:
    for band in BANDS:
        n = sum(row["band"] == band for row in classes)
        yield where(design) | {"band": band, "classes": n}


def states_of_models(data: PredictionData) -> pa.Table:
    """Return the states of all rows of each model, as the table `states`."""
    return _table("states", _all_states(data))


def _all_states(data: PredictionData) -> Iterator[Row]:
    for name, model in data.models.items():
        states, counted = np.unique(model.state.astype(str), return_counts=True)
        for state, n in zip(states.tolist(), counted.tolist(), strict=True):
            yield {"model": name, "state": state, "groups": "", "group": "", "count": n}
        if model.without_label:
            extra = {"state": "without label", "groups": "", "group": ""}
            yield {"model": name} | extra | {"count": model.without_label}


def _states(design: LabelDesign) -> Iterator[Row]:
    state = design.state.astype(str)
    if (state == "answered").all() or design.version != _first_version(design):
        return
    for group, name in enumerate(design.groups.names):
        states, counted = np.unique(state[design.groups.codes == group], return_counts=True)
        for label, n in zip(states.tolist(), counted.tolist(), strict=True):
            place = {"model": design.model, "state": label, "groups": design.groups.name}
            yield place | {"group": name, "count": n}


def _first_version(design: LabelDesign) -> str:
    return next(iter(design.labels.versions))


def _sweep(design: LabelDesign, config: Config) -> pa.Table | None:
    options = config.metrics.effect_sizes
    if options is None:
        return None
    swept = mev_sweep(
        design.counts,
        statistic=options.statistic,
        yates=options.yates,
        formulation=options.formulation,
    )
    for position, (name, value) in enumerate(where(design).items()):
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


def _table(name: str, rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([*rows], pa.schema([(one, _type(one)) for one in _COLUMNS[name]]))


def _type(column: str) -> pa.DataType:
    if column in _TEXT:
        return pa.string()
    if column in _WHOLE:
        return pa.int64()
    return pa.float64()
