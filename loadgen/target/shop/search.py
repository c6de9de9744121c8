"""Full-text search over names, descriptions and tags."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from .data import Product
from .settings import MAX_HITS, SNIPPETS

WORD = re.compile(r"[a-z0-9]+")


class Index:
    """An inverted index with BM25 scores."""

    def __init__(self, products: Sequence[Product]) -> None:
        self.names = {product.sku: product.name for product in products}
        self.texts = {product.sku: text_of(product) for product in products}
        counted = {sku: Counter(tokenize(text)) for sku, text in self.texts.items()}
        self.lengths = {sku: sum(counts.values()) for sku, counts in counted.items()}
        self.mean_length = sum(self.lengths.values()) / len(self.lengths)
        self.postings: dict[str, list[tuple[str, int]]] = {}
        for sku, counts in counted.items():
            for word, count in counts.items():
                self.postings.setdefault(word, []).append((sku, count))

    def search(self, query: str, limit: int) -> dict[str, Any]:
        """Return the best products for a query, the first few with a highlighted snippet."""
        terms = tokenize(query)
        hits = self.rank(self.score(terms), terms)
        return {
            "query": query,
            "total": len(hits),
            "hits": [{"sku": sku, "score": round(-score, 4)} for score, sku in hits[:limit]],
            "snippets": [highlight(self.texts[sku], terms) for _, sku in hits[:SNIPPETS]],
        }

    def score(self, terms: Sequence[str]) -> dict[str, float]:
        """Return the BM25 score of every product that has one of the terms."""
        scores: dict[str, float] = {}
        for term in terms:
            postings = self.postings.get(term, [])
            rarity = math.log(1.0 + (len(self.texts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for sku, count in postings:
                weight = 0.25 + 0.75 * self.lengths[sku] / self.mean_length
                scores[sku] = scores.get(sku, 0.0) + rarity * count * 2.2 / (count + 1.2 * weight)
        return scores

    def rank(self, scores: dict[str, float], terms: Sequence[str]) -> list[tuple[float, str]]:
        """Order hits from the best score down, equal ones by their sku; a term in the name counts more."""
        hits: list[tuple[float, str]] = []
        stems = [term[:4] for term in terms]
        for sku, score in islice(scores.items(), MAX_HITS):
            name = self.names[sku]
            boost = 1.0 + sum(name.count(stem) for stem in stems) / 10.0
            hits.append((-score * boost, sku))
        hits.sort()
        return hits


def text_of(product: Product) -> str:
    """Return all that is searched of a product."""
    return " ".join([product.name, product.description, " ".join(sorted(product.tags))])


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words."""
    return WORD.findall(text.lower())


def highlight(text: str, terms: Sequence[str]) -> str:
    """Mark the terms in a text, and those that start with them."""
    pattern = re.compile(r"\b(" + "|".join(re.escape(term) for term in terms) + r")\w*", re.IGNORECASE)
    return pattern.sub(lambda match: f"<em>{match.group(0)}</em>", text)
