"""What buyers write, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_GOOD = "clean comfortable durable easy excellent good love nice perfect recommend solid stable"
_BAD = "broke crack damage late loose missing noise poor rust scratch terrible weak wobbly"
GOOD = frozenset(_GOOD.split())
BAD = frozenset(_BAD.split())


def summarise(reviews: Sequence[str]) -> dict[str, Any]:
    """Return the most used words of reviews, their mood and their reading effort."""
    counts: dict[str, int] = {}
    pairs: dict[str, int] = {}
    previous = ""
    for review in reviews:
        for word in review.lower().rstrip(".").split():
            counts[word] = counts.get(word, 0) + 1
            pair = previous + " " + word
            pairs[pair] = pairs.get(pair, 0) + 1
            previous = word
    common = sorted(counts, key=lambda word: (-counts[word], word))[:8]
    most = max(pairs.values(), default=0)
    repeated = sorted(pair for pair, count in pairs.items() if count == most)[:4]
    characters = sum(len(word) * count for word, count in counts.items())
    mood = sum(counts.get(word, 0) for word in GOOD) - sum(counts.get(word, 0) for word in BAD)
    return {
        "words": [[word, counts[word]] for word in common],
        "pairs": repeated,
        "mood": mood,
        "effort": round(characters / max(1, sum(counts.values())), 3),
        "longest": max(counts, key=lambda word: (len(word), word), default=""),
    }
