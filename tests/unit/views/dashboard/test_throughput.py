"""Samples a second by service, from what a store counted."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard.throughput import MOST_DRAWN, Throughput, draw_throughput, read_throughput

NOW = 1_700_000_000.0
END = (NOW - 120) // 600 * 600


def counted(**samples: dict[float, int]) -> ArrayStore:
    """Return a store with totals of services, by seconds before the end of the last whole window."""
    store = ArrayStore()
    for service, windows in samples.items():
        for before, count in windows.items():
            row = {"service": service, "window": END - before, "samples": count, "stream": "s"}
            more = {"topic": "profiles", "partition": 0, "last_offset": 0}
            store.insert("totals", {name: [value] for name, value in {**row, **more}.items()})
    return store


def test_rates_are_of_whole_windows_and_the_busiest_comes_first() -> None:
    store = counted(shop={300.0: 1200, 900.0: 600}, search={600.0: 12000, -1.0: 9999}, idle={7 * 3600.0: 5})
    found = read_throughput(store, ["idle", "search", "shop"], "6 hours", NOW)
    assert found.services == ("search", "shop")
    assert found.times[-1] == END - 600
    assert len(found.times) == 36
    assert found.rates[:, -2:].tolist() == [[0.0, 20.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("services", "drawn"),
    [(1, ["s0"]), (MOST_DRAWN + 3, [*(f"s{n}" for n in range(MOST_DRAWN)), "3 others"])],
)
def test_few_have_a_colour_and_the_line_is_all(services: int, drawn: list[str]) -> None:
    rates = np.arange(services * 2.0).reshape(services, 2)[::-1]
    figure = draw_throughput(
        Throughput(np.array([0.0, 60.0]), tuple(f"s{n}" for n in range(services)), rates)
    )
    assert figure is not None
    assert [trace.name for trace in figure.data] == [*drawn, "all"]
    stacked = np.sum([trace.y for trace in figure.data[:-1]], axis=0)
    assert stacked.tolist() == list(figure.data[-1].y) == rates.sum(axis=0).tolist()


def test_a_name_is_no_markup_and_nothing_is_no_figure() -> None:
    figure = draw_throughput(Throughput(np.zeros(1), ("<b>x</b>",), np.ones((1, 1))))
    assert figure is not None
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"
    assert draw_throughput(Throughput(np.zeros(1), (), np.zeros((0, 1)))) is None
