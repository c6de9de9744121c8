"""A file of every format: recognised by content, read, cut anywhere, compressed or not."""

from __future__ import annotations

import gzip

import pytest

from agents.formats import AUTO, ProfileSource, StackSamples, find_format, format_names, parse
from tests.support.profile_files import FILES, chrome_trace, mojo, pprof

PYTHON = {("main (/srv/shop/app.py)", "work (/srv/shop/app.py)"): 3, ("main (/srv/shop/app.py)",): 1}
STACKS: dict[str, dict[tuple[str, ...], int]] = {
    "perf": {("main", "work"): 2},
    "chrome": {("main", "work"): 4, ("main",): 1},
    "austin": PYTHON,
    "mojo": {("main (/app.py)", "work (/app.py)"): 3, ("main (/app.py)",): 1},
    "dtrace": {("app`main", "app`work"): 3, ("app`main",): 1},
    "pprof-legacy": {("[main]", "[libwork.so]"): 3, ("[main]",): 1},
    "jfr": {("shop.App.main", "shop.Cart.total"): 3, ("shop.App.main", "write_[k]"): 1},
}
every_file = pytest.mark.parametrize("name", FILES)


def read(data: bytes) -> StackSamples:
    return parse(find_format(AUTO, ProfileSource.of(data).head), data)


def test_there_is_a_file_of_every_format() -> None:
    assert (AUTO, *FILES) == format_names()


@every_file
def test_it_is_recognised_and_read(name: str) -> None:
    assert find_format(AUTO, ProfileSource.of(FILES[name]).head).name == name
    parsed = read(FILES[name])
    assert parsed.stacks == STACKS.get(name, {("main", "work"): 3, ("main",): 1})
    assert parsed.invalid == 0, parsed.first_invalid


@every_file
def test_compressed_it_is_the_same(name: str) -> None:
    assert read(gzip.compress(FILES[name])) == read(FILES[name])


@every_file
def test_cut_anywhere_it_is_read_up_to_there_or_invalid(name: str) -> None:
    format_ = find_format(name, b"")
    whole = parse(format_, FILES[name]).samples
    for end in range(len(FILES[name])):
        assert parse(format_, FILES[name][:end]).samples <= whole


@every_file
def test_no_format_takes_what_another_one_wrote(name: str) -> None:
    takes = [
        other
        for other in format_names()[1:]
        if find_format(other, b"").recognises(ProfileSource.of(FILES[name]).head)
    ]
    assert set(takes) <= {name, "collapsed"}


@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(pprof(), "pprof", id="pprof as Go sends it"),
        pytest.param(chrome_trace(), "chrome", id="a trace"),
        pytest.param(mojo(1), "mojo", id="the first version of MOJO"),
        pytest.param(b" \n" + FILES["speedscope"], "speedscope", id="blank lines before JSON"),
        pytest.param(FILES["austin"].split(b"\n\n")[1], "austin", id="Austin without a header"),
        pytest.param(b"", "collapsed", id="nothing"),
    ],
)
def test_variants_are_recognised(data: bytes, name: str) -> None:
    assert find_format(AUTO, ProfileSource.of(data).head).name == name
