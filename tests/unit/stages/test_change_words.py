from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np

from pipeline.analysis.rootcause.text import ChangeTexts, change_words, compact
from pipeline.model import Change
from pipeline.stages.gather.changes import ChangeWords
from tests.support.builders import build_change

VOCABULARY = [f"word_{number}" for number in range(300)]


def history(changes: int, words: int, *, seed: int = 1, start: float = 0.0) -> tuple[Change, ...]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(changes):
        text = " ".join(VOCABULARY[int(i)] for i in rng.zipf(1.3, size=words) % len(VOCABULARY))
        found.append(replace(build_change(f"c{number}", time=start + number), content=text))
    return tuple(found)


def plain_similarities(documents: list[Counter[str]], regression: dict[str, float]) -> list[float]:
    """TF-IDF as it is written in textbooks."""
    with_it = Counter(word for document in documents for word in document)
    rarity = {word: math.log((1 + len(documents)) / (1 + many)) for word, many in with_it.items()}
    asked = {word: weight * rarity[word] for word, weight in regression.items() if word in rarity}
    found = []
    for document in documents:
        weights = {word: (1 + math.log(count)) * rarity[word] for word, count in document.items()}
        product = sum(weight * weights.get(word, 0.0) for word, weight in asked.items())
        norms = math.hypot(*weights.values()) * math.hypot(*asked.values())
        found.append(product / norms if norms else 0.0)
    return found


def test_compact_words_give_the_similarities_of_plain_ones() -> None:
    documents = [change_words(change) for change in history(40, 200)]
    regression = {f"word_{number}": 1.0 / number for number in range(20, 300, 7)} | {"word": 0.5, "here": 1.0}
    found = ChangeTexts([compact(words) for words in documents]).similarities(regression)
    np.testing.assert_allclose(found, plain_similarities(documents, regression), rtol=1e-12)
    assert len(set(found)) > 10


def test_a_service_that_was_let_go_has_the_same_texts_when_it_comes_back() -> None:
    words, asked = ChangeWords(most_kept=2_000), {"word_7": 1.0}
    first = words.texts("shop", history(10, 300)).similarities(asked)
    for number in range(20):
        words.texts(f"other-{number}", history(10, 300, seed=number))
        assert words.kept <= 2_000
    np.testing.assert_array_equal(words.texts("shop", history(10, 300)).similarities(asked), first)


def test_the_words_of_the_newest_changes_count() -> None:
    words = ChangeWords(most_words=1_000)
    found = words.texts("shop", history(30, 300)).similarities({"word_7": 1.0, "word": 1.0})
    assert found.shape == (30,)
    assert not found[:20].any()
    assert found[-2:].any()
    assert words.kept <= 1_000


def test_what_leaves_the_history_is_forgotten() -> None:
    words = ChangeWords()
    words.texts("shop", history(30, 300))
    kept = words.kept
    words.texts("shop", history(30, 300, start=1000.0)[:3])
    assert words.kept < kept / 5


def test_a_month_of_diffs_takes_little_memory() -> None:
    everything = history(300, 1000)
    words = ChangeWords()
    words.texts("shop", everything)
    again = ChangeWords()
    tracemalloc.start()
    again.texts("shop", everything)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * again.kept, "a dictionary of each change's words takes a hundred bytes a word"
