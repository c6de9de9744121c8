"""Arrays by their element type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


Int32Array = NDArray[np.int32]


FloatArray = NDArray[np.float64]


BoolArray = NDArray[np.bool_]
