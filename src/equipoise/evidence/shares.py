"""Probabilities of a classifier, checked as those in a file are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.data.predictions import RANGE_TOLERANCE, SUM_TOLERANCE
from equipoise.data.problems import counted
from equipoise.models import ModelInfo


def check_shares(
    info: ModelInfo, labels: Sequence[str], ids: Sequence[str], values: npt.NDArray[Any]
) -> None:
    """Refuse rows of a classifier that are no probabilities.

    Parameters
    ----------
    info : ModelInfo
        Where `preprocessing["probabilities"]` is ``sigmoid``, each label has a probability of its
        own, and rows have no sum.
    labels : sequence of m str
    ids : sequence of n str
        Of the images.
    values : ndarray of finite floats, shape (n, m)

    Raises
    ------
    DataError
        For the first image with a number outside [0, 1], or with another sum than 1.
    """
    outside = (values < -RANGE_TOLERANCE) | (values > 1 + RANGE_TOLERANCE)
    if outside.any():
        row, column = (int(index[0]) for index in np.nonzero(outside))
        raise DataError(
            f"{values[row, column]:g} is no probability for image {ids[row]!r} "
            f"({counted(int(outside.sum()), 'such number')} in its batch)",
            file=info.name,
            column=labels[column],
            expected="a number from 0 to 1",
            fix="return probabilities, not logits or percentages",
        )
    if info.preprocessing.get("probabilities") == "sigmoid":
        return
    sums = values.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"the probabilities for image {ids[row]!r} sum to {sums[row]:.4g} "
            f"({counted(len(wrong), 'such image')} in its batch)",
            file=info.name,
            expected=f"a sum of 1 within {SUM_TOLERANCE}",
            fix="return a probability for every class, or set preprocessing "
            "{'probabilities': 'sigmoid'} in the model's info where several labels hold at once",
        )
