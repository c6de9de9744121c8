"""The similarity of a change's words to those of a regression (FBDetect §5.4.9)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pipeline.model import Change, FloatArray, IntArray

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST = 2
_MOST_IDENTIFIERS = 20_000
"""Largest number of identifiers read from one text: a bound on the work for one change."""


def tokens(text: str) -> Counter[str]:
    """Count the words of a text: identifiers, and their parts at dots, underscores and capitals.

    ``shop.PriceList.total_of`` has the words shop, pricelist, price, list, total_of, total and of. A whole
    identifier counts besides its parts because it is rarer, so more informative.
    """
    read = islice(_IDENTIFIER.finditer(text), _MOST_IDENTIFIERS)
    counts: Counter[str] = Counter()
    for identifier, count in Counter(match[0] for match in read).items():
        for word in _words_of(identifier):
            counts[word] += count
    return counts


@lru_cache(maxsize=2**14)
def _words_of(identifier: str) -> tuple[str, ...]:
    name = identifier.strip("_")
    parts = [part.lower() for part in _PART.findall(name)]
    # Keep the order of the text: that of a set would differ from run to run, and so would roundings.
    words = dict.fromkeys((name.lower(), *parts) if len(parts) > 1 else parts)
    return tuple(word for word in words if len(word) >= _SHORTEST)


def change_words(change: Change) -> Counter[str]:
    """Count the words of a change: title, summary, file names, gates and content."""
    return tokens("\n".join((change.title, change.summary, *change.files, *change.gates, change.content)))


def regression_words(metric: str, kind: str, frames: Mapping[str, float]) -> dict[str, float]:
    """Weigh the words of a regression: its metric and kind, and the frames of the stacks that rose.

    Args:
        metric: Name of the regressed series.
        kind: What it measures.
        frames: Frame → its share of the rise, 0 to 1.
    """
    weights: dict[str, float] = {}
    for text, share in ((metric, 1.0), (kind, 1.0), *frames.items()):
        for word in tokens(text):
            weights[word] = max(weights.get(word, 0.0), share)
    return weights


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one text in ten bytes each: their hashes in this process, and how often each occurs."""

    hashes: IntArray  # (words,), in the order of the text
    counts: NDArray[np.uint16]  # (words,)

    def __len__(self) -> int:
        return len(self.hashes)


def compact(words: Mapping[str, int]) -> Words:
    """Return words in compact form. With 64 bits, hashes of different words do not collide in practice."""
    hashes = np.fromiter(map(hash, words), dtype=np.int64, count=len(words))
    counts = np.fromiter((min(count, 2**16 - 1) for count in words.values()), np.uint16, count=len(words))
    return Words(hashes, counts)


NO_WORDS = compact({})


class ChangeTexts:
    """The words of a service's changes, weighed by TF-IDF.

    A word's frequency enters as 1 + log, so that a long diff does not drown the title; its rarity is log((1 +
    changes) / (1 + changes with it)), so that a word of every change has no weight.
    """

    def __init__(self, documents: Sequence[Words]) -> None:
        ends = np.cumsum([0, *map(len, documents)])
        self._vocabulary, with_it = _counted([document.hashes for document in documents])
        self._rarity: FloatArray = np.log((1.0 + len(documents)) / (1.0 + with_it))
        columns, weights = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1])
        self._norms: FloatArray = np.empty(len(documents))
        for row, document in enumerate(documents):  # one by one: a month of diffs has millions of words
            part = slice(ends[row], ends[row + 1])
            columns[part] = np.searchsorted(self._vocabulary, document.hashes)
            weights[part] = (1.0 + np.log(document.counts, dtype=np.float64)) * self._rarity[columns[part]]
            self._norms[row] = np.sqrt(np.sum(weights[part] ** 2))
        shape = (len(documents), len(self._vocabulary))
        self._weights = sparse.csr_matrix((weights, columns, ends), shape=shape)

    def similarities(self, regression: Mapping[str, float]) -> FloatArray:
        """Return the cosine between a regression's words and each change's: (changes,)."""
        hashes = np.fromiter(map(hash, regression), dtype=np.int64, count=len(regression))
        columns = np.searchsorted(self._vocabulary, hashes)
        in_vocabulary = columns < len(self._vocabulary)
        in_vocabulary[in_vocabulary] = self._vocabulary[columns[in_vocabulary]] == hashes[in_vocabulary]
        columns = columns[in_vocabulary]
        weights = np.array(list(regression.values()), dtype=np.float64)[in_vocabulary] * self._rarity[columns]
        query = np.zeros(len(self._vocabulary))
        query[columns] = weights
        norms = self._norms * np.linalg.norm(weights)
        product = np.asarray(self._weights @ query, dtype=np.float64).ravel()
        return np.divide(product, norms, out=np.zeros(len(norms)), where=norms > 0)


def _counted(documents: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return all words of documents, sorted, and the number of documents with each."""
    every = np.concatenate([np.zeros(0, dtype=np.int64), *documents])
    every.sort()
    firsts = np.flatnonzero(np.concatenate([np.ones(min(len(every), 1), np.bool_), every[1:] != every[:-1]]))
    return every[firsts], np.diff(firsts, append=len(every))


def chances(values: FloatArray) -> FloatArray:
    """Return the share of values that are at least as large as each value; 1 where it is 0: (values,)."""
    order = np.sort(values)
    above = len(values) - np.searchsorted(order, values, side="left")
    return np.where(values > 0, np.minimum((above + 1.0) / (len(values) + 1.0), 1.0), 1.0)
