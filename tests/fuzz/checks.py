"""What is done with an input, and the laws that hold for what is accepted: an AssertionError is a finding."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import orjson

from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.message import Source, build_profile, encode_within
from agents.source import syntax
from agents.source.changes import git_output, languages
from agents.source.changes.bounds import fit
from agents.source.changes.diff import parse_patch
from agents.source.changes.modules import module_of_source
from agents.source.changes.patch import MAX_CONTENT_BYTES, content_of
from agents.source.changes.subroutines import compare_python
from agents.source.gates.flips import flip_change
from agents.source.parser_process import decode_answer
from agents.source.python_index import MAX_NAME
from agents.webhooks import flag_events, github, gitlab, mapping, signatures
from pipeline.counting.count import count_samples
from pipeline.embedded.statement import BadRequest, decompress
from pipeline.files.unpacking import UnpackError, gunzip, inflate, unlz4, unsnappy, unzstd
from pipeline.messages import events, fields, inputs, ledger, measurements
from pipeline.model import Change
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import parse_duration_s, parse_size_bytes
from pipeline.settings import gates
from pipeline.settings.config import load_settings
from pipeline.storage import connect
from tests.fuzz import seeds

MAX_MESSAGE = 1024**2


def twice(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Callable[[bytes], None]:
    """Check that what was accepted is the same after it was written and read again."""

    def run(data: bytes) -> None:
        written = encode(decode(data))
        assert encode(decode(written)) == written

    return run


def check_profile(data: bytes) -> None:
    profile = measurements.decode_profile(data)
    written = measurements.encode_profile(profile)
    assert measurements.encode_profile(measurements.decode_profile(written)) == written
    counted = count_samples([profile], [0], window_s=60.0, stack_window_s=300.0)
    assert counted.total_samples.sum() == profile.counts.sum()
    assert (counted.series_samples >= 0).all()


def check_event(data: bytes) -> None:
    event = events.decode_event(data)
    assert events.decode_event(events.encode_event(event)) == event
    if event["type"] == events.DETECTED:
        ledger.entry_from_json(event)


def check_ledger_line(data: bytes) -> None:
    entry = ledger.entry_from_json(fields.parse_object(data))
    written = orjson.dumps(ledger.entry_to_json(entry))
    again = ledger.entry_from_json(fields.parse_object(written))
    assert orjson.dumps(ledger.entry_to_json(again)) == written


def check_ledger_row(data: bytes) -> None:
    """Only the columns that hold JSON come from a message; the store gives the others their types."""
    row, good = fields.parse_object(data), orjson.loads(next(iter(seeds.ledger_rows())))
    texts = {name: row[name] for name in ("passed", "domains") if isinstance(row.get(name), str)}
    entry = ledger.entry_from_row({**good, **texts})
    columns = ledger.ledger_columns([entry])
    again = ledger.entry_from_row({name: column[0] for name, column in columns.items()})
    assert again == entry


def check_collapsed(data: bytes) -> None:
    """What a sampler wrote becomes messages that the pipeline takes, and no sample is lost unsaid."""
    found = parse_collapsed(data)
    profile = build_profile(found.stacks, source=Source("shop", "h"), start=seeds.T0, end=seeds.T0 + 60)
    parts, lost = encode_within(profile, MAX_MESSAGE)
    kept = sum(int(measurements.decode_profile(part.value).counts.sum()) for part in parts)
    named = sum(profile["counts"])
    assert kept + lost == named <= found.samples


def check_patch(data: bytes) -> None:
    patches = list(parse_patch(data))
    content = content_of([("a/path", each) for each in patches])
    assert len(content.encode()) <= MAX_CONTENT_BYTES
    inputs.decode_change(inputs.encode_change(Change("c", "s", seeds.T0, "", content=content)))


def check_source(data: bytes) -> None:
    """A path with its manifests and source: every line taken for changed."""
    head, go_module, source = (data.decode(errors="replace").split("\0", 2) + ["", ""])[:3]
    path, _, cargo = head.partition("\n")
    language = languages.language_of(path)
    if language is None:
        return
    manifests = {"Cargo.toml": cargo.encode(errors="replace"), "go.mod": go_module.encode(errors="replace")}
    text = source.encode(errors="replace")
    asked = syntax.Question(language.grammar, text, range(1, text.count(b"\n") + 2))
    names: set[str] = set()
    for definition in syntax.touched_definitions(asked):
        names.update(
            language.spell(definition, module_of_source(language, path, definition.package, manifests))
        )
    change, _ = fit(Change("c", "s", seeds.T0, "", subroutines=tuple(names)))
    change.subroutines and inputs.encode_change(change)


def check_answers(data: bytes) -> None:
    """What the program that parses sources wrote, be it damaged by one of them."""
    go = languages.language_of("a.go")
    assert go is not None
    for definitions in (decode_answer(list[syntax.Definition], line).value for line in data.split(b"\n")):
        assert all(go.spell(definition, "") for definition in definitions or ())


def check_python(data: bytes) -> None:
    old = next(iter(seeds.python()))
    for parse in (True, False):
        assert all(len(name) <= MAX_NAME for name in compare_python(old, data, parse=parse).modified)
        assert compare_python(data, data, parse=parse).modified == ()


def check_git(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    commit = git_output.parse_commit(seeds.SHA, text.split("\0"))
    change, _ = fit(Change(commit.sha, "s", seeds.T0, commit.title, commit.author, commit.body))
    inputs.decode_change(inputs.encode_change(change))
    git_output.parse_tags(text)
    git_output.parse_files(text)
    list(git_output.parse_sizes(data))
    list(git_output.parse_contents(data))


def check_github(data: bytes) -> None:
    payload = fields.parse_object(data)
    github.repository_of(payload)
    for event in sorted(github.EVENTS):
        _accepts(lambda event=event: github.read_github(event, payload))  # type: ignore[misc]


def check_flag_event(data: bytes) -> None:
    payload = fields.parse_object(data)
    for read in (*flag_events.READERS.values(), flag_events.read_gitlab_flag):
        try:
            flips = read(payload, seeds.T0)
        except InvalidMessage:
            continue
        for flip in flips:
            inputs.decode_change(inputs.encode_change(flip_change(flip, "shop")))


def check_gitlab(data: bytes) -> None:
    payload = fields.parse_object(data)
    gitlab.repository_of(payload)
    for event in sorted(gitlab.EVENTS):
        _accepts(lambda event=event: gitlab.read_gitlab(event, payload))  # type: ignore[misc]


def _accepts(call: Callable[[], object]) -> None:
    with suppress(InvalidMessage):
        call()


def check_signature(data: bytes) -> None:
    """Nothing that was not signed is taken, whatever the headers hold; they come as a server decodes them."""
    given = fields.parse_object(data)
    headers = {name: str(value).encode().decode("utf-8", "surrogateescape") for name, value in given.items()}
    secret, body = headers.get("secret", ""), headers.get("body", "").encode(errors="surrogateescape")
    assert not signatures.github_signed(secret or "empty", headers, body)
    if headers.get("X-Gitlab-Token") != secret:
        assert not signatures.gitlab_signed(secret or "empty", headers, body, seeds.T0)


def check_settings(path: Path) -> object:
    return load_settings({}, file=path, environ={})


def check_service_map(path: Path) -> object:
    return mapping.load_service_map(path, {"SECRET": "long enough"})


def check_dsn(data: bytes) -> None:
    client = MagicMock(server_settings={"max_execution_time": MagicMock(readonly=0, value="0")})
    with patch.object(connect, "_connect", lambda *_: client):
        connect.open_store(data.decode(errors="replace"))


def check_gates(path: Path) -> None:
    found = gates.read_gates(path)
    path.write_text(gates.write_gates(found), encoding="utf-8")
    assert gates.read_gates(path) == found


def check_quantity(data: bytes) -> None:
    text = data.decode(errors="replace")
    for parse in (parse_duration_s, parse_size_bytes):
        try:
            parse(text)
        except ValueError:
            continue


def check_unpacked(data: bytes) -> None:
    for unpack in (gunzip, inflate, unsnappy, unlz4, unzstd):
        try:
            assert len(unpack(data, MAX_MESSAGE)) <= MAX_MESSAGE
        except UnpackError:
            continue


def check_http_body(data: bytes) -> None:
    for encoding in ("gzip", "deflate", "lz4", "zstd", "br"):
        try:
            decompress(data, encoding)
        except BadRequest:
            continue


def of_file(read: Callable[[Path], object], suffix: str = "") -> Callable[[bytes], None]:
    """Make a target of what reads a file."""

    def run(data: bytes) -> None:
        with _written(data, suffix) as path:
            found = read(path)
            if isinstance(found, Iterator):
                list(found)

    return run


@contextmanager
def _written(data: bytes, suffix: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(suffix=suffix, prefix="fuzz-") as file:
        file.write(data)
        file.flush()
        yield Path(file.name)
