"""Server that answers every request at once: ``python trivial_server.py`` prints its address.

It only looks for the ends of heads, so that it takes little of the machine that is measured.
"""

from __future__ import annotations

import asyncio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Trivial(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each head that is complete."""
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        if heads:
            self._transport.write(ANSWER * len(heads))


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Trivial, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
