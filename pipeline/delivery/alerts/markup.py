"""Marked-up text, neutral of targets, and how each target writes it so that no name or title steers it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Style = Literal["plain", "bold", "code", "link"]


@dataclass(frozen=True, slots=True)
class StyledText:
    """A piece of text in one style; ``url`` is where a link leads."""

    text: str
    style: Style = "plain"
    url: str = ""


Line = tuple[StyledText, ...]

_LONGEST = 300
"""Characters of a name or title that a message shows: commit messages may be long."""

_BREAK = "\u200b"
"""A zero-width space: it breaks mentions and references."""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&$^=:])")
_REFERENCE = re.compile(r"([@#!$%~&^])(?=\w)|((?<=[A-Za-z])-)(?=\d)")
"""End of the sign of a forge's mention or reference: ``@ada``, ``#7``, ``~bug``, ``GH-7``."""

_ADDRESS = re.compile(r":(?=//)|(?<=\bwww)\.|(?<=\bmailto):", re.IGNORECASE)
_MENTION = re.compile(r"([@<])(?=[\w!@#])")


def shown(text: str) -> str:
    """Return foreign text on one line, without control characters, cut to fit a message."""
    line = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def unlinked(text: str) -> str:
    """Return foreign text as ``shown``, in which no target finds an address or a mention."""
    return unmentioned(_ADDRESS.sub(rf"{_BREAK}\g<0>", shown(text)))


def unmentioned(text: str) -> str:
    """Return a text in which no chat finds a mention, such as ``@everyone`` or ``<!channel>``."""
    return _MENTION.sub(rf"\1{_BREAK}", text)


def unbroken(text: str) -> str:
    """Return a text without what breaks mentions, for a terminal, which knows none and would show it."""
    return text.replace(_BREAK, "")


def as_plain(lines: Sequence[Line]) -> str:
    """Return lines as plain text, each link as its address."""
    return "\n".join(
        "".join(f"{s.text}: {s.url}" if s.style == "link" else s.text for s in line) for line in lines
    )


def as_markdown(lines: Sequence[Line]) -> str:
    """Return lines as the Markdown of GitHub and GitLab, in which no mention and no reference is one."""
    return "  \n".join("".join(map(_markdown, line)) for line in lines)


def _markdown(span: StyledText) -> str:
    if span.style == "code":
        fence = "`" * (max(map(len, re.findall("`+", span.text)), default=0) + 1)
        pad = " " if "`" in span.text else ""
        return f"{fence}{pad}{span.text}{pad}{fence}"
    text = _MARKDOWN.sub(r"\\\1", _REFERENCE.sub(rf"\g<0>{_BREAK}", span.text))
    if span.style == "link":
        return f"[{text}](<{_address(span.url)}>)"
    return f"**{text}**" if span.style == "bold" else text


def as_html(lines: Sequence[Line]) -> str:
    """Return lines as HTML, each in a paragraph."""
    return "".join(f"<p>{''.join(map(_html, line))}</p>" for line in lines)


def _html(span: StyledText) -> str:
    text = html.escape(span.text)
    if span.style == "link":
        return f'<a href="{html.escape(_address(span.url))}">{text}</a>'
    tag = {"bold": "b", "code": "code"}.get(span.style)
    return f"<{tag}>{text}</{tag}>" if tag else text


def slack_escaped(text: str) -> str:
    """Return a text in which Slack sees no mention and no link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_slack(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return lines as blocks of Slack, whose rich text takes every name as it is: nothing is escaped."""
    sections = [
        {"type": "rich_text_section", "elements": [*map(_slack, line), {"type": "text", "text": "\n"}]}
        for line in lines
    ]
    return [{"type": "rich_text", "elements": sections}]


def _slack(span: StyledText) -> dict[str, Any]:
    if span.style == "link":
        return {"type": "link", "url": _address(span.url), "text": span.text}
    style = {"style": {span.style: True}} if span.style != "plain" else {}
    return {"type": "text", "text": span.text or " ", **style}


def as_adaptive_card(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return lines as elements of an Adaptive Card, whose text runs know no Markdown."""
    return [
        {"type": "RichTextBlock", "inlines": [_text_run(span) for span in line]} for line in lines if line
    ]


def _text_run(span: StyledText) -> dict[str, Any]:
    run: dict[str, Any] = {"type": "TextRun", "text": span.text}
    if span.style == "link":
        run["selectAction"] = {"type": "Action.OpenUrl", "url": _address(span.url)}
    return run | {"bold": {"weight": "Bolder"}, "code": {"fontType": "Monospace"}}.get(span.style, {})


def as_jira(lines: Sequence[Line]) -> dict[str, Any]:
    """Return lines as a document of Jira (Atlassian Document Format), which has texts and marks apart."""
    content = [{"type": "paragraph", "content": [_jira(s) for s in line if s.text]} for line in lines]
    return {"type": "doc", "version": 1, "content": content}


def _jira(span: StyledText) -> dict[str, Any]:
    marks: dict[Style, dict[str, Any]] = {
        "bold": {"type": "strong"},
        "code": {"type": "code"},
        "link": {"type": "link", "attrs": {"href": _address(span.url)}},
    }
    mark = marks.get(span.style)
    return {"type": "text", "text": span.text, **({"marks": [mark]} if mark else {})}


def _address(url: str) -> str:
    """Return an address that ends no attribute and no brackets."""
    return re.sub(r"[\s<>\"\\`]", "", url)
