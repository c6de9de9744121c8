"""Headless Chromium, driven over its own DevTools protocol, for tests of what people do in a browser."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

WAIT_S = 90.0

DESKTOP, PHONE = (1440, 960), (360, 780)


class Browser:
    """One tab. ``requests`` are the addresses it requested, ``complaints`` the messages of its console."""

    def __init__(self, socket: ClientWebSocketResponse, session: str) -> None:
        self._socket = socket
        self._session = session
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._reading = asyncio.create_task(self._read())
        self.requests: list[str] = []
        self.complaints: list[str] = []

    async def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(
            {"id": number, "method": method, "params": given, "sessionId": self._session}
        )
        answer = await asyncio.wait_for(self._answers[number], WAIT_S)
        del self._answers[number]
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def open(self, url: str) -> None:
        """Go to an address and wait until it is loaded."""
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        await asyncio.wait_for(self._loaded.wait(), WAIT_S)

    async def run(self, script: str) -> Any:
        """Return the value of an expression; a promise is awaited."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression holds."""
        end = asyncio.get_running_loop().time() + WAIT_S
        while True:
            with suppress(RuntimeError):  # between two pages there is no context to evaluate in
                if await self.run(f"!!({script})"):
                    return
            if asyncio.get_running_loop().time() > end:
                raise AssertionError(f"never held: {script}")
            await asyncio.sleep(0.05)

    async def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            options = {"text": text} if kind == "keyDown" and text else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **options)

    async def look(self, size: tuple[int, int], *, dark: bool) -> None:
        """Set the size of the screen, and its colour scheme."""
        width, height = size
        mobile = width < 700
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, path: Path, *, most: int) -> None:
        """Write the page as an image in the format of the name's ending, ``most`` pixels of its height."""
        metrics = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": metrics["width"], "height": min(most, metrics["height"]), "scale": 1}
        wanted = {"format": path.suffix[1:], "captureBeyondViewport": True, "clip": clip}
        if path.suffix == ".webp":
            wanted["quality"] = 80
        answer = await self.call("Page.captureScreenshot", **wanted)
        path.write_bytes(base64.b64decode(answer["data"]))

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type != WSMsgType.TEXT:
                continue
            content = message.json()
            if content.get("id") in self._answers:
                self._answers[content["id"]].set_result(content)
            elif (method := content.get("method")) == "Page.loadEventFired":
                self._loaded.set()
            elif method == "Network.requestWillBeSent":
                self.requests.append(content["params"]["request"]["url"])
            elif method == "Runtime.exceptionThrown":
                self.complaints.append(str(content["params"]["exceptionDetails"]))
            elif method == "Log.entryAdded" and content["params"]["entry"]["level"] == "error":
                self.complaints.append(str(content["params"]["entry"]))


@asynccontextmanager
async def chromium(**headers: str) -> AsyncIterator[Browser]:
    """Start Chromium and open one tab, which sends ``headers`` with every request."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="smidgen-browser-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM,
            *(
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            url = await asyncio.wait_for(_endpoint(process.stderr), WAIT_S)
            async with ClientSession() as client, client.ws_connect(url, max_msg_size=0) as socket:
                yield await _tab(socket, headers)
        finally:
            process.terminate()
            await process.wait()


async def _endpoint(stream: asyncio.StreamReader) -> str:
    async for line in stream:
        if line.startswith(b"DevTools listening on "):
            return line.decode().removeprefix("DevTools listening on ").strip()
    raise AssertionError("Chromium did not start")


async def _tab(socket: ClientWebSocketResponse, headers: Mapping[str, str]) -> Browser:
    async def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
        await socket.send_json({"id": number, "method": method, "params": params})
        while (answer := await socket.receive_json()).get("id") != number:
            pass
        result: dict[str, Any] = answer["result"]
        return result

    target = (await ask(-1, "Target.createTarget", url="about:blank"))["targetId"]
    session = (await ask(-2, "Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    browser = Browser(socket, session)
    for domain in ("Page", "Runtime", "Network", "Log"):
        await browser.call(f"{domain}.enable")
    if headers:
        await browser.call("Network.setExtraHTTPHeaders", headers=dict(headers))
    return browser
