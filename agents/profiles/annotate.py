"""Annotations on stack frames that any sampler can see (``SetFrameMetadata``, FBDetect §3.2).

An annotated call runs through a frame whose code object is renamed, for example to
``endpoint=/checkout``. A sampler that prints frame names therefore prints the annotation, without knowing
anything about it, and all it costs is one more call. This module uses the standard library alone, so that
a service can import it without loading the pipeline.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import quote

P = ParamSpec("P")
R = TypeVar("R")

ANNOTATION_FILE = "<smidgen>"
"""Source file of the frames that carry an annotation."""

MAX_VALUE = 500
"""Longest annotation value, in characters; samplers refuse to read much longer names."""

_CACHED_VALUES = 4096
_UNSAFE = re.compile(r"[%;\x00-\x1f\x7f]")  # would break a line of collapsed stacks


def annotate(
    fn: Callable[P, R], *, endpoint: str | None = None, metadata: str | None = None
) -> Callable[P, R]:
    """Return a function that does what ``fn`` does under a frame that carries the annotation.

    ``endpoint`` is the entry point that is served, ``metadata`` any property of the work; each becomes a
    gCPU series of its own. Works for functions, methods and coroutine functions, once at definition or
    anew for every request: the renamed code is cached per value. Annotate with few distinct values, such as
    a route's pattern instead of its path.

    >>> annotate(sorted, metadata="tier=gold")([2, 1])
    [1, 2]

    Raises:
        TypeError: ``fn`` is a generator function, whose work happens after it has returned.
    """
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError("annotate() takes functions and coroutine functions, not generators")
    annotated = fn
    if metadata is not None:
        annotated = _under(annotated, "metadata", metadata)
    if endpoint is not None:
        annotated = _under(annotated, "endpoint", endpoint)
    return annotated


def annotation_name(kind: str, value: str) -> str:
    """Return the name of a frame that carries an annotation, safe inside a line of collapsed stacks."""
    return f"{kind}={_escape(value[:MAX_VALUE])}"


def _under(fn: Callable[P, R], kind: Literal["endpoint", "metadata"], value: str) -> Callable[P, R]:
    build = _waiting_call if inspect.iscoroutinefunction(fn) else _call
    wrapper: Any = build(fn)
    wrapper.__code__ = _renamed(build, annotation_name(kind, value))
    annotated: Callable[P, R] = functools.update_wrapper(wrapper, fn)
    return annotated


def _call(fn: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


def _waiting_call(fn: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return call


@functools.lru_cache(maxsize=_CACHED_VALUES)
def _renamed(build: Callable[[Callable[..., Any]], Any], name: str) -> types.CodeType:
    code: types.CodeType = build(_renamed).__code__
    return code.replace(co_name=name, co_qualname=name, co_filename=ANNOTATION_FILE)


def _escape(value: str) -> str:
    """Make a value safe inside a line of collapsed stacks; ``urllib.parse.unquote`` is the inverse."""
    return _UNSAFE.sub(lambda match: quote(match[0], safe=""), value)
