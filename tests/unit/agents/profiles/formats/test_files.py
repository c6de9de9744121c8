"""A file of every format: recognised by content, read, cut anywhere, compressed or not."""

from __future__ import annotations

import gzip
import time
from contextlib import nullcontext, suppress

import pytest

from agents.profiles.formats import AUTO, ProfileSource, StackSamples, find_format, format_names, parse
from agents.profiles.formats.source import HEAD_BYTES
from pipeline.model.errors import ConfigError
from tests.support.foreign_files import FOREIGN, noises
from tests.support.paths import REAL_DATA
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
SAMPLES = REAL_DATA / "profiles"
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


@every_file
def test_no_format_ignores_a_value_that_a_file_does_not_have(name: str) -> None:
    """perf's events are named as they come: there it counts nothing, and says what there is."""
    with pytest.raises(ConfigError, match="has no value 'x'") if name != "perf" else nullcontext():
        parsed = parse(find_format(name, b""), FILES[name], "x")
        assert (parsed.samples, dict(parsed.left_out)) == (0, {"cpu-clock": 2})


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


GOLDENS = {
    "cppbench.cpu": ("pprof-legacy", 712, 0),
    "forks.linux-perf.txt": ("perf", 561, 0),
    "gobench.cpu": ("pprof-legacy", 305, 0),
    "perf-vertx-stacks-01-collapsed-all.txt": ("collapsed", 285, 0),
    "rust-mangled.linux-perf.txt": ("perf", 96, 0),
    "simple-crlf.txt": ("collapsed", 14, 0),
    "simple-utf16-le.txt": ("collapsed", 14, 0),
    "simple-with-invalids.txt": ("collapsed", 14, 1),
    "simple-with-pid.linux-perf.txt": ("perf", 137, 0),
    "simple.prof": ("pprof", 150, 0),
}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared profiles are not beside this checkout")
def test_every_shared_profile_is_read() -> None:
    """Their stacks are compared format by format; dumps of pprof beside them are no profiles."""
    paths = {path.name: path for path in SAMPLES.iterdir() if path.suffix != ".string"}
    heads = {name: ProfileSource.of(path.read_bytes()).head for name, path in paths.items()}
    found = {name: parse(find_format(AUTO, heads[name]), path.read_bytes()) for name, path in paths.items()}
    assert {
        name: (find_format(AUTO, heads[name]).name, one.samples, one.invalid) for name, one in found.items()
    } == GOLDENS


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{\n "version": 1.2,\n "raw": [\n  8,\n  1,\n "x": 3\n },\n', id="stackprof"),
        pytest.param("time total 7\nspace total 9\nall 16\nrest 3\n", id="no line with a caller"),
        pytest.param("a;b 3\nc;d 4\n" + "some words\n" * 3, id="more than a tenth is prose"),
        pytest.param("a{color:red;margin:0 3\nb{top:0;left:0 4\n" * 6, id="CSS"),
        pytest.param("for(i=0;i<3;i++) x[i]=a;b 5\n" * 6, id="C"),
        pytest.param("UPDATE t SET a=1;COMMIT 12\n" * 6, id="SQL"),
        pytest.param("cpu,host=a;b=c value=3 1711111111\n" * 6, id="Influx"),
        pytest.param("a=1;b=2;c=3 12\n" * 6, id="cookies"),
        pytest.param("===\n  Mode: cpu(1000)\n  Samples: 4 (0.00% miss rate)\n", id="stackprof's text"),
        pytest.param("Elapsed: 12000 ms (wall)\n" * 3, id="no events of perf"),
    ],
)
def test_reports_of_other_tools_do_not_pass_for_collapsed_stacks(text: str) -> None:
    """Some of their lines end in a number; the rest would be counted as invalid, and these be published."""
    with pytest.raises(ConfigError, match="no format"):
        find_format(AUTO, text.encode())
    assert find_format("collapsed", text.encode()).name == "collapsed"


@pytest.mark.parametrize("tool", FOREIGN)
def test_files_of_other_tools_are_named_with_what_to_give_instead(tool: str) -> None:
    head, about = FOREIGN[tool]
    with pytest.raises(ConfigError) as refused:
        find_format(AUTO, head)
    assert about in str(refused.value)
    assert "is of no format" not in str(refused.value)


