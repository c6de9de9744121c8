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
    repeated = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:4]
    mood = 0
    letters = 0
    longest = ""
    for review in reviews:
        negated = False
        for word in review.lower().rstrip(".").split():
            if word in GOOD:
                mood += -1 if negated else 1
            elif word in BAD:
                mood -= -1 if negated else 1
            negated = word in ("not", "never", "wrong")
            letters += len(word)
            if (len(word), word) > (len(longest), longest):
                longest = word
    return {
        "words": [[word, counts[word]] for word in common],
        "pairs": repeated,
        "mood": mood,
        "effort": round(letters / max(1, sum(counts.values())), 3),
        "longest": longest,
    }
