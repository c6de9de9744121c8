"""Products that go with another one."""

from __future__ import annotations

from collections.abc import Sequence

from .data import Product


def similar(product: Product, products: Sequence[Product], limit: int = 6) -> list[str]:
    """Return the skus of the products that share the most tags, near in price first."""
    scored: list[tuple[float, str]] = []
    for other in products:
        if other.sku == product.sku:
            continue
        shared = len(product.tags & other.tags)
        overlap = shared / (len(product.tags) + len(other.tags) - shared)
        distance = abs(product.price - other.price) / (product.price + other.price)
        same = 0.2 if other.category == product.category else 0.0
        scored.append((-(overlap + same) * (1.0 - 0.5 * distance), other.sku))
    scored.sort()
    return [sku for _, sku in scored[:limit]]