@pytest.mark.parametrize("tool", FOREIGN)
def test_the_names_of_other_tools_are_names_of_frames_too(tool: str) -> None:
    """Signs of a report stand where it has them: at the beginning of a line or of the file."""
    line = FOREIGN[tool][0].decode("latin-1").partition("\n")[0].translate(dict.fromkeys(range(32), " "))
    frame = line.replace(";", ":").replace("#", "").strip() or "main"
    stacks = f"main;{frame} 3\nmain;{frame};work 2\nmain;work 4\n".encode()
    assert read(stacks).samples == 9


@pytest.mark.parametrize(
    ("text", "likeliest"),
    [
        ("main;a 3\nmain;b 2\n" + "some words\n" * 8, "collapsed, as which 2 of its first 10 records"),
        (
            "sh 1 1.5: cycles:\n\t 1f f (/a)\n\n" * 2 + "use strict\n\n" * 9,
            "perf, as which 2 of its first 11",
        ),
        ("some words\n" * 8, ""),
    ],
)
def test_what_no_format_takes_is_refused_with_the_likeliest(text: str, likeliest: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_format(AUTO, text.encode())
    assert likeliest in str(refused.value)
    assert ("likeliest" in str(refused.value)) == bool(likeliest)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("main;<svg render> 3\nmain;Profiling Report (Final) 2\n", id="names as in reports"),
        pytest.param("# only comments\n", id="comments"),
        pytest.param("main;f 3\n", id="one line"),
        pytest.param("main;f 3\nmain 1\n", id="one of two with a caller"),
        pytest.param("main;f 3\nnonsense\nmain;g 2\n", id="one line of few is wrong"),
        pytest.param("f (a.py:1);g (b.py:2) 12\n", id="py-spy"),
        pytest.param('process 42:"python -m shop";main (a.py:3) 4\n', id="a process"),
        pytest.param("A.total(Ljava/lang/String;I)V;A.f 3\n", id="signatures of the JVM"),
        pytest.param("f(int, char);a<b<c<d> > >::operator<<(a const&) 4\n", id="signatures of C++"),
        pytest.param("Foo#name=;<main>;{{closure}} 4\n", id="setters and closures"),
        pytest.param("<main>;block in Foo#bar;Integer#times 3\n", id="Ruby's blocks"),
        pytest.param("main;operator new(unsigned long) 3\n", id="operators of C++"),
        pytest.param("<main> - /a.rb:9;block in f - lib/b.rb:12 3\n", id="rbspy"),
        pytest.param("/srv/a.py:3 - main;/srv/a.py:9 - f 3\n", id="Pyroscope's agents"),
        pytest.param("<0.38.0>;erlang:apply/2;lists:map/2 3\n", id="processes of the BEAM"),
        pytest.param("[libc.so.6];0x401136 4\n", id="no names"),
        pytest.param("#<Class:Order>.load;Order#total 7\n//api/cart;render 2\n", id="no comments"),
        pytest.param("main;Foo::total(int) const 3\n", id="methods of C++"),
        pytest.param("f [clone .isra.0];g [clone .cold] 3\n", id="copies of a compiler"),
        pytest.param("void java.lang.Thread.run();int shop.Cart.total(int) 3\n", id="types of Java"),
        pytest.param("instance int32 [Shop] Shop.Cart::Total(int32);Shop.F 3\n", id="types of .NET"),
        pytest.param("LazyCompile:~handle /app/server.js:20;JS:*f /app/x.js:1:2 3\n", id="V8"),
        pytest.param("closure #1 in Shop.total();Shop.run() -> () 3\n", id="Swift"),
        pytest.param("-[NSView drawRect:];+[NSView load] 3\n", id="Objective-C"),
        pytest.param("<main> /var/www/index.php:-1;App::run /var/www/app.php:12 3\n", id="phpspy"),
        pytest.param("main;f(Ljava/lang/String;I)V 3\n", id="descriptors of the JVM"),
    ],
)
def test_few_lines_are_collapsed_stacks(text: str) -> None:
    assert find_format(AUTO, text.encode()).name == "collapsed"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("total 48\n", id="ls"),
        pytest.param("main 7\n", id="a word and a number"),
        pytest.param("0.00 0.01 0.05 1/123 4567\n", id="numbers"),
        pytest.param("12;13;14 3\n", id="numbers of a table"),
        pytest.param("2026-03-01;shop;12 7\n", id="a row of a table"),
        pytest.param("a=1;b=2;c 3\n", id="cookies"),
        pytest.param("PATH=/usr/bin;/bin;/sbin 3\n", id="a variable"),
        pytest.param("Content-Type: text/html;charset=utf-8 3\n", id="a header"),
        pytest.param("SELECT a FROM t;SELECT b FROM u LIMIT 3\n", id="SQL"),
        pytest.param("INSERT INTO t VALUES(1);CALL shop.total(2) 3\n", id="calls of SQL"),
        pytest.param("return f(x);throw g(y) 3\n", id="calls of code"),
        pytest.param("<b>a&nbsp;b</b>&nbsp;c 3\n", id="HTML"),
        pytest.param("see Foo.bar(x);and the total 3\n", id="prose with a call"),
        pytest.param("cd /srv/shop;make -j 4\n", id="a shell"),
        pytest.param("for(i=0;i<3;i++) 5\n", id="C"),
        pytest.param("a{color:red;margin:0 3\n", id="CSS"),
        pytest.param("main;f 3\nnonsense\n 2\n", id="one of three has a caller"),
    ],
)
def test_few_lines_that_end_in_numbers_are_no_stacks(text: str) -> None:
    with pytest.raises(ConfigError, match="no format"):
        find_format(AUTO, text.encode())


