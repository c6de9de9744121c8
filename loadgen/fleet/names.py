"""Names for a service's code, spelt as stack frames spell them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BeforeValidator

from pipeline.files.validation import StrictModel, read_yaml, validate

Choice = TypeVar("Choice")


Words = Annotated[tuple[str, ...], BeforeValidator(str.split)]
Text = tuple[str, str]
"""A title and a summary."""


class Vocabulary(StrictModel):
    """The lists of vocabulary.yaml."""

    areas: Words
    verbs: Words
    actions: Words
    things: Words
    roles: Words
    libraries: Words
    authors: Words
    settings: Words
    harmless: tuple[Text, ...]
    explicit: tuple[Text, ...]
    vague: tuple[Text, ...]
    faster: tuple[Text, ...]
    moved: tuple[Text, ...]
    lines: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary of the package."""
    path = Path(__file__).with_name("vocabulary.yaml")
    return validate(Vocabulary, read_yaml(path), str(path))


def pick(rng: np.random.Generator, choices: Sequence[Choice]) -> Choice:
    """Draw one of some choices, all as likely."""
    return choices[int(rng.integers(len(choices)))]


def endpoint_names(rng: np.random.Generator, number: int) -> list[tuple[str, str]]:
    """Return distinct (area, verb) pairs; areas repeat only when there are more endpoints than areas."""
    words = vocabulary()
    areas = list(rng.permutation(words.areas))
    pairs = [(areas[i % len(areas)], pick(rng, words.verbs)) for i in range(number)]
    seen: set[tuple[str, str]] = set()
    for index, (area, verb) in enumerate(pairs):
        while (area, verb) in seen:
            verb = words.verbs[(words.verbs.index(verb) + 1) % len(words.verbs)]
        seen.add((area, verb))
        pairs[index] = (area, verb)
    return pairs


def methods(rng: np.random.Generator, package: str) -> Iterator[str]:
    """Yield names of subroutines of a package endlessly: a few methods of a class, then another class."""
    words = vocabulary()
    title = package.rpartition(".")[2].title().replace("_", "")
    seen: set[str] = set()
    for number in count(1):
        role, thing = pick(rng, words.roles), pick(rng, words.things)
        owner = f"{package}.{thing}.{title}{role}"
        if owner in seen:
            owner += str(number)
        seen.add(owner)
        for _ in range(int(rng.integers(3, 8))):
            name = f"{owner}.{pick(rng, words.actions)}_{pick(rng, words.things)}"
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
