"""Names of frames: what a compiler or a runtime calls a function, and no prose, code or setting.

A name is one word beside what it has in brackets. Spaces stand where a language or a sampler puts them:
between the types of a signature, after a phrase such as ``block in``, before a position, and in brackets of
Objective-C.
"""

from __future__ import annotations

import re

from agents.profiles.formats.frames import split_frame

_LONGEST = 1000
_ENCLOSED = re.compile(
    r"\s*\([^()]*\)|(?:process \d+:)?\"[^\"]*\"|(?<!operator)<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}|`[^`']*'"
)
_NO_NAME = re.compile(r"[\s{}\"]|(?<!operator)(?<!operator<)<|(?<!operator),|&#?\w+$")
"""Outside brackets: words, code, and HTML before its semicolon."""

_ASSIGNED = re.compile(r"\w=[\w/%$.~-]")
_ALPHABETIC = re.compile(r"[^\W\d_]")

_OBJECTIVE_C = re.compile(r"[-+]\[[\w().]+ [\w:]+\]")
_THREAD = re.compile(r"thread \((?:0x[0-9A-Fa-f]+|\d+)\)(?:: .*)?")
"""A thread's root as py-spy spells it."""

_TAGGED = re.compile(
    r"(?:LazyCompile|Function|JS|Script|Eval|RegExp|Builtin|BytecodeHandler):[*~^+']*(?:[gs]et |async )?\S* ?"
)
"""What V8 puts before a function in its map files, and the function."""

_POSITION = re.compile(r"(?<=\S) (?:at )?(?:\S*[/\\]\S*|node:\S+|[\w.<>-]+\.\w{1,5}|<\w+>):-?\d+(?::\w+)?$")
"""The file and line that V8, phpspy and Julia put behind a function's name."""

_QUALIFIERS = re.compile(
    r"(?:(?<=\))(?: (?:const|volatile|noexcept|async|throws|rethrows|&&?))+(?: ->.*)?|(?<=\)) ->.*"
    r"|(?<=\))\[\w+\]|(?<=\S) \[clone [^\[\]]*\]|(?<=\S) \(\.[\w.]+\)"
    r"|(?<=(?:etter|odify)) : \S.*| in conformance \S+)+$"
)
"""What follows arguments in C++, Swift and .NET, and marks of copies."""

_PHRASE = re.compile(
    r"(?:block|rescue|ensure) (?:\(\d+ levels\) )?in |(?:implicit )?closure #\d+ (?:.*? )??in "
    r"|(?:anonymous )?fn/\d+ in |(?:non-)?virtual thunk to |covariant return thunk to |guard variable for "
    r"|@(?:non)?objc |thread-local (?:wrapper|initialization) routine for |merged |specialized "
    r"|function (?=[<'])|bound |async |partial apply (?:forwarder )?for |protocol witness for "
    r"|(?:[a-z-]+ )*specialization <.*> of "
    r"|\(\d+\) (?:suspend|await) resume partial function for "
)
_OPERATOR = re.compile(r"\boperator (?:(?:unsigned|signed|long|short) )*(?=[A-Za-z_])")

_TYPE_WORD = re.compile(
    r"(?:void|bool|boolean|char|short|int|long|float|double|signed|unsigned|byte|object|string|auto|decltype"
    r"|u?int\d+|float\d+|\w+_t|const|volatile|static|virtual|inline|instance|native|valuetype|class|struct"
    r"|enum|union|final|synchronized|abstract|(?:public|private|protected|internal):?|__\w+|!!?\d+)[*&]*"
)
_TYPE_PATH = re.compile(r"[A-Za-z_][\w$]*(?:(?:::|\.)[\w$]+)+[*&]*|[A-Za-z_]\w*[*&]+")
_TYPE_NAME = re.compile(r"[A-Z][\w$]*")
_VERB = re.compile(r"SELECT|INSERT|UPDATE|DELETE|CALL|EXEC(?:UTE)?|SET|DO|PERFORM|WITH|CREATE|DROP|ALTER")
"""Words of SQL that stand before a call, as types do."""

_QUALIFIED = re.compile(r"\w(?:::|\.)[\w~]")
_SEPARATOR = re.compile(r"::|\.")


def is_frame_name(frame: str) -> bool:
    """Return whether a frame shows that it is a function's name, or has all of it in brackets."""
    name = _without_phrases(split_frame(frame[:_LONGEST]).name)
    if "</" in name:  # a tag of HTML
        return False
    if _OBJECTIVE_C.fullmatch(name) or _THREAD.fullmatch(name):
        return True
    bare = _bare(name)
    if not bare or _is_word(bare):
        return True
    *types, last = bare.split()
    method = _SEPARATOR.split(last)[-1]
    is_called = name.endswith((")", ">")) and any(f"{method}{bracket}" in name for bracket in "(<[")
    return is_called and _is_word(last) and _are_types(types, last)


def is_assigned(frame: str) -> bool:
    """Return whether a value is assigned outside a frame's brackets, as in settings and code."""
    return bool(_ASSIGNED.search(_bare(split_frame(frame[:_LONGEST]).name)))


def _without_phrases(name: str) -> str:
    """Return a name without its position, marks and qualifiers, and the words that may precede it."""
    while phrase := _PHRASE.match(name):
        name = name[phrase.end() :]
    name = _QUALIFIERS.sub("", _POSITION.sub("", name))
    if tagged := _TAGGED.fullmatch(name):
        name = tagged[0].rstrip().replace(" ", "_")
    return _OPERATOR.sub("operator_", name).replace("operator<< <", "operator<<<")


def _bare(name: str) -> str:
    """Return a name without what it has in brackets or quotes."""
    bare, before = name, ""
    while bare != before:
        bare, before = _ENCLOSED.sub("", bare), bare
    return bare.lstrip()


def _is_word(bare: str) -> bool:
    return bool(_ALPHABETIC.search(bare)) and not _NO_NAME.search(bare) and not _ASSIGNED.search(bare)


def _are_types(words: list[str], name: str) -> bool:
    """Return whether the words before a function's name are its return type and modifiers.

    One class without a path may be among them, if the function has a path.
    """
    unclear = [word for word in words if not (_TYPE_WORD.fullmatch(word) or _TYPE_PATH.fullmatch(word))]
    if not unclear:
        return True
    is_class = _TYPE_NAME.fullmatch(unclear[0]) and not _VERB.fullmatch(unclear[0])
    return len(unclear) == 1 and bool(is_class) and bool(_QUALIFIED.search(name))
