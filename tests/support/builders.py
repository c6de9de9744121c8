"""Small builders of values for several tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.model import Annotation, Candidate, Change, Decision, Dropped, Profile, StackMatrix
from pipeline.model.steps import TEXT


def build_profile(
    stacks: Mapping[str, int],
    *,
    service: str = "shop",
    host: str = "h1",
    start: float = 1_700_000_000.0,
    end: float | None = None,
    annotations: Sequence[tuple[str, str, str]] = (),
    id: str = "",
) -> Profile:
    """Return a profile of collapsed stacks (``a;b;c`` → count); annotations are (frame, kind, value)."""
    frames = tuple(dict.fromkeys(frame for stack in stacks for frame in stack.split(";")))
    index = {frame: position for position, frame in enumerate(frames)}
    indexed = [[index[frame] for frame in stack.split(";")] for stack in stacks]
    return Profile(
        service=service,
        host=host,
        start=start,
        end=start + 1.0 if end is None else end,
        frames=frames,
        stack_frames=np.array([frame for stack in indexed for frame in stack], dtype=np.int64),
        stack_starts=np.cumsum([0, *map(len, indexed)], dtype=np.int64),
        counts=np.array(list(stacks.values()), dtype=np.int64),
        annotations=tuple(
            Annotation(index[frame], "endpoint" if kind == "endpoint" else "metadata", value)
            for frame, kind, value in annotations
        ),
        id=id,
    )


def build_stacks(rows: Mapping[str, tuple[float, float]], total: float | None = None) -> StackMatrix:
    """Return stacks (``A->B->C`` → samples before and after), by default with their sums as totals."""
    before = np.array([pair[0] for pair in rows.values()], dtype=np.float64)
    after = np.array([pair[1] for pair in rows.values()], dtype=np.float64)
    return StackMatrix(
        stacks=tuple(tuple(name.split("->")) for name in rows),
        before=before,
        after=after,
        total_before=float(before.sum()) if total is None else total,
        total_after=float(after.sum()) if total is None else total,
    )


def build_candidate(
    metric: str = "shop.work",
    *,
    before: float = 0.1,
    after: float = 0.2,
    change_time: float = 1_700_000_000.0,
    statistic: float = 40.0,
) -> Candidate:
    """Return a short-term candidate of a subroutine."""
    return Candidate("subroutine", metric, "short_term", change_time, before, after, 1e-9, statistic)


def build_change(
    change_id: str, subroutines: Sequence[str] = (), *, time: float = 1_700_000_000.0, service: str = "shop"
) -> Change:
    """Return a deployed change."""
    return Change(change_id, service, time, f"Change {change_id}", subroutines=tuple(subroutines))


def build_decision(
    step: str, statistic: float = 0.0, bound: float = 0.0, text: str = "", *, passed: bool = True
) -> Decision:
    """A decision with a sentence instead of a code, as a version without codes stored it."""
    return Decision(step, passed, statistic, bound, TEXT if text else "", (text,) if text else ())


def build_dropped(
    candidate: Candidate, step: str, statistic: float = 0.0, bound: float = 0.0, text: str = ""
) -> Dropped:
    """A candidate that a step dropped, with a sentence instead of a code."""
    return Dropped(candidate, build_decision(step, statistic, bound, text, passed=False))
