"""Requests of the demo to the shop: a fixed mix, so that only a commit can move a subroutine's share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson

from loadgen.target.shop.data import CATEGORIES, WORDS, Product, load_products

QUERY_WORDS = 14
CART_LINES = 900


@dataclass(frozen=True, slots=True)
class TrafficRequest:
    """One HTTP request."""

    method: str
    path: str
    body: bytes = b""


def make_rounds(count: int, seed: int) -> list[list[TrafficRequest]]:
    """Return ``count`` rounds, each with one request to every endpoint in an order of its own.

    The order differs so that the sampler cannot run in lockstep with it; all rounds cost about the same.
    """
    rng = random.Random(seed)
    products = load_products()
    rounds = []
    for _ in range(count):
        requests = _round(rng, products)
        rng.shuffle(requests)
        rounds.append(requests)
    return rounds


def _round(rng: random.Random, products: Sequence[Product]) -> list[TrafficRequest]:
    def get(path: str, **query: str) -> TrafficRequest:
        return TrafficRequest("GET", f"{path}?{urlencode(query)}" if query else path)

    cart = {
        "tier": rng.choice(["gold", "silver", ""]),
        "lines": [
            {"sku": product.sku, "quantity": rng.randint(1, 30)}
            for product in rng.sample(products, CART_LINES)
        ],
    }
    return [
        get("/browse", category="all", order=rng.choice(["best", "price", "name"])),
        get("/search", q=" ".join(rng.sample(WORDS, QUERY_WORDS))),
        get(f"/product/{rng.choice(products).sku}"),
        TrafficRequest("POST", "/checkout", orjson.dumps(cart)),
        get("/feed", category=rng.choice(CATEGORIES)),
        get("/login", name=f"user{rng.randrange(1000)}", password="correct horse"),
        get("/monthly"),
    ]
