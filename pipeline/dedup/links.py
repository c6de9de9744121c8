"""What makes one regression part of another's group, and how people are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """What links two regressions: in which way they are alike, how much, and the bound that it is held to."""

    feature: str  # a key of WORDS
    similarity: float
    bound: float


@dataclass(frozen=True, slots=True)
class LinkWords:
    """One kind of link for people; of links that are told alike, the numbers mean the same."""

    joined: str  # what makes one part of a group; what stands for the group follows
    nearest: str  # in what one came nearest to another without being part of its group; the other follows
    measures: str  # what the similarity is


_COMMON = "share of its rise through what they have in common"
_SURE = "how sure it is that so many changes of one deployment are no chance"
_STACKS = "share of its rise in stacks that they have in common"

WORDS: Mapping[str, LinkWords] = {
    "below": LinkWords(
        "rises through the same subroutine as", "most alike in what it rises through:", _COMMON
    ),
    "cause": LinkWords(
        "rises through the same subroutine or change as", "most alike in what it rises through:", _COMMON
    ),
    "caller": LinkWords("rises in a caller shared with", "most alike in its caller:", _COMMON),
    "change": LinkWords(
        "modified by the same change as",
        "most alike in its change:",
        "changes that modified what both rise through",
    ),
    "deployment": LinkWords("modified in the same release as", "most alike in its release:", _SURE),
    "release": LinkWords("modified in the same release as", "most alike in its release:", _SURE),
    "sum": LinkWords("explained by the stacks of", "most alike in its stacks:", _STACKS),
    "stacks": LinkWords("explained by the stacks of", "most alike in its stacks:", _STACKS),
    "remainder": LinkWords(
        "hardly more than what rises below it:",
        "most of it rises below it:",
        "share of its rise through that one; beyond the bound the rest is no change point by itself",
    ),
    "told": LinkWords(
        "same stacks as regressions told before,",
        "partly in the stacks of regressions told before,",
        "share of its rise in the stacks of all of them",
    ),
    "size": LinkWords(
        "changed like regressions told before,",
        "changed far more than regressions told before in its stacks,",
        "their changes, as a share of its own",
    ),
    "som": LinkWords(
        "on one part of the map with",
        "nearest on the map:",
        "likeness of their features; being on one part of the map is enough",
    ),
    "correlation": LinkWords(
        "moves together with", "most alike in how it moves:", "correlation of the two series"
    ),
    "metric_id": LinkWords("named like", "most alike in its name:", "likeness of the two names"),
}
"""Kinds of links: steps of the grouping by cause, features of merge rules, and other ways to group."""


def tell_joined(link: Link, leader: str) -> str:
    """Say why a regression is part of the group that another one stands for."""
    return f"{WORDS[link.feature].joined} {leader}"


def tell_nearest(link: Link, other: str) -> str:
    """Say what a regression is most like, if not enough to be one with it."""
    if link.similarity <= 0:
        return "unlike everything that it was compared with"
    return f"{WORDS[link.feature].nearest} {other}"


def measured(reason: str) -> str:
    """Return what the number beside such a reason is; empty if the reason tells of no link."""
    return next(
        (
            words.measures
            for words in WORDS.values()
            if reason.startswith((f"{words.joined} ", f"{words.nearest} "))
        ),
        "",
    )
