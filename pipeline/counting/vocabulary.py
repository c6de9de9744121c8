"""Labels of stack elements by number, with what is made of each once."""

from __future__ import annotations

from itertools import islice

import numpy as np
import xxhash
from numpy.typing import NDArray

from pipeline.model import IntArray, SeriesKey
from pipeline.model.frames import series_of

UIntArray = NDArray[np.uint64]

MOST_LABELS = 2**18
"""Most labels that a vocabulary is kept with from batch to batch."""


class Vocabulary(dict[str, int]):
    """Numbers labels in the order in which they are first asked for.

    Messages of one service have the same labels again and again: of each the hash, the length and the series
    are made when it is first met, for as long as the vocabulary is kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []
        self.series: list[SeriesKey] = []
        self.longest = 0
        """Characters of the longest label."""
        self._hashes = np.empty(0, dtype=np.uint64)
        self._lengths = np.empty(0, dtype=np.int64)

    def __missing__(self, label: str) -> int:
        """Give a label its number."""
        number = self[label] = len(self.labels)
        self.labels.append(label)
        self.series.append(series_of(label))
        self.longest = max(self.longest, len(label))
        return number

    @property
    def hashes(self) -> UIntArray:
        """The 64-bit hash of each label, by number."""
        known = len(self._hashes)
        if known < len(self.labels):
            new = islice(self.labels, known, None)
            self._hashes = np.append(
                self._hashes,
                np.array([xxhash.xxh3_64_intdigest(label.encode()) for label in new], dtype=np.uint64),
            )
        return self._hashes

    @property
    def lengths(self) -> IntArray:
        """The characters of each label, by number."""
        known = len(self._lengths)
        if known < len(self.labels):
            new = np.fromiter(map(len, islice(self.labels, known, None)), dtype=np.int64)
            self._lengths = np.append(self._lengths, new)
        return self._lengths
