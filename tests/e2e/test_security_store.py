"""The store behind TLS and a login, and hostile names, which do not alter statements."""

from __future__ import annotations

import base64
import http.client
import ssl
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from pipeline.cli import run
from pipeline.model import SeriesKey
from pipeline.model.errors import ConfigError, StoreUnavailable
from pipeline.processes import Child
from pipeline.settings.config import load_settings
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Extent, RowQuery, RowTable, SeriesQuery, StackQuery, Store
from tests.contract.rows import MINUTE, STREAM, T0, change, gcpu, metrics, stacks, total_samples
from tests.support.certificates import Authority, Certificate

PASSWORD = "p@ss/word: 100%?&#"
USER = "smidgen"


@dataclass(frozen=True)
class Guarded:
    """An embedded store with a certificate and a login."""

    url: str
    authority: Authority

    def dsn(self, user: str = USER, password: str = PASSWORD, ca: Path | None = None) -> str:
        """Return a DSN with everything in it."""
        host = urlsplit(self.url).netloc
        ca = ca or self.authority.certificate
        return f"https://{user}:{quote(password, safe='')}@{host}/guarded?ca_cert={quote(str(ca), safe='')}"


def serve(folder: Path, certificate: Certificate, password: str = PASSWORD) -> Child:
    secret = folder / "password"
    secret.write_text(password + "\n")
    command = [sys.executable, "-m", "pipeline.embedded.store", "--data", str(folder / "data")]
    command += ["--scratch", str(folder / "scratch"), "--user", USER, "--password-file", str(secret)]
    (folder / "scratch").mkdir()
    return Child([*command, "--certificate", str(certificate.certificate), "--key", str(certificate.key)])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder)
    child = serve(folder, authority.issue("store"))
    try:
        url = child.first_line()
        assert url.startswith("https://127.0.0.1:"), child.last_words()
        with closing(open_store(Guarded(url, authority).dsn())) as store:
            store.migrate()
        yield Guarded(url, authority)
    finally:
        child.stop()


