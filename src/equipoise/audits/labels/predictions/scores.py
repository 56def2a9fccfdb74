"""Scores of binary targets: thresholds, curves over them, and where verdicts hold."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from equipoise.audits.columns import Row
from equipoise.audits.config import TestingConfig
from equipoise.audits.findings import Place, conclude, parts
from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.labels.predictions.config import (
    CostConfig,
    ModelConfig,
)
from equipoise.config.fields import ThresholdRule
from equipoise.core import Booleans, ConfigError, Finding, Floats, record
from equipoise.core.wording import number
from equipoise.data import Coded, read_table
from equipoise.data.labels import LabelRows, Outputs, part_of
from equipoise.data.problems import listed, match
from equipoise.data.quantities import check_predicted
from equipoise.metrics.labels import Null
from equipoise.metrics.labels import count as count_rows
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rates import Rates, rates_of_classes
from equipoise.metrics.measure import measure
from equipoise.metrics.spec import spec_of
from equipoise.report.text import count
from equipoise.stats import Permutation
from equipoise.stats.intervals import divide, scored

_OF_OTHERS = {"missed", "neither"}
"""Cells of rows that are not predicted as the class."""
FOLLOWED = [
    rate for null in get_args(Null) for rate in rates_of_classes().values()
    if rate.null == null and rate.is_share and not rate.numerators <= _OF_OTHERS
]  # fmt: skip
"""Rates whose verdicts are followed over thresholds: those of rows that get the class."""
CURVES = [rate for rate in FOLLOWED if spec_of(rate.name).of_class]
"""Those of a class alone, which have curves."""

# Thresholds of the curves and of the verdicts, and how each of the latter is drawn.
_CURVE, _SWEPT, _DRAWN = 101, 25, Permutation(400)
_RULES = {
    "balanced_accuracy": "the balanced accuracy is largest",
    "prevalence": "as many rows are predicted as are of the class",
    "cost": "the cost of errors is smallest",
}


@record
class ModelScores:
    """The scores of a model, and the threshold from which on they mean the positive class.

    Attributes
    ----------
    values : ndarray, shape (n,)
        In the order of the labels; NaN where there is none.
    threshold : float
    rule : str
        How the threshold was chosen, in words; "" where it was given.
    too_few : str
        Why the rows can't tell a threshold for its rule well; "" where they can.
    """

    values: Floats
    threshold: float
    rule: str
    too_few: str = ""


def read_scores(
    name: str, section: ModelConfig, truth: LabelRows, positive: str | None, base: Path
) -> tuple[Outputs, ModelScores]:
    """Read the scores of a model, and make labels of them.

    Raises
    ------
    ConfigError
        When the target has other than two classes, or no positive one is named.
    DataError
        When a score is no number, or the target is a quantity that the scores estimate.
    """
    classes = truth.target.vocabulary
    source, column = section.source(base, prediction=section.score), str(section.score)
    id_ = source.id or truth.ids.name
    table = read_table(
        source.table, texts=(id_, *source.where), numbers=(column,), role=f"predictions of {name}",
        encoding=source.encoding, delimiter=source.delimiter,
    )  # fmt: skip
    table, _ = part_of(table, id_, source.where)
    ids = table.texts[id_]
    file_scores = table.numbers[column].fill_null(np.nan).to_numpy()
    positions = match(ids, truth.ids)
    values = np.full(len(truth.ids), np.nan)
    values[positions[positions >= 0]] = file_scores[positions >= 0]
    check_predicted(truth.target, values, str(truth.column), truth.file)
    if positive is None or len(classes) != 2:
        raise ConfigError(
            f"models.{name}.score: a score is of the positive one of two classes, and "
            f"{truth.column} has {listed(classes, 5)}. To do: name it under data.positive"
        )
    place = classes.index(positive)
    usable = ~np.isnan(values) & (truth.target.codes >= 0)
    right = truth.target.codes[usable] == place
    scores = _with_threshold(section, values, values[usable], right)
    threshold = scores.threshold
    codes = np.where(
        np.isnan(file_scores), -1, np.where(file_scores >= threshold, place, 1 - place)
    )
    outputs = Outputs(
        model=name, content="labels", source=table.name, ids=ids, column=column, rows=table.rows,
        labels=Coded(codes.astype(np.int32)[:, None], classes), inputs={table.name: table.digest},
    )  # fmt: skip
    return outputs, scores


# Negatives beyond a threshold from which on their share is known to about a third of itself.
_FEWEST = 10


def _with_threshold(
    section: ModelConfig, values: Floats, scores: Floats, positive: Booleans
) -> ModelScores:
    """Return all scores with the threshold that is given, or chosen among some of them."""
    threshold = section.threshold
    if isinstance(threshold, float):
        return ModelScores(values, threshold, "")
    if isinstance(threshold, str):
        chosen = choose_threshold(scores, positive, threshold, section.costs)
        return ModelScores(values, chosen, _RULES[threshold])
    rate, negatives = threshold.false_positive_rate, int((~positive).sum())
    chosen, too_few = threshold_at_rate(scores[~positive], scores, rate), ""
    if negatives * rate < _FEWEST:
        too_few = (
            f"{count(negatives)} rows are negative, and {negatives * rate:.2g} of them are called "
            f"positive at this rate: too few to tell it, which takes "
            f"{count(round(_FEWEST / rate))}."
        )
    rule = f"at most {100 * rate:g} % of all negative rows are called positive"
    return ModelScores(values, chosen, rule, too_few)


def threshold_at_rate(negatives: Floats, scores: Floats, rate: float) -> float:
    """Return the lowest score from which on no larger share of negatives lies than a rate.

    Above all scores where even the highest are of too many negatives.
    """
    candidates = np.unique(scores)
    reaching = len(negatives) - np.searchsorted(np.sort(negatives), candidates, side="left")
    kept = candidates[reaching <= rate * len(negatives)]
    return float(kept[0]) if len(kept) else float(np.nextafter(candidates[-1], np.inf))


def choose_threshold(
    scores: Floats, positive: Booleans, rule: ThresholdRule, costs: CostConfig
) -> float:
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
    thresholds, n_true_positive, n_predicted = ranked[last], hits[last], np.flatnonzero(last) + 1
    n_positive, n_false_positive = hits[-1], n_predicted - n_true_positive
    n_negative = len(scores) - n_positive
    loss = {
        "balanced_accuracy": n_false_positive / max(n_negative, 1)
        - n_true_positive / max(n_positive, 1),
        "prevalence": np.abs(n_predicted - n_positive),
        "cost": costs.false_positive * n_false_positive
        + costs.false_negative * (n_positive - n_true_positive),
    }[rule]
    return float(thresholds[int(np.argmin(loss))])


def note_of(name: str, model_scores: ModelScores, positive: str) -> str:
    """Say from which score on a model predicts the positive class, and why."""
    chosen = (
        f" It was chosen on these rows, so that {model_scores.rule}." if model_scores.rule else ""
    )
    few = f" {model_scores.too_few}" if model_scores.too_few else ""
    return (
        f"{name}: scores of {number(model_scores.threshold)} or more count as "
        f"{positive}.{chosen}{few}"
    )


def curves(
    design: LabelDesign, model_scores: ModelScores, positive: str, costs: CostConfig, level: float
) -> Iterator[Row]:
    """Yield the rates and the cost of each group at each threshold.

    Rates have Wilson intervals. The cost is that of an average row.
    """
    values, truth, thresholds = (
        model_scores.values[design.rows],
        design.target,
        _thresholds(model_scores, _CURVE),
    )
    usable = ~np.isnan(values) & (truth.codes >= 0)
    right = truth.codes == truth.vocabulary.index(positive)
    for group, name in enumerate(design.groups.names):
        group_rows = usable & (design.groups.codes == group)
        if not design.groups.usable[group] or not group_rows.any():
            continue
        true_positives, false_positives = (
            _count_reaching(values[group_rows & side], thresholds) for side in (right, ~right)
        )
        n_positive, n_negative = (
            np.full(thresholds.shape, (group_rows & side).sum(), float) for side in (right, ~right)
        )
        cells = Cells(
            np.ones(1, dtype=np.bool_), True, both=true_positives, truth=n_positive,
            prediction=true_positives + false_positives, total=n_positive + n_negative,
        )  # fmt: skip
        cost = costs.false_positive * false_positives + costs.false_negative * (
            n_positive - true_positives
        )
        unknown = np.full_like(thresholds, np.nan)
        shares = {rate.name: rate.pooled(cells) for rate in FOLLOWED if spec_of(rate.name).of_class}
        numbers = {
            **{metric: (*scored(*pair, level).arrays, pair[1]) for metric, pair in shares.items()},
            "cost": (
                divide(cost, n_positive + n_negative),
                unknown,
                unknown,
                n_positive + n_negative,
            ),
        }
        place = {"model": design.model, "groups": design.groups.name, "group": name}
        for metric, metric_numbers in numbers.items():
            for threshold, value, low, high, n in np.transpose(
                [thresholds, *metric_numbers]
            ).tolist():
                yield {
                    **place, "metric": metric, "threshold": threshold, "value": value, "low": low,
                    "high": high, "n": round(n),
                }  # fmt: skip


def verdict_ranges(
    design: LabelDesign,
    model_scores: ModelScores,
    positive: str,
    testing: TestingConfig,
    place: Place,
    seed: int,
) -> Iterator[Row]:
    """Yield each rate's verdict, and the thresholds around the one in use at which it holds.

    At each threshold the rates are tested as at the one in use, corrected together.
    """
    thresholds = np.unique(np.append(_thresholds(model_scores, _SWEPT), model_scores.threshold))
    target, values = design.target, model_scores.values[design.rows]
    index, resampling = target.vocabulary.index(positive), replace(_DRAWN, level=place.level)

    followed = {rate.name for rate in FOLLOWED}

    def findings_at(threshold: float) -> dict[str, Finding]:
        codes = np.where(np.isnan(values), -1, np.where(values >= threshold, index, 1 - index))
        label = Coded(codes.astype(np.int32), target.vocabulary)
        counts = count_rows(target, label, design.groups, units=design.units)
        drafts = [
            draft
            for estimate in measure(counts, [Rates("class"), Rates("rows")], resampling, seed)
            for draft in parts(estimate, place)
            if draft.finding.metric in followed and draft.finding.subject == positive
        ]
        return {finding.metric: finding for finding in conclude(drafts, testing)}

    findings_by_threshold = [findings_at(threshold) for threshold in thresholds.tolist()]
    current = int(np.searchsorted(thresholds, model_scores.threshold))
    for metric, finding in findings_by_threshold[current].items():
        same = np.array(
            [findings[metric].verdict == finding.verdict for findings in findings_by_threshold]
        )
        low = (
            current - int(np.argmin(same[current::-1])) + 1 if not same[: current + 1].all() else 0
        )
        high = (
            current + int(np.argmin(same[current:])) - 1
            if not same[current:].all()
            else len(thresholds) - 1
        )
        yield {
            "model": design.model, "groups": design.groups.name, "metric": metric,
            "verdict": str(finding.verdict), "threshold": model_scores.threshold,
            "low": float(thresholds[low]), "high": float(thresholds[high]),
            "least": float(thresholds[0]), "most": float(thresholds[-1]),
        }  # fmt: skip


def _thresholds(model_scores: ModelScores, n_thresholds: int) -> Floats:
    """Return so many thresholds, with as many scores between each two."""
    scores = model_scores.values[~np.isnan(model_scores.values)]
    return np.unique(np.quantile(scores, np.linspace(0.0, 1.0, n_thresholds), method="nearest"))


def _count_reaching(scores: Floats, thresholds: Floats) -> Floats:
    """Return how many scores reach each threshold."""
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return np.asarray(len(scores) - below, np.float64)
