"""Renames: pairs of a name that ended and a name that began in the same exchange.

A renamed series has no history, so nothing can be said of a rise near its rename. Where many names end as
many begin (``exchanged_names``), those that are similar belong together: the same method, in an owner that
shares its rarest words. Each must be the other's best by far, and no name that lives on may be as good. Cost
decides where names alone do not; what is clear by name may cost more than before, as it regressed in the same
release.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.exchanged_names import Exchanges
from pipeline.counting.names import method_of, owner_of
from pipeline.model import BoolArray, FloatArray, SeriesMatrix

_WORD = re.compile(r"\w+")

Words = frozenset[str]

_LARGEST = 2_000_000
"""Pairs of one method's names that are compared at most; of more, only those of equal class."""


@dataclass(frozen=True, slots=True)
class RenameConfig:
    """When two names are one subroutine's."""

    similar: float = 0.5  # Dice coefficient of the words, each weighing as it is rare
    clear: float = 0.75  # from here on cost has no say
    margin: float = 0.05  # by which the second best is worse
    ratio: float = 1.5  # by which the cost of both differs at most, where it has a say
    errors: float = 3.0  # or standard errors
    apart: int = 1  # windows on either side that are the same time, as for exchanges
    slack: float = 5.0  # samples that a name would have had since the exchange, or until it: e-5 by chance
    mistaken: float = 0.05  # share of the pairs that are wrong at most, as names that live on show


def find_renames(
    matrix: SeriesMatrix, exchanges: Exchanges, config: RenameConfig | None = None
) -> dict[str, str]:
    """Return the former names of subroutines with the ones that they have at the end of a matrix.

    Args:
        matrix: gCPU series (series × windows).
        exchanges: Of names, found in it.
        config: Settings.

    Returns:
        In the order in which names were exchanged; no name is both a former and a present one.
    """
    config = config or RenameConfig()
    if not len(exchanges.windows):
        return {}
    rows = np.flatnonzero([kind == "subroutine" for kind in matrix.kinds])
    names = [matrix.names[row] for row in rows.tolist()]
    first, last, rate = exchanges.first[rows], exchanges.last[rows], exchanges.rate[rows]
    samples = matrix.samples[rows].sum(axis=1)
    became: dict[str, str] = {}
    former, taken = np.zeros((2, len(names)), dtype=np.bool_)
    running = np.concatenate([[0.0], np.cumsum(matrix.totals)])
    for window in exchanges.windows.tolist():
        # Names are exchanged within a window, and those beside it are the same time.
        early, late = max(window - config.apart, 0), min(window + config.apart, len(running) - 2)
        # A rare name is last seen some time before it ends, and first seen some time after it begins.
        silent = rate * np.maximum(running[early] - running[last + 1], 0.0)
        unseen = rate * np.maximum(running[first] - running[late + 1], 0.0)
        ended = ~former & (last <= late) & (silent <= config.slack)
        began = ~taken & (first >= early) & (unseen <= config.slack)
        lives = (first < early) & (last > late)
        for old, new, similarity in _pairs(names, ended, began, lives, config):
            chance = config.errors * np.hypot(1 / np.sqrt(samples[old]), 1 / np.sqrt(samples[new]))
            equal = abs(np.log(rate[new] / rate[old])) <= max(np.log(config.ratio), chance)
            if similarity >= config.clear or equal:
                became[names[old]] = names[new]
                former[old] = taken[new] = True
    return {name: _last(became, name) for name in became}


def _last(became: Mapping[str, str], name: str) -> str:
    while name in became:
        name = became[name]
    return name


def _pairs(
    names: Sequence[str], ended: BoolArray, began: BoolArray, lives: BoolArray, config: RenameConfig
) -> list[tuple[int, int, float]]:
    """Return pairs of an ended and a begun name that are most similar to each other: rows and similarity."""
    asked = np.flatnonzero(ended | began | lives).tolist()
    words = {row: frozenset(_WORD.findall(names[row])) for row in asked}
    held = Counter(word for some in words.values() for word in some)
    number = {word: index for index, word in enumerate(held)}
    weight = np.log1p(len(words) / np.array([*held.values()], dtype=np.float64))
    groups = [
        part
        for group in _grouped([*words], began, lambda row: method_of(names[row]))
        for part in ([group] if len(group[0]) * len(group[1]) <= _LARGEST else _by_class(group, names, began))
    ]
    pairs: list[tuple[int, int, float]] = []
    decoys = 0
    for old, new in groups:
        similarity = _similarity([words[row] for row in old], [words[row] for row in new], number, weight)
        for former, present in _best(similarity, config):
            if lives[old[former]]:
                decoys += 1
            else:
                pairs.append((old[former], new[present], float(similarity[former, present])))
    # Were names similar by chance, those that live on would be as good as those that ended.
    by_chance = decoys * int(ended.sum()) / max(int(lives.sum()), 1)
    return pairs if by_chance <= config.mistaken * len(pairs) else []


def _grouped(
    rows: Sequence[int], began: BoolArray, key: Callable[[int], str]
) -> list[tuple[list[int], list[int]]]:
    """Return names with equal keys, those that were there and those that began, where there are both."""
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for row in rows:
        groups[key(row)][1 if began[row] else 0].append(row)
    return [group for group in groups.values() if all(group)]


def _by_class(
    group: tuple[list[int], list[int]], names: Sequence[str], began: BoolArray
) -> list[tuple[list[int], list[int]]]:
    """Return names of one method by their classes, few enough to be compared."""
    parts = _grouped([*group[0], *group[1]], began, lambda row: method_of(owner_of(names[row])))
    return [(old, new) for old, new in parts if len(old) * len(new) <= _LARGEST]


def _similarity(
    old: Sequence[Words],
    new: Sequence[Words],
    number: Mapping[str, int],
    weight: FloatArray,
) -> FloatArray:
    """Return Dice's coefficients of names by their words: (old, new)."""
    column = {word: index for index, word in enumerate(sorted(set().union(*old, *new)))}
    weights = weight[[number[word] for word in column]]
    first, second = np.zeros((len(old), len(column))), np.zeros((len(new), len(column)))
    for table, some in ((first, old), (second, new)):
        for row, words in enumerate(some):
            table[row, [column[word] for word in words]] = 1.0
    common = first @ (weights[:, None] * second.T)
    sizes = (first @ weights)[:, None] + (second @ weights)[None, :]
    return np.asarray(2 * common / sizes, dtype=np.float64)


def _best(similarity: FloatArray, config: RenameConfig) -> list[tuple[int, int]]:
    """Return pairs of a row and a column that are each other's best match by a clear margin."""
    rows = np.arange(len(similarity))
    column = similarity.argmax(axis=1)
    best = similarity[rows, column]
    rest = similarity.copy()
    rest[rows, column] = -1.0
    worse = best - config.margin
    chosen = (best >= config.similar) & (rest.max(axis=1) <= worse)
    # Of the column, everything but the row itself.
    largest = np.sort(similarity, axis=0)[-2:]
    second = largest[0] if len(largest) > 1 else np.full(similarity.shape[1], -1.0)
    chosen &= (best == largest[-1][column]) & (second[column] <= worse)
    return [(row, int(column[row])) for row in np.flatnonzero(chosen).tolist()]
