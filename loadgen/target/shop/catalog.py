"""Browsing: choose, order and count products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .data import Product
from .settings import PAGE_SIZE

PRICE_STEPS = (1_000, 2_500, 5_000, 10_000, 20_000)


class Catalog:
    """The products on sale."""

    def __init__(self, products: Sequence[Product]) -> None:
        self.products = products
        self.by_sku = {product.sku: product for product in products}

    def browse(self, category: str, order: str, page: int) -> dict[str, Any]:
        """Return one page of a category, with the counts that the filters beside it show."""
        chosen = self.choose(category)
        ordered = order_products(chosen, order)
        first = page * PAGE_SIZE
        return {
            "total": len(chosen),
            "facets": facets(self.products),
            "products": [summary(product) for product in ordered[first : first + PAGE_SIZE]],
        }

    def choose(self, category: str) -> list[Product]:
        """Return what is in stock in a category; every category for ``all``."""
        return [p for p in self.products if p.stock > 0 and category in (p.category, "all")]


def order_products(products: Iterable[Product], order: str) -> list[Product]:
    """Sort by price, by name, or by a mix of rating and stock that puts what sells in front."""
    if order == "price":
        return sorted(products, key=lambda product: (product.price, product.sku))
    if order == "name":
        return sorted(products, key=lambda product: (product.name.casefold(), product.sku))
    return sorted(products, key=lambda product: (-product.rating, -min(product.stock, 20), product.sku))


def facets(products: Iterable[Product]) -> dict[str, dict[str, int]]:
    """Count products by category, by price step and by tag."""
    categories: Counter[str] = Counter()
    prices: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    for product in products:
        categories[product.category] += 1
        step = next((step for step in PRICE_STEPS if product.price < step), PRICE_STEPS[-1])
        prices[f"under {step // 100}"] += 1
        tags.update(product.tags)
    return {
        "category": dict(categories.most_common()),
        "price": dict(sorted(prices.items())),
        "tag": dict(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:20]),
    }


def summary(product: Product) -> dict[str, Any]:
    """Return what a list shows of a product."""
    return {
        "sku": product.sku,
        "name": product.name.title(),
        "price": f"{product.price / 100:.2f}",
        "rating": product.rating,
        "tags": sorted(product.tags)[:5],
    }
