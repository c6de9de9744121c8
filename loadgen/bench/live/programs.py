"""Ten small programs to sample: each repeats four or five functions, one of which gets slower.

Run as a script: ``programs.py NAME --seconds S [--slow-after S] [--busy SHARE]``, without the project.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import sqlite3
import string
import threading
import time
import urllib.request
import zlib
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

Work = Callable[[], object]
Program = tuple[Work, ...]
"""What a program does in each round; the first gets slower."""

SEED = 7


def _json() -> Program:
    rng = random.Random(SEED)
    orders: list[dict[str, Any]] = [
        {"id": n, "lines": [rng.random() for _ in range(12)], "who": f"u{n % 9}"} for n in range(120)
    ]
    texts = [json.dumps(order) for order in orders]

    def check_orders() -> int:
        return sum(1 for order in orders * 8 if sorted(order) == ["id", "lines", "who"])

    def write_orders() -> list[str]:
        return [json.dumps(order, sort_keys=True) for order in orders]

    def read_orders() -> list[Any]:
        return [json.loads(text) for text in texts]

    def sum_orders() -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for order in orders:
            for price in order["lines"]:
                sums[order["who"]] += round(price, 2)
        return sums

    return check_orders, write_orders, read_orders, sum_orders


def _regex() -> Program:
    rng = random.Random(SEED)
    lines = [
        f"10.0.0.{rng.randrange(255)} GET /item/{rng.randrange(10**6)} {rng.random():.4f}" for _ in range(250)
    ]

    def find_items() -> list[str]:
        return [match.group(1) for line in lines if (match := re.search(r"/item/(\d+)", line))]

    def mask_addresses() -> list[str]:
        return [re.sub(r"\d+\.\d+\.\d+\.\d+", "x.x.x.x", line) for line in lines]

    def split_words() -> list[list[str]]:
        return [re.split(r"[ /.]", line) for line in lines]

    def match_times() -> int:
        return sum(1 for line in lines if re.match(r".*0\.[0-4]\d+$", line))

    return find_items, mask_addresses, split_words, match_times


def _sorting() -> Program:
    rng = random.Random(SEED)
    values = [rng.random() for _ in range(900)]

    def insert_sort() -> list[float]:
        done: list[float] = []
        for value in values[:150]:
            index = len(done)
            while index and done[index - 1] > value:
                index -= 1
            done.insert(index, value)
        return done

    def merge_sort(part: list[float] | None = None) -> list[float]:
        part = values[:500] if part is None else part
        if len(part) < 2:
            return part
        left, right = merge_sort(part[: len(part) // 2]), merge_sort(part[len(part) // 2 :])
        merged = []
        while left and right:
            merged.append(left.pop() if left[-1] > right[-1] else right.pop())
        return left + right + merged[::-1]

    def sort_by_key() -> list[float]:
        return sorted(values, key=lambda value: -value * 3)

    def rank() -> dict[float, int]:
        return {value: index for index, value in enumerate(sorted(values))}

    return insert_sort, merge_sort, sort_by_key, rank


def _numpy() -> Program:
    import numpy as np

    rng = np.random.default_rng(SEED)
    matrix, series = rng.random((90, 90)), rng.random(20_000)

    def smooth() -> object:
        return np.convolve(series, np.ones(25) / 25, mode="valid")

    def solve() -> object:
        return np.linalg.solve(matrix, matrix[0])

    def spectrum() -> object:
        return np.abs(np.fft.rfft(series))

    def quantiles() -> object:
        return np.quantile(series, [0.1, 0.5, 0.9])

    def count() -> object:
        return np.bincount((series * 100).astype(int))

    return smooth, solve, spectrum, quantiles, count


def _sqlite() -> Program:
    store = sqlite3.connect(":memory:")
    store.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INT, price REAL)")
    rng = random.Random(SEED)

    def add_sales() -> None:
        rows = [(rng.randrange(40), rng.random()) for _ in range(150)]
        store.executemany("INSERT INTO sales (shop, price) VALUES (?, ?)", rows)

    def drop_old() -> None:
        store.execute("DELETE FROM sales WHERE id <= (SELECT max(id) FROM sales) - 1500")

    def best_shops() -> list[Any]:
        return store.execute("SELECT shop, sum(price) s FROM sales GROUP BY shop ORDER BY s DESC").fetchall()

    def dear_sales() -> list[Any]:
        return store.execute("SELECT count(*) FROM sales WHERE price * 3 + 1 > 3.5").fetchall()

    return best_shops, add_sales, drop_old, dear_sales


def _http() -> Program:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.page().encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def page(self) -> str:
            return "\n".join(f"<li>{number**2:x}</li>" for number in range(300))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"

    def count_items() -> int:
        text = "<li>1</li>" * 3000
        return sum(1 for part in text.split("<") if part.startswith("li"))

    def fetch() -> int:
        with urllib.request.urlopen(url) as answer:
            return len(answer.read())

    def build_index() -> dict[str, int]:
        return {f"{number:x}": number for number in range(900)}

    return count_items, fetch, fetch, build_index


def _gzip() -> Program:
    rng = random.Random(SEED)
    text = " ".join(rng.choice(["alpha", "beta", "gamma", "delta"]) for _ in range(1500)).encode()
    packed = gzip.compress(text)

    def checksum_blocks() -> int:
        return sum(zlib.crc32(text[first : first + 16]) & 1 for first in range(0, len(text), 16))

    def pack() -> bytes:
        return gzip.compress(text, 4)

    def unpack() -> bytes:
        return b"".join(gzip.decompress(packed) for _ in range(4))

    def count_words() -> dict[bytes, int]:
        counts: dict[bytes, int] = defaultdict(int)
        for word in text.split():
            counts[word] += 1
        return counts

    return checksum_blocks, pack, unpack, count_words


def _asyncio() -> Program:
    loop = asyncio.new_event_loop()

    async def produce(queue: asyncio.Queue[int]) -> None:
        for number in range(120):
            await queue.put(number)
            if number % 10 == 0:
                await asyncio.sleep(0)

    async def consume(queue: asyncio.Queue[int]) -> int:
        return sum([await queue.get() for _ in range(120)])

    def pass_messages() -> None:
        async def both() -> None:
            queue: asyncio.Queue[int] = asyncio.Queue(20)
            await asyncio.gather(produce(queue), consume(queue))

        loop.run_until_complete(both())

    def run_tasks() -> None:
        async def task(number: int) -> int:
            await asyncio.sleep(0)
            return number

        async def every() -> None:
            await asyncio.gather(*(task(number) for number in range(60)))

        loop.run_until_complete(every())

    def encode_messages() -> list[bytes]:
        return [f"{number}:{'x' * (number % 30)}".encode() for number in range(900)]

    def sum_numbers() -> int:
        return sum(number * number % 7 for number in range(4000))

    return encode_messages, pass_messages, run_tasks, sum_numbers


def _templates() -> Program:
    page = string.Template("<p>$name owes $sum</p>")
    names = [f"customer {number}" for number in range(150)]

    def escape_names() -> list[str]:
        return [name.replace("&", "&amp;").replace("<", "&lt;").title() for name in names * 3]

    def fill_pages() -> list[str]:
        return [page.substitute(name=name, sum=len(name)) for name in names]

    def format_rows() -> list[str]:
        return ["{0:>20} {1:8.2f}".format(name, len(name) / 3) for name in names * 2]  # noqa: UP030, UP032

    def join_lines() -> str:
        return "\n".join(name.ljust(30) + "|" for name in names * 4)

    return escape_names, fill_pages, format_rows, join_lines


def _classes() -> Program:
    class Shape:
        def __init__(self, side: float) -> None:
            self.side = side

        @property
        def area(self) -> float:
            return self.side**2

        def grown(self, by: float) -> Shape:
            return type(self)(self.side + by)

        def __lt__(self, other: Shape) -> bool:
            return self.area < other.area

    class Circle(Shape):
        @property
        def area(self) -> float:
            return 3.14159 * super().area

    shapes = [Circle(n) if n % 2 else Shape(n) for n in range(1, 200)]

    def grow_shapes() -> list[Shape]:
        return [shape.grown(1.0) for shape in shapes]

    def sum_areas() -> float:
        return sum(shape.area for shape in shapes * 2)

    def largest() -> list[Shape]:
        return sorted(shapes, reverse=True)[:10]

    def describe() -> list[str]:
        return [f"{type(shape).__name__} {shape.area:.1f}" for shape in shapes]

    return grow_shapes, sum_areas, largest, describe


PROGRAMS: dict[str, Callable[[], Program]] = {
    "json": _json,
    "regex": _regex,
    "sorting": _sorting,
    "numpy": _numpy,
    "sqlite": _sqlite,
    "http": _http,
    "gzip": _gzip,
    "asyncio": _asyncio,
    "templates": _templates,
    "classes": _classes,
}


def slowed(name: str) -> str:
    """Return the function of a program that gets slower."""
    return PROGRAMS[name]()[0].__name__


def main() -> None:
    """Run one program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--slow-after", type=float, default=float("inf"))
    parser.add_argument("--busy", type=float, default=0.1)
    options = parser.parse_args()
    works = PROGRAMS[options.name]()
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < options.seconds:
        round_began = time.perf_counter()
        for work in works:
            work()
        if elapsed >= options.slow_after:
            works[0]()
            works[0]()
        time.sleep((time.perf_counter() - round_began) * (1 / options.busy - 1))


if __name__ == "__main__":
    main()
