"""Every decoder against its corpus and against hostile inputs made of good ones; `make fuzz` goes further."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.model.errors import InvalidMessage
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.targets import TARGETS, Target
from tests.support.cases import for_every

CORPUS = Path(__file__).with_name("corpus")
EXAMPLES = 30

every_target = pytest.mark.parametrize("name", TARGETS)


def feed(target: Target, data: bytes) -> bool:
    """Return whether the target accepts the data; only its documented errors are caught."""
    try:
        target.run(data)
    except target.errors as error:
        text = str(error)
        assert text
        if isinstance(error, InvalidMessage):
            assert len(text) < 4000, "a reason is a line, not a copy of the input"
        return False
    return True


@every_target
def test_takes_what_it_should(name: str) -> None:
    for number, seed in enumerate(TARGETS[name].seeds()):
        assert feed(TARGETS[name], seed), f"seed {number}"


@every_target
def test_takes_or_refuses_its_corpus(name: str) -> None:
    for path in sorted((CORPUS / name).glob("*")):
        feed(TARGETS[name], path.read_bytes())


def test_every_corpus_has_its_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)


@every_target
@for_every("data", [b"", b"\0", b"\xff\xfe", b"{}", b"[]", b"null", b"\n\n", b"{" * 3000])
def test_takes_or_refuses_what_is_nothing_like_it(name: str, data: bytes) -> None:
    feed(TARGETS[name], data)


@every_target
def test_takes_or_refuses_what_is_nearly_right(name: str) -> None:
    target = TARGETS[name]
    pool = [*target.seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(st.sampled_from(pool), st.integers(0, 2**32))
    @example(pool[0], 0)
    def check(seed: bytes, number: int) -> None:
        rng = Random(number)
        if target.tokens is None:
            feed(target, mutate_json(rng, seed))
        else:
            feed(target, mutate_bytes(rng, seed, target.tokens))

    check()