@pytest.mark.parametrize(
    ("text", "about"),
    [
        pytest.param("name,calls,ms\ntotal,3,12.5\nadd,7,3.25\n", "a table (CSV)", id="commas"),
        pytest.param('"name","ms"\n"a;b",3\n"c, d",4\n', "a table (CSV)", id="quotes"),
        pytest.param("name\tms\nf\t3\ng\t4\n", "a table (CSV)", id="tabs"),
        pytest.param(
            "name;calls;ms\nf;3;4,5\ng;4;1,2\n", "a table, or stacks without counts", id="semicolons"
        ),
        pytest.param("main;f\nmain;g(int, char)\n", "a table, or stacks without counts", id="no counts"),
        pytest.param("some words, here\nand more, words\n", "formats", id="prose"),
    ],
)
def test_tables_are_named(text: str, about: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_format(AUTO, text.encode())
    assert ("seems to be " + about in str(refused.value)) == (about != "formats")


def test_stacks_whose_roots_all_differ_are_taken_by_their_names() -> None:
    threads = "".join(f"thread-{number};main;work 3\n" for number in range(30))
    assert find_format(AUTO, threads.encode()).name == "collapsed"
    logged = "".join(f"10.0.0.{number} id={number};cart took {number}\n" for number in range(30))
    with pytest.raises(ConfigError, match="no format"):
        find_format(AUTO, logged.encode())


def test_no_random_text_or_bytes_are_a_profile() -> None:
    """None of 2,700: the rate at which what is no profile is taken for one is below 0.2 % at 99 %."""
    taken = []
    for seed in range(300):
        for kind, content in enumerate(noises(seed)):
            with suppress(ConfigError):
                taken.append((seed, kind, find_format(AUTO, content).name))
    assert taken == []


def test_a_head_that_is_cut_in_a_line_is_judged_without_it() -> None:
    lines = b"main;work 3\n" * 6000
    assert find_format(AUTO, lines[:HEAD_BYTES]).name == "collapsed"
    assert find_format(AUTO, b"main;work" + b"x" * HEAD_BYTES).name == "collapsed"


@pytest.mark.parametrize("text", [b"x" * HEAD_BYTES, b'{"a;b":' + b"1," * HEAD_BYTES, b"<a;" * HEAD_BYTES])
def test_a_line_longer_than_the_head_is_no_stack_without_a_sign_of_one(text: bytes) -> None:
    with pytest.raises(ConfigError, match="no format"):
        find_format(AUTO, text[:HEAD_BYTES])


def test_a_comment_that_reads_like_a_stack_is_counted() -> None:
    parsed = read(b"# made by a tool\n# main;work 3\nmain;work 2\n")
    assert (parsed.samples, parsed.invalid) == (2, 1)


@pytest.mark.parametrize(
    "piece", [b"\n", b" ", b";", b"(", b"a(", b" = 1", b"<? >", b"\t1f f (", b"\n#\n", b"-+", b"1 "]
)
def test_a_hostile_head_is_judged_in_a_moment(piece: bytes) -> None:
    began = time.process_time()
    with suppress(ConfigError):
        find_format(AUTO, (piece * HEAD_BYTES)[:HEAD_BYTES])
        find_format(AUTO, (piece * HEAD_BYTES)[: HEAD_BYTES - 1])
    assert time.process_time() - began < 5
