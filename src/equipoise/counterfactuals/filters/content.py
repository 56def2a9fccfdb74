"""The filter of content: no image that a classifier takes for unsafe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.counterfactuals.filters.candidates import Candidates
from equipoise.counterfactuals.filters.stages import Stage, own_check

THRESHOLD = 0.5


def content_filter(
    candidates: Candidates,
    probabilities: npt.ArrayLike,
    labels: Sequence[str],
    unsafe: Sequence[str],
    *,
    threshold: float = THRESHOLD,
) -> Stage:
    """Reject images that a classifier gives to labels that count as unsafe.

    Parameters
    ----------
    candidates : Candidates
        n images.
    probabilities : array-like, shape (n, labels)
        In the order of the candidates; rows without an image are not read.
    labels, unsafe : sequence of str
        Those of the classifier, and those of them that count as unsafe.
    threshold : float
        From which sum of the probabilities of unsafe labels on an image fails.

    Raises
    ------
    InputError
        When shapes do not fit, an unsafe label is none of the classifier's, or a probability is
        not from 0 to 1.
    """
    array = np.asarray(probabilities, dtype=np.float64)
    if array.shape != (candidates.images, len(labels)):
        raise InputError(
            f"probabilities: shape {array.shape}; expected ({candidates.images}, {len(labels)}), "
            "a row for each image and a column for each label"
        )
    unknown = [one for one in unsafe if one not in labels]
    if unknown or not unsafe:
        raise InputError(
            f"unsafe: {f'{unknown[0]!r} is no label' if unknown else 'no label'} of the "
            f"classifier; expected some of {', '.join(map(repr, labels[:20]))}"
        )
    made = candidates.made
    if not ((array[made] >= -1e-6) & (array[made] <= 1 + 1e-6)).all():
        raise InputError("probabilities: expected numbers from 0 to 1")
    # A label that is listed twice counts once.
    places = sorted({labels.index(one) for one in unsafe})
    found = array[:, places].sum(axis=1)
    names = np.array([labels[place] for place in places], dtype=object)
    if made.any():
        worst = names[np.where(np.isnan(array[:, places]), 0.0, array[:, places]).argmax(axis=1)]
    else:
        worst = np.full(candidates.images, "", dtype=object)
    check = own_check(
        candidates, "content", found, threshold, found >= threshold, worst, below=True
    )
    return Stage("content", (check,))
