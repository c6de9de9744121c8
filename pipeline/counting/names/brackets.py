"""Outlines of names: names without arguments, type parameters, return types and lambdas."""

from __future__ import annotations

import re

_CLOSING = {"(": ")", "<": ">", "[": "]", "{": "}"}

_OPERATOR = re.compile(
    r"""\boperator(?:
        \s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|[-+*/%^&|~!=<>,])
        |\ (?:new|delete)(?:\[\])?
        |""\ ?\w+
        |\ (?:unsigned\ |long\ |short\ |signed\ )*[A-Za-z_][\w:]*[*&]*(?=[(<])
    )""",
    re.VERBOSE,
)
"""C++'s operators, whose names hold brackets and spaces."""

_KEPT_WHOLE = ("(anonymous namespace)", "(anonymous class)")

_LAMBDA = re.compile(r"\{(?:lambda|unnamed|block|default arg)|'(?:lambda|block|unnamed)")
_CALL_OF_LAMBDA = re.compile(r"::(?:operator\(\)|_FUN|__invoke)")

_QUALIFIERS = re.compile(r"(?: (?:const|volatile|noexcept|&&?|\[clone [^\[\]]*\])|\[abi:\w+\])+$")

_PYTHON = re.compile(r"<(?:module|lambda|listcomp|dictcomp|setcomp|genexpr|locals)>")

_MODULE = re.compile(r"[\w.+-]+`(?=[^`'])(?!.*')")
"""What DTrace puts before a name: its binary and a backtick, which Microsoft's names close by a quote."""

_PATH = re.compile(r"[A-Za-z_][\w:$]*")


def outline(name: str, opening: str = "(<") -> str:
    """Return a name without its arguments, type parameters, return type and lambdas.

    ``void shop::Cart<Item>::add<int>(int) const`` is ``shop::Cart::add``, as is Rust's
    ``<shop::Cart as Add>::add``, and ``run()::{lambda(int)#1}::operator()(int) const`` is ``run``. Brackets
    that are part of a name stay: Go's ``(*Cart)``, Python's ``<lambda>``, C++'s ``operator<`` and anonymous
    namespace. A name whose brackets do not match is returned unchanged.

    Args:
        name: A frame.
        opening: The brackets that hold arguments if they follow a name.
    """
    if module := _MODULE.match(name):
        return module[0] + outline(name[module.end() :], opening)
    text = _QUALIFIERS.sub("", name)
    if text.startswith("<") and not _PYTHON.match(text):
        text = _without_trait(text)
    output: list[str] = []
    last_space = -1  # the end of a return type in ``output``
    dropped = text != name
    index = 0
    while index < len(text):
        character = text[index]
        if character == "o" and (match := _OPERATOR.match(text, index)):
            output += match[0]
            index = match.end()
            if text.startswith(" <", index):  # operator<< <char>
                index += 1
            while index < len(text) and text[index] in opening:
                end = _matching(text, index)
                if not end:
                    return name
                index, dropped = end, True
        elif character in "{'" and _LAMBDA.match(text, index):
            end = _matching(text, index) if character == "{" else text.find("'", index + 1) + 1
            if not end:
                return name
            if text.startswith("(", end):
                end = _matching(text, end) or end
            if output[-2:] == [":", ":"]:
                del output[-2:]
                end = match.end() if (match := _CALL_OF_LAMBDA.match(text, end)) else end
            else:
                output += "{lambda}"
            index, dropped = end, True
            if text.startswith("(", index):
                index = _matching(text, index) or index
        elif character in opening and _follows_name(output, text, index):
            end = _matching(text, index)
            if not end:
                return name
            if output[-2:] == [":", ":"]:
                output = _in_impl(output, text[index + 1 : end - 1])
            index, dropped = end, True
        elif character == "(" and (whole := next((w for w in _KEPT_WHOLE if text.startswith(w, index)), "")):
            output += whole
            index += len(whole)
        else:
            if character == " ":
                last_space = len(output)
            output.append(character)
            index += 1
    if not dropped:
        return name
    outlined = "".join(output)
    after = outlined[last_space + 1 :].lstrip("*&")
    if last_space > 0 and (after[:1].isalpha() or after[:1] in "_~" or after.startswith(_KEPT_WHOLE)):
        outlined = after
    return _QUALIFIERS.sub("", outlined) or name


def _follows_name(output: list[str], text: str, index: int) -> bool:
    """Return whether a bracket is at the position of arguments or type parameters."""
    if not output:
        return False
    if output[-1].isalnum() or output[-1] in "_$]~":
        return True
    # Rust's ``add::<u32>`` and ``cart::<impl Cart>``.
    return output[-2:] == [":", ":"] and text[index] == "<" and not _PYTHON.match(text, index)


def _in_impl(output: list[str], inside: str) -> list[str]:
    """Return the type that Rust's ``shop::cart::<impl shop::Cart>`` names, if it is a path of its own."""
    if inside.startswith("impl "):
        path = outline(inside.removeprefix("impl ").rpartition(" for ")[2])
        if "::" in path and _PATH.fullmatch(path):
            return list(path)
    return output[:-2]


def _without_trait(name: str) -> str:
    """Return ``shop::Cart::add`` of Rust's ``<shop::Cart as Add>::add``."""
    end = _matching(name, 0)
    if not end or not name.startswith("::", end):
        return name
    owner = outline(_before_trait(name[1 : end - 1]).lstrip("&*").removeprefix("mut ").removeprefix("const "))
    return (owner if _PATH.fullmatch(owner) else name[:end]) + name[end:]


def _before_trait(inside: str) -> str:
    """Return the text before `` as `` outside of brackets."""
    depth = 0
    for index, character in enumerate(inside):
        if character in "<([":
            depth += 1
        elif character in ">)]" and inside[index - 1 : index] != "-":
            depth -= 1
        elif not depth and inside.startswith(" as ", index):
            return inside[:index]
    return inside


def _matching(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at ``start``, 0 if none does."""
    expected = [_CLOSING[text[start]]]
    index = start + 1
    while index < len(text):
        character = text[index]
        if character == "o" and (operator := _OPERATOR.match(text, index)):
            index = operator.end()
            continue
        if character == "-" and text.startswith("->", index):
            index += 2
            continue
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character == expected[-1]:
            expected.pop()
            if not expected:
                return index + 1
        elif character in ")]}":
            # A lone < was no bracket but a comparison.
            while expected and expected[-1] == ">":
                expected.pop()
            if not expected or expected[-1] != character:
                return 0
            expected.pop()
            if not expected:
                return index + 1
        index += 1
    return 0
