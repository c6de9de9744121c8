from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.inprocess.carriers import attach
from agents.inprocess.stacks import StackReader, frame_text, short_path
from agents.profiles.naming import name_stack
from smidgen.inprocess import frame_metadata

HERE = f"{__name__}."


def stack_of_caller() -> list[str]:
    """Return the names of this module in the stack of the caller, as another thread sees it."""
    caller, found = threading.get_ident(), []

    def read() -> None:
        found.extend(StackReader().read_all([caller]))

    reader = threading.Thread(target=read)
    reader.start()
    reader.join()
    names = [frame.name for frame in name_stack(found[0])]
    own = [name.removeprefix(HERE) for name in names if name.startswith((HERE, "endpoint=", "metadata="))]
    return own[own.index("run") + 1 : -1] if "run" in own else own[:-1]


def run(main: Coroutine[Any, Any, list[str]]) -> list[str]:
    return asyncio.run(main)


async def leaf() -> list[str]:
    await asyncio.sleep(0.001)
    return stack_of_caller()


async def direct() -> list[str]:
    return await leaf()


async def task() -> list[str]:
    return await asyncio.create_task(leaf())


async def gathered() -> list[str]:
    return (await asyncio.gather(leaf(), asyncio.sleep(0.01)))[0]


async def grouped() -> list[str]:
    async with asyncio.TaskGroup() as group:
        work = group.create_task(leaf())
        group.create_task(asyncio.sleep(0.01))
    return work.result()


async def waited() -> list[str]:
    done, _ = await asyncio.wait([asyncio.create_task(leaf())])
    return done.pop().result()


async def waited_for() -> list[str]:
    return await asyncio.wait_for(leaf(), 60)


async def shielded() -> list[str]:
    return await asyncio.shield(leaf())


async def generated() -> list[str]:
    async def work() -> AsyncIterator[list[str]]:
        yield await asyncio.create_task(leaf())

    return [each async for each in work()][0]


async def nested() -> list[str]:
    return (await asyncio.gather(middle()))[0]


async def middle() -> list[str]:
    async with asyncio.TaskGroup() as group:
        work = group.create_task(gathered())
    return work.result()


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        (direct, ["direct", "leaf"]),
        (task, ["task", "leaf"]),
        (gathered, ["gathered", "leaf"]),
        (grouped, ["grouped", "leaf"]),
        (waited, ["waited", "leaf"]),
        (waited_for, ["waited_for", "leaf"]),
        (shielded, ["shielded", "leaf"]),
        (generated, ["generated", "leaf"]),
        (nested, ["nested", "middle", "gathered", "leaf"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_task_stands_under_those_who_await_it(
    main: Callable[[], Coroutine[Any, Any, list[str]]], expected: list[str]
) -> None:
    assert run(main()) == expected


def test_the_event_loop_stands_above_those_who_wait() -> None:
    async def main() -> list[str]:
        reader, found = StackReader(), []
        me = threading.get_ident()
        thread = threading.Thread(target=lambda: found.extend(reader.read_all([me])))
        thread.start()
        thread.join()
        return [frame.name for frame in name_stack(found[0])]

    names = asyncio.run(main())
    loop = next(index for index, name in enumerate(names) if name.endswith("_run_once"))
    own = next(index for index, name in enumerate(names) if name.endswith("above_those_who_wait.main"))
    assert loop < own


@pytest.mark.usefixtures("sampler_on")
def test_annotations_of_those_who_wait_count_for_what_they_await() -> None:
    async def handler() -> list[str]:
        with frame_metadata("tier=gold", endpoint="/buy"):
            return (await asyncio.gather(leaf()))[0]

    found = run(handler())
    assert found[:2] == ["endpoint=/buy", "metadata=tier=gold"]
    assert found[-1] == "leaf"


@pytest.mark.usefixtures("sampler_on")
def test_labels_of_a_task_stand_above_its_frames() -> None:
    async def labelled() -> list[str]:
        attach(asyncio.current_task(), lambda: (("endpoint", "GET /cart"),))
        return await leaf()

    async def handler() -> list[str]:
        return (await asyncio.gather(labelled()))[0]

    found = run(handler())
    assert found.count("endpoint=GET /cart") == 1
    assert found.index("endpoint=GET /cart") < found.index("leaf")


def test_a_path_begins_at_the_outermost_package(tmp_path: Path) -> None:
    package = tmp_path / "top" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    for path, expected in [
        (package / "module.py", "top/inner/module.py"),
        (tmp_path / "script.py", "script.py"),
        ("<frozen runpy>", "<frozen runpy>"),
        ("<string>", "<string>"),
        ("script.py", "script.py"),
    ]:
        assert short_path(str(path)) == expected


def test_a_function_made_anew_is_not_taken_for_one_that_has_gone() -> None:
    reader = StackReader()
    for name in ("first", "second"):
        scope: dict[str, Any] = {"sys": sys}
        exec(f"def {name}(read): return read(sys._getframe(), 0, {{}})", scope)
        stack = scope[name](reader.read)
        assert stack[-1] == f"{name} (<string>)"
        del scope


def test_text_of_a_frame_holds_the_qualified_name() -> None:
    code = test_text_of_a_frame_holds_the_qualified_name.__code__
    assert isinstance(code, types.CodeType)
    path = f"{__name__.replace('.', '/')}.py"
    assert frame_text(code) == f"test_text_of_a_frame_holds_the_qualified_name ({path})"
