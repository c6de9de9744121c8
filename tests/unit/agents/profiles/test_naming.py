from __future__ import annotations

import pytest

from agents.profiles.naming import NamedFrame, module_name, name_frame, name_stack, subroutine_name
from pipeline.model import AnnotationKind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("spin (shop/pricing.py:15)", "shop.pricing.spin", id="function with its line"),
        pytest.param("spin (shop/pricing.py)", "shop.pricing.spin", id="function without a line"),
        pytest.param("PriceList.total (shop/pricing.py)", "shop.pricing.PriceList.total", id="method"),
        pytest.param("f.<locals>.g (a.py)", "a.f.g", id="nested function"),
        pytest.param("f.<locals>.<genexpr> (a.py)", "a.f", id="generator expression"),
        pytest.param(
            "C.f.<locals>.<lambda>.<locals>.<listcomp> (a.py)", "a.C.f", id="anonymous in anonymous"
        ),
        pytest.param("<module> (shop/pricing.py:1)", "shop.pricing.<module>", id="module"),
        pytest.param("<lambda> (shop/pricing.py)", "shop.pricing.<module>", id="lambda of a module"),
        pytest.param("C.<lambda> (a.py)", "a.C", id="lambda of a class body"),
        pytest.param("load (shop/__init__.py)", "shop.load", id="package"),
        pytest.param("<module> (shop/__main__.py)", "shop.__main__.<module>", id="program"),
        pytest.param("f (/opt/my app/a.py:3)", "opt.my app.a.f", id="full path"),
        pytest.param("f (a (copy)/b.py:3)", "a (copy).b.f", id="parentheses in a path"),
        pytest.param("_load (<frozen importlib._bootstrap>:1)", "importlib._bootstrap._load", id="frozen"),
        pytest.param("f (<string>:1)", "<string>.f", id="code from a string"),
        pytest.param("task_step (_asynciomodule.c:2990)", "task_step", id="native with its line"),
        pytest.param("malloc (libc.so.6)", "malloc", id="native of a library"),
        pytest.param("ns::f(int, char) (x.cpp:3)", "ns::f(int, char)", id="C++ signature"),
        pytest.param("0x7fa83044524a (libc.so.6)", "[libc.so.6]", id="code without symbols"),
        pytest.param("Foo::bar(int)", "Foo::bar(int)", id="signature alone"),
        pytest.param("std::function (int)", "std::function (int)", id="signature with a space"),
        pytest.param("foo (in libfoo.dylib)", "foo (in libfoo.dylib)", id="another sampler's location"),
        pytest.param("GCTaskThread::run", "GCTaskThread::run", id="plain"),
        pytest.param("check_events_[k]", "check_events_[k]", id="kernel"),
        pytest.param("(weird)", "(weird)", id="nothing but parentheses"),
        pytest.param("weird)", "weird)", id="unbalanced"),
        pytest.param("endpoint=/x (a.py)", "a.endpoint=/x", id="not from annotate"),
    ],
)
def test_a_frame_is_named(text: str, name: str) -> None:
    assert name_frame(text).name == name


@pytest.mark.parametrize(
    ("text", "name", "annotation"),
    [
        ("endpoint=/a%3Bb%25 (c) (<smidgen>)", "endpoint=/a;b% (c)", ("endpoint", "/a;b% (c)")),
        ("metadata=tier=gold (<smidgen>:1)", "metadata=tier=gold", ("metadata", "tier=gold")),
        ("other=1 (<smidgen>)", "<smidgen>.other=1", None),
    ],
)
def test_annotations_are_read(text: str, name: str, annotation: tuple[AnnotationKind, str] | None) -> None:
    assert name_frame(text) == NamedFrame(name, annotation)


@pytest.mark.parametrize(
    ("stack", "names"),
    [
        pytest.param(["f (a.py)", "f.<locals>.<genexpr> (a.py)"], ["a.f"], id="folded into the caller"),
        pytest.param(["f (a.py)", "f (a.py)"], ["a.f", "a.f"], id="recursion stays"),
        pytest.param(
            ["g (b.py)", "f.<locals>.<lambda> (a.py)", "h (b.py)"],
            ["b.g", "a.f", "b.h"],
            id="a lambda called from elsewhere is its function",
        ),
        pytest.param(
            ["f (a.py)", "f.<locals>.<lambda> (a.py)", "f.<locals>.<lambda>.<locals>.<listcomp> (a.py)"],
            ["a.f"],
            id="folded twice",
        ),
        pytest.param(
            ['process 1:"sh -c x', ' y"', 'process 2:"python a.py"', "f (a.py)"], ["a.f"], id="process frames"
        ),
        pytest.param(['process 1:"unclosed', "f (a.py)"], ['process 1:"unclosed', "a.f"], id="no process"),
        pytest.param([], [], id="empty"),
        (["app", "B.baz(Ljava/lang/String", "I)V", "x.y"], ["app", "B.baz(Ljava/lang/String;I)V", "x.y"]),
        (["a([ILx/S", "Ljava/util/List", ")Lx/O", "b(I)V"], ["a([ILx/S;Ljava/util/List;)Lx/O", "b(I)V"]),
        (["f(List", "x", "y"], ["f(List", "x", "y"]),
    ],
)
def test_a_stack_is_named(stack: list[str], names: list[str]) -> None:
    assert [frame.name for frame in name_stack(stack)] == names


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("shop/pricing.py", "shop.pricing"),
        ("shop/__init__.py", "shop"),
        ("run.py", "run"),
        ("./a/b.py", "a.b"),
        ("/srv/a.py", "srv.a"),
        ("a\\b.py", "a.b"),
        ("__init__.py", "__init__"),
    ],
)
def test_a_module_is_its_path(path: str, module: str) -> None:
    assert module_name(path) == module


def test_changes_and_frames_are_spelt_the_same() -> None:
    assert subroutine_name("shop.pricing", "<module>") == name_frame("<module> (shop/pricing.py)").name
    assert subroutine_name("shop", "C.f") == name_frame("C.f (shop/__init__.py)").name
