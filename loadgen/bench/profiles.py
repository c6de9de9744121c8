"""Profiles of a simulated service, large enough for measurements."""

from __future__ import annotations

import numpy as np

from pipeline.model import Profile

START = 1_700_000_000.0
INTERVAL_S = 10.0


def draw_profiles(
    messages: int, *, service: str, hosts: int = 50, stacks: int = 400, depth: int = 25, samples: int = 1000
) -> list[Profile]:
    """Return the profiles of a service's hosts, interval after interval.

    Args:
        messages: Number of profiles; each host sends one per interval of ten seconds.
        service: Name of the service.
        hosts: Number of hosts that take turns.
        stacks: Number of distinct stacks; an interval has those that its samples hit.
        depth: Frames in a stack; the upper half is common to many.
        samples: Samples in one message.
    """
    rng = np.random.default_rng(1)
    upper = rng.integers(0, 40, (stacks, depth // 2))
    lower = rng.integers(40, 800, (stacks, depth - depth // 2))
    tree = np.concatenate([upper, lower], axis=1)
    names = np.array([f"service.module{i % 40}.subroutine{i}" for i in range(800)])
    weights = rng.pareto(1.2, stacks) + 0.01
    drawn = []
    for message in range(messages):
        counts = rng.multinomial(samples, weights / weights.sum())
        hit = np.flatnonzero(counts)
        frames, indexes = np.unique(tree[hit], return_inverse=True)
        start = START + message // hosts * INTERVAL_S
        drawn.append(
            Profile(
                service=service,
                host=f"host-{message % hosts}",
                start=start,
                end=start + INTERVAL_S,
                frames=tuple(names[frames].tolist()),
                stack_frames=indexes.reshape(-1).astype(np.int64),
                stack_starts=np.arange(len(hit) + 1, dtype=np.int64) * depth,
                counts=counts[hit].astype(np.int64),
            )
        )
    return drawn
