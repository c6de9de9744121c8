"""A web service on a port of its own, whose requests call ``total`` once and ``taxes`` three times as long.

Requests of ``/more`` call ``total`` nine times, as a release might.

It prints its port, and answers every request with the CPU time in nanoseconds of each function so far.
"""

import asyncio
import time

spent = [0, 0]


def total() -> int:
    """Work for a third as long as taxes."""
    return sum(i * i for i in range(3000))


def taxes() -> int:
    """Work for three times as long as total."""
    return sum(i * i for i in range(9000))


def handle(times: int) -> bytes:
    """Do the work of a request and return what it took."""
    start = time.thread_time_ns()
    for _ in range(times):
        total()
    middle = time.thread_time_ns()
    taxes()
    spent[0] += middle - start
    spent[1] += time.thread_time_ns() - middle
    return b"spent %d %d\n" % tuple(spent)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection."""
    while request := await reader.readuntil(b"\r\n\r\n"):
        body = handle(9 if request.startswith(b"GET /more") else 1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def main() -> None:
    """Print the port and serve."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
