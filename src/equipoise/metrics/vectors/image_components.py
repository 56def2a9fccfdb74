"""Principal components of single vectors, as some published code reduces features of images."""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Floats, InputError, floats


def image_components(vectors: ArrayLike, rows: int) -> Floats:
    """Replace each vector by the principal components of its own rows.

    A vector of d numbers is cut into `rows` rows of d / rows. Its components are those of
    scikit-learn's `PCA().fit_transform` of these rows, one after the other: min(rows, d / rows)
    for each row. Axes differ between vectors, so that equal places of two results need not
    belong together.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
    rows : int

    Returns
    -------
    ndarray, shape (n, rows * min(rows, d / rows))
        Of each component the row with the largest size has a positive number, as in scikit-learn
        before 1.5. A vector whose rows are equal becomes zero.

    Raises
    ------
    InputError
        When `rows` doesn't divide d.
    """
    numbers = np.asarray(vectors)
    n, dimension = numbers.shape
    if rows < 2 or dimension % rows:
        raise InputError(f"rows={rows}: expected a divisor of {dimension}, at least 2")
    width = min(rows, dimension // rows)
    components = np.zeros((n, rows, width))
    for place in range(n):
        cells = floats(numbers[place]).reshape(rows, -1)
        centred = cells - cells.mean(axis=0)
        if not np.isfinite(centred).all() or np.ptp(cells, axis=0).max() == 0.0:
            components[place] = 0.0 if np.isfinite(centred).all() else np.nan
            continue
        scores, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        largest = np.abs(scores).argmax(axis=0)
        signs = np.sign(scores[largest, np.arange(scores.shape[1])])
        components[place] = scores * (sizes * signs)
    return floats(components.reshape(n, -1))
