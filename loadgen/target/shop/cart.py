"""Carts as clients send them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import dataclass


class BadCart(ValueError):
    """The client sent something that is no cart."""


@dataclass(frozen=True)
class CartLine:
    """So many of one product."""

    sku: str
    quantity: int


def parse_cart(body: bytes, known: Container[str]) -> tuple[list[CartLine], str]:
    """Read a cart and the buyer's tier, with lines of the same product joined.

    Raises:
        BadCart: it is not JSON, or a line is wrong.
    """
    try:
        raw = json.loads(body)
        rows = [(str(row["sku"]), int(row["quantity"])) for row in raw["lines"]]
        tier = str(raw.get("tier", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadCart("not a cart") from None
    quantities: dict[str, int] = {}
    for sku, quantity in rows:
        if sku not in known or not 0 < quantity < 1000:
            raise BadCart(f"line of {sku[:20]!r}")
        quantities[sku] = quantities.get(sku, 0) + quantity
    if tier not in ("gold", "silver", ""):
        raise BadCart("tier")
    return [CartLine(sku, quantity) for sku, quantity in sorted(quantities.items())], tier


def fingerprint(lines: Sequence[CartLine], tier: str) -> str:
    """Return a digest that is equal for equal carts: a chain over the lines, so that it can be extended."""
    digest = hashlib.sha256(tier.encode()).digest()
    for line in lines:
        entry = json.dumps({"q": line.quantity, "s": line.sku}, sort_keys=True).encode()
        digest = hashlib.sha256(digest + entry * 16).digest()
    return digest.hex()
