"""Names for a service's code, spelt as stack frames spell them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


AREAS = _words(
    "account address advert alert asset audit badge basket billing bundle campaign cart catalog category "
    "chat claim comment consent contact coupon credit currency dashboard delivery device discount event "
    "feed filter friend gallery gift group history image inbox invoice item label language ledger like "
    "listing login loyalty map media member mention menu message notice offer order page partner payment "
    "photo plan poll price product profile promo quota ranking rating receipt refund region report return "
    "review reward route search seller session settings share shipment signup stock store story stream "
    "style subscription supplier survey tag tax team theme ticket timeline token topic track trend usage "
    "vendor video visit voucher wallet warehouse widget wishlist"
)
VERBS = _words(
    "add browse cancel check compare create delete edit export find follow list open query rate send show "
    "sync update view"
)
ACTIONS = _words(
    "apply assemble balance build cache check collect combine compute convert count decode encode expand "
    "fetch filter flatten format group hash index join load lookup map match merge normalise pack parse "
    "plan prepare project rank read reduce render resolve sample scan score select serialise sort split "
    "sum trim update validate visit weigh write"
)
THINGS = _words(
    "amounts batch blocks body bounds buffer bytes candidates cells chunks columns context cursor digest "
    "edges entries entry facets fields flags fragments headers hits index items key keys labels layout "
    "limits lines links list node nodes offsets options page pairs parts path payload permissions ranges "
    "record records result row rows rules schema scores segments set slots state stats steps table tags "
    "terms text tokens tree units values view weights window words"
)
ROLES = _words(
    "Adapter Builder Cache Client Codec Engine Fetcher Finder Index Loader Manager Mapper Matcher Model "
    "Parser Planner Pool Presenter Queue Ranker Reader Renderer Resolver Router Scorer Service Store "
    "Table View Writer"
)
LIBRARIES = _words(
    "auth cache codec compress config crypto db dates geo graph hashing http i18n json kv locks logs "
    "maths metrics pools queue retry rpc sql strings tasks templates text trace tree urls"
)


def endpoint_names(rng: np.random.Generator, count: int) -> list[tuple[str, str]]:
    """Return distinct (area, verb) pairs; areas repeat only when there are more endpoints than areas."""
    areas = list(rng.permutation(AREAS))
    pairs = [(areas[i % len(areas)], VERBS[int(rng.integers(len(VERBS)))]) for i in range(count)]
    seen: set[tuple[str, str]] = set()
    for index, (area, verb) in enumerate(pairs):
        while (area, verb) in seen:
            verb = VERBS[(VERBS.index(verb) + 1) % len(VERBS)]
        seen.add((area, verb))
        pairs[index] = (area, verb)
    return pairs


def methods(rng: np.random.Generator, package: str) -> Iterator[str]:
    """Name subroutines of a package for ever: a few methods of a class, then another class."""
    seen: set[str] = set()
    number = 0
    while True:
        number += 1
        role = ROLES[int(rng.integers(len(ROLES)))]
        thing = THINGS[int(rng.integers(len(THINGS)))]
        title = package.rpartition(".")[2].title().replace("_", "")
        owner = f"{package}.{thing}.{title}{role}"
        if owner in seen:
            owner += str(number)
        seen.add(owner)
        for _ in range(int(rng.integers(3, 8))):
            name = (
                f"{owner}.{ACTIONS[int(rng.integers(len(ACTIONS)))]}_{THINGS[int(rng.integers(len(THINGS)))]}"
            )
            if name not in seen:
                seen.add(name)
                yield name


def owner_of(subroutine: str) -> str:
    """Return the class or module that a subroutine belongs to."""
    return subroutine.rpartition(".")[0]


def file_of(subroutine: str) -> str:
    """Return the path of the file that a subroutine stands in."""
    parts = [part for part in subroutine.split(".")[:-1] if not part[:1].isupper()]
    return "/".join(parts or ["main"]) + ".py"
