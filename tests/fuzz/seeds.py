"""Good inputs to begin with, made by the code that writes them where there is such code."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from loadgen.fleet.scenario import PRESETS
from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import encode_event, regression_event, update_event
from pipeline.messages.inputs import encode_change, encode_feedback, encode_silence
from pipeline.messages.ledger import dropped_entries, entry_to_json, ledger_columns, reported_entries
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.messages.requests import encode_requests
from pipeline.messages.scans import encode_progress, encode_scan
from pipeline.model import (
    Change,
    DomainDecision,
    Joined,
    MetricPoints,
    Progress,
    Regression,
    RequestCounts,
    Scan,
    Silence,
    StackChange,
    Suspect,
    TypeCounts,
    Verdict,
)
from pipeline.settings.topics import DEFAULT_PATH as TOPICS
from pipeline.settings.workloads import PRESETS_PATH as WORKLOADS
from tests.support.builders import build_candidate, build_decision, build_dropped, build_profile

T0 = 1_760_000_000.0
SHA = "0123456789abcdef" * 2 + "01234567"


def profiles() -> Iterator[bytes]:
    profile = build_profile(
        {"main;work;json.dumps": 5, "main;work": 3, "main;work;work": 1, "main": 2},
        start=T0,
        annotations=[("work", "endpoint", "/checkout"), ("main", "metadata", "user=1")],
    )
    yield encode_profile(replace(profile, release="v12", labels={"zone": "a"}))
    yield encode_profile(build_profile({}, start=T0))


def metrics() -> Iterator[bytes]:
    points = MetricPoints("shop", "throughput", T0 + np.arange(3.0), np.array([1.5, -2.0, 0.0]), setup=True)
    yield encode_metric_points(points)
    yield orjson.dumps({"service": "s", "metric": "m", "points": [["2026-01-31T12:00:00Z", 1]]})


def request_counts() -> Iterator[bytes]:
    types = (TypeCounts("GET /cart/:id", 7, (0, 6, 0, 0, 1), ((-160, 3), (5, 4))), TypeCounts("other", 1))
    yield encode_requests(RequestCounts("shop", "web-1", 60.0 * 28_000_000, 30.0, types, "v2", "c0ffee"))


def changes() -> Iterator[bytes]:
    yield encode_change(change())


def feedback() -> Iterator[bytes]:
    expected = Silence("e1", "shop", "expected", T0, T0, subroutine="shop.*", cost=0.001, change="c0ffee")
    yield encode_silence(expected)
    yield encode_silence(replace(expected, change="", cost=20.0, measure="metric"))
    yield encode_silence(Silence("m1", "shop", "muted", T0, T0, T0 + 60, owner="ada", removed=T0 + 9))
    yield encode_feedback(Verdict("r1", "shop", "duplicate", T0, "ada", "twice", subject="r0"))
    yield encode_feedback(Verdict("r1", "shop", "expected", T0, end=T0 + 60))


def progress() -> Iterator[bytes]:
    yield encode_progress(Progress("shop", "profiles", 3, T0 + 60, T0))


def scans() -> Iterator[bytes]:
    yield encode_scan(scan())


def events() -> Iterator[bytes]:
    yield encode_event(regression_event(regression(), scan()))
    yield encode_event(update_event(update("resolved")))
    yield encode_event(update_event(update("updated")))


def ledger_lines() -> Iterator[bytes]:
    for entry in (*dropped_entries(scan()), *reported_entries(scan())):
        yield orjson.dumps(entry_to_json(entry))
    yield next(events())


def ledger_rows() -> Iterator[bytes]:
    columns = ledger_columns([*dropped_entries(scan()), *reported_entries(scan())])
    for row in zip(*columns.values(), strict=True):
        yield orjson.dumps(dict(zip(columns, row, strict=True)))


def ledger_files() -> Iterator[bytes]:
    yield b"\n".join(orjson.dumps(entry_to_json(entry)) for entry in dropped_entries(scan()))


def truth() -> Iterator[bytes]:
    row = {"id": "r1", "kind": "regression", "service": "shop", "subroutines": ["shop.work"], "start": T0}
    rows = [{**row, "delta": 0.01, "change": "c1"}, {**row, "id": "r2", "kind": "transient", "end": T0 + 60}]
    yield b"\n".join(map(orjson.dumps, rows)) + b"\n"


def event_files() -> Iterator[bytes]:
    yield b"\n".join(events())


def funnels() -> Iterator[bytes]:
    yield orjson.dumps({"scans": 3, "series": 70, "steps": [{"step": "change point", "remaining": 7}]})


def states() -> Iterator[bytes]:
    yield orjson.dumps({"service": "shop", "watch": "branch main", "published": [SHA]})


def flag_events() -> Iterator[bytes]:
    access = {"action": "updateOn", "resource": "proj/p:env/production:flag/new-cart"}
    entry = {
        "_id": "57c0",
        "date": T0 * 1000,
        "kind": "flag",
        "accesses": [access],
        "member": {"email": "a@b"},
    }
    yield orjson.dumps(entry)
    event = {"id": 1, "type": "feature-environment-enabled", "featureName": "new-cart", "project": "p"}
    yield orjson.dumps({**event, "createdAt": "2023-11-14T22:13:20Z", "environment": "production"})
    state = {"enabled": True, "feature": {"name": "new-cart"}, "environment": {"name": "production"}}
    yield orjson.dumps({"event_type": "FLAG_UPDATED", "data": {"new_state": state, "timestamp": T0}})
    yield orjson.dumps({"type": "PROVIDER_CONFIGURATION_CHANGED", "flagsChanged": ["a", "b"]})
    yield orjson.dumps({"object_attributes": {"name": "new-cart", "active": True}, "user": {"name": "Ada"}})


def github() -> Iterator[bytes]:
    author = {"name": "Ada", "email": "ada@example.org"}
    commit = {"id": SHA, "message": "Fix\n\nBody", "author": author, "added": ["b.py"], "modified": ["a.py"]}
    hub = {"full_name": "acme/shop", "pushed_at": T0}
    push = {"ref": "refs/heads/main", "before": SHA, "after": SHA, "commits": [commit], "head_commit": commit}
    release = {"tag_name": "v1", "name": "First", "body": "New.", "target_commitish": "main", "draft": False}
    status = {"state": "success", "environment": "production", "created_at": "2023-11-14T22:13:20Z"}
    deployment = {"sha": SHA, "ref": "main", "environment": "p", "creator": {"login": "ada"}}
    for payload in (
        push,
        {**push, "ref": "refs/tags/v1"},
        {"action": "published", "release": {**release, "published_at": "2023-11-14T22:13:20Z"}},
        {"deployment_status": status, "deployment": deployment},
    ):
        yield orjson.dumps({**payload, "repository": hub})


def gitlab() -> Iterator[bytes]:
    commit = {
        "id": SHA,
        "message": "Fix",
        "author": {"name": "Ada", "email": "a@example.org"},
        "added": ["b"],
    }
    push = {"ref": "refs/heads/main", "before": SHA, "after": SHA, "commits": [commit]}
    address = f"https://gitlab.example.org/acme/web/shop/-/commit/{SHA}"
    for payload in (
        {**push, "total_commits_count": 2},
        {**push, "ref": "refs/tags/v1", "checkout_sha": SHA, "message": "First", "user_name": "Ada"},
        {"action": "create", "tag": "v1", "commit": commit, "released_at": "2023-11-14 22:13:20 UTC"},
        {"status": "success", "environment": "production", "commit_url": address,
         "status_changed_at": "2023-11-14 22:13:20 +0200", "user": {"name": "Ada"}},
    ):  # fmt: skip
        yield orjson.dumps({**payload, "project": {"path_with_namespace": "acme/web/shop"}})


def signatures() -> Iterator[bytes]:
    yield orjson.dumps(
        {"secret": "whsec_c2VjcmV0IHNlY3JldA==", "body": "{}", "webhook-id": "m1",
         "webhook-timestamp": str(int(T0)), "webhook-signature": "v1,abc v1,def",
         "X-Hub-Signature-256": "sha256=00", "X-Gitlab-Token": "t"}
    )  # fmt: skip


def collapsed() -> Iterator[bytes]:
    text = (
        'process 12:"python app.py";main (app.py);work (shop/cart.py);<module> (x.py) 5\nmain;a 3\n# no\n 7\n'
    )
    yield text.encode()
    yield text.encode("utf-16")
    yield "main;endpoint=/checkout;é 12.000\r\n".encode()


def patches() -> Iterator[bytes]:
    yield (
        b"diff --git a/x b/x\nindex " + b"1" * 40 + b".." + b"2" * 40 + b" 100644\n--- a/x\n+++ b/x\n"
        b"@@ -3,2 +3 @@ void f()\n-a\n-b\n+c\n\\ No newline at end of file\n"
        b"diff --git a/y b/y\nindex " + b"0" * 40 + b".." + b"3" * 40 + b"\nBinary files a/y and b/y differ\n"
    )


def sources() -> Iterator[bytes]:
    for name, text in {
        "a.cpp": "namespace shop {\nclass Cart final : X {\n  int total(std::map<a,b> x) {\n    y();\n  }\n"
        "};\n}  // namespace shop\nbool operator==(A a, B b) {\n",
        "A.java": "package com.acme;\n@Override public class A<T> {\n  A(int x) {\n    f();\n  }\n}\n",
        "a.go": "package shop\nfunc (c *Cart[T]) Total(x int) int {\n\treturn x\n}\n",
        "src/a.rs": "impl<T> Show for Cart<T> {\n    pub(crate) async fn total(&self) {\n"
        "        x();\n    }\n}\n",
        "a.js": "export default async function* f(a) {\n  x\n}\n"
        "const g = async (a) => {\n}\nclass A {\n  m(a) {\n  }\n}\n",
    }.items():
        yield f"{name}\n[package]\nname = 'shop-x'\n\0module acme.org/shop\n\0{text}".encode()


def python() -> Iterator[bytes]:
    yield (
        b'"""Doc."""\nimport x\n@decorated\ndef f(a, b=1):\n    """Doc."""\n    def g():\n'
        b"        return [i for i in a]\n    return g\nclass A:\n    async def m(self):\n        await f(1)\n"
    )
    yield b"def broken(:\n  class A:\n\tdef f(self):\n\t\tpass\n)\n@x\n"


def answers() -> Iterator[bytes]:
    definition = {"name": "f", "scope": ["A", "B"], "receiver": "*C", "package": "shop"}
    yield b"\n".join(map(orjson.dumps, [[definition], [], [{**definition, "scope": []}, definition]])) + b"\n"


def git_output() -> Iterator[bytes]:
    yield b"\0".join([SHA.encode() * 2, b"Ada <ada@example.org>", b"1700000000", b"Fix", b"Body\n"])
    yield b"\0".join([b"1700000000", b"tag", SHA.encode(), b"commit", SHA.encode(), b"refs/tags/v1"]) + b"\n"
    yield b":100644 100644 %b %b R100\0a\0b\0:000000 100755 %b %b A\0c\0" % ((SHA.encode(),) * 4)
    yield b"%b blob 3\nabc\n%b missing\n%b blob 0\n\n" % ((SHA.encode(),) * 3)


def gates() -> Iterator[bytes]:
    yield b"new_cart: [shop.cart.total, shop.cart.add]\nold: &a []\nthird: *a\n"


def topics() -> Iterator[bytes]:
    yield TOPICS.read_bytes()


def workloads() -> Iterator[bytes]:
    yield WORKLOADS.read_bytes()
    row = {
        "name": "mine", "resolution": "30m", "rerun_interval": "2h", "historical": "10d", "analysis": "4h",
        "extended": None, "threshold": {"relative": 0.05}, "detectors": ["short_term", "long_term"],
        "direction": "down", "cost_domains": [{"name": "io", "subroutines": ["io.*", "re:net.+"]}],
        "merge_rules": [{"between": "any", "correlation": 0.9}],
    }  # fmt: skip
    yield yaml.safe_dump([row]).encode()


def settings() -> Iterator[bytes]:
    yield b"broker: localhost:9092\nstore: http://u:p@h:8123/db\nworkloads: [a, b]\nwindow: 1m\nbatch_size: 9"


def quotas() -> Iterator[bytes]:
    yield b"default: {names: 10}\nservices:\n  shop: {messages: 1, stacks: 2}\npartition: {services: 3}\n"


def release_metrics() -> Iterator[bytes]:
    yield b"default: [{unit: ['{cpu}'], kind: [usage, '']}]\nservices:\n  shop: [{name: ['*_seconds']}]\n"


def service_maps() -> Iterator[bytes]:
    yield (
        b"repositories:\n  acme/shop:\n    forge: github\n    secret_env: SECRET\n    source_roots: [src]\n"
        b"    deploys:\n      - {service: shop, branch: main}\n      - {service: shop-eu, tag: 'v*'}\n"
    )


def scenarios() -> Iterator[bytes]:
    yield (PRESETS / "tiny.yaml").read_bytes()
    yield (PRESETS / "large.yaml").read_bytes()


def series_csv() -> Iterator[bytes]:
    yield b"service,metric,timestamp,value\nshop,latency,2026-01-31T12:00Z,1.5\nshop,latency,1760000000,2\n"
    yield b"service, metric, timestamp, samples, total\ns, m, 1760000000, 1, 2\ns, m, 1760000001, 0, 0\n"
    yield b"timestamp,value\n2026-01-01,1\n2026-01-02,1e3\n"
    yield b"1\n2\n3\n"
    yield b"time;a;b\n1760000000;1.234,5 ms;45 %\n1760000001;12 ms;\n"


def series_json() -> Iterator[bytes]:
    yield b'[{"service": "s", "metric": "m", "timestamp": 1760000000, "value": 1.5}]'
    yield b'{"time": [1760000000, 1760000001], "a": [1, null], "b": ["1 KiB", "2 MiB"]}'
    yield b'[{"target": "a", "datapoints": [[1, 1760000000], [null, 1760000001]]}]'
    yield (
        b'{"status": "success", "data": {"resultType": "matrix", "result": '
        b'[{"metric": {"__name__": "up", "job": "s"}, '
        b'"values": [[1760000000, "1"], [1760000060.5, "NaN"]]}]}}'
    )


def series_parquet() -> Iterator[bytes]:
    columns = {"service": ["s", "s"], "metric": ["m", "m"], "timestamp": [T0, T0 + 1], "value": [1.0, 2.0]}
    for compression in ("none", "zstd"):
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file, compression=compression)
        yield file.getvalue()


def dsns() -> Iterator[bytes]:
    yield b"https://user:p%40ss@[::1]:8443/smidgen?verify=false&connect_timeout=5"
    yield b"http://localhost?cluster=main&replicated=1&send_receive_timeout=600"
    yield b"http://localhost"
    yield b"chdb:///var/lib/x"


def brokers() -> Iterator[bytes]:
    yield b"kafka://a:9092, b:9093,[::1]:1"


def quantities() -> Iterator[bytes]:
    yield from (b"30m", b"1.5s", b"16MiB", b"10")


def batches() -> Iterator[bytes]:
    for codec in range(5):
        builder = DefaultRecordBatchBuilder(
            2,
            codec,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=2**20,
        )
        for offset in range(3):
            builder.append(offset, int(T0 * 1000), b"key", b"value" * 30, [("name", b"text")])
        yield bytes(builder.build())


def compressed() -> Iterator[bytes]:
    yield bytes.fromhex("1f8b08000000000002ff4b4c4a06004141260203000000") + b"gzip"
    yield bytes.fromhex("28b52ffd2003190000616263") + b"zstd"


def change() -> Change:
    return Change(
        SHA, "shop", T0, "Sort", "Ada", "Why", ("a.py",), ("shop.work",), ("new_cart",), "a.py\n-x\n+y"
    )


def scan() -> Scan:
    passed = (build_decision("went away", 0.1, 0.5, "it stayed"),)
    domains = (DomainDecision("callers: main", "rose", 0.1, 0.2, 3.0, 2.0),)
    candidate = replace(build_candidate(), change_time=T0 + 30, passed=passed, domains=domains)
    group = replace(candidate, group=(candidate, replace(candidate, metric="other", passed=(), domains=())))
    return Scan(
        service="shop",
        workload="w",
        start=T0,
        analysis_start=T0 + 20,
        analysis_end=T0 + 40,
        end=T0 + 60,
        series=70,
        candidates=(group,),
        dropped=(build_dropped(candidate, "threshold", 0.1, 0.2, "too small"),),
        grown=(candidate,),
        joined=(Joined("0" * 32, candidate),),
        part=1,
        parts=3,
    )


def regression() -> Regression:
    return Regression(
        id="0" * 32,
        service="shop",
        workload="w",
        candidate=scan().candidates[0],
        detected_time=T0 + 60,
        suspects=(Suspect(change(), 0.5, {"text": 0.25}),),
        stacks=(StackChange(("main", "work"), 0.1, 0.2),),
        servers=100.0,
    )


def update(kind: Any) -> Update:
    return Update(
        kind=kind,
        regression=OpenRegression("0" * 32, scan().candidates[0]),
        service="shop",
        workload="w",
        time=T0 + 120,
        change_time=T0 + 100,
        level=0.1,
        changes=(change(),) if kind == "resolved" else (),
        escalated=None if kind == "resolved" else scan().grown[0],
    )
