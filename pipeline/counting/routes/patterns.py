"""Patterns of paths in the forms of frameworks, as one form: ``/orders/{id}``, ``/files/{path...}``."""

from __future__ import annotations

import re

_FLASK = re.compile(r"(?<!\?P)<(?:(?P<kind>[^:<>]+):)?(?P<name>[^<>]+)>")
_BRACES = re.compile(r"\{(?P<name>[^{}:]*)(?::(?P<kind>(?:[^{}]|\{[^{}]*\})*))?\}")
_COLON = re.compile(r":(?P<name>\w+)(?P<rest>\([^)]*\))?\??|(?P<all>\*\w*)")

MAX_PATTERN = 1000
"""Longest regular expression that is read, in characters: its groups may be nested."""


def of_flask(pattern: str) -> str:
    """Return a pattern of Flask or of Django's ``path``; named groups of regular expressions stay.

    >>> of_flask("/orders/<int:id>/<path:rest>")
    '/orders/{id}/{rest...}'
    """

    def spelt(found: re.Match[str]) -> str:
        kind = (found["kind"] or "").partition("(")[0]
        return _parameter(found["name"], several=kind == "path")

    return _FLASK.sub(spelt, pattern)


def of_braces(pattern: str) -> str:
    """Return a pattern of FastAPI, Starlette, aiohttp or Spring.

    >>> of_braces("/orders/{id:[0-9]+}/{rest:path}")
    '/orders/{id}/{rest...}'
    """

    def spelt(found: re.Match[str]) -> str:
        kind = found["kind"] or ""
        name = found["name"].lstrip("*")
        several = kind == "path" or kind.startswith(".") or found["name"].startswith("*")
        return _parameter(name, several=several)

    return re.sub(r"(?<=/)\*\*(?=/|$)", "{rest...}", _BRACES.sub(spelt, pattern))


def of_colons(pattern: str) -> str:
    r"""Return a pattern of Express.

    >>> of_colons(r"/orders/:id(\d+)/*")
    '/orders/{id}/{rest...}'
    """
    return _COLON.sub(lambda found: "{rest...}" if found["all"] else _parameter(found["name"]), pattern)


def of_regex(pattern: str) -> str:
    r"""Return a pattern of a regular expression, each group a parameter.

    >>> of_regex(r"^orders/(?P<id>\d+)/$")
    'orders/{id}/'
    """
    text = re.sub(r"\\[AZbB]", "", pattern[:MAX_PATTERN]).removeprefix("^")
    text = text.replace("/^", "/")  # where one expression is mounted within another
    text = text[:-1] if text.endswith("$") and not text.endswith("\\$") else text
    parts: list[str] = []
    index = unnamed = 0
    while index < len(text):
        character = text[index]
        if character == "(":
            end = _closing(text, index)
            inside, index = text[index + 1 : end], end + 1
            optional = text[index : index + 1] in ("?", "*")
            index += optional or text[index : index + 1] == "+"
            if named := re.match(r"\?P<(\w+)>", inside):
                several = any(each in inside for each in (".*", ".+"))
                parts.append(_parameter(named[1], several=several))
            elif not inside.startswith("?"):
                unnamed += 1
                parts.append(_parameter(str(unnamed), several=any(each in inside for each in (".*", ".+"))))
            elif not optional and inside.startswith("?:"):
                parts.append(of_regex(inside[2:].partition("|")[0]))
            continue
        found = re.match(r"(\\[dwDWsS]|\[[^\]]*\]|\.)(\{[\d,]+\}|[*+?]+)?", text[index:])
        if found:
            several = found[1] == "." and (found[2] or "")[:1] in ("*", "+")
            plain = found[1] == "." and not found[2]  # most often of a file's name
            parts.append("." if plain else _parameter("rest" if several else "part", several=several))
            index += found.end()
            continue
        if character == "\\":
            parts.append(text[index + 1 : index + 2])
            index += 2
        else:
            parts.append("" if character in "?*+|" else character)
            index += 1
    return "".join(parts)


def _closing(text: str, start: int) -> int:
    """Return where the group that begins at ``start`` ends."""
    depth = index = 0
    for index in range(start, len(text)):
        if text[index - 1 : index] == "\\":
            continue
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index
    return index


def _parameter(name: str, *, several: bool = False) -> str:
    return f"{{{name}...}}" if several else f"{{{name}}}"
