"""Names as vectors: TF-IDF of their character n-grams, projected by random signs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pipeline.model import FloatArray


def name_vectors(names: Sequence[str], grams: Sequence[int], dimensions: int) -> FloatArray:
    """Return metric ids as vectors whose inner products are the cosines of TF-IDF of their n-grams.

    The weight of a term is log((1 + names) / (1 + names that hold it)) + 1. The vectors over all terms are
    projected with random signs from each term's own hash, so a name's vector does not depend on the order of
    names. Projection changes inner products by about 1 / √dimensions (Johnson and Lindenstrauss 1984).

    Args:
        names: Metric ids.
        grams: Lengths of the character n-grams.
        dimensions: Of the projection.

    Returns:
        (names, dimensions)
    """
    terms: dict[str, int] = {}
    rows, columns, counts = [], [], []
    for row, name in enumerate(names):
        for term, count in Counter(_grams(name, grams)).items():
            rows.append(row)
            columns.append(terms.setdefault(term, len(terms)))
            counts.append(float(count))
    if not terms:
        return np.zeros((len(names), dimensions))
    matrix = sparse.csr_array((counts, (rows, columns)), shape=(len(names), len(terms)))
    holding = np.bincount(columns, minlength=len(terms))
    weighted = matrix * (np.log((1 + len(names)) / (1 + holding)) + 1)[np.newaxis]
    return to_unit_length(np.asarray(weighted @ random_signs(list(terms), dimensions)))


def random_signs(terms: Sequence[str], dimensions: int) -> FloatArray:
    """Return random signs times 1 / √dimensions from each term's hash: (terms, dimensions)."""
    digests = b"".join(
        hashlib.shake_128(term.encode("utf-8", "surrogatepass")).digest(-(-dimensions // 8)) for term in terms
    )
    bits = np.unpackbits(np.frombuffer(digests, dtype=np.uint8).reshape(len(terms), -1), axis=1)
    signs: FloatArray = (2.0 * bits[:, :dimensions] - 1.0) / np.sqrt(dimensions)
    return signs


def to_unit_length(rows: FloatArray) -> FloatArray:
    """Return rows scaled to length 1: (rows, columns); a row of zeros stays."""
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    scaled: FloatArray = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


def _grams(name: str, lengths: Sequence[int]) -> list[str]:
    return [name[at : at + length] for length in lengths for at in range(len(name) - length + 1)]
