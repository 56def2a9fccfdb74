"""Parity against the labels: the disparity that predictions add to label gaps."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from equipoise.audits.config import TestingConfig
from equipoise.audits.findings import UncorrectedFinding
from equipoise.core import Floats
from equipoise.core.finding import plain_parameters
from equipoise.core.wording import number, shortened
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.comparisons import OTHERS, all_others
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.table import BASES, design_effects, least_design, moments
from equipoise.metrics.spec import spec_of, spec_of_finding
from equipoise.stats.intervals import divide, normal, scored

_CELLS = ("total", "both", "truth", "prediction")
_TRUE, _SAID, _ALL = (BASES.index(name) for name in ("truth", "prediction", "total"))


class AddedGaps(NamedTuple):
    """Gaps that predictions add to the gaps of the labels.

    Attributes
    ----------
    labels, predictions : ndarray, shape (classes, groups)
        Difference of each group to all others in the true labels and in the predictions, L and P;
        NaN where too small.
    value, low, high : ndarray, shape (classes, groups)
        P - L, positive where it is in the direction of P, with its interval, which is paired over
        rows. Labels of -4 points and predictions of +11 make 15, labels of +4 make 7.
    """

    labels: Floats
    predictions: Floats
    value: Floats
    low: Floats
    high: Floats


def _compare_to_labels(counts: Counts, level: float) -> AddedGaps:
    """Compare predictions and labels of the same rows, which may repeat by unit."""
    cells, usable, squares = Cells.of(counts, counts.observed), counts.groups.usable, None
    n, true_positives, positives, predictions = (
        np.where(usable, cells[name][0], 0.0) for name in _CELLS
    )
    if (sums := moments(counts)) is not None:
        squares = np.where(usable, sums, 0.0)
    shares, labels, spread = [], [], np.zeros_like(n)
    for side in (np.asarray, all_others):
        rows, false_positives, false_negatives = (
            side(n),
            side(predictions - true_positives),
            side(positives - true_positives),
        )
        design, unit_sums = np.ones_like(n), None
        if squares is not None:
            unit_sums = side(squares)
            unit_products = unit_sums[_SAID, _SAID], unit_sums[_SAID, _ALL], unit_sums[_ALL, _ALL]
            design = design_effects(
                side(predictions), rows, *unit_products, least=least_design(counts)
            )
        shares.append(scored(side(predictions) / design, rows / design, level))
        labels.append(divide(side(positives), rows))
        spread += _variance(false_positives, false_negatives, rows, unit_sums)
    prediction_gap, label_gap = shares[0].minus(shares[1]), labels[0] - labels[1]
    predicted, half = prediction_gap.value, normal(level) * np.sqrt(spread)
    sign = np.where(predicted == 0.0, np.sign(label_gap), np.sign(predicted))
    added = sign * (predicted - label_gap)
    return AddedGaps(label_gap, predicted, added, added - half, added + half)


def _variance(
    false_positives: Floats, false_negatives: Floats, n: Floats, squares: Floats | None
) -> Floats:
    """Variance of the mean of prediction minus label, with half a row for each kind of error.

    `squares` are the sums over units of products, see `moments`: rows of one unit err together.
    """
    rate = (false_positives + false_negatives + 1.0) / (n + 1.0)
    simple = np.asarray((rate - ((false_positives - false_negatives) / (n + 1.0)) ** 2) / (n + 1.0))
    if squares is None:
        return simple
    mean = divide(false_positives - false_negatives, n)
    error = np.array([0.0, -1.0, 1.0])
    squared_deviations = (
        np.einsum("i,ij...,j", error, squares[:_ALL, :_ALL], error) + mean**2 * squares[_ALL, _ALL]
    )
    squared_deviations -= 2.0 * mean * (squares[_SAID, _ALL] - squares[_TRUE, _ALL])
    units = divide(n**2, squares[_ALL, _ALL])
    return np.fmax(simple, divide(squared_deviations * units, n**2 * (units - 1.0)))


def beside_labels(
    drafts: Iterable[UncorrectedFinding],
    counts: Counts,
    *,
    testing: TestingConfig,
    level: float,
    required: bool,
) -> Iterator[UncorrectedFinding]:
    """Add the labels' difference to parity findings, and decide whether they lead.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design; other findings are returned as they are.
    counts : Counts
    testing : TestingConfig
        Of which added differences are large enough to matter.
    level : float
        Confidence level.
    required : bool
        Parity is demanded whatever the labels say: every finding may lead.
    """
    gaps = _compare_to_labels(counts, level)
    for draft in drafts:
        finding = draft.finding
        if not spec_of_finding(finding).of_labels:
            yield draft
            continue
        axes = (counts.classes, finding.subject), (counts.groups.names, finding.group)
        cells = tuple(
            slice(at := names.index(name), at + 1) if name else slice(None) for names, name in axes
        )
        added_values = gaps.value[cells]
        if np.isnan(added_values).all():
            yield draft
            continue
        spec = draft.parent or spec_of_finding(finding)
        threshold = testing.threshold(spec_of(spec.fold) if spec.fold else spec) or 0.0
        leads = (gaps.low > 0.0) & (gaps.value >= threshold)
        place = np.unravel_index(np.nanargmax(added_values), added_values.shape)
        labels, predicted, value, added_low, added_high = (
            float(values[cells][place]) for values in gaps
        )
        label_parameters = {
            "labels": labels,
            "predictions": predicted,
            "added": value,
            "added_low": added_low,
            "added_high": added_high,
        }
        # As the difference itself is signed: what was added in its direction may lower it.
        if (predicted - labels) * value < 0.0:
            value, added_low, added_high = -value, -added_high, -added_low
        label = counts.classes[cells[0]][place[0]]
        group = counts.groups.names[cells[1]][place[1]]
        others = [name for name in counts.groups.names if name != group]
        other = others[0] if len(others) == 1 else OTHERS
        yield draft.changed(
            parameters=plain_parameters(
                {
                    **finding.parameters,
                    **label_parameters,
                    **({"required": True} if required else {}),
                }
            ),
            leads=required or bool(leads[cells].any()),
            beside=(
                f"“{shortened(label)}” for {group} against {other}: {_signed(labels)} "
                f"points in the labels, {_signed(predicted)} in the predictions; the model adds "
                f"{_signed(value)} [{_points(added_low)}, {_points(added_high)}]."
            ),
        )


def _signed(share: float) -> str:
    text = _points(share)
    return f"+{text}" if share > 0 and float(text) else text


def _points(share: float) -> str:
    return number(round(100 * share, 1), 1)
