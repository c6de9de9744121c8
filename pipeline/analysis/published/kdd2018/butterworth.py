"""The Butterworth low-pass filter of the KDD 2018 paper (§2.2.2), over many series at once."""

from __future__ import annotations

import numpy as np
from scipy import fft

from pipeline.model import FloatArray


def low_pass(values: FloatArray, *, cutoff: float, order: int = 1) -> FloatArray:
    """Suppress frequencies above the cut-off: multiply the spectrum by 1 / (1 + (ω / ω_c)^2n).

    A discrete spectrum takes the end for the neighbour of the beginning. So each series is continued by its
    mirror image: a level that has changed is not drawn back towards the first values.

    Args:
        values: (series, windows) finite.
        cutoff: Windows of the cycle that is halved.
        order: n.
    """
    windows = values.shape[1]
    mirrored = np.concatenate([values, values[:, ::-1]], axis=1)
    frequency = fft.rfftfreq(2 * windows)
    response = 1 / (1 + (frequency * cutoff) ** (2 * order))
    return np.asarray(fft.irfft(fft.rfft(mirrored, axis=1) * response, 2 * windows, axis=1)[:, :windows])
