"""Scores of binary targets: thresholds, curves over them, and where verdicts hold."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.audits.columns import Row
from equipoise.audits.config import TestingConfig
from equipoise.audits.engines.labels import LabelDesign
from equipoise.audits.findings import Place, conclude, parts
from equipoise.audits.predictions.config import CostConfig, ModelConfig
from equipoise.core import Booleans, ConfigError, Finding, Floats, record
from equipoise.core.wording import number
from equipoise.data import Coded, read_table
from equipoise.data.labels import LabelRows, Outputs
from equipoise.data.problems import check_ids, listed, match
from equipoise.metrics.counts import count
from equipoise.metrics.counts.rates import Rates
from equipoise.metrics.measure import measure
from equipoise.stats import Permutation
from equipoise.stats.intervals import divide, scored

JUDGED = ("selection_rate", "true_positive_rate", "false_positive_rate", "precision",
          "accuracy")  # fmt: skip
"""Rates whose verdicts are followed over thresholds."""

# Thresholds of the curves and of the verdicts, and how each of the latter is drawn.
_CURVE, _SWEPT, _DRAWN = 101, 25, Permutation(400)
_RULES = {
    "balanced_accuracy": "the balanced accuracy is largest",
    "prevalence": "as many rows are predicted as are of the class",
    "cost": "the cost of errors is smallest",
}


@record
class Scored:
    """The scores of a model, and the threshold from which on they mean the positive class.

    Attributes
    ----------
    values : ndarray, shape (n,)
        In the order of the labels; NaN where there is none.
    threshold : float
    rule : str
        How the threshold was chosen, in words; "" where it was given.
    """

    values: Floats
    threshold: float
    rule: str


def read_scores(
    name: str, section: ModelConfig, truth: LabelRows, positive: str | None, base: Path
) -> tuple[Outputs, Scored]:
    """Read the scores of a model, and make labels of them.

    Raises
    ------
    ConfigError
        When the target has other than two classes, or no positive one is named.
    DataError
        When a score is no number.
    """
    classes = truth.target.vocabulary
    if positive is None or len(classes) != 2:
        raise ConfigError(
            f"models.{name}.score: a score is of the positive one of two classes, and "
            f"{truth.column} has {listed(classes, 5)}. To do: name it under data.positive"
        )
    source, column = section.source(base, prediction=section.score), str(section.score)
    id_ = source.id or truth.ids.name
    table = read_table(
        source.table, texts=(id_,), numbers=(column,), role=f"predictions of {name}",
        encoding=source.encoding, delimiter=source.delimiter,
    )  # fmt: skip
    ids = table.texts[id_]
    check_ids(ids, table.name)
    given = table.numbers[column].fill_null(np.nan).to_numpy()
    positions = match(ids, truth.ids)
    values = np.full(len(truth.ids), np.nan)
    values[positions[positions >= 0]] = given[positions >= 0]
    place = classes.index(positive)
    threshold, rule = section.threshold, ""
    if isinstance(threshold, str):
        known = ~np.isnan(values) & (truth.target.codes >= 0)
        right = truth.target.codes[known] == place
        rule = _RULES[threshold]
        threshold = choose(values[known], right, threshold, section.costs)
    codes = np.where(np.isnan(given), -1, np.where(given >= threshold, place, 1 - place))
    outputs = Outputs(
        model=name, content="labels", source=table.name, ids=ids, column=column, rows=table.rows,
        labels=Coded(codes.astype(np.int32)[:, None], classes), inputs={table.name: table.digest},
    )  # fmt: skip
    return outputs, Scored(values, threshold, rule)


def choose(scores: Floats, positive: Booleans, rule: str, costs: CostConfig) -> float:
    """Return the threshold that a rule chooses among the scores; of equals the largest.

    Parameters
    ----------
    scores : ndarray, shape (n,)
    positive : ndarray of bool, shape (n,)
        Whether the row is of the positive class.
    rule : str
        Of `ModelConfig.threshold`.
    costs : CostConfig
    """
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(positive[order])
    # Each score is a threshold; of equal ones the last counts all.
    last = np.append(ranked[1:] != ranked[:-1], True)
    thresholds, true, called = ranked[last], hits[last], np.flatnonzero(last) + 1
    every, wrong = hits[-1], called - true
    others = len(scores) - every
    loss = {
        "balanced_accuracy": wrong / max(others, 1) - true / max(every, 1),
        "prevalence": np.abs(called - every),
        "cost": costs.false_positive * wrong + costs.false_negative * (every - true),
    }[rule]
    return float(thresholds[int(np.argmin(loss))])


def note_of(name: str, one: Scored, positive: str) -> str:
    """Say from which score on a model predicts the positive class, and why."""
    chosen = f" It was chosen on these rows, so that {one.rule}." if one.rule else ""
    return f"{name}: scores of {number(one.threshold)} or more count as {positive}.{chosen}"


def curves(
    design: LabelDesign, one: Scored, positive: str, costs: CostConfig, level: float
) -> Iterator[Row]:
    """Yield the rates and the cost of each group at each threshold.

    Rates have Wilson intervals. The cost is that of an average row.
    """
    values, truth, at = one.values[design.rows], design.target, _thresholds(one, _CURVE)
    known = ~np.isnan(values) & (truth.codes >= 0)
    right = truth.codes == truth.vocabulary.index(positive)
    for group, name in enumerate(design.groups.names):
        own = known & (design.groups.codes == group)
        if not design.groups.usable[group] or not own.any():
            continue
        true, false = (_from(values[own & side], at) for side in (right, ~right))
        every, others = (np.full(at.shape, (own & side).sum(), float) for side in (right, ~right))
        shares = {
            "selection_rate": (true + false, every + others),
            "true_positive_rate": (true, every),
            "false_positive_rate": (false, others),
            "precision": (true, true + false),
        }
        cost = costs.false_positive * false + costs.false_negative * (every - true)
        unknown = np.full_like(at, np.nan)
        numbers = {
            **{metric: (*scored(*pair, level).arrays, pair[1]) for metric, pair in shares.items()},
            "cost": (divide(cost, every + others), unknown, unknown, every + others),
        }
        place = {"model": design.model, "groups": design.groups.name, "group": name}
        for metric, found in numbers.items():
            for threshold, value, low, high, n in np.transpose([at, *found]).tolist():
                yield {
                    **place, "metric": metric, "threshold": threshold, "value": value, "low": low,
                    "high": high, "n": round(n),
                }  # fmt: skip


def verdict_ranges(
    design: LabelDesign, one: Scored, positive: str, testing: TestingConfig, place: Place, seed: int
) -> Iterator[Row]:
    """Yield each rate's verdict, and the thresholds around the one in use at which it holds.

    At each threshold the rates are tested as at the one in use, corrected together.
    """
    at = np.unique(np.append(_thresholds(one, _SWEPT), one.threshold))
    target, values = design.target, one.values[design.rows]
    index, drawn = target.vocabulary.index(positive), replace(_DRAWN, level=place.level)

    def judged(threshold: float) -> dict[str, Finding]:
        codes = np.where(np.isnan(values), -1, np.where(values >= threshold, index, 1 - index))
        label = Coded(codes.astype(np.int32), target.vocabulary)
        counts = count(target, label, design.groups, units=design.units)
        drafts = [
            draft
            for estimate in measure(counts, [Rates("class"), Rates("rows")], drawn, seed)
            for draft in parts(estimate, place)
            if draft.finding.metric in JUDGED and draft.finding.subject == positive
        ]
        return {found.metric: found for found in conclude(drafts, testing)}

    every = [judged(threshold) for threshold in at.tolist()]
    here = int(np.searchsorted(at, one.threshold))
    for metric, finding in every[here].items():
        same = np.array([found[metric].verdict == finding.verdict for found in every])
        low = here - int(np.argmin(same[here::-1])) + 1 if not same[: here + 1].all() else 0
        high = here + int(np.argmin(same[here:])) - 1 if not same[here:].all() else len(at) - 1
        yield {
            "model": design.model, "groups": design.groups.name, "metric": metric,
            "verdict": str(finding.verdict), "threshold": one.threshold, "low": float(at[low]),
            "high": float(at[high]), "least": float(at[0]), "most": float(at[-1]),
        }  # fmt: skip


def _thresholds(one: Scored, many: int) -> Floats:
    """Return so many thresholds, with as many scores between each two."""
    known = one.values[~np.isnan(one.values)]
    return np.unique(np.quantile(known, np.linspace(0.0, 1.0, many), method="nearest"))


def _from(scores: Floats, thresholds: Floats) -> Floats:
    """Return how many scores reach each threshold."""
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return np.asarray(len(scores) - below, np.float64)
