"""A service for the quick start: it prices baskets for a while, with ``--slower`` with a needless loop."""

from __future__ import annotations

import sys
import time


def read_basket(number: int) -> list[int]:
    """Make up a basket."""
    basket = []
    for item in range(4000):
        basket.append((number * 31 + item) % 97)
    return basket


def total(basket: list[int], rounds: int) -> int:
    """Add its prices up, more often than it takes in the slower release."""
    added = 0
    for _ in range(rounds):
        for price in basket:
            added += price * 3 % 7
    return added


def discount(basket: list[int]) -> int:
    """Count what is cheaper today."""
    cheaper = 0
    for price in basket:
        if price % 5 < 2:
            cheaper += 1
    return cheaper


def tax(basket: list[int]) -> float:
    """Add up what the state gets."""
    taxed = 0.0
    for price in basket:
        taxed += price * 0.19
    return taxed


def weigh(basket: list[int]) -> int:
    """Find the heaviest."""
    heaviest = 0
    for price in basket:
        heaviest = price if price > heaviest else heaviest
    return heaviest


def receipt(basket: list[int]) -> str:
    """Write the first prices."""
    lines = []
    for price in basket[:1000]:
        lines.append(f"{price} each")
    return ", ".join(lines)


def serve(seconds: float, rounds: int) -> None:
    """Handle one basket after the other, and wait for customers as long as that keeps a core busy."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        began = time.thread_time()
        basket = read_basket(number)
        total(basket, rounds)
        discount(basket)
        tax(basket)
        weigh(basket)
        receipt(basket)
        number += 1
        time.sleep(time.thread_time() - began)


if __name__ == "__main__":
    serve(float(sys.argv[1]), rounds=6 if "--slower" in sys.argv else 1)
