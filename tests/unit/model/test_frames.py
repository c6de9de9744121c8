"""Elements of stacks: how series are spelt there, cut names, annotations above their frames."""

from __future__ import annotations

import pytest

from pipeline.model import Annotation, MetricKind
from pipeline.model.frames import MAX_LABEL, cut_name, element, frame_elements, name_parts, series_of

SPELT: list[tuple[MetricKind, str, str]] = [
    ("subroutine", "app.work", "app.work"),
    ("endpoint", "/checkout", "endpoint=/checkout"),
    ("metadata", "tier=gold", "metadata=tier=gold"),
]


@pytest.mark.parametrize(("kind", "name", "label"), SPELT, ids=[kind for kind, _, _ in SPELT])
def test_a_series_is_spelt_with_its_kind_in_front(kind: MetricKind, name: str, label: str) -> None:
    assert element(kind, name) == label
    assert series_of(label) == (kind, name)


@pytest.mark.parametrize("label", ["service=latency", "endpoint", "my.endpoint=x", ""])
def test_what_no_annotation_begins_is_a_subroutine(label: str) -> None:
    assert series_of(label) == ("subroutine", label)


def test_a_name_within_the_limit_is_kept() -> None:
    assert cut_name("a" * MAX_LABEL) == "a" * MAX_LABEL
    assert cut_name("a" * 20, 20) == "a" * 20


def test_a_longer_name_keeps_its_beginning_and_ends_in_a_hash_of_all() -> None:
    cut = cut_name("abcdefghij" * 3, 25)
    assert len(cut) == 25
    assert cut.startswith("abcdefg…#")
    assert cut == cut_name("abcdefghij" * 3, 25)
    assert cut != cut_name("abcdefghij" * 2 + "abcdefghiJ", 25)
    assert len(cut_name("\ud800" * 30, 20)) == 20  # half a character, as broken samplers send it


@pytest.mark.parametrize(
    ("frames", "annotations", "elements"),
    [
        pytest.param(["main", "work"], [], [("main",), ("work",)], id="none"),
        pytest.param(
            ["main", "work"],
            [Annotation(1, "endpoint", "/buy")],
            [("main",), ("endpoint=/buy", "work")],
            id="the annotation stands above its frame",
        ),
        pytest.param(
            ["work"],
            [Annotation(0, "endpoint", "/buy"), Annotation(0, "metadata", "gold")],
            [("metadata=gold", "endpoint=/buy", "work")],
            id="the last one on top",
        ),
        pytest.param(
            ["endpoint=/buy"],
            [Annotation(0, "endpoint", "/buy")],
            [("endpoint=/buy",)],
            id="a frame named like its annotation is one",
        ),
        pytest.param(
            ["work"],
            [Annotation(0, "endpoint", "/buy")] * 2,
            [("endpoint=/buy", "work")],
            id="an annotation given twice is one",
        ),
    ],
)
def test_elements_of_frames(
    frames: list[str], annotations: list[Annotation], elements: list[tuple[str, ...]]
) -> None:
    assert frame_elements(frames, annotations) == elements


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("main.Map[...]", "main.Map[...]"),
        ("shop.cart.Map[go.shape.int,go.shape.string]", "cart.Map[go.shape.int,go.shape.string]"),
        ("shop.cart.(*Tree[...]).Walk", "(*Tree[...]).Walk"),
        ("main.(*Server).Serve.func1", "Serve.func1"),
        ("shop.<module>", "shop.<module>"),
        ("a.b.c.d", "c.d"),
        ("plain", "plain"),
        ("std::map<a.b, c.d>::find", "std::map<a.b, c.d>::find"),
        ("ns.operator>.call", "operator>.call"),
        ("f...", "f..."),
        ("", ""),
    ],
)
def test_the_end_of_a_name_is_no_piece_of_a_bracket(name: str, end: str) -> None:
    parts = name_parts(name)
    assert ".".join(parts) == name
    assert ".".join(parts[-2:]) == end
