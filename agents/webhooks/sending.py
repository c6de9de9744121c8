"""Confirmed sending of a webhook's messages, within the time that a forge waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents.publishing.publisher import Connect, Transport
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable

SEND_S = 8.0
"""Seconds that publishing may take: forges wait about ten seconds for an answer."""


class ConfirmedSender:
    """Sends over one connection, opened when it is needed and again after it failed.

    Unlike ``agents.publishing.publisher.BackgroundPublisher`` it keeps nothing for later: the sender of the
    webhook does that, and learns whether it must.
    """

    def __init__(self, connect: Connect, *, timeout_s: float = SEND_S) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._transport: Transport | None = None
        self._lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages in order and wait until all are confirmed.

        Raises:
            BrokerUnavailable: not all are; those before may be.
            InvalidMessage: the broker will never take one.
        """
        try:
            async with asyncio.timeout(self._timeout_s), self._lock:
                await self._send(messages)
        except TimeoutError:
            raise BrokerUnavailable(f"not confirmed within {self._timeout_s:g} s") from None

    async def close(self) -> None:
        """Close the connection."""
        self._drop()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _send(self, messages: Sequence[Outgoing]) -> None:
        try:
            self._transport = self._transport or await self._connect()
            for message in messages:
                await self._transport.send(message)
        except (BrokerUnavailable, asyncio.CancelledError):
            self._drop()
            raise

    def _drop(self) -> None:
        """Close a failed connection in the background: waiting for it would take seconds."""
        if self._transport:
            task = asyncio.ensure_future(self._transport.close())
            self._transport = None
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
