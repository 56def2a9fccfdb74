"""What a model must offer to be audited."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Classifier(Protocol):
    """Anything that gives each image a probability per label.

    Attributes
    ----------
    labels : tuple of str
        Names of the classes, in the order of the columns of `predict_proba`.
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns of `predict_proba`."""
        ...

    def predict_proba(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return class probabilities.

        Parameters
        ----------
        images : ndarray of uint8, shape (n, height, width, 3)
            RGB.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            Rows sum to 1.
        """
        ...
