"""What a cart costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

from .cart import CartLine
from .data import Product

CENT = Decimal("0.01")
TAX = Decimal("0.19")
VOLUME = ((20, Decimal("0.12")), (10, Decimal("0.08")), (5, Decimal("0.05")))
TIERS = {"gold": Decimal("0.07"), "silver": Decimal("0.03"), "": Decimal(0)}


class PriceList:
    """Prices with discounts by volume and by the buyer's tier."""

    def __init__(self, products: Sequence[Product]) -> None:
        self.prices = {product.sku: Decimal(product.price) / 100 for product in products}

    def quote(self, lines: Sequence[CartLine], tier: str) -> Mapping[str, str]:
        """Return net, tax and total of a cart, each rounded to a cent."""
        net = Decimal(0)
        tax = Decimal(0)
        saved = Decimal(0)
        for line in lines:
            full = self.prices[line.sku] * line.quantity
            price = (full * (1 - self.discount(line.quantity, tier))).quantize(CENT, ROUND_HALF_UP)
            share = (price * TAX).quantize(CENT, ROUND_HALF_UP)
            net += price
            tax += share
            saved += full - price
        return {
            "net": f"{net:.2f}",
            "tax": f"{tax:.2f}",
            "total": f"{net + tax:.2f}",
            "saved": f"{saved:.2f}",
        }

    def discount(self, quantity: int, tier: str) -> Decimal:
        """Return the share taken off for so many of one product; discounts multiply."""
        volume = next((share for least, share in VOLUME if quantity >= least), Decimal(0))
        return 1 - (1 - volume) * (1 - TIERS[tier])
