"""Arrays by their element type: names for annotations, which cost no import of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    Int32Array = NDArray[np.int32]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]
else:
    IntArray = Int32Array = FloatArray = BoolArray = Any
