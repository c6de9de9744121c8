from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

from agents.inprocess.carriers import attach, carried_labels, current_carrier, detach
from agents.inprocess.marks import Label, labels_above, labels_of, sampling
from smidgen.inprocess import carry, frame_metadata, set_frame_metadata

pytestmark = pytest.mark.usefixtures("sampler_on")


def seen() -> tuple[Label, ...]:
    """Return the labels that a sample of the caller would have, the nearest first."""
    return labels_above(sys._getframe(1))


def test_a_frame_is_annotated_until_it_returns() -> None:
    def handler() -> tuple[Label, ...]:
        set_frame_metadata("tier=gold", endpoint="/buy")
        return deeper()

    def deeper() -> tuple[Label, ...]:
        return seen()

    assert handler() == (("endpoint", "/buy"), ("metadata", "tier=gold"))
    assert seen() == ()


def test_a_second_call_replaces_what_the_first_one_set() -> None:
    def handler() -> list[tuple[Label, ...]]:
        found = []
        for tier in ("gold", "tin"):
            set_frame_metadata(f"tier={tier}")
            found.append(seen())
        return found

    assert handler() == [(("metadata", "tier=gold"),), (("metadata", "tier=tin"),)]


def test_blocks_nest_and_leave_nothing() -> None:
    gold, buy = frame_metadata("tier=gold"), frame_metadata(endpoint="/buy")
    with buy:
        with gold:
            assert seen() == (("endpoint", "/buy"), ("metadata", "tier=gold"))
        assert seen() == (("endpoint", "/buy"),)
        with gold, gold:  # one object, as often as wanted
            assert seen() == (("endpoint", "/buy"), ("metadata", "tier=gold"))
    assert seen() == ()
    assert sys._getframe().f_trace is None


def test_a_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), frame_metadata("tier=gold"):
        raise KeyError
    assert seen() == ()


def test_a_decorated_function_is_annotated_for_every_sampler() -> None:
    @frame_metadata("tier=gold", endpoint="/buy")
    def handler() -> list[str]:
        frame, names = sys._getframe(), []
        for _ in range(3):
            names.append(frame.f_code.co_name)
            frame = frame.f_back or frame
        return names

    assert handler() == ["handler", "metadata=tier=gold", "endpoint=/buy"]


def test_a_coroutine_stays_annotated_while_it_waits() -> None:
    async def handler(tier: str, found: list[tuple[Label, ...]]) -> None:
        with frame_metadata(f"tier={tier}"):
            await asyncio.sleep(0.001)
            found.append(seen())

    async def both() -> list[tuple[Label, ...]]:
        found: list[tuple[Label, ...]] = []
        await asyncio.gather(handler("gold", found), handler("tin", found))
        return found

    assert sorted(asyncio.run(both())) == [(("metadata", "tier=gold"),), (("metadata", "tier=tin"),)]


def test_without_a_sampler_nothing_is_annotated() -> None:
    sampling.on = False
    set_frame_metadata("tier=gold")
    with frame_metadata("tier=gold"):
        sampling.on = True  # a sampler that starts within a block
        assert seen() == ()
    assert seen() == ()


def test_a_debugger_keeps_its_frames() -> None:
    traced: list[str] = []

    def tracer(_frame: FrameType, event: str, _argument: Any) -> Any:
        traced.append(event)
        return tracer

    def handler() -> tuple[Label, ...]:
        set_frame_metadata("tier=gold")
        return seen()

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        labels = handler()
    finally:
        sys.settrace(before)
    assert labels == ()
    assert traced.count("line") >= 2


def test_a_debugger_that_comes_later_meets_marks_that_do_nothing() -> None:
    def handler() -> tuple[Label, ...]:
        set_frame_metadata("tier=gold")
        before = sys.gettrace()
        sys.settrace(lambda *_: None)
        try:
            labels = seen()
        finally:
            sys.settrace(before)
        return labels

    assert handler() == (("metadata", "tier=gold"),)


@pytest.mark.parametrize("carried", [True, False])
def test_work_in_a_pool_is_annotated_if_it_is_carried(carried: bool) -> None:
    def work() -> tuple[Label, ...]:
        return labels_above(sys._getframe())

    with ThreadPoolExecutor(1) as pool, frame_metadata(endpoint="/buy"):
        labels = pool.submit(carry(work) if carried else work).result()
    assert labels == ((("endpoint", "/buy"),) if carried else ())


def test_what_is_carried_from_a_task_holds_the_annotations_of_those_who_await_it() -> None:
    def work() -> tuple[Label, ...]:
        return labels_above(sys._getframe())

    async def child() -> tuple[Label, ...]:
        return await asyncio.get_running_loop().run_in_executor(None, carry(work))

    async def handler() -> list[tuple[Label, ...]]:
        set_frame_metadata(endpoint="/buy")
        return list(await asyncio.gather(child()))

    assert asyncio.run(handler()) == [(("endpoint", "/buy"),)]


def test_a_carried_coroutine_function_stays_one() -> None:
    async def work() -> tuple[Label, ...]:
        return seen()

    with frame_metadata(endpoint="/buy"):
        carried = carry(work)
    assert asyncio.run(carried()) == (("endpoint", "/buy"),)


def test_carriers_are_threads_and_tasks() -> None:
    def labels() -> tuple[Label, ...]:
        return (("endpoint", "/buy"),)

    async def labelled() -> tuple[Label, ...]:
        task = current_carrier()
        assert task is asyncio.current_task()
        attach(task, labels)
        return carried_labels(task)

    assert current_carrier() == threading.get_ident()
    assert asyncio.run(labelled()) == labels()
    assert carried_labels(threading.get_ident()) == ()
    attach(threading.get_ident(), labels)
    assert carried_labels(threading.get_ident()) == labels()
    detach(threading.get_ident(), labels)
    detach(threading.get_ident(), labels)
    assert carried_labels(threading.get_ident()) == ()


def test_a_frame_without_marks_has_no_labels() -> None:
    assert labels_of(sys._getframe()) == ()
