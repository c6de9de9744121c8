"""Pages for people, from templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template

from .cart import CartLine
from .data import Product


class Pages:
    """Every template, compiled once at start."""

    def __init__(self) -> None:
        folder = Path(__file__).with_name("templates")
        environment = Environment(loader=FileSystemLoader(folder), autoescape=True, auto_reload=False)
        self.product_page: Template = environment.get_template("product.html")
        self.receipt_page: Template = environment.get_template("receipt.html")

    def product(self, product: Product, summary: Mapping[str, Any], similar: Sequence[Product]) -> str:
        """Return the page of one product."""
        return self.product_page.render(product=product, summary=summary, similar=similar)

    def receipt(self, lines: Sequence[CartLine], quote: Mapping[str, str], names: Mapping[str, str]) -> str:
        """Return the page that confirms an order."""
        return self.receipt_page.render(lines=lines, quote=quote, names=names)
