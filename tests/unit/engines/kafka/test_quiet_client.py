"""The client library's log is quiet while somebody asks for it, and never longer."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from pipeline.kafka import quiet_client


def test_two_that_overlap_give_the_log_back() -> None:
    logger = logging.getLogger("aiokafka")
    before = logger.level
    first, second = ExitStack(), ExitStack()
    first.enter_context(quiet_client())
    second.enter_context(quiet_client())
    first.close()
    assert logger.level == logging.CRITICAL
    second.close()
    assert logger.level == before
