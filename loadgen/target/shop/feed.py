"""The catalogue as partners fetch it: compressed JSON with an entity tag."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

from .data import Product
from .settings import FEED_LEVEL


def build_feed(products: Sequence[Product], category: str) -> tuple[bytes, str]:
    """Return the compressed feed of a category and its entity tag."""
    body = encode([product for product in products if product.category == category])
    return compress(body), entity_tag(body)


def encode(products: Sequence[Product]) -> bytes:
    """Write products as JSON."""
    return json.dumps([entry(product) for product in products], separators=(",", ":")).encode()


def entry(product: Product) -> dict[str, Any]:
    """Return a product as partners see it."""
    return {
        "id": product.sku,
        "title": product.name.title(),
        "price": {"amount": f"{product.price / 100:.2f}", "currency": "EUR"},
        "available": product.stock > 0,
        "keywords": sorted(product.tags),
        "text": product.description,
    }


def compress(body: bytes) -> bytes:
    """Compress as gzip does, without the time stamp that would change the bytes."""
    packer = zlib.compressobj(FEED_LEVEL, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def entity_tag(body: bytes) -> str:
    """Return a tag that changes whenever the feed does, computed over its blocks."""
    digest = hashlib.sha256()
    for first in range(0, len(body), 4096):
        digest.update(hashlib.sha512(body[first : first + 4096]).digest())
    return digest.hexdigest()[:32]
