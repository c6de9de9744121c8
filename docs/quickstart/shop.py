"""A service for the quick start: it prices baskets for a while, with ``--slower`` with a needless loop."""

from __future__ import annotations

import sys
import time


def read_basket(number: int) -> list[int]:
    """Make up a basket."""
    return [(number * 31 + item) % 97 for item in range(6000)]


def total(basket: list[int], rounds: int) -> int:
    """Add its prices up, more often than it takes in the slower release."""
    added = 0
    for _ in range(rounds):
        for price in basket:
            added += price % 7
    return added


def receipt(basket: list[int]) -> str:
    """Write every price."""
    text = ""
    for price in basket:
        text += f"{price}, "
    return text


def serve(seconds: float, rounds: int) -> None:
    """Handle one basket after the other."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        basket = read_basket(number)
        total(basket, rounds)
        receipt(basket)
        number += 1


if __name__ == "__main__":
    serve(float(sys.argv[1]), rounds=4 if "--slower" in sys.argv else 1)
