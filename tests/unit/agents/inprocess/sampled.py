"""What the sampler would see of the calling thread."""

from __future__ import annotations

import threading

from agents.inprocess.stacks import StackReader
from agents.profiles.naming import name_stack


def annotations_now() -> list[str]:
    """Return the annotations in the stack of the caller, root first, as another thread sees them."""
    caller = threading.get_ident()
    found: list[tuple[str, ...]] = []
    thread = threading.Thread(target=lambda: found.extend(StackReader().read_all([caller])))
    thread.start()
    thread.join()
    return [frame.name for frame in name_stack(found[0]) if frame.annotation]
