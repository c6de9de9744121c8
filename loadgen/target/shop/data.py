"""The catalogue: made from a fixed seed, so that every release serves the same products."""

from __future__ import annotations

import random
from dataclasses import dataclass

CATEGORIES = ("garden", "kitchen", "lighting", "office", "outdoor", "tools")

REVIEWS = 2_000
"""So many reviews has every product: this shop is old."""

_ADJECTIVES = """
adjustable bright classic compact durable elegant folding handmade heavy light magnetic modular
oak portable quiet recycled rustic slim solid steel sturdy vintage waterproof woven
"""
ADJECTIVES = tuple(_ADJECTIVES.split())

_NOUNS = """
apron basket bench bowl bracket broom bucket cabinet chair clamp crate desk drill grill hammer hook
jar kettle ladder lamp lantern mug pan planter rack rake saw scale shelf spade stool table tray vase
"""
NOUNS = tuple(_NOUNS.split())

_WORDS = """
assembly balcony battery bolt box broke cable clean colour comfortable corner crack cup daily damage
delivery dirt easy edge every excellent family feel finish fit flame garden gift glass good handle
heavy house instructions kitchen late leg light loose love material metal missing month neighbour
nice noise paint perfect plastic poor price quality rain recommend return rust scratch screw size
small smell soft solid stable stain storage sturdy summer surface terrible use wall warm water
weak weight well window winter wobbly wood work workshop wrong year
"""
WORDS = tuple(_WORDS.split())


@dataclass(frozen=True)
class Product:
    """One product on sale. ``price`` is in cents."""

    sku: str
    name: str
    category: str
    price: int
    stock: int
    rating: float
    tags: frozenset[str]
    description: str
    reviews: tuple[str, ...]


def load_products(count: int = 3_200, seed: int = 20) -> tuple[Product, ...]:
    """Make ``count`` products; the same seed gives the same ones."""
    rng = random.Random(seed)
    reviews = tuple(_sentence(rng, 20) for _ in range(2 * REVIEWS))
    return tuple(_product(rng, number, reviews) for number in range(count))


def load_sales(
    products: tuple[Product, ...], count: int = 48_000, seed: int = 21
) -> list[tuple[int, str, int]]:
    """Make sales as (day, category, cents)."""
    rng = random.Random(seed)
    sold = rng.choices(products, k=count)
    return [(rng.randrange(28), product.category, product.price * rng.randint(1, 4)) for product in sold]


def _product(rng: random.Random, number: int, reviews: tuple[str, ...]) -> Product:
    first, second = rng.sample(ADJECTIVES, 2)
    noun = rng.choice(NOUNS)
    first_review = rng.randrange(len(reviews) - REVIEWS)
    return Product(
        sku=f"P{number:04d}",
        name=f"{first} {second} {noun}",
        category=rng.choice(CATEGORIES),
        price=rng.randrange(300, 25_000),
        stock=rng.randrange(0, 80),
        rating=round(rng.uniform(2.0, 5.0), 1),
        tags=frozenset([first, second, noun, *rng.sample(WORDS, 18)]),
        description=_sentence(rng, 60),
        reviews=reviews[first_review : first_review + REVIEWS],
    )


def _sentence(rng: random.Random, words: int) -> str:
    text = " ".join(rng.choices(WORDS, k=words))
    return text.capitalize() + "."
