from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import orjson
import pytest

from agents.profiles.annotate import MAX_VALUE, annotate
from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.message import Source, build_profile
from agents.sampling.kernels.pyspy import find_py_spy
from pipeline.messages.measurements import decode_profile


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


def name_of_caller() -> tuple[str, str]:
    frame = sys._getframe(1)
    return frame.f_code.co_qualname, frame.f_code.co_filename


def test_a_function_does_what_it_did() -> None:
    annotated = annotate(add, endpoint="/add")
    assert (annotated(1), annotated(1, b=5)) == (2, 6)
    assert (annotated.__name__, annotated.__doc__) == ("add", "Add.")
    assert inspect.signature(annotated) == inspect.signature(add)
    later = annotate(add_later, endpoint="/add", metadata="tier=gold")
    assert inspect.iscoroutinefunction(later)
    assert asyncio.run(later(1, b=5)) == 6
    with pytest.raises(ZeroDivisionError):
        annotate(divmod, metadata="m")(1, 0)
    assert annotate(add) is add, "without a value nothing is wrapped"


def test_methods_can_be_annotated_where_they_are_defined_but_no_generators() -> None:
    class Till:
        rate = 2

        def total(self, amount: int) -> int:
            return amount * self.rate

        def each(self) -> object:
            yield 1

        pay = annotate(total, endpoint="/pay")

    assert Till().pay(4) == 8
    with pytest.raises(TypeError, match="generators"):
        annotate(Till.each, endpoint="/")


def test_the_calling_frame_has_the_annotation_as_its_name() -> None:
    assert annotate(name_of_caller, endpoint="/a;b")() == ("endpoint=/a%3Bb", "<smidgen>")
    assert annotate(name_of_caller, metadata="é=1")() == ("metadata=é=1", "<smidgen>")
    name, _ = annotate(name_of_caller, endpoint="x" * 5000)()
    assert len(name) == len("endpoint=") + MAX_VALUE, "cut to what samplers read"
    first, second = annotate(add, endpoint="/x"), annotate(name_of_caller, endpoint="/x")
    assert first.__code__ is second.__code__, "code is shared by equal values"


def test_the_sampler_sees_the_annotations(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(
        textwrap.dedent("""
        import asyncio, time
        from agents.profiles.annotate import annotate

        def work():
            return sum(i * i for i in range(2000))

        async def handle():
            return work()

        async def main():
            end = time.monotonic() + 60
            while time.monotonic() < end:
                annotate(work, metadata="tier=gold;a b")()
                await annotate(handle, endpoint="/buy")()

        print("ready", flush=True)
        asyncio.run(main())
        """)
    )
    output = tmp_path / "out.txt"
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            command = [find_py_spy(), "record", "--pid", str(process.pid), "--duration", "1"]
            subprocess.run(
                [*command, "--format", "raw", "--output", str(output)], check=True, capture_output=True
            )
        finally:
            process.kill()
    stacks = parse_collapsed(output.read_bytes()).stacks
    message = build_profile(stacks, source=Source("s", "h"), start=1e9, end=1e9 + 1)
    profile = decode_profile(orjson.dumps(message))
    annotations = {(a.kind, a.value): a.frame for a in profile.annotations}
    assert set(annotations) == {("metadata", "tier=gold;a b"), ("endpoint", "/buy")}
    total = int(profile.counts.sum())
    for position in annotations.values():
        held = sum(
            int(profile.counts[i])
            for i, (a, b) in enumerate(zip(profile.stack_starts, profile.stack_starts[1:], strict=False))
            if position in profile.stack_frames[a:b]
        )
        assert held > total / 5, "half of the work is under each annotation"
