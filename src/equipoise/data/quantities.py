"""Columns of quantities, such as ages, where classes or groups are expected."""

from collections.abc import Sequence

import numpy as np

from equipoise.core import DataError, Floats, Strings
from equipoise.core.labels import Encoded
from equipoise.data.problems import counted

MOST_CODES = 20
"""Numbers up to which a column holds codes of classes or groups, whatever they are."""
_FEW_ROWS = 10
_NEAR = 2
_CORRELATED = 0.3
_NUMERIC = 0.9


def check_groups(column: Encoded, name: str, file: str, levels: Strings = ()) -> None:
    """Refuse a column of groups that holds a quantity, such as the age in years.

    A quantity has more than `MOST_CODES` numbers that aren't codes: they have decimals, most whole
    numbers between the smallest and the largest occur, or each has fewer than 10 rows on average.

    Parameters
    ----------
    column : Encoded
    name, file : str
        For the error.
    levels : tuple of str
        Values that the user names as groups; a column with any of them holds groups.

    Raises
    ------
    DataError
        With how many numbers there are, and how to cut them into bands.
    """
    numbers = _numbers(column.vocabulary)
    if len(numbers) <= MOST_CODES or np.isnan(numbers).any() or {*levels} & {*column.vocabulary}:
        return
    dense = len(numbers) > (np.ptp(numbers) + 1) / 2
    few = np.count_nonzero(column.codes >= 0) < _FEW_ROWS * len(numbers)
    if dense or few or _have_decimals(numbers):
        raise DataError(
            f"{_span(numbers)}: numbers aren't groups",
            file=file,
            column=name,
            expected=f"groups; up to {MOST_CODES} numbers are taken for groups",
            fix="cut the numbers into bands in a config: write the table as "
            f"`table: {{file: {file}, bands: {{{name}: [0, 18, 30]}}}}`, and name “{name} band” "
            "under `groups:`. Or put a letter before numbers that are codes",
        )


def check_target(target: Encoded, name: str, file: str) -> None:
    """Refuse a target of many numbers with decimals: no class is written so.

    Raises
    ------
    DataError
        As `check_predicted`.
    """
    numbers = _numbers(target.vocabulary)
    if len(numbers) > MOST_CODES and not np.isnan(numbers).any() and _have_decimals(numbers):
        raise _not_classes(numbers, name, file)


def is_quantity(target: Encoded, predicted: Encoded) -> bool:
    """Whether numbers are a quantity that predictions estimate, or have decimals: no classes."""
    try:
        check_target(target, "", "")
        check_predicted(target, predicted, "", "")
    except DataError:
        return True
    return False


def check_predicted(target: Encoded, predicted: Encoded | Floats, name: str, file: str) -> None:
    """Refuse a target whose numbers are a quantity that the predictions estimate.

    Whole numbers can be codes of classes. Predictions tell them apart: an estimate of a quantity
    that isn't right is near the truth, and near misses are at least as frequent as hits. A wrong
    class has a code anywhere.

    Parameters
    ----------
    target : Encoded, shape (n,)
    predicted : Encoded or ndarray, shape (n,)
        Labels, or numbers, for the rows of the target.
    name, file : str
        Of the target, for the error.

    Raises
    ------
    DataError
        With how many numbers there are, and what to do.
    """
    numbers = _numbers(target.vocabulary)
    if len(numbers) <= MOST_CODES or np.isnan(numbers).any():
        return
    labelled = target.codes >= 0
    truth = numbers[target.codes[labelled]]
    if isinstance(predicted, Encoded):
        labels = np.append(_numbers(predicted.vocabulary), np.nan)[predicted.codes[labelled]]
        answered = predicted.codes[labelled] >= 0
    else:
        labels, answered = predicted[labelled], ~np.isnan(predicted[labelled])
    numeric = ~np.isnan(labels)
    if numeric.sum() <= _NUMERIC * answered.sum() or numeric.sum() <= len(numbers):
        return
    if _are_estimates(truth[numeric], labels[numeric], _step(numbers)):
        miss = float(np.abs(labels[numeric] - truth[numeric]).mean())
        raise _not_classes(numbers, name, file, f", and predictions miss them by {miss:.3g}")


def _are_estimates(truth: Floats, labels: Floats, step: float) -> bool:
    """Whether labels are near the truth where they aren't right, and seldom just right."""
    missed = np.abs(labels - truth) / step
    wrong = missed >= 0.5
    n_near = np.count_nonzero(wrong & (missed < _NEAR + 0.5))
    if n_near < len(missed) - np.count_nonzero(wrong):
        return False
    if len({*truth[wrong]}) < 2 or len({*labels[wrong]}) < 2:
        return False
    return bool(np.corrcoef(truth[wrong], labels[wrong])[0, 1] >= _CORRELATED)


def _numbers(texts: Sequence[str]) -> Floats:
    """Return texts as numbers; NaN for other texts, and for codes such as 007."""
    return np.array([_number(text.strip()) for text in texts], dtype=np.float64)


def _number(text: str) -> float:
    digits = text.lstrip("+-")
    if not digits[:1].isdigit() or (digits[0] == "0" and digits[1:2].isdigit()):
        return np.nan
    try:
        number = float(text)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _have_decimals(numbers: Floats) -> bool:
    return bool((numbers != np.round(numbers)).any())


def _step(numbers: Floats) -> float:
    """Return the usual distance between neighbours."""
    return float(np.median(np.diff(np.sort(np.unique(numbers)))))


def _span(numbers: Floats) -> str:
    count = counted(len(numbers), "different number")
    return f"{count} from {numbers.min():g} to {numbers.max():g}"


def _not_classes(numbers: Floats, name: str, file: str, misses: str = "") -> DataError:
    return DataError(
        f"{_span(numbers)}{misses}: numbers aren't classes",
        file=file,
        column=name,
        expected="classes",
        fix="measure errors of numbers: write `audit: regression`, and the column of predicted "
        "numbers as `prediction:` of the model. Or cut labels and predictions into the same bands",
    )
