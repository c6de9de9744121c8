"""Every decoder and parser: what it is fed, the failures it may have, and what holds for what it accepts.

A target takes bytes. It returns if it accepted them, or raises one of its documented errors; anything else
that escapes, an AssertionError of a law that does not hold among it, is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agents.source.changes.watch import PublishedState
from loadgen.evaluation import reading
from loadgen.fleet.scenario import load_scenario
from pipeline.backtest.seriesfile import read_series
from pipeline.kafka import bootstrap_servers
from pipeline.messages import inputs, measurements, requests, scans
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.quotas import read_quotas
from pipeline.settings.release_metrics import read_release_metrics
from pipeline.settings.topics import load_topics
from pipeline.settings.workloads import read_workload_file
from tests.fuzz import batches, gateway, metric_formats, profile_formats, seeds
from tests.fuzz.checks import (
    check_answers,
    check_collapsed,
    check_dsn,
    check_event,
    check_flag_event,
    check_gates,
    check_git,
    check_github,
    check_gitlab,
    check_http_body,
    check_ledger_line,
    check_ledger_row,
    check_patch,
    check_profile,
    check_python,
    check_quantity,
    check_service_map,
    check_settings,
    check_signature,
    check_source,
    check_unpacked,
    of_file,
    twice,
)


@dataclass(frozen=True, slots=True)
class Target:
    """One function under test. ``tokens`` are pieces of its format, none for JSON, known by its shape."""

    run: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]
    tokens: tuple[bytes, ...] | None = None


_INVALID = (InvalidMessage,)
_CONFIG = (ConfigError,)
_YAML = (
    *(
        b": ",
        b"- ",
        b"\n",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!int ",
        b"!!map ",
        b"!!timestamp ",
        b"? ",
        b"| ",
        b"0x",
    ),
    *(
        b"1:60",
        b"2001-01-01",
        b"~",
        b"{a: *a}",
        b'"\\U0010FFFF"',
        b'"\\ud800"',
        b".inf",
        b"--- ",
        b"%YAML 1.1\n",
    ),
)
_CSV = (
    b",",
    b'"',
    b"\n",
    b"timestamp",
    b"value",
    b"samples",
    b"total",
    b"metric_kind",
    b"1e400",
    b"nan",
    b"1_0",
)
_C = (
    b"::",
    b"(",
    b")",
    b"{",
    b"operator",
    b"template<",
    b"namespace ",
    b"class ",
    b"@A(",
    b"\0",
    b"for ",
    b"= ",
)
_PATCH = (
    b"@@ -1,9 +1,9 @@ ",
    b"index ",
    b"diff --git ",
    b"Binary files ",
    b"\n",
    b"\\ No newline",
    b"999999999",
)
_GIT = (
    b"\0",
    b":100644 ",
    b" blob ",
    b"missing",
    b"\n",
    b"refs/tags/",
    "\u2028".encode(),
    b"-",
    b"99999999999",
)
_URL = (b"://", b"@", b":", b"%", b"[", b"]", b"?", b"&", b"=", b"chdb:///", b"%00", b"//", b"http://h:99999")

TARGETS: Mapping[str, Target] = {
    "profile": Target(check_profile, _INVALID, seeds.profiles),
    "metric": Target(
        twice(measurements.decode_metric_points, measurements.encode_metric_points), _INVALID, seeds.metrics
    ),
    "requests": Target(
        twice(requests.decode_requests, requests.encode_requests), _INVALID, seeds.request_counts
    ),
    "change": Target(twice(inputs.decode_change, inputs.encode_change), _INVALID, seeds.changes),
    "feedback": Target(twice(inputs.decode_feedback, inputs.encode_feedback), _INVALID, seeds.feedback),
    "progress": Target(twice(scans.decode_progress, scans.encode_progress), _INVALID, seeds.progress),
    "scan": Target(twice(scans.decode_scan, scans.encode_scan), _INVALID, seeds.scans),
    "event": Target(check_event, _INVALID, seeds.events),
    "ledger-line": Target(check_ledger_line, _INVALID, seeds.ledger_lines),
    "ledger-row": Target(check_ledger_row, _INVALID, seeds.ledger_rows),
    "github": Target(check_github, _INVALID, seeds.github),
    "gitlab": Target(check_gitlab, _INVALID, seeds.gitlab),
    "flag-event": Target(check_flag_event, _INVALID, seeds.flag_events),
    "signature": Target(check_signature, _INVALID, seeds.signatures),
    "funnel-file": Target(of_file(reading.read_funnel), _CONFIG, seeds.funnels),
    "truth-file": Target(of_file(reading.read_truth), _CONFIG, seeds.truth, (b"\n", b"\x0b", b"\x85", b"}{")),
    "event-file": Target(
        of_file(reading.read_events), _CONFIG, seeds.event_files, (b"\n", b"[" * 300, b"]" * 300)
    ),
    "ledger-file": Target(of_file(reading.read_ledger), _CONFIG, seeds.ledger_files, (b"\n", b"null", b"[]")),
    "state-file": Target(
        of_file(lambda path: PublishedState(path, "branch main", "shop").read()), _CONFIG, seeds.states
    ),
    "collapsed": Target(
        check_collapsed, _INVALID, seeds.collapsed, (b";", b" 1\n", b" 1099511627776\n", b"#", b"(")
    ),
    **{
        f"format-{name}": Target(
            profile_formats.check(name), (), profile_formats.seeds(name), profile_formats.TOKENS.get(name, ())
        )
        for name in profile_formats.NAMES
    },
    "recognition": Target(
        profile_formats.check_recognition,
        (),
        profile_formats.unrecognised,
        (
            b";",
            b" 1\n",
            b"\n",
            b"\n\t 1f f (a)\n",
            b" 12 100.5: 1 cycles: ",
            b"P1;T2;a.py:f:3 4\n",
            b"\n  `f\n 3\n",
        ),
    ),
    **{
        f"gateway-{name}": Target(gateway.check(name), gateway.ERRORS, gateway.seeds(name), gateway.TOKENS)
        for name in gateway.NAMES
    },
    "remote-write": Target(metric_formats.check_remote_write, (), metric_formats.write_requests, ()),
    "otlp-metrics": Target(metric_formats.check_otlp, (), metric_formats.otlp_requests, ()),
    "exposition": Target(metric_formats.check_exposition, (), metric_formats.pages, metric_formats.TOKENS),
    "access-log": Target(
        metric_formats.check_access_log, (), metric_formats.access_logs, metric_formats.LOG_TOKENS
    ),
    "patch": Target(check_patch, (), seeds.patches, _PATCH),
    "source": Target(check_source, (), seeds.sources, _C),
    "python": Target(
        check_python, (), seeds.python, (b"\n", b" ", b"def ", b"class ", b"(", b'"""', b"\\", b"\f", b"@")
    ),
    "answers": Target(check_answers, (), seeds.answers),
    "git": Target(check_git, (), seeds.git_output, _GIT),
    "gates": Target(of_file(check_gates), _CONFIG, seeds.gates, _YAML),
    "topics": Target(of_file(load_topics), _CONFIG, seeds.topics, _YAML),
    "workloads": Target(of_file(read_workload_file), _CONFIG, seeds.workloads, _YAML),
    "settings": Target(of_file(check_settings), _CONFIG, seeds.settings, _YAML),
    "release-metrics": Target(of_file(read_release_metrics), _CONFIG, seeds.release_metrics, _YAML),
    "quotas": Target(of_file(read_quotas), _CONFIG, seeds.quotas, _YAML),
    "service-map": Target(of_file(check_service_map), _CONFIG, seeds.service_maps, _YAML),
    "scenario": Target(of_file(lambda path: load_scenario(str(path))), _CONFIG, seeds.scenarios, _YAML),
    "series-csv": Target(
        of_file(lambda p: read_series(p, plain=True), ".csv"), _CONFIG, seeds.series_csv, _CSV
    ),
    "series-json": Target(of_file(lambda p: read_series(p, plain=True), ".json"), _CONFIG, seeds.series_json),
    "series-parquet": Target(of_file(read_series, ".parquet"), _CONFIG, seeds.series_parquet, ()),
    "dsn": Target(check_dsn, _CONFIG, seeds.dsns, _URL),
    "broker": Target(
        lambda data: bootstrap_servers(data.decode(errors="replace")), _CONFIG, seeds.brokers, _URL
    ),
    "quantity": Target(check_quantity, (), seeds.quantities, (b"s", b"KiB", b"9" * 400, b".", b"e5")),
    "batch": Target(batches.consume, (), seeds.batches, ()),
    "compressed": Target(check_unpacked, (), seeds.compressed, ()),
    "http-body": Target(check_http_body, (), seeds.compressed, ()),
}
