"""Start and stop of the one sampler of a process, over forks and at exit."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from agents.inprocess.carriers import forget_carriers
from agents.inprocess.cpu import NoThreadClock, check_thread_clock
from agents.inprocess.marks import sampling
from agents.inprocess.messages import Interval, build_messages
from agents.inprocess.options import Options, SendTo, read_options
from agents.inprocess.outbox import Sender
from agents.inprocess.sampling import SamplerThread
from agents.inprocess.senders import open_sender

log = logging.getLogger("smidgen")

EXIT_S = 3.0
"""Seconds that the end of a process waits for the last interval to be sent."""


@dataclass(frozen=True, slots=True)
class _Run:
    options: Options
    sampler: SamplerThread
    sender: Sender


class _Process:
    """The sampler of this process, if it has one."""

    def __init__(self) -> None:
        self.run: _Run | None = None
        self.hooked = False


_process = _Process()


def start(
    service: str | None = None,
    *,
    host: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    rate_hz: float | None = None,
    interval: float | str | None = None,
    send_to: SendTo | None = None,
    wall: bool | None = None,
    budget: float | None = None,
) -> bool:
    """Begin to sample this process in a daemon thread; return whether it does.

    Missing arguments are taken from ``SMIDGEN_SERVICE``, ``SMIDGEN_HOST``, ``SMIDGEN_RELEASE`` and so on.
    An error is one line in the log ``smidgen``, never an exception. A sampler that runs already goes on.

    Args:
        service: Service that the samples belong to.
        host: This machine's name by default.
        release: Version or commit that runs.
        labels: Properties of the host or process, such as its region.
        rate_hz: Samples a second and thread.
        interval: One message is sent per interval, in seconds or as ``10s``; each begins at a multiple of it.
        send_to: ``http://host:port`` of a gateway, ``kafka://host:port``, ``file:path``, or a function that
            takes a message's bytes.
        wall: Count waiting threads too.
        budget: Largest share of one CPU that sampling may take.
    """
    arguments = {name: value for name, value in locals().items() if value is not None}
    if _process.run:
        log.warning("the sampler runs already")
        return True
    try:
        _start(read_options(arguments, os.environ))
    except Exception as error:  # an application goes on without its samples
        log.warning("not sampling: %s", error)
        return False
    return True


def stop(timeout_s: float = EXIT_S) -> None:
    """End sampling, and send the interval that has begun; without a sampler do nothing."""
    run, _process.run = _process.run, None
    if not run:
        return
    sampling.on = False
    try:
        run.sampler.stop(timeout_s)
        run.sender.close(timeout_s)
    except Exception as error:
        log.warning("the sampler did not end in order: %s", error)


def _start(options: Options) -> None:
    if not options.wall:
        try:
            check_thread_clock()
        except NoThreadClock as error:
            raise ValueError(f"no CPU time of threads here ({error}); wall time needs wall=True") from None
    sender = open_sender(options)

    def hand_over(interval: Interval) -> None:
        for message in build_messages(interval, options.identity, uuid4().hex):
            sender.offer(message)

    sampler = SamplerThread(options, hand_over, sender.threads)
    _process.run = _Run(options, sampler, sender)
    if not _process.hooked:
        _process.hooked = True
        atexit.register(stop)
        os.register_at_fork(after_in_child=_after_fork)
    sampling.on = True
    sampler.start()


def _after_fork() -> None:
    """Sample a forked process too: it inherits the sampler's memory, but not its thread and connection."""
    run, _process.run = _process.run, None
    forget_carriers()
    if not run:
        return
    try:
        _start(run.options)
        _stop_with_multiprocessing()
    except Exception as error:
        sampling.on = False
        log.warning("not sampling after a fork: %s", error)


def _stop_with_multiprocessing() -> None:
    """Send the last interval of a child of ``multiprocessing``, which ends without hooks of ``atexit``."""
    util = sys.modules.get("multiprocessing.util")
    if util:
        # multiprocessing clears its finalizers after this hook, so ours is added by its own hook.
        util.register_after_fork(_process, lambda _process: util.Finalize(None, stop, exitpriority=100))