class TestGuardedStore:
    def test_who_knows_the_login_writes_and_reads(self, guarded: Guarded, service_name: str) -> None:
        with closing(open_store(guarded.dsn())) as store:
            store.insert("gcpu", gcpu(service_name, [("a.f", T0, 3)]), token=service_name)
            assert total_samples(store, service_name) == 3

    def test_the_password_may_lie_in_a_file(
        self, guarded: Guarded, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "secret").write_text(PASSWORD)
        host = urlsplit(guarded.url).netloc
        dsn = f"https://{USER}@{host}/guarded?ca_cert={guarded.authority.certificate}"
        environ = {"SMIDGEN_STORE": dsn, "SMIDGEN_STORE_PASSWORD_FILE": str(tmp_path / "secret")}
        with closing(open_store(load_settings({}, environ=environ).store)) as store:
            assert store.rows(RowQuery("changes", "nobody", T0, T0 + 1)) == []

    @pytest.mark.parametrize(
        ("user", "password"), [(USER, "wrong"), (USER, ""), ("nobody", PASSWORD), ("", "")], ids=str
    )
    def test_nobody_else_does(self, guarded: Guarded, user: str, password: str) -> None:
        with pytest.raises(ConfigError, match="refuses the user or its password") as raised:
            open_store(guarded.dsn(user, password))
        assert PASSWORD not in str(raised.value)
        assert quote(PASSWORD, safe="") not in str(raised.value)

    def test_commands_say_so_in_one_line(
        self, guarded: Guarded, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SMIDGEN_STORE", guarded.dsn(password="not the one"))
        assert run(["store", "migrate"]) == 2
        out, err = capfd.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert "refuses the user or its password" in err
        assert "not the one" not in err
        assert quote("not the one") not in err
        monkeypatch.setenv("SMIDGEN_STORE", guarded.dsn())
        assert run(["store", "migrate"]) == 0
        assert "***" in (output := capfd.readouterr().out)
        assert quote(PASSWORD, safe="") not in output

    def test_a_store_that_nobody_vouches_for_is_not_trusted(self, guarded: Guarded, tmp_path: Path) -> None:
        other = Authority(tmp_path, "another")
        with pytest.raises((StoreUnavailable, ConfigError), match=r"(?i)certificate") as raised:
            open_store(guarded.dsn(ca=other.certificate))
        assert quote(PASSWORD, safe="") not in str(raised.value)

    @pytest.mark.parametrize(
        "issued", [{"days": -1}, {"hosts": "DNS:store.example"}], ids=["expired", "another host"]
    )
    def test_a_certificate_that_does_not_hold(self, tmp_path: Path, issued: dict[str, str | int]) -> None:
        authority = Authority(tmp_path)
        child = serve(tmp_path, authority.issue("store", **issued))  # type: ignore[arg-type]
        try:
            with pytest.raises((StoreUnavailable, ConfigError), match=r"(?i)certificate"):
                open_store(Guarded(child.first_line(), authority).dsn())
        finally:
            child.stop()

    def ask(
        self, guarded: Guarded, method: str, path: str, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        context = ssl.create_default_context(cafile=guarded.authority.certificate)
        where = urlsplit(guarded.url)
        connection = http.client.HTTPSConnection(
            where.hostname or "", where.port, context=context, timeout=60
        )
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def test_by_hand(self, guarded: Guarded) -> None:
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        query = "/?query=SELECT%201"
        status, body, headers = self.ask(guarded, "POST", query)
        assert (status, headers["X-ClickHouse-Exception-Code"]) == (403, "516")
        assert b"AUTHENTICATION_FAILED" in body
        assert self.ask(guarded, "GET", "/ping")[:2] == (200, b"Ok.\n")
        for authorization in (basic, f"Bearer {PASSWORD}"):
            assert self.ask(guarded, "POST", query, Authorization=authorization)[:2] == (200, b"1\n")
        for authorization in ("Bearer x", "Basic x", "Basic ", f"Bearer {PASSWORD}x"):
            assert self.ask(guarded, "POST", query, Authorization=authorization)[0] == 403

    def test_whoever_follows_a_link_changes_nothing(self, guarded: Guarded) -> None:
        token = f"Bearer {PASSWORD}"
        statement = quote("CREATE TABLE guarded.made (a UInt8) ENGINE = Memory")
        status, body, _ = self.ask(guarded, "GET", f"/?query={statement}", Authorization=token)
        assert status >= 400
        assert b"readonly" in body.lower()
        status, body, _ = self.ask(guarded, "GET", f"/?query={statement}&readonly=0", Authorization=token)
        assert status >= 400
        status, body, _ = self.ask(
            guarded, "GET", "/?query=EXISTS%20TABLE%20guarded.made", Authorization=token
        )
        assert (status, body) == (200, b"0\n")
        for headers in ({"Origin": "http://a.b"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "a.b"}):
            status, body, _ = self.ask(guarded, "POST", "/?query=SELECT%201", Authorization=token, **headers)
            assert (status, b"web pages" in body) == (403, True)


HOSTILE = (
    "it's",
    'say "no"',
    "back\\slash",
    "\\'; DROP TABLE gcpu; --",
    "') OR 1=1 --",
    "{service:String}",
    "{{braces}}",
    "%s %(name)s %%",
    "`ticks`",
    "tab\there",
    "line\nbreak",
    "nul\0byte",
    "\\N",
    "NULL",
    "'",
    "\\",
    "\\\\'",
    "[1,2]",
    "('a','b')",
    "unicode \u2028 \U0001f600 é",
    "-- comment",
    "/* comment */",
    ";",
    " ",
    "?param_service=x&query=SELECT 1",
    "a" * 3000 + "'",
)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[-20:]))
def test_a_hostile_name_is_a_name(shared_store: Store, service_name: str, name: str) -> None:
    """Through every verb, as service and as everything else that is a text; a neighbour stays apart."""
    service = f"{service_name}{name}"
    neighbour = f"{service_name}-neighbour"
    for owner, count in ((service, 3), (neighbour, 5)):
        log = f"{owner}{name}"
        counted = gcpu(owner, [(name, T0, count)], stream=log) | {"topic": [name]}
        shared_store.insert("gcpu", counted, token=log)
        shared_store.insert("stacks", stacks(owner, [((name, "a.f"), T0, count)], MINUTE), token=f"s{log}")
        shared_store.insert("metrics", metrics(owner, [(name, T0, float(count))]), token=f"m{log}")
        shared_store.insert("changes", change(owner, log, T0))
    for owner, count in ((service, 3), (neighbour, 5)):
        matrix = shared_store.series(SeriesQuery("gcpu", owner, T0, T0 + MINUTE, MINUTE))
        assert (matrix.names, matrix.samples.sum()) == ((name,), count)
        chosen = shared_store.series(
            SeriesQuery(
                "gcpu",
                owner,
                T0,
                T0 + MINUTE,
                MINUTE,
                [SeriesKey("subroutine", name), SeriesKey("subroutine", "other'")],
            )
        )
        assert (chosen.names, chosen.samples.sum()) == ((name,), count)
        points = shared_store.series(
            SeriesQuery("service", owner, T0, T0 + MINUTE, MINUTE, [SeriesKey("service", name)])
        )
        assert (points.names, points.samples.sum()) == ((name,), count)
        found = shared_store.counts(StackQuery(owner, (T0, T0 + MINUTE), (T0 + MINUTE, T0 + 2 * MINUTE)))
        assert (found.stacks, found.before.sum()) == (((name, "a.f"),), count)
        rows = shared_store.rows(
            RowQuery("changes", owner, T0, T0 + 1, id_prefix=f"{owner}{name}", equal={"id": f"{owner}{name}"})
        )
        assert [(row["service"], row["id"]) for row in rows] == [(owner, f"{owner}{name}")]
        assert shared_store.rows(RowQuery("changes", owner, T0, T0 + 1, equal={"id": name})) == []
        assert shared_store.extents(["gcpu"], f"{owner}{name}")["gcpu"] == {(name, 0): Extent(0)}
        assert (f"{name}'", 0) not in shared_store.extents(["gcpu"], STREAM)["gcpu"]


def test_a_hostile_column_is_refused(shared_store: Store) -> None:
    table: RowTable = "changes"
    for column in ("id = '' OR 1", "id`", "1", "{x:String}"):
        with pytest.raises(ValueError, match="has no column"):
            shared_store.rows(RowQuery(table, "s", T0, T0 + 1, equal={column: "x"}))
