"""Stacks of running threads as texts of frames, spelt as py-spy prints them, root first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, TypeAlias

from agents.inprocess.carriers import carried_labels
from agents.inprocess.marks import MAX_LABELS, Label, labels_of
from agents.inprocess.tasks import (
    POOL_FRAMES,
    awaiting_tasks,
    awaits_result_of,
    running_tasks,
    waiting_frames,
)
from agents.profiles.annotate import ANNOTATION_FILE, annotation_name

RawStack: TypeAlias = tuple[str, ...]
"""Frames as ``name (file)``, which ``agents.profiles.naming`` names."""

MAX_DEPTH = 2000
"""Most frames of a stack; of a deeper stack, those next to the root are left out."""

MAX_TRIES = 3
"""Most readings for one sample; in the last one, the stack of a thread that ran on may be cut."""

_CACHED_CODES = 65_536


class StackReader:
    """Spells stacks; keeps the spelling of every function that it has met."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[CodeType, str]] = {}  # the code is kept, so that its id stays its own

    def read_all(self, threads: Sequence[int]) -> list[RawStack]:
        """Return the stacks of threads, read again if one of them went on meanwhile."""
        stacks: list[RawStack] = []
        for _ in range(MAX_TRIES):
            frames = sys._current_frames()
            running = running_tasks()
            now: dict[int, FrameType] = {}
            try:
                stacks = [
                    self.read(frames[thread], thread, running) for thread in threads if thread in frames
                ]
                now = sys._current_frames()
                if all(now.get(thread) is frames.get(thread) for thread in threads):
                    break
            finally:
                # Break the reference cycle with this function's frame, which would keep the frames alive.
                frames.clear()
                now.clear()
                running.clear()
        return stacks

    def read(self, frame: FrameType, thread: int, running: Mapping[FrameType, Any]) -> RawStack:
        """Return the stack that ends in a frame.

        Between the frames of an event loop and those of the task that it runs stand the frames of the
        tasks that await it, so that a cost counts for all who wait for it; likewise in a pool's thread those
        of the tasks that await its result. ``running`` are the tasks that
        run, by the frames of their outermost coroutines.
        """
        texts: list[str] = []  # leaf first
        labels: tuple[Label, ...] = ()
        at: FrameType | None = frame
        while at is not None and len(texts) < MAX_DEPTH:
            if at.f_code.co_qualname in POOL_FRAMES and (task := awaits_result_of(at)):
                labels = carried_labels(thread)
                _add_labels(texts, labels)
                labels = self._add_waiting(texts, [task, *awaiting_tasks(task)], labels)
            self._add(texts, at)
            if task := running.get(at):
                labels = carried_labels(task)
                _add_labels(texts, labels)
                labels = self._add_waiting(texts, awaiting_tasks(task), labels)
            at = at.f_back
        if not labels:
            _add_labels(texts, carried_labels(thread))
        texts.reverse()
        return tuple(texts)

    def _add_waiting(
        self, texts: list[str], tasks: Iterable[Any], labels: tuple[Label, ...]
    ) -> tuple[Label, ...]:
        """Add the frames of waiting tasks; without labels so far, those of the first task that has some."""
        for task in tasks:
            for frame in reversed(waiting_frames(task)):
                self._add(texts, frame)
            if not labels:
                labels = carried_labels(task)
                _add_labels(texts, labels)
        return labels

    def _add(self, texts: list[str], frame: FrameType) -> None:
        code = frame.f_code
        cached = self._texts.get(id(code))
        if cached is None:
            if len(self._texts) >= _CACHED_CODES:
                self._texts.clear()
            cached = self._texts[id(code)] = (code, frame_text(code))
        texts.append(cached[1])
        _add_labels(texts, labels_of(frame))


def frame_text(code: CodeType) -> str:
    """Return how py-spy prints a frame of some code."""
    return f"{code.co_qualname} ({short_path(code.co_filename)})"


@lru_cache(maxsize=4096)
def short_path(path: str) -> str:
    """Return the part of a file's path that begins at its outermost package."""
    if path.startswith("<"):
        return path
    folder = os.path.dirname(path)
    while os.path.exists(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return path[len(folder) :].lstrip("/")


def _add_labels(texts: list[str], labels: tuple[Label, ...]) -> None:
    texts.extend(_label_text(kind, value) for kind, value in reversed(labels[:MAX_LABELS]))


@lru_cache(maxsize=4096)
def _label_text(kind: str, value: str) -> str:
    return f"{annotation_name(kind, value)} ({ANNOTATION_FILE})"
