"""HTTP for targets: bounded answers, no redirects, and two kinds of failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from pipeline.model.errors import SmidgenError
from pipeline.model.units import DAY_S

TIMEOUT_S = 10.0
_MOST_BYTES = 4 * 1024**2
_LATER = frozenset({408, 425, 429})
"""Statuses under 500 that may change later."""


class TargetUnavailable(SmidgenError):
    """A target did not take a message now; ``after_s`` is how long it asks to wait, 0 if it does not."""

    def __init__(self, text: str, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.after_s = after_s


class TargetRefused(SmidgenError):
    """A target will never take a message: it is dropped, with this reason. ``status`` is HTTP's, if any."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Http:
    """Requests of targets over one session; proxies are those of the environment."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return its answer: JSON as values, anything else as text.

        Raises:
            TargetUnavailable: there is no answer, or a status that may change later.
            TargetRefused: any other answer but success.
        """
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        all_headers = {"User-Agent": "smidgen", **(headers or {})}
        if json is not None:
            body, all_headers = orjson.dumps(json), {"Content-Type": "application/json", **all_headers}
        try:
            async with self._session.request(
                method, url, data=body, headers=all_headers, params=params, allow_redirects=False
            ) as response:
                text = await _text(response)
                status, wait = response.status, response.headers.get("Retry-After", "")
        except aiohttp.InvalidURL:
            raise TargetRefused("its address is none") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TargetUnavailable(_said(error)) from None
        if status in _LATER or status >= 500 or (status == 403 and wait):
            raise TargetUnavailable(f"HTTP {status}", _seconds(wait))
        if not 200 <= status < 300:
            raise TargetRefused(f"HTTP {status}: {' '.join(text.split())[:200]}".rstrip(": "), status)
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text

    async def close(self) -> None:
        """Close connections."""
        if self._session is not None:
            await self._session.close()


def _seconds(header: str) -> float:
    """Return the seconds that an answer asks to wait, at most a day; 0 if in another format."""
    return min(float(header), DAY_S) if header.isascii() and header.isdecimal() else 0.0


async def _text(response: aiohttp.ClientResponse) -> str:
    content = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        content += chunk
        if len(content) > _MOST_BYTES:
            raise TargetUnavailable(f"an answer beyond {_MOST_BYTES} bytes")
    return content.decode(errors="replace")


def _said(error: BaseException) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
