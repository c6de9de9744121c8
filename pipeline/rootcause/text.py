"""How much the words of a change have in common with those of a regression (FBDetect §5.4.9)."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from pipeline.model import Change, FloatArray

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST = 2
_MOST_IDENTIFIERS = 20_000
"""Identifiers of one text that are read: a bound on the work that one change can make."""


def tokens(text: str) -> Counter[str]:
    """Count the words of a text: identifiers, and their parts at dots, underscores and capitals.

    ``shop.PriceList.total_of`` has the words shop, pricelist, price, list, total_of, total and of. An
    identifier counts besides its parts because it is rarer, and so says more.
    """
    found: Counter[str] = Counter()
    for number, match in enumerate(_IDENTIFIER.finditer(text)):
        if number == _MOST_IDENTIFIERS:
            break
        name = match[0].strip("_")
        parts = [part.lower() for part in _PART.findall(name)]
        # In the order of the text: the order of a set would differ from run to run, and so would roundings.
        for word in dict.fromkeys((name.lower(), *parts) if len(parts) > 1 else parts):
            if len(word) >= _SHORTEST:
                found[sys.intern(word)] += 1  # a month of changes uses the same few thousand words
    return found


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


class ChangeTexts:
    """The words of a service's changes, weighed by TF-IDF.

    A word's frequency enters as 1 + log, so that a long diff does not drown the title; its rarity is
    log((1 + changes) / (1 + changes with it)), so that what stands in every change says nothing.
    """

    def __init__(self, documents: Sequence[Mapping[str, float]]) -> None:
        self._vocabulary: dict[str, int] = {}
        columns, counts, ends = [], [], [0]
        for document in documents:
            for word, count in document.items():
                columns.append(self._vocabulary.setdefault(word, len(self._vocabulary)))
                counts.append(1.0 + math.log(count))
            ends.append(len(columns))
        words = len(self._vocabulary)
        with_it = np.bincount(np.array(columns, dtype=np.int64), minlength=words)
        self._rarity: FloatArray = np.log((1.0 + len(documents)) / (1.0 + with_it))
        weights = np.array(counts, dtype=np.float64) * self._rarity[np.array(columns, dtype=np.int64)]
        self._weights = sparse.csr_matrix((weights, columns, ends), shape=(len(documents), words))
        squares = np.asarray(self._weights.multiply(self._weights).sum(axis=1)).ravel()
        self._norms: FloatArray = np.sqrt(squares)

    def similarities(self, regression: Mapping[str, float]) -> FloatArray:
        """Return the cosine between a regression's words and each change's: (changes,)."""
        query = np.zeros(len(self._vocabulary))
        for word, weight in regression.items():
            place = self._vocabulary.get(word)
            if place is not None:
                query[place] = weight * self._rarity[place]
        norms = self._norms * np.linalg.norm(query)
        product = np.asarray(self._weights @ query, dtype=np.float64).ravel()
        return np.divide(product, norms, out=np.zeros(len(norms)), where=norms > 0)


def chances(values: FloatArray) -> FloatArray:
    """Return for each value how many of all are at least as large, as a share; 1 where it is 0: (values,)."""
    order = np.sort(values)
    above = len(values) - np.searchsorted(order, values, side="left")
    return np.where(values > 0, np.minimum((above + 1.0) / (len(values) + 1.0), 1.0), 1.0)
