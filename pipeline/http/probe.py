"""A health check of a worker that costs next to nothing: ``python -m pipeline.http.probe [live|ready]``.

Supervisors start it every few seconds for as long as a worker lives. So it imports nothing of Smidgen and
reads the few variables that it needs by itself. ``smidgen doctor --worker``, which also reads settings files,
takes forty times as much CPU.
"""

import os
import socket
import sys
from collections.abc import Mapping, Sequence

PAGES = ("live", "ready")
TIMEOUT_S = 10.0
"""Longer than a worker takes for the checks of /ready."""

_LARGEST_ANSWER = 64 * 1024
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # listening everywhere is asked on this machine


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Ask the worker at SMIDGEN_HEALTH, and print its answer.

    The token is SMIDGEN_HTTP_TOKEN, or stands in the file that SMIDGEN_HTTP_TOKEN_FILE names.
    Returns 0 if all is well, 1 if the worker says no or nothing answers, 2 if the call is wrong.
    """
    page = arguments[0] if arguments else "ready"
    host, _, port = environ.get("SMIDGEN_HEALTH", "").rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if page not in PAGES or len(arguments) > 1 or not port.isdigit():
        print("usage: SMIDGEN_HEALTH=host:port python -m pipeline.http.probe [live|ready]", file=sys.stderr)
        return 2
    try:
        token = _token(environ)
        status, body = _ask(_ANY.get(host, host), int(port), page, token)
    except (OSError, ValueError) as error:
        print(f"{host}:{port}: {error}", file=sys.stderr)
        return 1
    print(body.strip())
    return 0 if status == 200 else 1


def _token(environ: Mapping[str, str]) -> str:
    if path := environ.get("SMIDGEN_HTTP_TOKEN_FILE"):
        with open(path, encoding="utf-8") as file:
            return file.read(_LARGEST_ANSWER).removesuffix("\n")
    return environ.get("SMIDGEN_HTTP_TOKEN", "")


def _ask(host: str, port: int, page: str, token: str) -> tuple[int, str]:
    """Return status and body of a page.

    Raises:
        OSError: nothing answers.
        ValueError: what answers does not speak HTTP.
    """
    if "\r" in token or "\n" in token:
        raise ValueError("the token should be one line")
    lines = [
        f"GET /{page} HTTP/1.0",
        "Host: localhost",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while len(answer) < _LARGEST_ANSWER and (received := connection.recv(8192)):
            answer += received
    head, _, body = answer.partition(b"\r\n\r\n")
    protocol, status, *_ = [*head.split(b" ", 2), b"", b""]
    if not protocol.startswith(b"HTTP/") or not status.isdigit():
        raise ValueError("what answers does not speak HTTP")
    return int(status), body.decode("utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
