"""Addresses of source lines: what a template may be, and what values make of it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.cli import run
from pipeline.settings.url_template import check_source_url, source_url

BLOB = "https://git.invalid/{service}/blob/{commit}/{path}#L{line}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        pytest.param("", None, id="none"),
        pytest.param(BLOB, None, id="all fields"),
        pytest.param("http://[::1]:8080/?file={path}", None, id="address and port"),
        pytest.param("javascript:alert({path})", "http:// or https://", id="another scheme"),
        pytest.param("//git.invalid/{path}", "http:// or https://", id="no scheme"),
        pytest.param("https:///{path}", "http:// or https://", id="no host"),
        pytest.param("https://git.invalid/a b/{path}", "http:// or https://", id="a blank"),
        pytest.param("https://git.invalid\\{path}", "http:// or https://", id="a backslash"),
        pytest.param("https://ada:x@git.invalid/{path}", "without a user", id="a user"),
        pytest.param("https://{service}.invalid/{path}", "without fields", id="a field in the host"),
        pytest.param("https://git.invalid/{file}", "has no field {file}; there are {service}", id="unknown"),
        pytest.param("https://git.invalid/{path", "without its other half", id="half a field"),
        pytest.param("https://git.invalid/}{path}", "without its other half", id="a brace too many"),
        pytest.param("https://git.invalid/{commit}", "should have the field {path}", id="no path"),
    ],
)
def test_a_template_is_checked(template: str, problem: str | None) -> None:
    if problem is None:
        assert check_source_url(template) == template
    else:
        with pytest.raises(ValueError, match=r".") as caught:
            check_source_url(template)
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("given", "end"),
    [
        pytest.param({}, "shop/blob/8f2c/a/b.py#L7", id="plain"),
        pytest.param({"path": "a b/c#d?e&f.py"}, "shop/blob/8f2c/a%20b/c%23d%3Fe%26f.py#L7", id="escaped"),
        pytest.param({"path": "{line}%2e.py"}, "shop/blob/8f2c/%7Bline%7D%252e.py#L7", id="no field twice"),
        pytest.param({"path": 'ü"><b>'}, "shop/blob/8f2c/%C3%BC%22%3E%3Cb%3E#L7", id="no tag"),
        pytest.param({"path": "..\\x.py"}, "shop/blob/8f2c/..%5Cx.py#L7", id="a backslash"),
        pytest.param({"line": 0}, "shop/blob/8f2c/a/b.py#L1", id="no line"),
        pytest.param({"commit": "team/8f2c"}, "shop/blob/team/8f2c/a/b.py#L7", id="a slash in the commit"),
        pytest.param({"path": "../../evil"}, "", id="up"),
        pytest.param({"path": "a/./b"}, "", id="a dot"),
        pytest.param({"path": "/etc/x"}, "", id="absolute"),
        pytest.param({"path": ""}, "", id="no path"),
        pytest.param({"service": ".."}, "", id="a service that leads up"),
        pytest.param({"commit": "../.."}, "", id="a commit that leads up"),
    ],
)
def test_values_lead_nowhere_else(given: dict[str, Any], end: str) -> None:
    values: dict[str, Any] = {"service": "shop", "commit": "8f2c", "path": "a/b.py", "line": 7, **given}
    assert source_url(BLOB, **values) == (f"https://git.invalid/{end}" if end else "")
    assert source_url("", **values) == ""


def test_what_a_template_does_not_use_does_not_matter() -> None:
    assert source_url("https://git.invalid/{path}", "..", "..", "a.py", 7) == "https://git.invalid/a.py"


def test_a_wrong_template_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMIDGEN_SOURCE_URL", "https://git.invalid/{file}")
    assert run(["dashboard", "--port", "0"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "SMIDGEN_SOURCE_URL: source_url: has no field {file}" in line
