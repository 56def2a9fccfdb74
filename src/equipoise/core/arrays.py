"""Types of arrays."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Shorts = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]
