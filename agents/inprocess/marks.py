"""Annotations of running frames (``SetFrameMetadata``, FBDetect §3.2), read by the sampler.

A mark is kept where a frame keeps its trace function: it exists as long as the frame, also while a
coroutine waits. Python calls a trace function only while a debugger traces the thread; a
mark then returns itself. A frame that a debugger traces gets no mark.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from agents.profiles.annotate import annotate

P = ParamSpec("P")
R = TypeVar("R")
Label: TypeAlias = tuple[Literal["endpoint", "metadata"], str]
"""Annotation of a frame, a thread or a task: a kind and its value."""

MAX_LABELS = 16
"""Most labels of one frame; more are left out."""


class Switch:
    """True while a sampler runs; without one, annotations only check this flag."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


sampling = Switch()


class Mark:
    """Labels of a frame, and a function that returns one more when the frame is sampled."""

    __slots__ = ("_late", "labels")

    def __init__(self, labels: tuple[Label, ...], late: Callable[[], Label | None] | None = None) -> None:
        self.labels = labels
        self._late = late

    def read(self) -> tuple[Label, ...]:
        """Return all labels. Runs in the sampler's thread, where errors of the function are caught."""
        if self._late:
            try:
                label = self._late()
            except Exception:  # it looks at a request that goes on meanwhile
                label = None
            if label:
                self.labels, self._late = (*self.labels, label), None
        return self.labels

    def __call__(self, _frame: FrameType, _event: str, _argument: Any) -> Mark:
        """Do nothing as a trace function."""
        return self


def set_frame_metadata(*values: str, endpoint: str | None = None) -> None:
    """Annotate the calling frame, and all that it calls, until it returns.

    Each value becomes a gCPU series of its own, so use few distinct ones. A second call replaces what the
    first one set.
    """
    if sampling.on:
        _put(sys._getframe(1), Mark(_labels(values, endpoint)))


class FrameMetadata:
    """Annotates the block of a ``with``, or as a decorator a function, and all that it calls."""

    def __init__(self, values: tuple[str, ...], endpoint: str | None) -> None:
        self._values = values
        self._endpoint = endpoint
        self._labels = _labels(values, endpoint)

    def __enter__(self) -> None:
        if sampling.on:
            frame = sys._getframe(1)
            before = frame.f_trace
            _put(frame, Mark((*before.labels, *self._labels) if type(before) is Mark else self._labels))

    def __exit__(self, *_error: object) -> None:
        frame = sys._getframe(1)
        mark = frame.f_trace
        if type(mark) is Mark and mark.labels[-len(self._labels) :] == self._labels:
            former = mark.labels[: -len(self._labels)]
            frame.f_trace = Mark(former) if former else None

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Return the function under a frame that any sampler sees (``agents.profiles.annotate``)."""
        for value in self._values:
            fn = annotate(fn, metadata=value)
        return annotate(fn, endpoint=self._endpoint)


def frame_metadata(*values: str, endpoint: str | None = None) -> FrameMetadata:
    """Return a context manager and decorator that annotates, for many uses and threads."""
    return FrameMetadata(values, endpoint)


def put_late(frame: FrameType, late: Callable[[], Label | None]) -> None:
    """Annotate a frame with a label that is known only once its work goes on, such as a request's route."""
    _put(frame, Mark((), late))


def labels_of(frame: FrameType) -> tuple[Label, ...]:
    """Return the labels of one frame."""
    mark = frame.f_trace
    return mark.read() if type(mark) is Mark else ()


def labels_above(frame: FrameType | None) -> tuple[Label, ...]:
    """Return the labels of a frame and of all that called it, the nearest first, each once."""
    labels: dict[Label, None] = {}
    while frame:
        labels.update(dict.fromkeys(labels_of(frame)))
        frame = frame.f_back
    return tuple(labels)


def under_labels(fn: Callable[P, R], labels: tuple[Label, ...]) -> Callable[P, R]:
    """Return a function that does what ``fn`` does, annotated with labels."""
    if not labels:
        return fn

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _put(sys._getframe(), Mark(labels))
        return fn(*args, **kwargs)

    async def waiting_call(*args: P.args, **kwargs: P.kwargs) -> Any:
        _put(sys._getframe(), Mark(labels))
        waiting: Any = fn(*args, **kwargs)
        return await waiting

    wrapper: Any = waiting_call if inspect.iscoroutinefunction(fn) else call
    annotated: Callable[P, R] = functools.update_wrapper(wrapper, fn)
    return annotated


def _labels(values: tuple[str, ...], endpoint: str | None) -> tuple[Label, ...]:
    labels: tuple[Label, ...] = tuple([("metadata", str(value)) for value in values if value])
    return (("endpoint", str(endpoint)), *labels) if endpoint else labels


def _put(frame: FrameType, mark: Mark) -> None:
    traced = frame.f_trace
    if traced is None or type(traced) is Mark:
        frame.f_trace = mark
