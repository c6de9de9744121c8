"""The shop's history after its first commit: small edits, as people make them, and what each one does.

Edits are kept as text to find and text to put, so that the history is read as easily as it is written. The
package beside this module is the state of the first commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CommitKind = Literal["initial", "harmless", "slow", "refactor"]
"""What a commit does to the service's speed; only ``slow`` ones are to be reported."""

SLOW_SUBROUTINE = "shop.search.Index.rank"
"""The subroutine that the slow commit makes do more work."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the only occurrence of ``old`` in a file; an empty ``old`` makes the file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. ``age_h`` is how many hours before the demo it was written."""

    kind: CommitKind
    title: str
    body: str
    author: str
    age_h: float
    edits: tuple[Edit, ...] = ()


_README = """\
# shop

A small shop: browse, search, product pages, checkout, a feed for partners, accounts and a monthly report.

    python -m shop --port 8080
"""

_RANK_BEFORE = """\
            hits.append((-score * boost, sku))
        hits.sort()
        return hits
"""

_RANK_AFTER = """\
            hits.append((-score * boost, sku))
            hits.sort()
        return hits
"""

_SUMMARISE_BEFORE = """\
    counts: dict[str, int] = {}
    pairs: dict[str, int] = {}
    previous = ""
    for review in reviews:
        for word in review.lower().rstrip(".").split():
            counts[word] = counts.get(word, 0) + 1
            pair = previous + " " + word
            pairs[pair] = pairs.get(pair, 0) + 1
            previous = word
    common"""

_SUMMARISE_AFTER = """\
    counts, pairs = count_words(reviews)
    common"""

_SUMMARISE_END = """\
        "longest": max(counts, key=lambda word: (len(word), word), default=""),
    }
"""

_COUNT_WORDS = '''

def count_words(reviews: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Count the words of reviews, and the pairs of words that follow each other."""
    counts: dict[str, int] = {}
    pairs: dict[str, int] = {}
    previous = ""
    for review in reviews:
        for word in review.lower().rstrip(".").split():
            counts[word] = counts.get(word, 0) + 1
            pair = previous + " " + word
            pairs[pair] = pairs.get(pair, 0) + 1
            previous = word
    return counts, pairs
'''

_SHIPPING = '''\
        return 1 - (1 - volume) * (1 - TIERS[tier])

    def shipping(self, lines: Sequence[Line], express: bool) -> Decimal:
        """Return what it costs to send a cart: nothing from 50 euros on, unless in a hurry."""
        worth = sum((self.prices[line.sku] * line.quantity for line in lines), Decimal(0))
        if express:
            return Decimal("9.90")
        return Decimal(0) if worth >= 50 else Decimal("4.90")
'''

HISTORY: tuple[Commit, ...] = (
    Commit(
        kind="initial",
        title="Shop: catalogue, search, checkout and a feed for partners",
        body="Everything is held in memory; the catalogue is made from a fixed seed.",
        author="Marta Lindqvist",
        age_h=200,
    ),
    Commit(
        kind="initial",
        title="Say how to start the service",
        body="",
        author="Marta Lindqvist",
        age_h=198,
        edits=(Edit("README.md", "", _README),),
    ),
    Commit(
        kind="harmless",
        title="Explain how recommendations are weighted",
        body="A question that came up twice in review.",
        author="Tomasz Wrona",
        age_h=51,
        edits=(
            Edit(
                "shop/recommend.py",
                "        same = 0.2 if",
                "        # A shared category weighs as much as a fifth of all tags: no more than a tie.\n"
                "        same = 0.2 if",
            ),
        ),
    ),
    Commit(
        kind="harmless",
        title="Keep idle connections open for longer",
        body="The load balancer reuses connections after up to a minute; ours were gone by then.",
        author="Ines Carvalho",
        age_h=44,
        edits=(Edit("shop/settings.py", "KEEPALIVE_S = 30.0", "KEEPALIVE_S = 75.0"),),
    ),
    Commit(
        kind="harmless",
        title="Search: clearer name in highlight",
        body="`pattern` could be taken for the query. No change of behaviour.",
        author="Tomasz Wrona",
        age_h=29,
        edits=(
            Edit(
                "shop/search.py",
                "    pattern = re.compile(",
                "    any_term = re.compile(",
            ),
            Edit("shop/search.py", "return pattern.sub(", "return any_term.sub("),
        ),
    ),
    Commit(
        kind="slow",
        title="Search: keep hits in order while collecting them",
        body="So that a later cut-off can stop early without a second look at the hits. Same results.",
        author="Daniel Okafor",
        age_h=26,
        edits=(Edit("shop/search.py", _RANK_BEFORE, _RANK_AFTER),),
    ),
    Commit(
        kind="harmless",
        title="Log the version of Python at start",
        body="Support asks for it first.",
        author="Ines Carvalho",
        age_h=22,
        edits=(
            Edit("shop/__main__.py", "import logging\n", "import logging\nimport platform\n"),
            Edit(
                "shop/__main__.py",
                'info("shop starts on port %d", options.port)',
                'info("shop starts on port %d, Python %s", options.port, platform.python_version())',
            ),
        ),
    ),
    Commit(
        kind="refactor",
        title="Reviews: count words in a function of their own",
        body="summarise did two things. Pure refactoring: the same loop, the same results.",
        author="Marta Lindqvist",
        age_h=8,
        edits=(
            Edit("shop/reviews.py", _SUMMARISE_BEFORE, _SUMMARISE_AFTER),
            Edit("shop/reviews.py", _SUMMARISE_END, _SUMMARISE_END + _COUNT_WORDS),
        ),
    ),
    Commit(
        kind="harmless",
        title="Prices: add shipping, not charged yet",
        body="The checkout will show it once the new carrier is live.",
        author="Daniel Okafor",
        age_h=5,
        edits=(Edit("shop/pricing.py", "        return 1 - (1 - volume) * (1 - TIERS[tier])\n", _SHIPPING),),
    ),
    Commit(
        kind="harmless",
        title="Answer the release on /version",
        body="For the dashboard; nothing calls it yet.",
        author="Ines Carvalho",
        age_h=2,
        edits=(
            Edit(
                "shop/app.py",
                '        return web.Response(text="ok")\n',
                '        return web.Response(text="ok")\n\n'
                "    async def version(self, request: web.Request) -> web.StreamResponse:\n"
                '        """Answer which interface clients can expect."""\n'
                '        return web.json_response({"service": "shop", "interface": 1})\n',
            ),
            Edit(
                "shop/app.py",
                '    app.router.add_get("/health", shop.health)\n',
                '    app.router.add_get("/health", shop.health)\n'
                '    app.router.add_get("/version", shop.version)\n',
            ),
        ),
    ),
)
